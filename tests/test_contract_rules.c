/* SPDX-License-Identifier: MIT */
/* Precedence, aliases, defaults, widths and layers: what a given config must come to. */
#include "contract_text.h"

#include "contract/family.h"

#include <math.h>
#include <stdio.h>

#define MODEL(type, members) "{\"model_type\": \"" type "\", " SHAPE members "}"
#define YARN "\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 32768"

struct base_case {
    const char *json;
    double base;
    const char *warned; /* key of the warning, or NULL */
    int assumed;
};

static void test_base(void **state)
{
    static const struct base_case cases[] = {
        {"{" LLAMA ", \"rope_theta\": 1e6, \"rope_scaling\": null}", 1e6, NULL, 0},
        {"{" LLAMA ", \"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": \"default\"}}", 5e5,
         NULL, 0},
        {"{" LLAMA ", \"rope_parameters\": {" YARN "}, \"rope_theta\": 1000000,"
         " \"max_position_embeddings\": 131072}",
         1e6, NULL, 0},
        {"{" LLAMA "}", 1e4, NULL, 1},
        {"{" LLAMA ", \"rope_theta\": null}", 1e4, NULL, 1},
        {"{" LLAMA ", \"rope_theta\": 1e4, \"rope_parameters\": {\"rope_theta\": 5e5}}", 5e5,
         "rope_theta", 0},
        {"{" LLAMA ", \"rope_theta\": 5e5, \"rope_parameters\": {\"rope_theta\": 500000}}", 5e5,
         NULL, 0},
        {"{" LLAMA ", \"rope_parameters\": {\"rope_theta\": 2e4}, \"rope_scaling\":"
         " {\"rope_theta\": 3e4}}",
         2e4, "rope_scaling", 0},
        {"{" LLAMA ", \"rope_parameters\": {}, \"rope_scaling\": {\"rope_theta\": 3e4}}", 3e4, NULL,
         0},
        {MODEL("gpt_neox", ", \"rotary_emb_base\": 2e4"), 2e4, NULL, 0},
        {MODEL("gpt_neox", ", \"rope_theta\": 3e4, \"rotary_emb_base\": 2e4"), 3e4,
         "rotary_emb_base", 0},
        {MODEL("persimmon", ""), 25000, NULL, 1},
        {MODEL("smollm3", ""), 2e6, NULL, 1},
        {MODEL("chatglm", ", \"rope_ratio\": 50"), 5e5, "rope_ratio", 0},
        {MODEL("chatglm", ""), 1e4, NULL, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        if (contract_set(contract, 0).base != cases[i].base ||
            !contract_assumed(contract, "rope_theta") != !cases[i].assumed ||
            (cases[i].warned ? !contract_warning(contract, cases[i].warned)
                             : contract_facts(contract).num_warnings != 0)) {
            print_error("%s\n", cases[i].json);
            fail();
        }
        posenc_contract_free(contract);
    }
    (void)state;
}

struct kind_case {
    const char *block;
    const char *kind;
    double factor; /* 0: none */
    const char *warned;
};

static void test_kind(void **state)
{
    static const struct kind_case cases[] = {
        {"{\"type\": \"linear\", \"factor\": 4}", "linear", 4, NULL},
        {"{\"rope_type\": \"linear\", \"factor\": 4.0}", "linear", 4, NULL},
        {"{\"type\": \"linear\", \"rope_type\": \"linear\", \"factor\": 4.0}", "linear", 4, NULL},
        {"{\"rope_type\": \"default\", \"rope_theta\": 1000000}", "default", 0, NULL},
        {"{\"type\": \"default\", \"rope_type\": \"linear\", \"factor\": 2}", "linear", 2, ".type"},
        {"{}", "default", 0, NULL},
        {"null", "default", 0, NULL},
        {"{\"factor\": 4}", "default", 0, ".factor"},
        {"{\"rope_type\": \"linear\", \"factor\": 4, \"mrope_section\": null}", "linear", 4, NULL},
        {"{\"rope_type\": \"linear\", \"factor\": 4, \"short_mscale\": 1.2}", "linear", 4,
         ".short_mscale"},
        {"{\"rope_type\": \"proportional\"}", "proportional", 1, NULL},
        {"{\"rope_type\": \"proportional\", \"factor\": 2}", "proportional", 2, NULL},
        {"{\"type\": \"ntk\", \"factor\": 4}", "ntk", 4, NULL},
        {"{\"type\": \"dynamic\", \"factor\": 1, \"alpha\": 1000}", "ntk", 1000, ".factor"},
        {"{\"type\": \"dynamic\", \"factor\": 2, \"original_max_position_embeddings\": 2048}",
         "dynamic", 2, NULL},
        {"{\"type\": \"linear\", \"factor\": 4, \"finetuned\": true}", "linear", 4, ".finetuned"},
        {"{\"type\": \"linear\", \"factor\": 4, \"beta_fast\": 32}", "linear", 4, ".beta_fast"},
        {"{\"type\": \"linear\", \"factor\": 4, \"beta_fast\": null}", "linear", 4, NULL},
        {"{\"type\": \"linear\", \"factor\": 0.5}", "linear", 0.5, ".factor"},
        {"{\"type\": \"linear\", \"factor\": 4, \"llama_4_scaling_beta\": 1}", "linear", 4,
         ".llama_4_scaling_beta"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512] = "{" LLAMA ", \"rope_scaling\": ";
        strcat(strcat(json, cases[i].block), "}");
        posenc_contract *contract = contract_of(json);
        if (strcmp(contract_set(contract, 0).rope_type, cases[i].kind) != 0 ||
            contract_params(contract, 0).factor != cases[i].factor ||
            (cases[i].warned ? !contract_warning(contract, cases[i].warned)
                             : contract_facts(contract).num_warnings != 0)) {
            print_error("%s\n", json);
            fail();
        }
        posenc_contract_free(contract);
    }
    (void)state;
}

struct width_case {
    const char *json;
    int32_t head_dim;
    int32_t rotary_dim;
    int32_t layout;
};

static void test_width(void **state)
{
    enum { A = POSENC_ADJACENT, S = POSENC_SPLIT_HALF };
    static const char gptj[] = "{\"model_type\": \"gptj\", \"n_embd\": 4096, \"n_head\": 16,"
                               " \"n_layer\": 2, \"rotary_dim\": 64}";
    static const char no_rotary[] = "{\"model_type\": \"gptj\", \"n_embd\": 4096, \"n_head\": 16,"
                                    " \"n_layer\": 2}";
    static const char neox[] = "{\"model_type\": \"gpt_neox\", \"hidden_size\": 6144,"
                               " \"num_attention_heads\": 64, \"num_hidden_layers\": 2,"
                               " \"rotary_pct\": 0.25}";
    const struct width_case cases[] = {
        {"{" LLAMA "}", 128, 128, S},
        {"{" LLAMA ", \"head_dim\": null}", 128, 128, S},
        {"{" LLAMA ", \"head_dim\": 0}", 128, 128, S},
        {"{" LLAMA ", \"head_dim\": 256}", 256, 256, S},
        {"{" LLAMA ", \"head_dim\": 128.0}", 128, 128, S},
        {"{" LLAMA ", \"head_dim\": 100, \"partial_rotary_factor\": 0.29}", 100, 28, S},
        {"{" LLAMA ", \"partial_rotary_factor\": 0.5}", 128, 64, S},
        {"{" LLAMA ", \"partial_rotary_factor\": 0.5, \"rotary_dim\": null}", 128, 64, S},
        {"{" LLAMA ", \"head_dim\": 80, \"partial_rotary_factor\": 0.4}", 80, 32, S},
        {"{" LLAMA ", \"rope_parameters\": {\"partial_rotary_factor\": 0.25},"
         " \"partial_rotary_factor\": 0.5}",
         128, 32, S},
        {gptj, 256, 64, A},
        {no_rotary, 256, 64, A},
        {neox, 96, 24, S},
        {MODEL("phi", ""), 128, 64, S},
        {MODEL("stablelm", ""), 128, 32, S},
        {MODEL("gemma", ""), 256, 256, S},
        {MODEL("qwen3", ", \"head_dim\": null"), 128, 128, S},
        {MODEL("gpt_oss", ""), 64, 64, S},
        {MODEL("gpt_oss", ", \"head_dim\": null"), 128, 128, S},
        {MODEL("glm4", ""), 128, 64, A},
        {MODEL("nomic_bert", ", \"rotary_emb_interleaved\": true"), 128, 128, A},
        {MODEL("nomic_bert", ""), 128, 128, S},
        {MODEL("deepseek_v3", ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64"), 192, 64, A},
        {MODEL("deepseek_v3", ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
                              " \"rope_interleave\": false"),
         192, 64, S},
        {MODEL("minimax_m3", ", \"rotary_dim\": 64, \"head_dim\": 128"), 128, 64, S},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        posenc_contract_set set = contract_set(contract, 0);
        if (set.head_dim != cases[i].head_dim || set.rotary_dim != cases[i].rotary_dim ||
            set.layout != cases[i].layout) {
            print_error("%s\n%d of %d, layout %d\n", cases[i].json, set.rotary_dim, set.head_dim,
                        set.layout);
            fail();
        }
        posenc_contract_free(contract);
    }
    (void)state;
}

/* Two statements of one width: the first of a documented order counts and a warning says so. */
static void test_contradictions(void **state)
{
    static const char *const cases[][3] = {
        {"{" LLAMA ", \"partial_rotary_factor\": 0.5, \"rotary_dim\": 32}", "rotary_dim", "64"},
        {"{" LLAMA ", \"rope_parameters\": {\"partial_rotary_factor\": 0.25},"
         " \"partial_rotary_factor\": 0.5}",
         "partial_rotary_factor", "0.25"},
        {"{" LLAMA ", \"n_head\": 16}", "n_head", "32"},
        {"{" LLAMA ", \"rope_interleaved\": true}", "rope_interleaved", "halves"},
        {MODEL("nomic_bert", ", \"n_positions\": 8192, \"max_position_embeddings\": 2048"),
         "max_position_embeddings", "n_positions is 8192"},
        {"{" LLAMA ", \"head_dim\": 128.0}", "head_dim", "real"},
        {"{" LLAMA ", \"rope_scaling\": {" YARN "}, \"original_max_position_embeddings\": 4096}",
         "original_max_position_embeddings", "4096"},
        {"{" LLAMA ", \"rope_scaling\": {" YARN "}, \"max_position_embeddings\": 32768}", "factor",
         "1 times"},
        {"{" LLAMA ", \"rope_scaling\": {" YARN ", \"mscale\": 1}}", "mscale", "mscale_all_dim"},
        {MODEL("deepseek_v3", ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
                              " \"qk_head_dim\": 128"),
         "qk_head_dim", "192"},
        {MODEL("smollm3", ", \"no_rope_layers\": [0, 1], \"no_rope_layer_interval\": 2"),
         "no_rope_layer_interval", "2 layers"},
        {MODEL("nomic_bert", ", \"n_positions\": 8192, \"max_trained_positions\": 2048,"
                             " \"original_max_position_embeddings\": 1024"),
         "original_max_position_embeddings", "2048"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i][0]);
        const char *text = contract_warning(contract, cases[i][1]);
        if (!text || !strstr(text, cases[i][2])) {
            print_error("%s\n%s\n", cases[i][0], text ? text : "no warning");
            fail();
        }
        posenc_contract_free(contract);
    }
    (void)state;
}

/* The length before extension: beside the block, in it, else the declared limit. */
static void test_original_length(void **state)
{
    posenc_contract *contract = contract_of(
        "{" LLAMA ", \"rope_scaling\": {" YARN "}, \"original_max_position_embeddings\": 4096}");
    assert_int_equal(contract_set(contract, 0).original_max_position, 4096);
    assert_int_equal(contract_facts(contract).trained_position, 4096);
    posenc_contract_free(contract);
    contract = contract_of("{" LLAMA ", \"rope_scaling\": {" YARN "}}");
    assert_int_equal(contract_set(contract, 0).original_max_position, 32768);
    assert_int_equal(contract_facts(contract).trained_position, 32768);
    posenc_contract_free(contract);
    contract = contract_of("{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4},"
                           " \"max_position_embeddings\": 2048}");
    assert_int_equal(contract_set(contract, 0).original_max_position, 2048);
    assert_int_equal(contract_facts(contract).trained_position, -1);
    assert_string_equal(contract_assumed(contract, "original_max_position_embeddings"), "2048");
    posenc_contract_free(contract);
    contract = contract_of("{" LLAMA ", \"rope_scaling\": {" YARN "},"
                           " \"max_trained_positions\": 2048}");
    assert_int_equal(contract_facts(contract).trained_position, 2048);
    posenc_contract_free(contract);
    contract = contract_of("{" LLAMA ", \"rope_theta\": 10000}");
    assert_int_equal(contract_set(contract, 0).original_max_position, -1);
    assert_int_equal(contract_facts(contract).max_position, -1);
    assert_null(contract_facts(contract).max_position_key);
    posenc_contract_free(contract);
    (void)state;
}

/* Attention factor and softmax scale of yarn: the values of the public reports, from 50 digits. */
static void test_yarn_factors(void **state)
{
    static const struct {
        const char *block;
        double factor;     /* of attention */
        double multiplier; /* of the softmax scale, in latent attention */
    } cases[] = {
        {"\"factor\": 64", 1.4158883083359672, 1},
        {"\"factor\": 64, \"attention_factor\": 1.0", 1, 1},
        {"\"factor\": 16, \"mscale\": 1.0, \"mscale_all_dim\": 1.0", 1, 1.6313902266748685},
        {"\"factor\": 40, \"mscale\": 1.0, \"mscale_all_dim\": 0.707", 1.0857263992561357,
         1.5896261651208734},
        {"\"factor\": 40, \"mscale\": 0.707, \"mscale_all_dim\": 0.707", 1, 1.5896261651208734},
        {"\"factor\": 40, \"mscale\": 1.0, \"mscale_all_dim\": 1.0", 1, 1.8738542070926265},
        {"\"factor\": 1.0", 1, 1},
        {"\"factor\": 32, \"attention_factor\": 1.5, \"mscale\": 1.0, \"mscale_all_dim\": 0.5", 1.5,
         1.3766019036498602},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[768] = "{\"model_type\": \"deepseek_v3\", " SHAPE ", \"qk_nope_head_dim\": 128,"
                         " \"qk_rope_head_dim\": 64, \"rope_scaling\": {\"type\": \"yarn\","
                         " \"original_max_position_embeddings\": 4096, ";
        strcat(strcat(json, cases[i].block), "}}");
        posenc_contract *contract = contract_of(json);
        posenc_rope_params params = contract_params(contract, 0);
        posenc_plan *plan = NULL;
        assert_int_equal(posenc_plan_create(&plan, &params, NULL), POSENC_OK);
        assert_true(fabs(posenc_plan_attention_factor(plan) - cases[i].factor) < 1e-15);
        double scale = contract_facts(contract).softmax_scale * sqrt(192.0);
        assert_true(fabs(scale / cases[i].multiplier - 1) < 1e-14);
        posenc_plan_free(plan);
        posenc_contract_free(contract);
    }
    (void)state;
}

/* Each row of the tables makes a contract of its scheme, and no name stands twice. */
static void test_every_family(void **state)
{
    static const int32_t schemes[] = {POSENC_SCHEME_ROPE,    POSENC_SCHEME_NONE,
                                      POSENC_SCHEME_ALIBI,   POSENC_SCHEME_T5,
                                      POSENC_SCHEME_DEBERTA, POSENC_SCHEME_LEARNED,
                                      POSENC_SCHEME_SINUSOIDAL};
    const struct posenc_family *family;
    int32_t count = 0;
    for (; (family = posenc_family_at(count)) != NULL; count++) {
        char json[1024];
        assert_ptr_equal(posenc_family_find(family->model_type), family);
        snprintf(json, sizeof json,
                 "{\"model_type\": \"%s\", " SHAPE ", \"num_key_value_heads\": 8,"
                 " \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"head_dim\": %d,"
                 " \"hybrid_layer_pattern\": [0, 1], \"sliding_window_layout\": [0, 1],"
                 " \"attn_layer_indices\": [1], \"full_attn_idxs\": [1],"
                 " \"hybrid_override_pattern\": \"M*\", \"compress_ratios\": [0, 4],"
                 " \"attn_config\": {\"alibi\": true}, \"relative_attention\": true,"
                 " \"use_mem_rope\": true, \"layers_block_type\": null,"
                 " \"block_types\": [\"attention\"],"
                 " \"position_embedding_type\": \"%s\","
                 " \"max_position_embeddings\": 4096}",
                 family->model_type, family->sections[0] == 11 ? 256 : 128,
                 family->scheme == POSENC_FAMILY_LEARNED ? "absolute" : "rope");
        posenc_contract *contract = contract_of(json);
        posenc_contract_facts facts = contract_facts(contract);
        assert_string_equal(facts.model_type, family->model_type);
        assert_int_equal(facts.scheme, schemes[family->scheme]);
        assert_int_equal(facts.num_sets > 0, facts.scheme == POSENC_SCHEME_ROPE);
        if (facts.num_sets > 0) {
            assert_int_equal(contract_set(contract, 0).layout, family->layout);
        }
        posenc_contract_free(contract);
    }
    assert_in_range(count, 150, 1000);
    (void)state;
}

/* docs/models.md has a row for each model type. */
static void test_documented(void **state)
{
    static char text[65536];
    const struct posenc_family *family;
    FILE *file = fopen(POSENC_TEST_DATA "/../../docs/models.md", "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_in_range(size, 1000, sizeof text - 2);
    for (int32_t i = 0; (family = posenc_family_at(i)) != NULL; i++) {
        char row[64];
        snprintf(row, sizeof row, "\n| %s |", family->model_type);
        if (!strstr(text, row)) {
            print_error("%s is not in docs/models.md\n", family->model_type);
            fail();
        }
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base),           cmocka_unit_test(test_kind),
        cmocka_unit_test(test_width),          cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_original_length), cmocka_unit_test(test_yarn_factors),
        cmocka_unit_test(test_every_family), cmocka_unit_test(test_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
