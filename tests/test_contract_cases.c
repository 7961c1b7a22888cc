/* SPDX-License-Identifier: MIT */
/* Public bug reports about reading config.json, by case id: what each file must be taken for. */
#include "contract_text.h"

#include <stdio.h>

#define SEVEN \
    "\"hidden_size\": 2560, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, " \
    "\"head_dim\": 256"

/* B29-a: the linear factor belongs to the full layers only. */
static void b29_scaling_of_one_kind(void **state)
{
    posenc_contract *contract = contract_of(
        "{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 7, " SEVEN
        ", \"rope_theta\": 1000000.0, \"rope_local_base_freq\": 10000.0, \"rope_scaling\":"
        " {\"rope_type\": \"linear\", \"factor\": 8.0}, \"sliding_window\": 1024,"
        " \"sliding_window_pattern\": 6}");
    for (int64_t layer = 0; layer < 7; layer++) {
        int full = layer == 5;
        int32_t set = posenc_contract_layer_set(contract, layer);
        posenc_rope_params params = contract_params(contract, set);
        assert_string_equal(posenc_contract_layer_type(contract, layer),
                            full ? "full" : "sliding");
        assert_true(params.base == (full ? 1000000.0 : 10000.0));
        assert_int_equal(params.scaling, full ? POSENC_SCALING_LINEAR : POSENC_SCALING_NONE);
        assert_true(!full || params.factor == 8.0);
        assert_int_equal(params.layout, POSENC_SPLIT_HALF);
        assert_int_equal(params.rotary_dim, 256);
    }
    posenc_contract_free(contract);
    (void)state;
}

/* B30-a: a 1 in no_rope_layers means rotated. */
static void b30_unrotated_layers(void **state)
{
    static const char *const keys[] = {"\"no_rope_layers\": [1, 1, 1, 0, 1, 1, 1, 0]",
                                       "\"no_rope_layer_interval\": 4"};
    for (size_t i = 0; i < 2; i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{\"model_type\": \"smollm3\", \"num_hidden_layers\": 8, " SEVEN ", %s}", keys[i]);
        posenc_contract *contract = contract_of(json);
        for (int64_t layer = 0; layer < 8; layer++) {
            assert_int_equal(posenc_contract_layer_set(contract, layer),
                             layer % 4 == 3 ? POSENC_LAYER_NOT_ROTATED : 0);
        }
        posenc_contract_free(contract);
    }
    (void)state;
}

