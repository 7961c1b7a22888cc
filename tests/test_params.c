/* SPDX-License-Identifier: MIT */
/* params.json of Meta and of Mistral: whose it is, and what its keys mean. */
#include "contract_text.h"

#include <math.h>
#include <stdio.h>

/* Shapes of Llama 3.1 8B, Llama 2 7B, Mistral 7B, Ministral 3 and Mistral Large 3. */
#define META3                                                                                      \
    "\"dim\": 4096, \"n_layers\": 32, \"n_heads\": 32, \"n_kv_heads\": 8, \"multiple_of\": 1024,"  \
    " \"ffn_dim_multiplier\": 1.3, \"rope_theta\": 500000.0"
#define MISTRAL                                                                                    \
    "\"dim\": 4096, \"n_layers\": 32, \"n_heads\": 32, \"n_kv_heads\": 8, \"head_dim\": 128,"      \
    " \"hidden_dim\": 14336"
#define YARN "\"original_max_position_embeddings\": 16384, \"factor\": 16, "

static int32_t refusal(const char *json, posenc_error *error)
{
    posenc_contract *contract;
    int32_t status = contract_try(&contract, json, error);
    assert_null(contract);
    return status;
}

static void assert_refused(const char *json, const char *words)
{
    posenc_error error;
    assert_int_equal(refusal(json, &error), POSENC_ERROR_MODEL);
    if (!strstr(error.text, words)) {
        print_error("\"%s\" lacks \"%s\"\n", error.text, words);
        fail();
    }
}

static void test_meta(void **state)
{
    (void)state;
    posenc_contract *contract = contract_of("{" META3 ", \"use_scaled_rope\": true}");
    posenc_contract_facts facts = contract_facts(contract);
    posenc_rope_params params = contract_params(contract, 0);
    assert_string_equal(facts.source, "params.json");
    assert_int_equal(facts.num_kv_heads, 8);
    assert_int_equal(params.layout, POSENC_ADJACENT);
    assert_int_equal(params.head_dim, 128);
    assert_int_equal(params.scaling, POSENC_SCALING_LLAMA3);
    assert_true(params.base == 5e5 && params.factor == 8.0 && params.low_freq_factor == 1.0);
    assert_true(params.high_freq_factor == 4.0 && params.original_max_position == 8192.0);
    assert_string_equal(contract_assumed(contract, "rope_scaling_factor"), "8");
    assert_string_equal(contract_assumed(contract, "layout"), "\"adjacent\"");
    assert_non_null(contract_warning(contract, "use_scaled_rope"));
    assert_true(fabs(facts.softmax_scale - 1.0 / sqrt(128.0)) < 1e-16);
    posenc_contract_free(contract);

    contract = contract_of("{\"dim\": 4096, \"n_layers\": 32, \"n_heads\": 32,"
                           " \"multiple_of\": 256, \"vocab_size\": -1}");
    assert_int_equal(contract_params(contract, 0).scaling, POSENC_SCALING_NONE);
    assert_string_equal(contract_assumed(contract, "rope_theta"), "10000");
    assert_string_equal(contract_assumed(contract, "n_kv_heads"), "32");
    posenc_contract_free(contract);
}

static void test_llama4(void **state)
{
    (void)state;
    posenc_contract *contract = contract_of(
        "{\"dim\": 5120, \"n_layers\": 48, \"n_heads\": 40, \"n_kv_heads\": 8, \"use_scaled_rope\":"
        " true, \"nope_layer_interval\": 4, \"attn_temperature_tuning\": true,"
        " \"attention_chunk_size\": 8192}");
    posenc_contract_facts facts = contract_facts(contract);
    posenc_rope_params params = contract_params(contract, 0);
    assert_int_equal(posenc_contract_layer_set(contract, 2), 0);
    assert_int_equal(posenc_contract_layer_set(contract, 3), POSENC_LAYER_NOT_ROTATED);
    assert_true(params.base == 5e5 && params.factor == 16.0);
    assert_true(params.high_freq_factor == nextafter(1.0, 2.0));
    assert_string_equal(facts.query_scale_layers, "nope_layers");
    assert_true(facts.query_scale_factor == 0.1);
    assert_int_equal(facts.query_scale_floor, 8192);
    assert_int_equal(facts.query_scale_offset, 1);
    assert_non_null(contract_warning(contract, "attention_chunk_size"));
    posenc_contract_free(contract);
}

