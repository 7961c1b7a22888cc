/* SPDX-License-Identifier: MIT */
/* Every stored config against its independently computed contract, or refused by name. */
#include "contract_text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const configs[] = {
    "bart-base", "bert-base", "bloom-176b", "chatglm3-6b-32k", "codellama-7b", "command-r-v01",
    "deepseek-coder-6.7b", "deepseek-r1", "deepseek-v2-lite", "ernie-4.5-0.3b", "falcon-7b",
    "falcon-rw-1b", "gemma-2b", "gemma2-9b", "gemma3-12b", "gemma4-26b-a4b", "glm-4.1v-9b",
    "glm-5", "glm-9b-cogview4", "gpt-j-6b", "gpt-neox-20b", "gpt-oss-20b", "gpt2",
    "granite-3.3-8b", "internlm2.5-7b", "jamba-tiny", "llama-1-7b", "llama-2-7b", "llama-3-8b",
    "llama-3.1-8b", "llama4-scout", "m2m100-418m", "mimo-v2-flash", "minicpm4-8b", "minimax-m3",
    "ministral3-3b", "mistral-7b-v0.1", "mixtral-8x7b", "modernbert-base", "mpt-7b", "mt5-small",
    "nomic-embed-text-v1.5", "olmo2-7b", "opus-mt-en-de", "persimmon-8b-base", "phi-1.5", "phi-2",
    "phi-3-vision-128k-su", "phi-3.5-mini", "qwen2-7b", "qwen2-vl-2b", "qwen2.5-7b-instruct-1m",
    "qwen3-32b", "qwen3-vl-32b", "qwen3.5-27b", "redpajama-3b", "roberta-base", "smollm2-135m",
    "smollm3-3b", "stablelm-2-1.6b", "starcoder2", "synthetic-dynamic-partial",
    "synthetic-longrope-factor", "synthetic-partial-rounding", "synthetic-yarn-attention-factor",
    "synthetic-yarn-factor-null", "synthetic-yarn-mscale-ratio", "synthetic-yarn-singular",
    "t5-small", "whisper-large-v2", "yarn-llama-2-7b-64k", "yi-6b",
};

enum { CONFIGS = sizeof configs / sizeof configs[0] };

