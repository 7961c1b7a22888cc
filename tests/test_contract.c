/* SPDX-License-Identifier: MIT */
/* Every stored config against its independently computed contract, or refused by name. */
#include "contract_text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const accepted[] = {
    "chatglm3-6b-32k", "codellama-7b", "command-r-v01", "deepseek-coder-6.7b", "deepseek-r1",
    "deepseek-v2-lite", "ernie-4.5-0.3b", "falcon-7b", "gemma-2b", "gemma2-9b", "gemma3-12b",
    "glm-5", "glm-9b-cogview4", "gpt-j-6b", "gpt-neox-20b", "gpt-oss-20b", "granite-3.3-8b",
    "llama-1-7b", "llama-2-7b", "llama-3-8b", "llama-3.1-8b", "llama4-scout", "mimo-v2-flash",
    "minimax-m3", "ministral3-3b", "mistral-7b-v0.1", "mixtral-8x7b", "modernbert-base",
    "nomic-embed-text-v1.5", "olmo2-7b", "persimmon-8b-base", "phi-1.5", "phi-2", "qwen2-7b",
    "qwen2.5-7b-instruct-1m", "qwen3-32b", "redpajama-3b", "smollm2-135m", "smollm3-3b",
    "stablelm-2-1.6b", "starcoder2", "synthetic-partial-rounding",
    "synthetic-yarn-attention-factor", "synthetic-yarn-factor-null", "synthetic-yarn-mscale-ratio",
    "synthetic-yarn-singular", "yarn-llama-2-7b-64k", "yi-6b",
};

static const struct {
    const char *name;
    const char *key;
    const char *reason;
} refused[] = {
    {"bart-base", "model_type", "learned"},
    {"bert-base", "model_type", "learned"},
    {"bloom-176b", "model_type", "alibi"},
    {"falcon-rw-1b", "alibi", "alibi"},
    {"gemma4-26b-a4b", "model_type", "proportional"},
    {"glm-4.1v-9b", "rope_scaling.mrope_section", "mrope"},
    {"gpt2", "model_type", "learned"},
    {"internlm2.5-7b", "rope_scaling.type", "dynamic"},
    {"jamba-tiny", "model_type", "none"},
    {"m2m100-418m", "model_type", "sinusoidal"},
    {"minicpm4-8b", "rope_scaling.rope_type", "longrope"},
    {"mpt-7b", "model_type", "alibi"},
    {"mt5-small", "model_type", "t5_relative_bias"},
    {"opus-mt-en-de", "model_type", "sinusoidal"},
    {"phi-3-vision-128k-su", "rope_scaling.type is \"su\"", "longrope"},
    {"phi-3.5-mini", "rope_scaling.type", "longrope"},
    {"qwen2-vl-2b", "rope_scaling.mrope_section", "mrope"},
    {"qwen3-vl-32b", "text_config.rope_scaling.mrope_", "mrope"},
    {"qwen3.5-27b", "text_config.rope_parameters.mrope_", "mrope"},
    {"roberta-base", "model_type", "learned"},
    {"synthetic-dynamic-partial", "rope_scaling.type", "dynamic"},
    {"synthetic-longrope-factor", "rope_scaling.rope_type", "longrope"},
    {"t5-small", "model_type", "t5_relative_bias"},
    {"whisper-large-v2", "model_type", "sinusoidal"},
};

enum { ACCEPTED = sizeof accepted / sizeof accepted[0] };

static posenc_contract *open_config(const char *name, int32_t wanted, posenc_error *error)
{
    char path[1024];
    posenc_contract *contract = NULL;
    memset(error, 0, sizeof *error);
    snprintf(path, sizeof path, "%s/configs/%s.json", POSENC_TEST_DATA, name);
    int32_t status = posenc_contract_open(&contract, path, error);
    if (status != wanted) {
        print_error("%s: status %d: %s\n", name, (int)status, error->text);
        fail();
    }
    return contract;
}