static void test_mistral(void **state)
{
    (void)state;
    posenc_contract *contract = contract_of("{" MISTRAL ", \"sliding_window\": 4096}");
    assert_int_equal(contract_facts(contract).sliding_window, 4096);
    assert_string_equal(contract_assumed(contract, "rope_theta"), "10000");
    posenc_contract_free(contract);
    contract = contract_of("{" MISTRAL "}");
    assert_string_equal(contract_assumed(contract, "rope_theta"), "1000000");
    posenc_contract_free(contract);
    contract = contract_of("{" MISTRAL ", \"sliding_window\": [1024, null, 1024, null]}");
    assert_string_equal(posenc_contract_layer_type(contract, 4), "sliding");
    assert_string_equal(posenc_contract_layer_type(contract, 5), "full");
    posenc_contract_free(contract);
}

/* beta is the fast one, alpha the slow one; apply_scale switches the magnitude. */
static void test_yarn(void **state)
{
    (void)state;
    posenc_contract *contract = contract_of(
        "{" MISTRAL ", \"rope_theta\": 1e6, \"max_position_embeddings\": 262144, \"yarn\": {" YARN
        "\"beta\": 32, \"alpha\": 2, \"apply_scale\": false, \"odd\": 1}, \"llama_4_scaling\":"
        " {\"original_max_position_embeddings\": 16384, \"beta\": 0.1}}");
    posenc_contract_facts facts = contract_facts(contract);
    posenc_rope_params params = contract_params(contract, 0);
    assert_int_equal(params.scaling, POSENC_SCALING_YARN);
    assert_true(params.beta_fast == 32.0 && params.beta_slow == 2.0 && params.factor == 16.0);
    assert_true(params.attention_factor == 1.0);
    assert_string_equal(facts.query_scale_layers, "all");
    assert_true(facts.query_scale_factor == 0.1);
    assert_int_equal(facts.query_scale_floor, 16384);
    assert_int_equal(facts.max_position, 262144);
    assert_int_equal(facts.trained_position, 16384);
    assert_non_null(contract_warning(contract, "odd"));
    posenc_contract_free(contract);

    contract = contract_of("{" MISTRAL ", \"yarn\": {" YARN "\"apply_scale\": true}}");
    params = contract_params(contract, 0);
    assert_true(params.attention_factor == 0.0 && params.mscale == 0.0);
    assert_string_equal(contract_assumed(contract, "alpha"), "1");
    posenc_contract_free(contract);

    contract = contract_of("{\"dim\": 7168, \"n_layers\": 2, \"n_heads\": 128, \"hidden_dim\": 1,"
                           " \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"yarn\": {" YARN
                           "\"apply_scale\": true}}");
    params = contract_params(contract, 0);
    assert_int_equal(params.rotary_offset, 128);
    assert_int_equal(params.rotary_dim, 64);
    assert_int_equal(params.head_dim, 192);
    double g = 0.1 * log(16.0) + 1.0;
    assert_true(fabs(contract_facts(contract).softmax_scale - g * g / sqrt(192.0)) < 1e-15);
    posenc_contract_free(contract);
}

/* The same model as a config.json: only the pair layout differs. */
static void test_same_as_config(void **state)
{
    (void)state;
    posenc_contract *a = contract_of("{" META3 ", \"use_scaled_rope\": true}");
    posenc_contract *b = contract_of(
        "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_hidden_layers\": 32,"
        " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"rope_theta\": 500000.0,"
        " \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0,"
        " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}");
    posenc_contract_difference found[4];
    size_t count;
    assert_int_equal(posenc_contract_compare(a, b, found, 4, &count, NULL), POSENC_OK);
    assert_int_equal(count, 1);
    assert_string_equal(found[0].key, "rope[main].layout");
    posenc_contract_free(a);
    posenc_contract_free(b);
}

