/* SPDX-License-Identifier: MIT */
/* What the keys of a GGUF header mean, and which of them are refused. */
#include "gguf_text.h"

#include <math.h>

static posenc_rope_params params_of(struct gguf_text *text)
{
    posenc_contract *contract = gguf_contract(text);
    posenc_rope_params params = contract_params(contract, 0);
    posenc_contract_free(contract);
    return params;
}

/* Case B41-a: four files that say little, and what each means. */
static void test_case_b41(void **state)
{
    (void)state;
    struct gguf_text *qwen = gguf_new(0, 3);
    gguf_word(qwen, "general.architecture", "qwen2");
    gguf_u32(qwen, "qwen2.embedding_length", 8192);
    gguf_u32(qwen, "qwen2.attention.head_count", 64);
    posenc_contract *contract = gguf_contract(qwen);
    posenc_contract_set set = contract_set(contract, 0);
    assert_true(set.base == 10000.0);
    assert_string_equal(contract_assumed(contract, "qwen2.rope.freq_base"), "10000");
    assert_int_equal(set.rotary_dim, 128);
    assert_int_equal(set.layout, POSENC_SPLIT_HALF);
    assert_int_equal(contract_facts(contract).num_layers, -1);
    assert_non_null(contract_warning(contract, "block_count"));
    posenc_contract_free(contract);

    struct gguf_text *wide = gguf_new(0, 3);
    gguf_word(wide, "general.architecture", "llama");
    gguf_u32(wide, "llama.embedding_length", 5120);
    gguf_u32(wide, "llama.attention.head_count", 32);
    gguf_u32(wide, "llama.attention.key_length", 128);
    gguf_f32(wide, "llama.rope.freq_base", 1e6f);
    posenc_rope_params params = params_of(wide);
    assert_true(params.base == 1e6 && params.rotary_dim == 128);
    assert_int_equal(params.layout, POSENC_ADJACENT);

    struct gguf_text *zero = gguf_llama();
    gguf_word(zero, "llama.rope.scaling.type", "linear");
    gguf_f32(zero, "llama.rope.scaling.factor", 0.0f);
    contract = gguf_contract(zero);
    assert_int_equal(contract_params(contract, 0).scaling, POSENC_SCALING_NONE);
    assert_string_equal(contract_warning(contract, "llama.rope.scaling.factor"),
                        "is 0, read as unscaled");
    posenc_contract_free(contract);

    struct gguf_text *old = gguf_llama();
    gguf_f32(old, "llama.rope.scale_linear", 4.0f);
    params = params_of(old);
    assert_int_equal(params.scaling, POSENC_SCALING_LINEAR);
    assert_true(params.factor == 4.0);
    assert_int_equal(params.layout, POSENC_ADJACENT);
}

/* A float32 stands for the shortest decimal that rounds to it. */
static void test_decimals(void **state)
{
    static const double values[] = {0.1,  0.707, 1.1,   1e-6,      123456.7,      150000.0,
                                    32.0, 0.334, 1e14, 0.0078125, 8192.0, 1.0 / 3.0};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gguf_text *text = gguf_llama();
        gguf_f32(text, "llama.attention.scale", (float)values[i]);
        posenc_contract *contract = gguf_contract(text);
        double got = contract_facts(contract).softmax_scale;
        /* A third has no short decimal: the shortest is within half an ulp of the float. */
        double wanted = i == 11 ? 0.33333334 : values[i];
        if (got != wanted) {
            print_error("%.17g, not %.17g\n", got, wanted);
            fail();
        }
        posenc_contract_free(contract);
    }
}

static struct gguf_text *yarn(const char *architecture)
{
    char key[64];
    static const char *const names[] = {"block_count", "embedding_length", "attention.head_count",
                                        "context_length"};
    static const uint32_t values[] = {2, 4096, 32, 65536};
    struct gguf_text *text = gguf_new(0, 3);
    gguf_word(text, "general.architecture", architecture);
    for (int i = 0; i < 4; i++) {
        strcpy(key, architecture);
        strcat(strcat(key, "."), names[i]);
        gguf_u32(text, key, values[i]);
    }
    strcpy(key, architecture);
    gguf_word(text, strcat(key, ".rope.scaling.type"), "yarn");
    strcpy(key, architecture);
    gguf_f32(text, strcat(key, ".rope.scaling.factor"), 16.0f);
    return text;
}