/* B38-a: where the base lives; a default must be said, a contradiction too. */
static void b38_base(void **state)
{
    static const struct {
        const char *members;
        double base;
        int assumed;
        const char *warned;
    } cases[] = {
        {"\"rope_theta\": 1000000.0, \"rope_scaling\": null", 1e6, 0, NULL},
        {"\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}", 5e5, 0,
         NULL},
        {"\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4.0,"
         " \"original_max_position_embeddings\": 32768}, \"rope_theta\": 1000000",
         1e6, 0, NULL},
        {"\"x\": 0", 1e4, 1, NULL},
        {"\"rope_theta\": 10000.0, \"rope_parameters\": {\"rope_theta\": 500000.0,"
         " \"rope_type\": \"default\"}",
         5e5, 0, "rope_theta"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        snprintf(json, sizeof json, "{" LLAMA ", %s}", cases[i].members);
        posenc_contract *contract = contract_of(json);
        assert_true(contract_set(contract, 0).base == cases[i].base);
        assert_int_equal(contract_assumed(contract, "rope_theta") != NULL, cases[i].assumed);
        const char *warning = contract_warning(contract, "rope_theta");
        assert_int_equal(warning != NULL, cases[i].warned != NULL);
        assert_true(!warning || strstr(warning, "rope_parameters.rope_theta"));
        assert_string_equal(contract_set(contract, 0).rope_type, i == 2 ? "yarn" : "default");
        posenc_contract_free(contract);
    }
    (void)state;
}

/* B38-b: neither "not null" nor the older key alone tells the kind. */
static void b38_kind(void **state)
{
    static const struct {
        const char *block;
        const char *kind; /* NULL: refused with the word */
        const char *word;
    } cases[] = {
        {"{\"type\": \"linear\", \"factor\": 4}", "linear", NULL},
        {"{\"rope_type\": \"linear\", \"factor\": 4.0}", "linear", NULL},
        {"{\"type\": \"linear\", \"rope_type\": \"linear\", \"factor\": 4.0}", "linear", NULL},
        {"{\"rope_type\": \"default\", \"rope_theta\": 1000000}", "default", NULL},
        {"{\"type\": \"linear\"}", NULL, "factor is missing"},
        {"{\"type\": \"spiral\", \"factor\": 2.0}", NULL, "unknown kind"},
        {"{}", "default", NULL},
        {"null", "default", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        posenc_contract *contract;
        posenc_error error;
        snprintf(json, sizeof json, "{" LLAMA ", \"rope_scaling\": %s}", cases[i].block);
        int32_t status = contract_try(&contract, json, &error);
        assert_int_equal(status, cases[i].kind ? POSENC_OK : POSENC_ERROR_MODEL);
        if (cases[i].kind) {
            int linear = strcmp(cases[i].kind, "linear") == 0;
            assert_string_equal(contract_set(contract, 0).rope_type, cases[i].kind);
            assert_true(!linear || contract_params(contract, 0).factor == 4.0);
        } else {
            assert_non_null(strstr(error.text, cases[i].word));
        }
        posenc_contract_free(contract);
    }
    (void)state;
}

/* B38-b: three axes beside an old name; the old name of LongRoPE; B27-a gives its two sets. */
static void b38_kind_of_axes_and_lengths(void **state)
{
    posenc_contract *contract = contract_of(
        "{" LLAMA ", \"rope_scaling\": {\"type\": \"mrope\", \"rope_type\": \"default\","
        " \"mrope_section\": [16, 24, 24]}}");
    posenc_contract_set set = contract_set(contract, 0);
    assert_string_equal(set.rope_type, "default");
    assert_int_equal(set.axes, 3);
    assert_int_equal(set.interleaved, 0);
    assert_int_equal(contract_facts(contract).num_warnings, 0);
    posenc_contract_free(contract);
    contract = contract_of(
        "{\"model_type\": \"llama\", \"num_attention_heads\": 2, \"num_hidden_layers\": 1,"
        " \"head_dim\": 8, \"max_position_embeddings\": 32, \"rope_scaling\": {\"type\": \"su\","
        " \"original_max_position_embeddings\": 8, \"short_factor\": [1, 1, 1, 1],"
        " \"long_factor\": [1, 2, 4, 8]}}");
    assert_int_equal(contract_facts(contract).num_sets, 2);
    for (int32_t i = 0; i < 2; i++) {
        posenc_rope_params params = contract_params(contract, i);
        posenc_plan *plan = NULL;
        int64_t lengths[2] = {0, 0};
        assert_string_equal(contract_set(contract, i).id, i ? "long" : "short");
        assert_string_equal(contract_set(contract, i).rope_type, "longrope");
        assert_int_equal(params.length, i ? 9 : 8);
        assert_true(params.factor == 4.0);
        params.length = 0; /* one plan that switches, from either set */
        assert_int_equal(posenc_plan_create(&plan, &params, NULL), POSENC_OK);
        assert_int_equal(posenc_plan_length_range(plan, 8, &lengths[0], &lengths[1], NULL), 0);
        assert_int_equal(lengths[1], 9);
        posenc_plan_free(plan);
    }
    assert_int_equal(posenc_contract_layer_set(contract, 0), 0);
    posenc_contract_free(contract);
    (void)state;
}

/* B39-a: blocks of kinds are not a flat block, though one kind has no layer. */
static void b39_nested_blocks(void **state)
{
    posenc_contract *contract = contract_of(
        "{" LLAMA ", \"layer_types\": [\"sliding_attention\", \"sliding_attention\"],"
        " \"sliding_window\": 512, \"rope_parameters\": {\"sliding_attention\":"
        " {\"rope_type\": \"default\", \"rope_theta\": 10000.0}, \"full_attention\":"
        " {\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": 1000000.0}}}");
    for (int64_t layer = 0; layer < 2; layer++) {
        int32_t set = posenc_contract_layer_set(contract, layer);
        assert_true(contract_set(contract, set).base == 10000.0);
        assert_string_equal(contract_set(contract, set).rope_type, "default");
    }
    assert_non_null(strstr(contract_warning(contract, "full_attention"), "no layer"));
    posenc_contract_free(contract);
    (void)state;
}

