/* SPDX-License-Identifier: MIT */
/* Both files of a model give the same contract, except what GGUF cannot say. */
#include "contract_text.h"

#include <stdio.h>

enum { MOST = 4 };

/* The facts in which the two may, and must, differ; NULL: in none. */
static const struct {
    const char *name;
    const char *keys[MOST + 1];
} models[] = {
    {"bert-base", {NULL}},
    {"bloom-176b", {NULL}},
    {"chatglm3-6b-32k", {NULL}},
    {"codellama-7b", {"rope[main].layout"}},
    {"command-r-v01", {NULL}},
    {"deepseek-coder-6.7b", {"rope[main].layout"}},
    {"deepseek-r1", {NULL}},
    {"deepseek-v2-lite", {NULL}},
    {"ernie-4.5-0.3b", {NULL}},
    {"falcon-7b", {NULL}},
    {"gemma-2b", {NULL}},
    {"gemma2-9b", {NULL}},
    {"gemma3-12b", {NULL}},
    {"gemma4-26b-a4b", {NULL}},
    {"glm-4.1v-9b", {"rope[main].layout"}},
    {"glm-5", {NULL}},
    {"glm-9b-cogview4", {NULL}},
    {"gpt-j-6b", {NULL}},
    {"gpt-neox-20b", {NULL}},
    {"gpt-oss-20b", {NULL}},
    {"gpt2", {NULL}},
    {"granite-3.3-8b", {"rope[main].layout"}},
    {"internlm2.5-7b",
     {"rope[main].rope_type", "rope[main].layout", "rope[main].factor",
      "rope[main].original_max_position"}},
    {"jamba-tiny", {NULL}},
    {"llama-2-7b", {"rope[main].layout"}},
    {"llama-3.1-8b", {"rope[main].layout"}},
    {"llama4-scout", {NULL}},
    {"mimo-v2-flash", {"sink_layers"}}, /* the stored file has no tensors of layers */
    {"minicpm4-8b",
     {"rope[long].layout", "rope[long].long_factors[0]", "rope[short].layout",
      "rope[short].short_factors[0]"}},
    {"minimax-m3", {NULL}},
    {"ministral3-3b", {"rope[main].layout"}},
    {"mistral-7b-v0.1", {"sliding_window", "window_sides", "rope[main].layout"}},
    {"mixtral-8x7b", {"rope[main].layout"}},
    {"modernbert-base", {NULL}},
    {"mpt-7b", {NULL}},
    {"mt5-small", {NULL}},
    {"nomic-embed-text-v1.5", {NULL}},
    {"olmo2-7b", {NULL}},
    {"phi-1.5", {NULL}},
    {"phi-2", {NULL}},
    {"phi-3.5-mini", {NULL}},
    {"qwen2-7b", {NULL}},
    {"qwen2-vl-2b", {NULL}},
    {"qwen3-32b", {NULL}},
    {"qwen3-vl-32b", {NULL}},
    {"qwen3.5-27b", {NULL}},
    {"roberta-base", {"learned.position_offset"}},
    {"smollm3-3b", {"rope[main].layout"}},
    {"stablelm-2-1.6b", {NULL}},
    {"starcoder2", {"sliding_window", "window_sides"}},
    {"t5-small", {NULL}},
    {"yarn-llama-2-7b-64k", {"rope[main].layout"}},
};

static posenc_contract *open_file(const char *folder, const char *name, const char *end)
{
    char path[1024];
    posenc_contract *contract = NULL;
    posenc_error error;
    snprintf(path, sizeof path, "%s/%s/%s%s", POSENC_TEST_DATA, folder, name, end);
    if (posenc_contract_open(&contract, path, &error) != POSENC_OK) {
        print_error("%s\n", error.text);
        fail();
    }
    return contract;
}