static void test_yarn(void **state)
{
    (void)state;
    posenc_contract *contract = gguf_contract(yarn("llama"));
    posenc_rope_params params = contract_params(contract, 0);
    assert_int_equal(params.scaling, POSENC_SCALING_YARN);
    assert_true(params.factor == 16.0 && params.original_max_position == 65536.0);
    assert_true(params.beta_fast == 32.0 && params.beta_slow == 1.0 && params.truncate == 1);
    assert_string_equal(
        contract_assumed(contract, "llama.rope.scaling.original_context_length"), "65536");
    posenc_contract_free(contract);

    struct gguf_text *text = yarn("llama");
    gguf_u32(text, "llama.rope.scaling.original_context_length", 4096);
    gguf_f32(text, "llama.rope.scaling.yarn_beta_fast", 8.0f);
    gguf_f32(text, "llama.rope.scaling.yarn_ext_factor", 0.5f);
    contract = gguf_contract(text);
    assert_true(contract_params(contract, 0).beta_fast == 8.0);
    assert_non_null(strstr(contract_warning(contract, "yarn_beta_fast"), "llama.cpp takes 32"));
    assert_non_null(contract_warning(contract, "yarn_ext_factor"));
    assert_int_equal(contract_set(contract, 0).original_max_position, 4096);
    posenc_contract_free(contract);

    text = yarn("mistral3");
    gguf_f32(text, "mistral3.rope.scaling.yarn_beta_fast", 8.0f);
    gguf_f32(text, "mistral3.rope.scaling.yarn_log_multiplier", 0.5f);
    contract = gguf_contract(text);
    assert_null(contract_warning(contract, "yarn_beta_fast"));
    params = contract_params(contract, 0);
    assert_true(params.mscale == 1.0 && params.mscale_all_dim == 0.5);
    posenc_contract_free(contract);

    double g = 0.1 * log(16.0), ratio = (g + 1.0) / (0.5 * g + 1.0);
    text = yarn("mistral3");
    gguf_f32(text, "mistral3.rope.scaling.yarn_log_multiplier", 0.5f);
    gguf_f32(text, "mistral3.rope.scaling.attn_factor", 2.0f);
    params = params_of(text);
    assert_true(fabs(params.attention_factor - 2.0 * ratio) < 1e-15);

    text = yarn("llama");
    gguf_f32(text, "llama.rope.scaling.attn_factor", 0.5f);
    params = params_of(text);
    assert_true(fabs(params.attention_factor - 0.5 * (1.0 + g)) < 1e-15);
}

/* Values of a tensor behind the header. */
static void put_values(struct gguf_text *text, const float *values, size_t count, int half)
{
    gguf_align(text, 32);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        /* Small powers of two alone: sign, exponent and no fraction. */
        gguf_number(text, half ? ((bits >> 23) - 112) << 10 : bits, half ? 2 : 4);
    }
}

static void test_divisors(void **state)
{
    float values[64];
    (void)state;
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 64; i++) {
            values[i] = i % 2 ? 4.0f : 0.5f;
        }
        struct gguf_text *text = gguf_llama();
        gguf_f32(text, "llama.rope.scaling.factor", 2.0f);
        gguf_tensor(text, "rope_freqs.weight", 64, (uint64_t)half, 0);
        put_values(text, values, 64, half);
        posenc_contract *contract = gguf_contract(text);
        posenc_rope_params params = contract_params(contract, 0);
        assert_int_equal(params.frequency_source, POSENC_FREQUENCIES_DIVISORS);
        assert_int_equal(params.scaling, POSENC_SCALING_LINEAR);
        assert_true(params.frequencies[0] == 0.5 && params.frequencies[63] == 4.0);
        assert_non_null(contract_warning(contract, "rope_freqs.weight"));
        posenc_plan *plan = NULL;
        assert_int_equal(posenc_plan_create(&plan, &params, NULL), POSENC_OK);
        posenc_plan_free(plan);
        posenc_contract_free(contract);
    }
}

/* Sinks are tensors of layers. */
static void test_sinks(void **state)
{
    const float values[] = {1.0f};
    struct gguf_text *text = gguf_llama();
    (void)state;
    gguf_tensor(text, "blk.0.attn_sinks.weight", 1, 0, 0);
    put_values(text, values, 1, 0);
    posenc_contract *contract = gguf_contract(text);
    assert_string_equal(contract_facts(contract).sink_layers, "all");
    posenc_contract_free(contract);
    contract = gguf_contract(gguf_llama());
    assert_null(contract_facts(contract).sink_layers);
    posenc_contract_free(contract);
}

