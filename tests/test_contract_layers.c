/* SPDX-License-Identifier: MIT */
/* Layers: kinds, frequency sets in both spellings, layers without rotation, windows. */
#include "contract_text.h"

#define LAYERS(type, count, members)                                                   \
    "{\"model_type\": \"" type "\", \"hidden_size\": 2560, \"num_attention_heads\": 8," \
    " \"num_key_value_heads\": 4, \"head_dim\": 256, \"num_hidden_layers\": " count members "}"

/* One letter a layer: the first of its set's id, or N without rotation, - without attention. */
static void assert_sets(const char *json, const char *letters)
{
    posenc_contract *contract = contract_of(json);
    assert_int_equal(contract_facts(contract).num_layers, strlen(letters));
    for (int64_t i = 0; letters[i]; i++) {
        int32_t set = posenc_contract_layer_set(contract, i);
        char got = set >= 0                          ? contract_set(contract, set).id[0]
                   : set == POSENC_LAYER_NOT_ROTATED ? 'N'
                                                     : '-';
        if (got != letters[i]) {
            print_error("%s\nlayer %d is %c, not %c\n", json, (int)i, got, letters[i]);
            fail();
        }
    }
    posenc_contract_free(contract);
}

/* One letter a layer: the first of its kind. */
static void assert_kinds(const char *json, const char *letters)
{
    posenc_contract *contract = contract_of(json);
    assert_int_equal(contract_facts(contract).num_layers, strlen(letters));
    for (int64_t i = 0; letters[i]; i++) {
        if (posenc_contract_layer_type(contract, i)[0] != letters[i]) {
            print_error("%s\nlayer %d is %s\n", json, (int)i,
                        posenc_contract_layer_type(contract, i));
            fail();
        }
    }
    posenc_contract_free(contract);
}

static void test_kinds(void **state)
{
    assert_kinds(LAYERS("llama", "3", ""), "fff");
    assert_kinds(LAYERS("gemma2", "5", ""), "sfsfs");
    assert_kinds(LAYERS("gemma3_text", "7", ""), "sssssfs");
    assert_kinds(LAYERS("gemma3_text", "4", ", \"sliding_window_pattern\": 2"), "sfsf");
    assert_kinds(LAYERS("modernbert", "5", ""), "fssfs");
    assert_kinds(LAYERS("gpt_oss", "4", ""), "sfsf");
    assert_kinds(LAYERS("qwen3_next", "5", ""), "lllfl");
    assert_kinds(LAYERS("qwen2", "4", ", \"use_sliding_window\": true, \"max_window_layers\": 2"),
                 "ffss");
    assert_kinds(LAYERS("qwen2", "3", ", \"max_window_layers\": 1, \"sliding_window\": 8"), "fff");
    assert_kinds(LAYERS("gemma2", "2", ", \"layer_types\": [\"full_attention\","
                                       " \"sliding_attention\"]"),
                 "fs");
    assert_kinds(LAYERS("llama4_text", "2", ", \"layer_types\": [\"chunked_attention\","
                                            " \"full_attention\"]"),
                 "cf");
    (void)state;
}

static void test_sets(void **state)
{
    assert_sets(LAYERS("llama", "2", ""), "mm");
    assert_sets(LAYERS("gemma3_text", "7", ", \"sliding_window_pattern\": 6"), "lllllgl");
    assert_sets(LAYERS("smollm3", "8", ", \"no_rope_layers\": [1, 1, 1, 0, 1, 1, 1, 0]"),
                "mmmNmmmN");
    assert_sets(LAYERS("smollm3", "8", ", \"no_rope_layer_interval\": 4"), "mmmNmmmN");
    assert_sets(LAYERS("smollm3", "4", ""), "mmmN");
    assert_sets(LAYERS("smollm3", "4", ", \"no_rope_layers\": []"), "mmmN");
    assert_sets(LAYERS("smollm3", "3", ", \"no_rope_layers\": [0, 0, 1]"), "NNm");
    assert_sets(LAYERS("cohere2", "5", ""), "mmmNm");
    assert_sets(LAYERS("qwen3_next", "5", ""), "---m-");
    (void)state;
}