static void test_both_files_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        posenc_contract *config = open_file("configs", models[i].name, ".json");
        posenc_contract *gguf = open_file("gguf", models[i].name, ".gguf");
        posenc_contract_difference found[16];
        size_t count, wanted = 0;
        while (models[i].keys[wanted]) {
            wanted++;
        }
        assert_int_equal(posenc_contract_compare(config, gguf, found, 16, &count, NULL), POSENC_OK);
        for (size_t n = 0; n < count && n < 16; n++) {
            if (n >= wanted || strcmp(found[n].key, models[i].keys[n]) != 0) {
                print_error("%s: %s: %s, in GGUF %s\n", models[i].name, found[n].key, found[n].a,
                            found[n].b);
                fail();
            }
        }
        assert_int_equal(count, wanted);
        assert_string_equal(contract_facts(gguf).source, "gguf");
        posenc_contract_free(config);
        posenc_contract_free(gguf);
    }
}

/* Versions and byte orders hold the same. */
static void test_forms_agree(void **state)
{
    static const char *const names[] = {"llama-3.1-8b", "gemma4-26b-a4b", "deepseek-v2-lite"};
    static const char *const forms[] = {"-big.gguf", "-v2.gguf", "-big-v2.gguf"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        posenc_contract *plain = open_file("gguf", names[i], ".gguf");
        uint8_t wanted[16], got[16];
        assert_int_equal(posenc_contract_fingerprint(plain, wanted, NULL), POSENC_OK);
        for (size_t n = 0; n < 3; n++) {
            posenc_contract *form = open_file("gguf", names[i], forms[n]);
            assert_int_equal(posenc_contract_fingerprint(form, got, NULL), POSENC_OK);
            assert_memory_equal(got, wanted, sizeof got);
            posenc_contract_free(form);
        }
        posenc_contract_free(plain);
    }
}

/* What the two tensors of factors and the divisors become. */
static void test_factors(void **state)
{
    (void)state;
    posenc_contract *phi = open_file("gguf", "phi-3.5-mini", ".gguf");
    posenc_rope_params first = contract_params(phi, 0), second = contract_params(phi, 1);
    assert_int_equal(contract_facts(phi).num_sets, 2);
    assert_string_equal(contract_set(phi, 0).id, "short");
    assert_int_equal(first.scaling, POSENC_SCALING_LONGROPE);
    assert_int_equal(first.length, 4096);
    assert_int_equal(second.length, 4097);
    assert_true(first.factor == 32.0 && first.attention_factor == 0.0);
    assert_true(second.long_factors[0] == 1.0800000429153442 && second.short_factors[0] == 1.0);
    assert_true(second.long_factors[47] == 64.83999633789062);
    posenc_contract_free(phi);

    posenc_contract *gemma = open_file("gguf", "gemma4-26b-a4b", "-big.gguf");
    posenc_contract_set global = contract_set(gemma, 0), local = contract_set(gemma, 1);
    assert_string_equal(global.rope_type, "proportional");
    assert_int_equal(contract_params(gemma, 0).rotating_pairs, 64);
    assert_int_equal(global.rotary_dim, 512);
    assert_int_equal(global.num_kv_heads, 2);
    assert_int_equal(local.head_dim, 256);
    assert_int_equal(local.num_kv_heads, 8);
    assert_true(local.base == 10000.0);
    assert_int_equal(posenc_contract_layer_set(gemma, 4), 1);
    assert_int_equal(posenc_contract_layer_set(gemma, 5), 0);
    assert_int_equal(contract_facts(gemma).head_dim, 256);
    assert_true(contract_facts(gemma).softmax_scale == 1.0);
    posenc_contract_free(gemma);

    posenc_contract *llama = open_file("gguf", "llama-3.1-8b", ".gguf");
    posenc_rope_params params = contract_params(llama, 0);
    assert_int_equal(params.scaling, POSENC_SCALING_LLAMA3);
    assert_true(params.factor == 8.0 && params.low_freq_factor == 1.0);
    assert_string_equal(contract_assumed(llama, "rope_freqs.weight"), "\"llama3\"");
    posenc_contract_free(llama);

    posenc_contract *scout = open_file("gguf", "llama4-scout", ".gguf");
    assert_string_equal(contract_set(scout, 0).rope_type, "llama3");
    assert_true(contract_params(scout, 0).factor == 16.0);
    posenc_contract_free(scout);
}

