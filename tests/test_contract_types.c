/* SPDX-License-Identifier: MIT */
/* What single model types imply where their file is short: as the classes of transformers do. */
#include "contract_text.h"

#define SIX "\"num_attention_heads\": 32, \"hidden_size\": 4096, \"num_hidden_layers\": 6"
#define LATENT ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64"
#define TYPE(type, members) "{\"model_type\": \"" type "\", " SIX members "}"

enum { A = POSENC_ADJACENT, S = POSENC_SPLIT_HALF };

/* One letter a layer: f full, s sliding, N full without rotation, n sliding without it,
 * - without attention. */
static char layer_letter(const posenc_contract *contract, int64_t layer)
{
    int32_t set = posenc_contract_layer_set(contract, layer);
    char kind = posenc_contract_layer_type(contract, layer)[0];
    if (set >= 0 || set == POSENC_LAYER_NO_ATTENTION) {
        return set >= 0 ? kind : '-';
    }
    return kind == 'f' ? 'N' : 'n';
}

static void assert_layers(const posenc_contract *contract, const char *letters, const char *json)
{
    assert_int_equal(contract_facts(contract).num_layers, strlen(letters));
    for (int64_t i = 0; letters[i]; i++) {
        if (layer_letter(contract, i) != letters[i]) {
            print_error("%s\nlayer %d is %c, not %c\n", json, (int)i, layer_letter(contract, i),
                        letters[i]);
            fail();
        }
    }
}

struct type_case {
    const char *json;
    const char *layers;
    double base; /* 0: no set */
    double softmax;
    int64_t window;
    int32_t layout;
    int32_t head, rotary, kv;
};

static int same_set(const posenc_contract *contract, const struct type_case *want)
{
    if (contract_facts(contract).num_sets == 0 || want->base <= 0.0) {
        return contract_facts(contract).num_sets == 0 && want->base <= 0.0;
    }
    posenc_rope_params params = contract_params(contract, 0);
    return params.base == want->base && params.layout == want->layout &&
           params.rotary_dim == want->rotary;
}

static void check_types(const struct type_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        posenc_contract_facts facts = contract_facts(contract);
        double ratio = facts.softmax_scale / cases[i].softmax;
        if (!same_set(contract, &cases[i]) || facts.head_dim != cases[i].head ||
            facts.num_kv_heads != cases[i].kv || facts.sliding_window != cases[i].window ||
            ratio < 1 - 1e-14 || ratio > 1 + 1e-14) {
            print_error("%s\n%g %d %d %d %.17g\n", cases[i].json,
                        facts.num_sets ? contract_params(contract, 0).base : 0.0,
                        (int)facts.head_dim, (int)facts.num_kv_heads, (int)facts.sliding_window,
                        facts.softmax_scale);
            fail();
        }
        assert_layers(contract, cases[i].layers, cases[i].json);
        posenc_contract_free(contract);
    }
}

#define ROOT_128 0.088388347648318447
#define ROOT_192 0.072168783648703216

/* Heads of 4096 / 32 = 128 channels that turn whole, unless the class has others. */
static void test_plain(void **state)
{
    static const struct type_case cases[] = {
        {TYPE("csm", ""), "ffffff", 5e5, ROOT_128, -1, S, 128, 128, 8},
        {TYPE("csm_depth_decoder_model", ""), "ffffff", 5e5, ROOT_128, -1, S, 128, 128, 2},
        {TYPE("deepseek_ocr2_text", ""), "ffffff", 1e4, ROOT_128, -1, S, 128, 128, 32},
        {TYPE("doge", ""), "ffffff", 1e4, ROOT_128, -1, S, 128, 128, 32},
        {TYPE("doge", ", \"sliding_window\": 64"), "ffffff", 1e4, ROOT_128, 64, S, 128, 128, 32},
        {TYPE("esmc", ""), "ffffff", 1e4, ROOT_128, -1, S, 128, 128, 32},
        {TYPE("evolla", ""), "ffffff", 5e5, ROOT_128, -1, S, 128, 128, 8},
        {TYPE("gpt_neox_japanese", ", \"rotary_emb_base\": 2e4, \"rotary_pct\": 0.5"), "ffffff",
         2e4, ROOT_128, -1, S, 128, 64, 32},
        {TYPE("gpt_neox_japanese", ""), "ffffff", 1e4, ROOT_128, -1, S, 128, 128, 32},
        {TYPE("granite4_vision_text", ""), "ffffff", 1e4, 1.0, -1, S, 128, 128, 32},
        {TYPE("granite_docling_text", ""), "ffffff", 1e4, 0.015625, -1, S, 128, 128, 4},
        {TYPE("hy_v3", ""), "ffffff", 11158840, ROOT_128, -1, S, 128, 128, 8},
        {TYPE("voxtral_realtime_text", ""), "ffffff", 1e4, ROOT_128, 4096, S, 128, 128, 8},
        {TYPE("axk2", LATENT), "ffffff", 1e4, ROOT_192, -1, A, 192, 64, 32},
        {TYPE("hy_v4", LATENT), "ffffff", 1e4, ROOT_192, -1, S, 192, 64, 32},
    };
    check_types(cases, sizeof cases / sizeof cases[0]);
    (void)state;
}