/* The linear factor belongs to the full layers only, in the older and in the newer spelling. */
static void test_two_bases(void **state)
{
    static const char *const texts[] = {
        LAYERS("gemma3_text", "7", ", \"rope_theta\": 1e6, \"rope_local_base_freq\": 1e4,"
                                   " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}"),
        LAYERS("gemma3_text", "7",
               ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\","
               " \"factor\": 8, \"rope_theta\": 1e6}, \"sliding_attention\":"
               " {\"rope_type\": \"default\", \"rope_theta\": 1e4}}"),
        LAYERS("gemma3_text", "7", ", \"rope_parameters\": {\"full_attention\":"
                                   " {\"rope_type\": \"linear\", \"factor\": 8}}"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        posenc_contract *contract = contract_of(texts[i]);
        assert_int_equal(contract_facts(contract).num_sets, 2);
        posenc_rope_params full = contract_params(contract, 0);
        posenc_rope_params local = contract_params(contract, 1);
        assert_string_equal(contract_set(contract, 0).id, "global");
        assert_string_equal(contract_set(contract, 1).id, "local");
        assert_true(full.base == 1e6 && full.factor == 8);
        assert_int_equal(full.scaling, POSENC_SCALING_LINEAR);
        assert_true(local.base == 1e4);
        assert_int_equal(local.scaling, POSENC_SCALING_NONE);
        assert_int_equal(posenc_contract_layer_set(contract, 5), 0);
        assert_int_equal(posenc_contract_layer_set(contract, 6), 1);
        posenc_contract_free(contract);
    }
    (void)state;
}

/* A flat block is for both sets of this model, but its base for the full layers alone. */
static void test_shared_block(void **state)
{
    posenc_contract *contract = contract_of(
        LAYERS("mimo_v2_flash", "2",
               ", \"hybrid_layer_pattern\": [0, 1], \"rope_parameters\":"
               " {\"type\": \"linear\", \"factor\": 2, \"rope_theta\": 3e6}"));
    for (int32_t i = 0; i < 2; i++) {
        assert_true(contract_params(contract, i).base == (i ? 1e4 : 3e6));
        assert_true(contract_params(contract, i).factor == 2);
    }
    assert_string_equal(contract_assumed(contract, "swa_rope_theta"), "10000");
    posenc_contract_free(contract);
    (void)state;
}

/* A block for a kind that no layer has must not make the dictionary a flat one. */
static void test_unused_block(void **state)
{
    posenc_contract *contract = contract_of(
        LAYERS("gemma3_text", "2", ", \"layer_types\": [\"sliding_attention\","
                                   " \"sliding_attention\"], \"rope_parameters\":"
                                   " {\"sliding_attention\": {\"rope_theta\": 10000},"
                                   " \"full_attention\": {\"rope_type\": \"linear\","
                                   " \"factor\": 8, \"rope_theta\": 1e6}, \"factor\": 2}"));
    for (int64_t layer = 0; layer < 2; layer++) {
        int32_t set = posenc_contract_layer_set(contract, layer);
        assert_true(contract_params(contract, set).base == 1e4);
        assert_int_equal(contract_params(contract, set).scaling, POSENC_SCALING_NONE);
    }
    assert_non_null(strstr(contract_warning(contract, "full_attention"), "unused"));
    assert_non_null(strstr(contract_warning(contract, "rope_parameters.factor"), "unknown"));
    posenc_contract_free(contract);
    (void)state;
}

static void test_windows(void **state)
{
    static const struct {
        const char *json;
        int64_t window;
        int assumed;
    } cases[] = {
        {LAYERS("llama", "2", ", \"sliding_window\": 128"), -1, 0},
        {LAYERS("mistral", "2", ""), 4096, 1},
        {LAYERS("mistral", "2", ", \"sliding_window\": null"), -1, 0},
        {LAYERS("mistral", "2", ", \"sliding_window\": 512"), 512, 0},
        {LAYERS("mixtral", "2", ""), -1, 0},
        {LAYERS("gemma2", "2", ""), 4096, 1},
        {LAYERS("gpt_oss", "2", ""), 128, 1},
        {LAYERS("qwen2", "2", ", \"sliding_window\": 512, \"use_sliding_window\": false"), -1, 0},
        {LAYERS("qwen2", "2", ", \"sliding_window\": 512, \"use_sliding_window\": true"), 512, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        assert_int_equal(contract_facts(contract).sliding_window, cases[i].window);
        assert_int_equal(contract_assumed(contract, "sliding_window") != NULL, cases[i].assumed);
        posenc_contract_free(contract);
    }
    (void)state;
}

static void test_kv_heads(void **state)
{
    static const struct {
        const char *json;
        int64_t kv;
    } cases[] = {
        {"{" LLAMA "}", 32},
        {"{" LLAMA ", \"num_key_value_heads\": null}", 32},
        {"{" LLAMA ", \"n_head_kv\": 4}", 4},
        {"{\"model_type\": \"mistral\", " SHAPE "}", 8},
        {"{\"model_type\": \"mistral\", " SHAPE ", \"num_key_value_heads\": null}", 32},
        {"{\"model_type\": \"smollm3\", " SHAPE "}", 4},
        {"{\"model_type\": \"falcon\", " SHAPE "}", 1},
        {"{\"model_type\": \"falcon\", " SHAPE ", \"multi_query\": false}", 32},
        {"{\"model_type\": \"falcon\", " SHAPE ", \"new_decoder_architecture\": true,"
         " \"num_kv_heads\": 8}",
         8},
        {"{\"model_type\": \"falcon\", " SHAPE ", \"new_decoder_architecture\": true}", 32},
        {"{\"model_type\": \"chatglm\", " SHAPE "}", 32},
        {"{\"model_type\": \"chatglm\", " SHAPE ", \"multi_query_attention\": true,"
         " \"multi_query_group_num\": 2}",
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        assert_int_equal(contract_facts(contract).num_kv_heads, cases[i].kv);
        posenc_contract_free(contract);
    }
    (void)state;
}

/* Where the file has no block the class of this model brings one. */
static void test_class_block(void **state)
{
    posenc_contract *contract = contract_of("{\"model_type\": \"gpt_oss\", " SHAPE
                                            ", \"max_position_embeddings\": 131072}");
    posenc_rope_params params = contract_params(contract, 0);
    assert_string_equal(contract_set(contract, 0).rope_type, "yarn");
    assert_string_equal(contract_assumed(contract, "rope_parameters"), "\"yarn\"");
    assert_true(params.base == 150000 && params.factor == 32 && params.truncate == 0);
    assert_int_equal(params.head_dim, 64);
    posenc_contract_free(contract);
    contract = contract_of("{\"model_type\": \"ministral3\", " SHAPE
                           ", \"rope_parameters\": null}");
    posenc_contract_facts facts = contract_facts(contract);
    assert_true(contract_params(contract, 0).factor == 16);
    assert_true(facts.query_scale_factor == 0.1);
    assert_int_equal(facts.query_scale_floor, 16384);
    posenc_contract_free(contract);
    (void)state;
}

static void test_query_scale_off(void **state)
{
    static const char *const off[] = {"false", "0"};
    for (size_t i = 0; i < 2; i++) {
        char json[512] = "{\"model_type\": \"llama4_text\", " SHAPE
                         ", \"attn_temperature_tuning\": ";
        strcat(strcat(json, off[i]), "}");
        posenc_contract *contract = contract_of(json);
        assert_null(contract_facts(contract).query_scale_layers);
        posenc_contract_free(contract);
    }
    (void)state;
}

/* Its compressed layers have a base and a scaling of their own; the tail of a head turns. */
static void test_compressed(void **state)
{
    static const char *const blocks[] = {
        "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 16,"
        " \"original_max_position_embeddings\": 65536}, \"rope_theta\": 10000,"
        " \"compress_rope_theta\": 40000",
        "\"rope_parameters\": {\"main\": {\"rope_type\": \"default\", \"rope_theta\": 10000},"
        " \"compress\": {\"rope_type\": \"yarn\", \"factor\": 16, \"rope_theta\": 40000,"
        " \"original_max_position_embeddings\": 65536, \"partial_rotary_factor\": 0.125}}"};
    for (size_t i = 0; i < 2; i++) {
        char json[768] = "{\"model_type\": \"deepseek_v4\", \"num_attention_heads\": 64,"
                         " \"num_hidden_layers\": 2, \"compress_ratios\": [0, 4], ";
        strcat(strcat(json, blocks[i]), "}");
        posenc_contract *contract = contract_of(json);
        posenc_rope_params full = contract_params(contract, 0);
        posenc_rope_params sliding = contract_params(contract, 1);
        assert_true(full.base == 40000 && sliding.base == 10000);
        assert_int_equal(full.scaling, POSENC_SCALING_YARN);
        assert_int_equal(sliding.scaling, POSENC_SCALING_NONE);
        assert_true(full.attention_factor == 1.0);
        assert_int_equal(full.rotary_dim, 64);
        assert_int_equal(full.rotary_offset, 448);
        assert_int_equal(sliding.rotary_offset, 448);
        assert_int_equal(contract_set(contract, 0).num_kv_heads, 1);
        assert_non_null(contract_warning(contract, "compress_rates"));
        posenc_contract_free(contract);
    }
    (void)state;
}

/* Rules that single classes have. */
static void test_classes(void **state)
{
    assert_sets(LAYERS("exaone4", "5", ""), "mmmNm");
    assert_sets(LAYERS("exaone4", "5", ", \"sliding_window\": null"), "mmmmm");
    assert_kinds(LAYERS("exaone4", "5", ", \"sliding_window\": null"), "fffff");
    assert_sets(LAYERS("afmoe", "5", ", \"global_attn_every_n_layers\": 2"), "mNmNm");
    assert_sets(LAYERS("lfm2", "4", ", \"full_attn_idxs\": [0, 2]"), "m-m-");
    assert_sets(LAYERS("lfm2", "2", ", \"layer_types\": [\"conv\", \"full_attention\"]"), "-m");
    assert_sets(LAYERS("deepseek_v4", "3", ", \"compress_ratios\": [0, 4, 128]"), "lgg");
    assert_sets(LAYERS("deepseek_v4", "2", ", \"layer_types\": [\"sliding_attention\","
                       " \"heavily_compressed_attention\"]"), "lg");
    assert_sets(LAYERS("nemotron_h", "3", ", \"layers_block_type\": [\"mamba\", \"attention\","
                       " \"moe\"]"), "-N-");
    assert_sets(LAYERS("bamba", "4", ", \"attn_layer_indices\": [3]"), "---m");
    assert_sets(LAYERS("minimax", "4", ""), "m-m-");
    assert_kinds(LAYERS("cwm", "5", ""), "fsssf");
    assert_kinds(LAYERS("dots1", "3", ", \"max_window_layers\": 1"), "fss");
    assert_kinds(LAYERS("dots1", "3", ", \"max_window_layers\": 1, \"sliding_window\": null"),
                 "fff");
    assert_kinds(LAYERS("gemma3n_text", "5", ""), "ssssf");
    assert_sets(LAYERS("olmo3", "4", ""), "lllg");
    assert_sets(LAYERS("smallthinker", "5", ", \"sliding_window_layout\": [0, 1, 1, 1, 0]"),
                "NmmmN");
    assert_sets(LAYERS("smallthinker", "2", ", \"sliding_window_layout\": [0, 1],"
                       " \"rope_layout\": [1, 0]"), "mN");
    assert_kinds(LAYERS("qwen2_vl", "82", ", \"use_sliding_window\": true, \"rope_scaling\":"
                        " {\"mrope_section\": [64, 32, 32]}"),
                 "ffffffffffffffffffffffffffffffffffffffff"
                 "ffffffffffffffffffffffffffffffffffffffffss");
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),       cmocka_unit_test(test_sets),
        cmocka_unit_test(test_two_bases),   cmocka_unit_test(test_unused_block),
        cmocka_unit_test(test_windows),     cmocka_unit_test(test_kv_heads),
        cmocka_unit_test(test_class_block), cmocka_unit_test(test_query_scale_off),
        cmocka_unit_test(test_shared_block), cmocka_unit_test(test_classes),
        cmocka_unit_test(test_compressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