/* LongRoPE takes its lengths from two keys; what no plan can be made of is refused. */
static void test_longrope(void **state)
{
    static const uint32_t original[] = {4096, 1};
    float ones[128];
    (void)state;
    for (int i = 0; i < 128; i++) {
        ones[i] = i < 64 ? 1.0f : 4.0f;
    }
    for (size_t i = 0; i < 2; i++) {
        struct gguf_text *text = gguf_llama();
        gguf_u32(text, "llama.context_length", 8192);
        gguf_u32(text, "llama.rope.scaling.original_context_length", original[i]);
        gguf_f32(text, "llama.rope.scaling.attn_factor", 1.25f);
        gguf_tensor(text, "rope_factors_short.weight", 64, 0, 0);
        gguf_tensor(text, "rope_factors_long.weight", 64, 0, 256);
        put_values(text, ones, 128, 0);
        posenc_contract *contract = gguf_contract(text);
        posenc_rope_params params = contract_params(contract, 1);
        assert_int_equal(params.length, (int64_t)original[i] + 1);
        assert_true(params.attention_factor == 1.25 && params.factor == 8192.0 / original[i]);
        assert_true(params.long_factors[0] == 4.0 && params.short_factors[63] == 1.0);
        posenc_contract_free(contract);
    }
    struct gguf_text *text = gguf_llama();
    gguf_u32(text, "llama.context_length", 8192);
    gguf_u32(text, "llama.rope.scaling.original_context_length", 1);
    gguf_tensor(text, "rope_factors_short.weight", 64, 0, 0);
    gguf_tensor(text, "rope_factors_long.weight", 64, 0, 256);
    put_values(text, ones, 128, 0);
    gguf_refused(text, POSENC_ERROR_MODEL, "frequency set short: ");
}

static struct gguf_text *with_tensor(uint64_t elements, uint64_t type, uint64_t offset,
                                     float last)
{
    float values[64];
    struct gguf_text *text = gguf_llama();
    for (int i = 0; i < 64; i++) {
        values[i] = i == 63 ? last : 1.0f;
    }
    gguf_tensor(text, "rope_freqs.weight", elements, type, offset);
    put_values(text, values, 64, 0);
    return text;
}

static void test_tensor_refusals(void **state)
{
    (void)state;
    gguf_refused(with_tensor(32, 0, 0, 1.0f), POSENC_ERROR_MODEL, "one dimension of 64");
    gguf_refused(with_tensor(64, 8, 0, 1.0f), POSENC_ERROR_MODEL, "is of type 8: must be F32");
    gguf_refused(with_tensor(64, 0, 32, 1.0f), POSENC_ERROR_MODEL, "beyond the end");
    gguf_refused(with_tensor(64, 0, 8, 1.0f), POSENC_ERROR_FORMAT, "no multiple");
    gguf_refused(with_tensor(64, 0, UINT64_C(1) << 62, 1.0f), POSENC_ERROR_MODEL, "beyond the end");
    gguf_refused(with_tensor(64, 0, 0, 0.0f), POSENC_ERROR_MODEL, "value 63 must be >= 2^-64");
    gguf_refused(with_tensor(64, 0, 0, 0x1p-65f), POSENC_ERROR_MODEL, "value 63 must be >= 2^-64");
    gguf_refused(with_tensor(64, 0, 0, NAN), POSENC_ERROR_MODEL, "value 63 must be >= 2^-64");
    gguf_refused(with_tensor(64, 0, 0, INFINITY), POSENC_ERROR_MODEL, "and finite");
    struct gguf_text *text = gguf_llama();
    gguf_tensor(text, "rope_factors_long.weight", 64, 0, 0);
    float ones[64];
    for (int i = 0; i < 64; i++) {
        ones[i] = 1.0f;
    }
    put_values(text, ones, 64, 0);
    gguf_refused(text, POSENC_ERROR_MODEL, "rope_factors_short.weight is missing");
    text = yarn("llama");
    gguf_tensor(text, "rope_freqs.weight", 64, 0, 0);
    put_values(text, ones, 64, 0);
    gguf_refused(text, POSENC_ERROR_MODEL, "llama.rope.scaling.type is \"yarn\"");
}