/* What a file of this kind leaves open is said. */
static void test_notes(void **state)
{
    (void)state;
    posenc_contract *oss = open_file("gguf", "gpt-oss-20b", ".gguf");
    assert_int_equal(contract_params(oss, 0).truncate, 0);
    assert_string_equal(contract_assumed(oss, "gpt-oss.rope.scaling.truncate"), "0");
    assert_string_equal(contract_assumed(oss, "layout"), "\"split_half\"");
    posenc_contract_free(oss);
    posenc_contract *gptj = open_file("gguf", "gpt-j-6b", ".gguf");
    assert_non_null(contract_warning(gptj, "general.architecture"));
    posenc_contract_free(gptj);
    posenc_contract *qwen = open_file("gguf", "qwen3-vl-32b", ".gguf");
    assert_non_null(strstr(contract_warning(qwen, "rope.dimension_sections"), "turn 2 of"));
    posenc_contract_free(qwen);
    posenc_contract *gemma = open_file("gguf", "gemma2-9b", ".gguf");
    assert_true(contract_facts(gemma).logit_softcap == 50.0);
    assert_string_equal(posenc_contract_layer_type(gemma, 0), "sliding");
    assert_string_equal(posenc_contract_layer_type(gemma, 1), "full");
    posenc_contract_free(gemma);
}

/* Models whose positions are no rotations. */
static void test_other_schemes(void **state)
{
    (void)state;
    posenc_contract *bloom = open_file("gguf", "bloom-176b", ".gguf");
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    assert_int_equal(contract_facts(bloom).scheme, POSENC_SCHEME_ALIBI);
    assert_int_equal(posenc_contract_get_alibi(bloom, &alibi, NULL), POSENC_OK);
    assert_true(alibi.max_bias == 8.0);
    assert_string_equal(contract_assumed(bloom, "bloom.attention.max_alibi_bias"), "8");
    posenc_contract_free(bloom);

    posenc_contract *t5 = open_file("gguf", "mt5-small", ".gguf");
    posenc_contract_t5 buckets = {.struct_size = sizeof buckets};
    assert_int_equal(posenc_contract_get_t5(t5, &buckets, NULL), POSENC_OK);
    assert_int_equal(buckets.num_buckets, 32);
    assert_int_equal(buckets.max_distance, 128);
    assert_true(buckets.encoder && buckets.decoder && !buckets.per_layer);
    assert_true(contract_facts(t5).softmax_scale == 1.0);
    posenc_contract_free(t5);

    posenc_contract *roberta = open_file("gguf", "roberta-base", ".gguf");
    posenc_contract_learned table = {.struct_size = sizeof table};
    assert_int_equal(posenc_contract_get_learned(roberta, &table, NULL), POSENC_OK);
    assert_int_equal(table.dim, 768);
    assert_int_equal(table.table_rows, 512);
    assert_int_equal(table.position_offset, 0);
    posenc_contract_free(roberta);

    posenc_contract *jamba = open_file("gguf", "jamba-tiny", ".gguf");
    assert_int_equal(contract_facts(jamba).scheme, POSENC_SCHEME_NONE);
    assert_int_equal(posenc_contract_layer_set(jamba, 0), POSENC_LAYER_NO_ATTENTION);
    posenc_contract_free(jamba);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_files_agree), cmocka_unit_test(test_forms_agree),
        cmocka_unit_test(test_factors),          cmocka_unit_test(test_notes),
        cmocka_unit_test(test_other_schemes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