static json_t *open_expected(const char *name)
{
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof path, "%s/expected/%s.json", POSENC_TEST_DATA, name);
    json_t *json = json_load_file(path, 0, &error);
    assert_non_null(json);
    return json;
}

static int64_t integer(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* Stored reals are texts of 17 digits of the exact value. */
static void assert_near(const char *name, const char *what, const json_t *text, double got)
{
    double wanted = strtod(json_string_value(text), NULL);
    if (!(fabs(got - wanted) <= 1e-15 * fabs(wanted))) {
        print_error("%s: %s is %.17g, not %.17g\n", name, what, got, wanted);
        fail();
    }
}

static void assert_fact(const char *name, const json_t *expected, const char *key, int64_t got)
{
    if (integer(expected, key) != got) {
        print_error("%s: %s is %lld, not %lld\n", name, key, (long long)got,
                    (long long)integer(expected, key));
        fail();
    }
}

static void check_facts(const char *name, const json_t *expected,
                        const posenc_contract_facts *facts)
{
    const char *key = json_string_value(json_object_get(expected, "max_position_key"));
    const json_t *softmax = json_object_get(expected, "softmax_scale");
    assert_int_equal(facts->scheme, POSENC_SCHEME_ROPE);
    assert_fact(name, expected, "num_heads", facts->num_heads);
    assert_fact(name, expected, "num_kv_heads", facts->num_kv_heads);
    assert_fact(name, expected, "head_dim", facts->head_dim);
    assert_fact(name, expected, "num_layers", facts->num_layers);
    assert_fact(name, expected, "max_position", facts->max_position);
    assert_true(key ? facts->max_position_key && strcmp(key, facts->max_position_key) == 0
                    : !facts->max_position_key);
    assert_near(name, "softmax_scale", json_object_get(softmax, "value"), facts->softmax_scale);
    assert_string_equal(facts->softmax_rule, json_string_value(json_object_get(softmax, "rule")));
    if (json_object_get(expected, "sliding_window")) {
        assert_fact(name, expected, "sliding_window", facts->sliding_window);
    }
}

static void check_set(const char *name, const json_t *expected, const posenc_contract *contract,
                      int32_t index)
{
    posenc_contract_set set = contract_set(contract, index);
    posenc_rope_params params = contract_params(contract, index);
    posenc_plan *plan = NULL;
    posenc_error error;
    double inv_freq[512];
    const char *layout = json_string_value(json_object_get(expected, "layout"));
    assert_string_equal(set.id, json_string_value(json_object_get(expected, "id")));
    assert_string_equal(set.rope_type, json_string_value(json_object_get(expected, "rope_type")));
    assert_fact(name, expected, "rotary_dim", set.rotary_dim);
    assert_fact(name, expected, "rotary_offset", set.rotary_offset);
    assert_fact(name, expected, "original_max_position", set.original_max_position);
    assert_near(name, "theta", json_object_get(expected, "theta"), set.base);
    assert_int_equal(set.layout,
                     strcmp(layout, "adjacent") == 0 ? POSENC_ADJACENT : POSENC_SPLIT_HALF);
    if (posenc_plan_create(&plan, &params, &error)) {
        print_error("%s: %s\n", name, error.text);
        fail();
    }
    size_t pairs = (size_t)posenc_plan_pairs(plan);
    assert_fact(name, expected, "pairs", (int64_t)pairs);
    assert_int_equal(posenc_plan_inv_freq(plan, inv_freq, pairs, NULL), POSENC_OK);
    for (size_t i = 0; i < pairs; i++) {
        assert_near(name, "inv_freq", json_array_get(json_object_get(expected, "inv_freq"), i),
                    inv_freq[i]);
    }
    assert_near(name, "attention_factor", json_object_get(expected, "attention_factor"),
                posenc_plan_attention_factor(plan));
    posenc_plan_free(plan);
}

/* Set id or kind of each layer, as the stored groups name it. */
static void check_groups(const char *name, const json_t *groups, const posenc_contract *contract)
{
    const char *group;
    json_t *list, *entry;
    size_t i, listed = 0;
    posenc_contract_facts facts = contract_facts(contract);
    json_object_foreach((json_t *)groups, group, list) {
        json_array_foreach(list, i, entry) {
            int64_t layer = json_integer_value(entry);
            int32_t set = posenc_contract_layer_set(contract, layer);
            assert_in_range(set, 0, facts.num_sets - 1);
            const char *got = facts.num_sets > 1 ? contract_set(contract, set).id
                                                 : posenc_contract_layer_type(contract, layer);
            if (strcmp(got, group) != 0) {
                print_error("%s: layer %d is %s, not %s\n", name, (int)layer, got, group);
                fail();
            }
            listed++;
        }
    }
    assert_int_equal(listed, facts.num_layers);
}

static void check_layers(const char *name, const json_t *expected, const posenc_contract *contract)
{
    const json_t *nope = json_object_get(expected, "nope_layers");
    size_t found = 0;
    for (int64_t i = 0; i < contract_facts(contract).num_layers; i++) {
        if (posenc_contract_layer_set(contract, i) == POSENC_LAYER_NOT_ROTATED) {
            assert_int_equal(json_integer_value(json_array_get(nope, found)), i);
            found++;
        }
    }
    assert_int_equal(found, json_array_size(nope));
    if (json_object_get(expected, "layer_sets")) {
        check_groups(name, json_object_get(expected, "layer_sets"), contract);
    }
}

static void check_query_scale(const char *name, const json_t *expected,
                              const posenc_contract_facts *facts)
{
    const json_t *scale = json_object_get(expected, "query_scale");
    const char *position;
    json_t *value;
    if (!scale) {
        assert_null(facts->query_scale_layers);
        return;
    }
    assert_string_equal(facts->query_scale_layers,
                        json_string_value(json_object_get(scale, "applies_to")));
    json_object_foreach(json_object_get(scale, "value"), position, value) {
        int64_t p = strtoll(position, NULL, 10) + facts->query_scale_offset;
        assert_near(name, "query_scale", value,
                    1.0 + facts->query_scale_factor *
                              log(1.0 + (double)(p / facts->query_scale_floor)));
    }
}

static void test_golden(void **state)
{
    for (size_t n = 0; n < ACCEPTED; n++) {
        const char *name = accepted[n];
        posenc_error error;
        posenc_contract *contract = open_config(name, POSENC_OK, &error);
        json_t *expected = open_expected(name);
        posenc_contract_facts facts = contract_facts(contract);
        check_facts(name, expected, &facts);
        check_layers(name, expected, contract);
        check_query_scale(name, expected, &facts);
        assert_int_equal(facts.num_sets, json_array_size(json_object_get(expected, "rope")));
        for (int32_t i = 0; i < facts.num_sets; i++) {
            check_set(name, json_array_get(json_object_get(expected, "rope"), (size_t)i), contract,
                      i);
        }
        json_decref(expected);
        posenc_contract_free(contract);
    }
    assert_int_equal(ACCEPTED, 48);
    (void)state;
}

static void test_refused(void **state)
{
    for (size_t n = 0; n < sizeof refused / sizeof refused[0]; n++) {
        posenc_error error;
        assert_null(open_config(refused[n].name, POSENC_ERROR_MODEL, &error));
        if (!strstr(error.text, refused[n].key) || !strstr(error.text, refused[n].reason)) {
            print_error("%s: %s\n", refused[n].name, error.text);
            fail();
        }
    }
    assert_int_equal(sizeof refused / sizeof refused[0], 24);
    (void)state;
}

/* The kv heads of sliding layers differ in this model. */
static void test_local_heads(void **state)
{
    posenc_error error;
    posenc_contract *contract = open_config("mimo-v2-flash", POSENC_OK, &error);
    json_t *expected = open_expected("mimo-v2-flash");
    assert_int_equal(contract_set(contract, 0).num_kv_heads, 4);
    assert_int_equal(contract_set(contract, 1).num_kv_heads,
                     integer(expected, "num_kv_heads_local"));
    json_decref(expected);
    posenc_contract_free(contract);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_local_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