static void test_layered(void **state)
{
    static const struct type_case cases[] = {
        {TYPE("bailing_hybrid", LATENT), "-----f", 6e6, ROOT_192, -1, A, 192, 64, 32},
        {TYPE("bailing_hybrid", LATENT ", \"layer_group_size\": 2"), "-f-f-f", 6e6, ROOT_192, -1, A,
         192, 64, 32},
        {TYPE("gemma4_unified_text", ""), "sssssf", 1e6, 1.0, 1024, S, 256, 512, 4},
        {TYPE("kolibri1", ""), "ssssNs", 1e4, ROOT_128, 513, S, 128, 128, 4},
        {TYPE("kolibri1", ", \"sliding_window\": null"), "ffffff", 1e4, ROOT_128, -1, S, 128, 128,
         4},
        {TYPE("mellum", ""), "ffffff", 5e5, ROOT_128, -1, S, 128, 128, 4},
        {TYPE("olmo_hybrid", ""), "---f--", 1e4, ROOT_128, -1, S, 128, 128, 32},
        {TYPE("olmo_hybrid", ", \"rope_theta\": 5e5"), "---f--", 5e5, ROOT_128, -1, S, 128, 128,
         32},
        {TYPE("olmo_hybrid", ", \"rope_theta\": null"), "---N--", 0, ROOT_128, -1, S, 128, 0, 32},
        {TYPE("olmo_hybrid", ", \"rope_parameters\": {\"rope_theta\": null}, \"rope_theta\": 1e4"),
         "---N--", 0, ROOT_128, -1, S, 128, 0, 32},
        {TYPE("olmo_hybrid", ", \"rope_parameters\": {\"rope_theta\": 2e4}, \"rope_theta\": null"),
         "---f--", 2e4, ROOT_128, -1, S, 128, 128, 32},
    };
    check_types(cases, sizeof cases / sizeof cases[0]);
    (void)state;
}

/* Keys that only these classes have. */
static void test_own_keys(void **state)
{
    static const struct type_case cases[] = {
        {TYPE("dbrx", ""), "ffffff", 1e4, ROOT_128, -1, S, 128, 128, 1},
        {TYPE("dbrx", ", \"attn_config\": {\"kv_n_heads\": 8, \"rope_theta\": 5e5}"), "ffffff", 5e5,
         ROOT_128, -1, S, 128, 128, 8},
        {TYPE("dbrx", ", \"attn_config\": {\"rope_theta\": 5e5}, \"rope_theta\": 2e4"), "ffffff",
         2e4, ROOT_128, -1, S, 128, 128, 1},
        {TYPE("recurrent_gemma", ""), "--s--s", 1e4, ROOT_128, 2048, S, 128, 64, 32},
        {TYPE("recurrent_gemma", ", \"block_types\": [\"attention\", \"recurrent\"],"
                                 " \"attention_window_size\": 64"),
         "s-s-s-", 1e4, ROOT_128, 64, S, 128, 64, 32},
        {TYPE("mllama_text_model", ""), "fffNff", 5e5, ROOT_128, -1, S, 128, 128, 8},
        {TYPE("mllama_text_model", ", \"cross_attention_layers\": [0, 5]"), "NffffN", 5e5, ROOT_128,
         -1, S, 128, 128, 8},
        {TYPE("kimi_linear", LATENT), "----N-", 0, ROOT_192, -1, S, 192, 0, 32},
        {TYPE("kimi_linear", LATENT ", \"linear_attn_config\": {\"full_attn_layers\": [1, 6],"
                                    " \"kda_layers\": [2, 3, 4, 5]}"),
         "N----N", 0, ROOT_192, -1, S, 192, 0, 32},
        {TYPE("zamba2", ", \"kv_channels\": 128, \"use_mem_rope\": true, \"layers_block_type\":"
                        " [\"mamba\", \"mamba\", \"hybrid\", \"mamba\", \"hybrid\", \"mamba\"]"),
         "--f-f-", 1e4, ROOT_128, -1, S, 256, 256, 32},
        {TYPE("zamba2", ", \"layers_block_type\":"
                        " [\"mamba\", \"mamba\", \"hybrid\", \"mamba\", \"hybrid\", \"mamba\"]"),
         "--N-N-", 0, ROOT_128, -1, S, 256, 0, 32},
    };
    check_types(cases, sizeof cases / sizeof cases[0]);
    posenc_contract *contract = contract_of(TYPE("mllama_text_model", ""));
    assert_non_null(contract_warning(contract, "cross_attention_layers"));
    posenc_contract_free(contract);
    (void)state;
}

/* Blocks that classes bring along. */
static void test_blocks(void **state)
{
    posenc_contract *contract = contract_of(TYPE("higgs_audio_v2", ""));
    posenc_rope_params params = contract_params(contract, 0);
    assert_int_equal(params.scaling, POSENC_SCALING_LLAMA3);
    assert_true(params.base == 5e5 && params.factor == 32 && params.low_freq_factor == 0.125);
    assert_true(params.high_freq_factor == 0.5);
    assert_int_equal(contract_set(contract, 0).num_kv_heads, 8);
    posenc_contract_free(contract);
    contract = contract_of(TYPE("apertus1p5_text", ""));
    params = contract_params(contract, 0);
    assert_int_equal(params.scaling, POSENC_SCALING_LLAMA3);
    assert_true(params.base == 12e6 && params.factor == 8);
    posenc_contract_free(contract);
    contract = contract_of("{\"model_type\": \"mellum\", \"num_attention_heads\": 4,"
                           " \"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\","
                           " \"sliding_attention\"]}");
    assert_true(contract_params(contract, 0).base == 5e5);
    assert_true(contract_params(contract, 1).base == 1e4);
    assert_int_equal(contract_facts(contract).sliding_window, 1024);
    assert_layers(contract, "fs", "mellum");
    posenc_contract_free(contract);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_layered),
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
