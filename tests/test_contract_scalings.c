/* SPDX-License-Identifier: MIT */
/* Reading LongRoPE, dynamic and other NTK, proportional frequencies, position axes. */
#include "contract_text.h"

#include <stdio.h>

#define LIMIT ", \"max_position_embeddings\": 16384"
#define SIXTEEN "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1"
#define LISTS "\"short_factor\": [" SIXTEEN "], \"long_factor\": [" SIXTEEN "]"

/* A llama, or another class of that shape, with a rope block. */
static posenc_contract *with_block(const char *type, const char *members, const char *block)
{
    char json[1536];
    snprintf(json, sizeof json,
             "{\"model_type\": \"%s\", " SHAPE LIMIT "%s, \"rope_scaling\": {%s}}", type, members,
             block);
    return contract_of(json);
}

/* The factor is the one given, else the ratio of the lengths; the length beside the block counts.
 */
static void test_longrope(void **state)
{
    static const struct {
        const char *members, *block;
        double original, factor;
        const char *warned, *assumed;
    } cases[] = {
        {", \"original_max_position_embeddings\": 4096", "", 4096, 4, NULL, "factor"},
        {"", ", \"original_max_position_embeddings\": 2048", 2048, 8, NULL, "factor"},
        {"", ", \"factor\": null, \"original_max_position_embeddings\": 2048", 2048, 8, NULL,
         "factor"},
        {", \"original_max_position_embeddings\": 4096",
         ", \"original_max_position_embeddings\": 2048, \"factor\": 4", 4096, 4,
         "original_max_position_embeddings", NULL},
        {"", ", \"original_max_position_embeddings\": 4096, \"factor\": 32", 4096, 32, "factor",
         NULL},
        {"", "", 16384, 1, NULL, "original_max_position_embeddings"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char members[256], block[768];
        snprintf(members, sizeof members, ", \"head_dim\": 32%s", cases[i].members);
        snprintf(block, sizeof block, "\"type\": \"su\", " LISTS "%s", cases[i].block);
        posenc_contract *contract = with_block("llama", members, block);
        posenc_rope_params params = contract_params(contract, 1);
        assert_true(params.original_max_position == cases[i].original);
        assert_true(params.factor == cases[i].factor);
        assert_true(params.length == (int64_t)cases[i].original + 1);
        assert_int_equal(contract_facts(contract).num_warnings, cases[i].warned != NULL);
        assert_true(!cases[i].warned || contract_warning(contract, cases[i].warned));
        assert_true(!cases[i].assumed || contract_assumed(contract, cases[i].assumed));
        posenc_contract_free(contract);
    }
    (void)state;
}

/* One class has an attention factor for each list; elsewhere these keys mean nothing. */
static void test_longrope_attention(void **state)
{
    static const char block[] = "\"type\": \"longrope\", " LISTS
                                ", \"original_max_position_embeddings\": 4096,"
                                " \"short_mscale\": 1.25, \"long_mscale\": 1.5";
    posenc_contract *contract = with_block("phimoe", ", \"head_dim\": 32", block);
    posenc_rope_params params = contract_params(contract, 0);
    assert_true(params.short_attention == 1.25 && params.long_attention == 1.5);
    assert_int_equal(contract_facts(contract).num_warnings, 0);
    posenc_contract_free(contract);
    contract = with_block("llama", ", \"head_dim\": 32", block);
    params = contract_params(contract, 0);
    assert_true(params.short_attention == 0 && params.long_attention == 0);
    assert_non_null(contract_warning(contract, "rope_scaling.short_mscale"));
    assert_non_null(contract_warning(contract, "rope_scaling.long_mscale"));
    posenc_contract_free(contract);
    (void)state;
}

/* A kind of layer may have LongRoPE of its own, another none at all. */
static void test_longrope_of_one_kind(void **state)
{
    posenc_contract *contract = contract_of(
        "{" LLAMA LIMIT ", \"head_dim\": 32, \"layer_types\": [\"sliding_attention\","
        " \"full_attention\"], \"rope_parameters\": {\"full_attention\": {\"rope_type\":"
        " \"longrope\", \"original_max_position_embeddings\": 4096, " LISTS "},"
        " \"sliding_attention\": null}}");
    assert_int_equal(contract_facts(contract).num_sets, 2);
    assert_string_equal(contract_set(contract, 0).id, "global-short");
    assert_string_equal(contract_set(contract, 1).id, "global-long");
    assert_int_equal(posenc_contract_layer_set(contract, 0), POSENC_LAYER_NOT_ROTATED);
    assert_int_equal(posenc_contract_layer_set(contract, 1), 0);
    posenc_contract_free(contract);
    (void)state;
}

static void test_ntk(void **state)
{
    static const struct {
        const char *block;
        int32_t scaling;
        double factor;
        double original;
        const char *kind, *warned;
    } cases[] = {
        {"\"type\": \"dynamic\", \"factor\": 2", POSENC_SCALING_DYNAMIC_NTK, 2, 16384, "dynamic",
         NULL},
        {"\"type\": \"dynamic\", \"factor\": 2, \"original_max_position_embeddings\": 4096",
         POSENC_SCALING_DYNAMIC_NTK, 2, 4096, "dynamic", "original_max_position_embeddings"},
        {"\"type\": \"dynamic\", \"factor\": 1, \"alpha\": 1000", POSENC_SCALING_NTK, 1000, 0,
         "ntk", "rope_scaling.factor"},
        {"\"type\": \"dynamic\", \"factor\": 2, \"alpha\": null", POSENC_SCALING_DYNAMIC_NTK, 2,
         16384, "dynamic", NULL},
        {"\"type\": \"ntk\", \"factor\": 4", POSENC_SCALING_NTK_SCALED, 4, 0, "ntk", NULL},
        {"\"type\": \"ntk\", \"factor\": 4, \"mixed_b\": 0.5", POSENC_SCALING_NTK_MIXED, 4, 0,
         "ntk", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = with_block("llama", "", cases[i].block);
        posenc_rope_params params = contract_params(contract, 0);
        assert_int_equal(params.scaling, cases[i].scaling);
        assert_true(params.factor == cases[i].factor);
        assert_true(params.original_max_position == cases[i].original);
        assert_true(params.mixed_exponent == (i == 5 ? 0.5 : 0.0));
        assert_string_equal(contract_set(contract, 0).rope_type, cases[i].kind);
        assert_int_equal(contract_facts(contract).num_warnings, cases[i].warned != NULL);
        assert_true(!cases[i].warned || contract_warning(contract, cases[i].warned));
        posenc_contract_free(contract);
    }
    (void)state;
}

/* int(0.29 * 128 // 2) is 18, of a head that takes part whole. */
static void test_proportional(void **state)
{
    posenc_contract *contract = with_block(
        "llama", "", "\"rope_type\": \"proportional\", \"partial_rotary_factor\": 0.29");
    posenc_rope_params params = contract_params(contract, 0);
    assert_int_equal(params.rotary_dim, 128);
    assert_int_equal(params.rotating_pairs, 18);
    assert_true(params.factor == 1.0);
    posenc_contract_free(contract);
    contract = contract_of("{\"model_type\": \"gemma4_text\", " SHAPE ", \"head_dim\": 64,"
                           " \"global_head_dim\": 96, \"num_global_key_value_heads\": 2}");
    assert_non_null(contract_assumed(contract, "rope_parameters"));
    assert_int_equal(contract_set(contract, 0).head_dim, 96);
    assert_int_equal(contract_set(contract, 0).num_kv_heads, 4); /* attention_k_eq_v is off */
    assert_int_equal(contract_params(contract, 0).rotating_pairs, 12);
    assert_int_equal(contract_set(contract, 1).head_dim, 64);
    posenc_contract_free(contract);
    (void)state;
}

static void check_axes(const char *type, const char *block, int32_t axes, const char *map)
{
    posenc_contract *contract = with_block(type, ", \"num_key_value_heads\": 4, \"head_dim\": 16",
                                           block);
    posenc_contract_set set = contract_set(contract, 0);
    assert_int_equal(set.axes, axes);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(set.axis_of_pair[i], map[i] - '0');
    }
    assert_int_equal(contract_params(contract, 0).axes, axes);
    posenc_contract_free(contract);
}

static void test_axes(void **state)
{
    check_axes("qwen2_vl", "\"mrope_section\": [2, 3, 3]", 3, "00111222");
    check_axes("qwen2_vl", "\"mrope_section\": [2, 3, 3, 0]", 3, "00111222");
    check_axes("qwen3_vl_text", "\"mrope_section\": [3, 3, 2]", 3, "01201201");
    check_axes("qwen3_vl_text", "\"mrope_section\": [3, 3, 2], \"mrope_interleaved\": false", 3,
               "00011122");
    check_axes("llama", "\"mrope_section\": [4, 2, 2], \"mrope_interleaved\": true", 3,
               "01201200");
    check_axes("ernie4_5_vl_moe", "\"mrope_section\": [3, 3, 2]", 3, "12121200");
    check_axes("hunyuan_vl", "\"type\": \"xdrope\", \"alpha\": 1000, \"xdrope_section\":"
                             " [2, 2, 2, 2]", 4, "00112233");
    check_axes("qwen2_5_vl", "\"rope_type\": \"yarn\", \"factor\": 4,"
                             " \"original_max_position_embeddings\": 4096,"
                             " \"mrope_section\": [2, 3, 3]", 3, "00111222");
    (void)state;
}

/* Some classes supply the sections; then they are assumed. */
static void test_assumed_axes(void **state)
{
    posenc_contract *contract =
        contract_of("{\"model_type\": \"qwen3_vl_text\", " SHAPE ", \"rope_theta\": 5000000}");
    assert_string_equal(contract_assumed(contract, "mrope_section"), "[24, 20, 20]");
    assert_string_equal(contract_assumed(contract, "mrope_interleaved"), "true");
    assert_int_equal(contract_set(contract, 0).sections[0], 24);
    assert_int_equal(contract_set(contract, 0).interleaved, 1);
    posenc_contract_free(contract);
    contract = contract_of("{" LLAMA "}");
    assert_int_equal(contract_set(contract, 0).axes, 1);
    assert_null(contract_set(contract, 0).sections);
    posenc_contract_free(contract);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longrope),           cmocka_unit_test(test_longrope_attention),
        cmocka_unit_test(test_longrope_of_one_kind), cmocka_unit_test(test_ntk),
        cmocka_unit_test(test_proportional),       cmocka_unit_test(test_axes),
        cmocka_unit_test(test_assumed_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