/* B40-a: a given head width or fraction is not overruled by one that is absent, 0 or null. */
static void b40_widths(void **state)
{
    static const struct {
        const char *members;
        int32_t head_dim, rotary_dim; /* 0: refused with the word */
        const char *word;
    } cases[] = {
        {"\"model_type\": \"llama\", \"hidden_size\": 5120, \"num_attention_heads\": 32,"
         " \"head_dim\": 128", 128, 128, NULL},
        {"\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_attention_heads\": 32,"
         " \"head_dim\": null", 128, 128, NULL},
        {"\"model_type\": \"llama\", \"hidden_size\": 2048, \"num_attention_heads\": 16,"
         " \"head_dim\": 0", 128, 128, NULL},
        {"\"model_type\": \"llama\", \"hidden_size\": 640, \"num_attention_heads\": 4,"
         " \"head_dim\": 256", 256, 256, NULL},
        {"\"model_type\": \"llama\", \"hidden_size\": 520, \"num_attention_heads\": 8", 0, 0,
         "65"},
        {"\"model_type\": \"llama\", \"hidden_size\": 100, \"num_attention_heads\": 3", 0, 0,
         "hidden_size is 100: must be a multiple"},
        {"\"model_type\": \"gptj\", \"n_embd\": 4096, \"n_head\": 16, \"rotary_dim\": 64", 256, 64,
         NULL},
        {"\"model_type\": \"gpt_neox\", \"hidden_size\": 6144, \"num_attention_heads\": 64,"
         " \"rotary_pct\": 0.25", 96, 24, NULL},
        {"\"model_type\": \"llama\", \"num_attention_heads\": 8, \"head_dim\": 128,"
         " \"partial_rotary_factor\": 0.5", 128, 64, NULL},
        {"\"model_type\": \"llama\", \"hidden_size\": 2560, \"num_attention_heads\": 32,"
         " \"partial_rotary_factor\": 0.4", 80, 32, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        posenc_contract *contract;
        posenc_error error;
        snprintf(json, sizeof json, "{\"num_hidden_layers\": 2, %s}", cases[i].members);
        int32_t status = contract_try(&contract, json, &error);
        if (!cases[i].head_dim) {
            assert_int_equal(status, POSENC_ERROR_MODEL);
            assert_non_null(strstr(error.text, cases[i].word));
            continue;
        }
        assert_int_equal(status, POSENC_OK);
        posenc_contract_set set = contract_set(contract, 0);
        assert_int_equal(set.head_dim, cases[i].head_dim);
        assert_int_equal(set.rotary_dim, cases[i].rotary_dim);
        assert_int_equal(set.layout, i == 6 ? POSENC_ADJACENT : POSENC_SPLIT_HALF);
        posenc_contract_free(contract);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b29_scaling_of_one_kind),
        cmocka_unit_test(b30_unrotated_layers),
        cmocka_unit_test(b38_base),
        cmocka_unit_test(b38_kind),
        cmocka_unit_test(b38_kind_of_axes_and_lengths),
        cmocka_unit_test(b39_nested_blocks),
        cmocka_unit_test(b40_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