static posenc_contract *open_config(const char *name)
{
    posenc_error error = {0, ""};
    char path[1024];
    posenc_contract *contract = NULL;
    snprintf(path, sizeof path, "%s/configs/%s.json", POSENC_TEST_DATA, name);
    int32_t status = posenc_contract_open(&contract, path, &error);
    if (status != POSENC_OK) {
        print_error("%s: status %d: %s\n", name, (int)status, error.text);
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

static int32_t scheme_of(const json_t *expected)
{
    static const char *const names[] = {"none",    "rope",    "alibi",     "t5_relative_bias",
                                        "deberta", "learned", "sinusoidal"};
    const char *name = json_string_value(json_object_get(expected, "scheme"));
    int32_t scheme = 0;
    while (strcmp(names[scheme], name) != 0) {
        scheme++;
        assert_true(scheme < 7);
    }
    return scheme;
}

static void check_facts(const char *name, const json_t *expected,
                        const posenc_contract_facts *facts)
{
    const char *key = json_string_value(json_object_get(expected, "max_position_key"));
    const json_t *softmax = json_object_get(expected, "softmax_scale");
    assert_int_equal(facts->scheme, scheme_of(expected));
    assert_string_equal(facts->model_type,
                        json_string_value(json_object_get(expected, "model_type")));
    assert_string_equal(facts->source, "config.json");
    assert_fact(name, expected, "num_heads", facts->num_heads);
    assert_fact(name, expected, "num_kv_heads", facts->num_kv_heads);
    assert_fact(name, expected, "head_dim", facts->head_dim);
    assert_fact(name, expected, "num_layers", facts->num_layers);
    assert_fact(name, expected, "max_position", facts->max_position);
    assert_true(key ? facts->max_position_key && strcmp(key, facts->max_position_key) == 0
                    : !facts->max_position_key);
    assert_near(name, "softmax_scale", json_object_get(softmax, "value"), facts->softmax_scale);
    if (facts->softmax_scale < 1.0) { /* else it is none, which has no spelling */
        assert_string_equal(facts->softmax_rule,
                            json_string_value(json_object_get(softmax, "rule")));
    }
    if (json_object_get(expected, "sliding_window")) {
        assert_fact(name, expected, "sliding_window", facts->sliding_window);
    }
}

static void check_frequencies(const char *name, const json_t *expected, const posenc_plan *plan,
                              int64_t length)
{
    double inv_freq[512], factor = 0.0;
    size_t pairs = (size_t)posenc_plan_pairs(plan);
    assert_fact(name, expected, "pairs", (int64_t)pairs);
    assert_in_range(pairs, 1, 512);
    assert_int_equal(posenc_plan_inv_freq_at(plan, length, 0, inv_freq, pairs, &factor, NULL),
                     POSENC_OK);
    for (size_t i = 0; i < pairs; i++) {
        assert_near(name, "inv_freq", json_array_get(json_object_get(expected, "inv_freq"), i),
                    inv_freq[i]);
    }
    assert_near(name, "attention_factor", json_object_get(expected, "attention_factor"), factor);
}

static void check_axes(const char *name, const json_t *expected, const posenc_contract_set *set)
{
    const json_t *mrope = json_object_get(expected, "mrope");
    const json_t *sections = json_object_get(mrope, "section");
    const json_t *axes = json_object_get(mrope, "axis_of_pair");
    if (!mrope) {
        assert_int_equal(set->axes, 1);
        assert_int_equal(set->num_sections, 0);
        assert_null(set->axis_of_pair);
        return;
    }
    assert_int_equal(set->axes, 3);
    assert_int_equal(set->num_sections, json_array_size(sections));
    assert_int_equal(set->interleaved, json_is_true(json_object_get(mrope, "interleaved")));
    for (size_t i = 0; i < json_array_size(sections); i++) {
        assert_int_equal(set->sections[i], json_integer_value(json_array_get(sections, i)));
    }
    assert_fact(name, expected, "pairs", (int64_t)json_array_size(axes));
    for (size_t i = 0; i < json_array_size(axes); i++) {
        assert_int_equal(set->axis_of_pair[i], json_integer_value(json_array_get(axes, i)));
    }
}

static void check_set(const char *name, const json_t *expected, const posenc_contract *contract,
                      int32_t index)
{
    posenc_contract_set set = contract_set(contract, index);
    posenc_rope_params params = contract_params(contract, index);
    posenc_plan *plan = NULL;
    posenc_error error;
    const char *layout = json_string_value(json_object_get(expected, "layout"));
    int64_t length = integer(expected, "seq_len");
    int dynamic = strcmp(set.rope_type, "dynamic") == 0;
    if (length < 0) {
        assert_string_equal(set.id, json_string_value(json_object_get(expected, "id")));
    }
    if (!dynamic) { /* there it is the declared limit, which the stored one leaves out */
        assert_fact(name, expected, "original_max_position", set.original_max_position);
    }
    assert_int_equal(set.depends_on_length, dynamic || strcmp(set.rope_type, "longrope") == 0);
    assert_string_equal(set.rope_type, json_string_value(json_object_get(expected, "rope_type")));
    assert_fact(name, expected, "rotary_dim", set.rotary_dim);
    assert_fact(name, expected, "rotary_offset", set.rotary_offset);
    assert_near(name, "theta", json_object_get(expected, "theta"), set.base);
    assert_int_equal(set.layout,
                     strcmp(layout, "adjacent") == 0 ? POSENC_ADJACENT : POSENC_SPLIT_HALF);
    check_axes(name, expected, &set);
    if (posenc_plan_create(&plan, &params, &error)) {
        print_error("%s: %s\n", name, error.text);
        fail();
    }
    check_frequencies(name, expected, plan, length < 0 ? 1 : length);
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
    if (contract_facts(contract).scheme != POSENC_SCHEME_ROPE) {
        return;
    }
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

static void check_tables(const char *name, const json_t *expected, const posenc_contract *contract)
{
    const json_t *wanted = json_object_get(expected, "learned");
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    assert_int_equal(posenc_contract_get_learned(contract, &learned, NULL),
                     wanted ? POSENC_OK : POSENC_ERROR_UNSUPPORTED);
    if (wanted) {
        assert_fact(name, wanted, "table_rows", learned.table_rows);
        assert_fact(name, wanted, "dim", learned.dim);
        assert_fact(name, wanted, "position_offset", learned.position_offset);
        assert_int_equal(learned.usable_positions, learned.table_rows - learned.position_offset);
    }
    wanted = json_object_get(expected, "sinusoidal");
    assert_int_equal(posenc_contract_get_sinusoidal(contract, &waves, NULL),
                     wanted ? POSENC_OK : POSENC_ERROR_UNSUPPORTED);
    if (wanted) {
        assert_fact(name, wanted, "dim", waves.dim);
        assert_fact(name, wanted, "rows", waves.rows);
        assert_fact(name, wanted, "row_offset", waves.row_offset);
        assert_string_equal(waves.kind, json_string_value(json_object_get(wanted, "kind")));
        assert_string_equal(waves.freq_divisor,
                            json_string_value(json_object_get(wanted, "freq_divisor")));
    }
}

static void check_biases(const char *name, const json_t *expected, const posenc_contract *contract)
{
    const json_t *wanted = json_object_get(expected, "alibi");
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    assert_int_equal(posenc_contract_get_alibi(contract, &alibi, NULL),
                     wanted ? POSENC_OK : POSENC_ERROR_UNSUPPORTED);
    if (wanted) {
        const json_t *scaled = json_object_get(wanted, "bias_multiplied_by_softmax_scale");
        assert_true(alibi.max_bias == json_number_value(json_object_get(wanted, "bias_max")));
        assert_string_equal(alibi.bias, json_string_value(json_object_get(wanted, "bias")));
        assert_int_equal(alibi.scaled, json_is_true(scaled));
    }
    wanted = json_object_get(expected, "t5");
    assert_int_equal(posenc_contract_get_t5(contract, &t5, NULL),
                     wanted ? POSENC_OK : POSENC_ERROR_UNSUPPORTED);
    if (wanted) {
        assert_fact(name, wanted, "num_buckets", t5.num_buckets);
        assert_fact(name, wanted, "max_distance", t5.max_distance);
        assert_true(t5.encoder && t5.decoder && !t5.per_layer);
    }
}

static void check_contract(const char *name)
{
    posenc_contract *contract = open_config(name);
    json_t *expected = open_expected(name), *rope;
    posenc_contract_facts facts = contract_facts(contract);
    size_t i;
    int32_t at_lengths = 0;
    check_facts(name, expected, &facts);
    check_layers(name, expected, contract);
    check_query_scale(name, expected, &facts);
    check_tables(name, expected, contract);
    check_biases(name, expected, contract);
    json_array_foreach(json_object_get(expected, "rope"), i, rope) {
        int at_length = integer(rope, "seq_len") > 0;
        at_lengths += at_length;
        check_set(name, rope, contract, at_length ? 0 : (int32_t)i);
    }
    assert_int_equal(facts.num_sets, (int32_t)i - at_lengths);
    json_decref(expected);
    posenc_contract_free(contract);
}

static void test_golden(void **state)
{
    for (size_t n = 0; n < CONFIGS; n++) {
        check_contract(configs[n]);
    }
    assert_int_equal(CONFIGS, 72);
    (void)state;
}

/* The kv heads of sliding layers differ in this model. */
static void test_local_heads(void **state)
{
    posenc_contract *contract = open_config("mimo-v2-flash");
    json_t *expected = open_expected("mimo-v2-flash");
    assert_int_equal(contract_set(contract, 0).num_kv_heads, 4);
    assert_int_equal(contract_set(contract, 1).num_kv_heads,
                     integer(expected, "num_kv_heads_local"));
    json_decref(expected);
    posenc_contract_free(contract);
    (void)state;
}

/* The full layers have wider heads, of which a quarter of the pairs moves. */
static void test_global_heads(void **state)
{
    posenc_contract *contract = open_config("gemma4-26b-a4b");
    json_t *expected = open_expected("gemma4-26b-a4b");
    posenc_contract_set global = contract_set(contract, 0), local = contract_set(contract, 1);
    assert_int_equal(global.head_dim, integer(expected, "head_dim_global"));
    assert_int_equal(global.num_kv_heads, integer(expected, "num_kv_heads_global"));
    assert_int_equal(contract_params(contract, 0).rotating_pairs, 64);
    assert_int_equal(local.head_dim, 256);
    assert_int_equal(local.num_kv_heads, 8);
    assert_true(contract_facts(contract).logit_softcap == 0.0);
    json_decref(expected);
    posenc_contract_free(contract);
    (void)state;
}

/* Only the layers that the period names have attention; none has positions. */
static void test_no_scheme(void **state)
{
    posenc_contract *contract = open_config("jamba-tiny");
    json_t *expected = open_expected("jamba-tiny");
    const json_t *list = json_object_get(expected, "attention_layers");
    assert_int_equal(json_array_size(list), 1);
    for (int64_t i = 0; i < 4; i++) {
        int attends = json_integer_value(json_array_get(list, 0)) == i;
        assert_int_equal(posenc_contract_layer_set(contract, i),
                         attends ? POSENC_LAYER_NOT_ROTATED : POSENC_LAYER_NO_ATTENTION);
    }
    json_decref(expected);
    posenc_contract_free(contract);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_local_heads),
        cmocka_unit_test(test_global_heads),
        cmocka_unit_test(test_no_scheme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