/* Each refusal names key, value and rule. */
static void test_refusals(void **state)
{
    static const struct {
        const char *key;
        uint32_t value;
        const char *words;
    } numbers[] = {
        {"llama.rope.dimension_count", 127, "llama.rope.dimension_count is 127: must be even"},
        {"llama.rope.dimension_count", 130, "2..128"},
        {"llama.rope.dimension_count", 64, "turns whole heads"},
        {"llama.attention.key_length", 1, "must be 2..65536"},
        {"llama.attention.head_count_kv", 5, "must divide the number of query heads, 32"},
        {"llama.attention.head_count_kv", 0, "must divide"},
        {"llama.rope.freq_base", 1, "must be > 1"},
        {"llama.rope.scaling.type", 1, "llama.rope.scaling.type is 1: must be a string"},
        {"llama.context_length", 0, "must be 1.."},
        {"general.type", 1, "general.type is 1: must be a string"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct gguf_text *text = gguf_llama();
        gguf_u32(text, numbers[i].key, numbers[i].value);
        gguf_refused(text, POSENC_ERROR_MODEL, numbers[i].words);
    }
    struct gguf_text *text = gguf_llama();
    gguf_word(text, "general.type", "adapter");
    gguf_refused(text, POSENC_ERROR_MODEL, "general.type is \"adapter\": must be \"model\"");
    text = gguf_llama();
    gguf_word(text, "llama.rope.scaling.type", "dynamic");
    gguf_refused(text, POSENC_ERROR_MODEL, "must be none, linear, yarn or longrope");
    text = gguf_llama();
    gguf_f32(text, "llama.rope.scaling.factor", -2.0f);
    gguf_refused(text, POSENC_ERROR_MODEL, "llama.rope.scaling.factor is -2");
    text = gguf_llama();
    gguf_f32(text, "llama.rope.freq_base", INFINITY);
    gguf_refused(text, POSENC_ERROR_MODEL, "must be finite");
    text = gguf_new(0, 3);
    gguf_word(text, "general.architecture", "nonesuch");
    gguf_refused(text, POSENC_ERROR_MODEL, "general.architecture is \"nonesuch\": unknown");
    gguf_refused(gguf_new(0, 3), POSENC_ERROR_MODEL, "general.architecture is missing");
}

/* Lists of one value a layer. */
static void test_layers(void **state)
{
    (void)state;
    struct gguf_text *text = gguf_llama();
    gguf_list(text, "llama.attention.head_count_kv", 5, 2);
    gguf_number(text, 0, 4);
    gguf_number(text, 8, 4);
    posenc_contract *contract = gguf_contract(text);
    assert_int_equal(posenc_contract_layer_set(contract, 0), POSENC_LAYER_NO_ATTENTION);
    assert_int_equal(posenc_contract_layer_set(contract, 1), 0);
    assert_int_equal(contract_facts(contract).num_kv_heads, 8);
    posenc_contract_free(contract);
    text = gguf_llama();
    gguf_list(text, "llama.attention.head_count_kv", 5, 3);
    gguf_number(text, 8, 4);
    gguf_number(text, 8, 4);
    gguf_number(text, 8, 4);
    gguf_refused(text, POSENC_ERROR_MODEL, "is a list of 3: the model has 2 layers");
    text = gguf_llama();
    gguf_list(text, "llama.attention.head_count_kv", 8, 1);
    gguf_string(text, "8");
    gguf_refused(text, POSENC_ERROR_MODEL, "must be an integer");
}

static void test_no_attention(void **state)
{
    (void)state;
    struct gguf_text *text = gguf_new(0, 3);
    gguf_word(text, "general.architecture", "mamba");
    gguf_u32(text, "mamba.block_count", 3);
    gguf_u32(text, "mamba.attention.head_count", 0);
    posenc_contract *contract = gguf_contract(text);
    assert_int_equal(contract_facts(contract).scheme, POSENC_SCHEME_NONE);
    assert_int_equal(contract_facts(contract).num_heads, -1);
    assert_int_equal(contract_facts(contract).num_sets, 0);
    assert_int_equal(posenc_contract_layer_set(contract, 2), POSENC_LAYER_NO_ATTENTION);
    assert_string_equal(posenc_contract_layer_type(contract, 2), "linear");
    posenc_contract_free(contract);
}

/* Sliding layers of an architecture whose keys tell how they differ. */
static void test_sliding(void **state)
{
    (void)state;
    struct gguf_text *text = gguf_new(0, 3);
    gguf_word(text, "general.architecture", "cohere2");
    gguf_u32(text, "cohere2.block_count", 4);
    gguf_u32(text, "cohere2.embedding_length", 4096);
    gguf_u32(text, "cohere2.attention.head_count", 32);
    gguf_u32(text, "cohere2.attention.sliding_window", 1024);
    gguf_u32(text, "cohere2.attention.key_length_swa", 64);
    posenc_contract *contract = gguf_contract(text);
    assert_int_equal(contract_facts(contract).num_sets, 2);
    assert_int_equal(contract_set(contract, 0).head_dim, 128);
    assert_int_equal(contract_set(contract, 1).head_dim, 64);
    assert_string_equal(contract_set(contract, 1).id, "local");
    assert_int_equal(posenc_contract_layer_set(contract, 0), 1);
    assert_int_equal(posenc_contract_layer_set(contract, 3), POSENC_LAYER_NOT_ROTATED);
    posenc_contract_free(contract);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_b41),        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_yarn),            cmocka_unit_test(test_divisors),
        cmocka_unit_test(test_sinks),
        cmocka_unit_test(test_longrope),
        cmocka_unit_test(test_tensor_refusals), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_layers),          cmocka_unit_test(test_sliding),
        cmocka_unit_test(test_no_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