/* Stored files beside the config.json of the same models. */
static void test_files(void **state)
{
    static const struct {
        const char *name;
        const char *keys[3];
    } models[] = {
        {"llama-2-7b", {"rope[main].layout"}},
        {"llama-3.1-8b", {"rope[main].layout"}},
        {"llama4-scout", {NULL}},
        {"mistral-7b-v0.1", {"rope[main].layout"}},
        {"ministral3-3b", {"rope[main].layout"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[1024];
        posenc_contract *both[2] = {NULL, NULL};
        posenc_contract_difference found[4];
        size_t count, wanted = 0;
        for (int n = 0; n < 2; n++) {
            snprintf(path, sizeof path, "%s/%s/%s.json", POSENC_TEST_DATA,
                     n ? "params" : "configs", models[i].name);
            assert_int_equal(posenc_contract_open(&both[n], path, NULL), POSENC_OK);
        }
        assert_string_equal(contract_facts(both[1]).source, "params.json");
        assert_int_equal(posenc_contract_compare(both[0], both[1], found, 4, &count, NULL),
                         POSENC_OK);
        for (; wanted < count && wanted < 3 && models[i].keys[wanted]; wanted++) {
            assert_string_equal(found[wanted].key, models[i].keys[wanted]);
        }
        if (count != wanted || models[i].keys[wanted]) {
            print_error("%s: %s: %s, not %s\n", models[i].name, found[wanted].key,
                        found[wanted].b, found[wanted].a);
            fail();
        }
        posenc_contract_free(both[0]);
        posenc_contract_free(both[1]);
    }
}

static void test_refusals(void **state)
{
    static const char *const pairs[][2] = {
        {"{" META3 ", \"yarn\": {}}", "yarn is an object: a key of Mistral's beside Meta's"},
        {"{\"dim\": 64, \"n_layers\": 1, \"n_heads\": 1}", "rope_theta is missing"},
        {"{\"dim\": 64, \"n_layers\": 1, \"hidden_dim\": 1}", "n_heads is missing"},
        {"{\"dim\": 65, \"n_layers\": 1, \"n_heads\": 2, \"hidden_dim\": 1}", "dim is 65"},
        {"{\"dim\": 6, \"n_layers\": 1, \"n_heads\": 2, \"hidden_dim\": 1}", "odd number"},
        {"{\"dim\": 64, \"n_layers\": 0, \"n_heads\": 2, \"hidden_dim\": 1}", "n_layers is 0"},
        {"{" MISTRAL ", \"n_kv_heads\": 5}", "twice"},
        {"{" MISTRAL ", \"yarn\": {\"factor\": 4}}", "yarn.original_max_position_embeddings is"},
        {"{" MISTRAL ", \"yarn\": {" YARN "\"alpha\": 64}}", "yarn.alpha is 64: must not exceed"},
        {"{" MISTRAL ", \"yarn\": {" YARN "\"beta\": -1}}", "yarn.beta is -1"},
        {"{" MISTRAL ", \"yarn\": 1}", "yarn is 1: must be an object"},
        {"{" MISTRAL ", \"sliding_window\": [1, 2]}", "sliding_window is a list"},
        {"{" MISTRAL ", \"sliding_window\": []}", "must not be empty"},
        {"{" MISTRAL ", \"rope_theta\": 1}", "rope_theta is 1: must be > 1"},
        {"{" MISTRAL ", \"qk_nope_head_dim\": 1}", "qk_rope_head_dim is missing"},
        {"{" MISTRAL ", \"llama_4_scaling\": {\"beta\": 1}}", "llama_4_scaling.original_max"},
        {"{" META3 ", \"use_scaled_rope\": 1}", "use_scaled_rope is 1: must be true or false"},
        {"{" META3 ", \"use_scaled_rope\": true, \"rope_high_freq_factor\": 0.5}", "must be >= 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        posenc_error error;
        if (strcmp(pairs[i][1], "twice") == 0) { /* strict JSON: a duplicate key */
            assert_int_equal(refusal(pairs[i][0], &error), POSENC_ERROR_FORMAT);
        } else {
            assert_refused(pairs[i][0], pairs[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meta),    cmocka_unit_test(test_llama4),
        cmocka_unit_test(test_mistral), cmocka_unit_test(test_yarn),
        cmocka_unit_test(test_same_as_config), cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
