/* SPDX-License-Identifier: MIT */
/* Fingerprints of plans: the hash behind them, what changes one and what must not. */
#include "support/test.h"

#include "../src/hash.h"

#include <math.h>
#include <stdio.h>

static void print_hash(const struct posenc_hash *hash, char text[33])
{
    uint8_t bytes[POSENC_HASH_BYTES];
    posenc_hash_end(hash, bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* As the FNV authors and the Go standard library (hash/fnv) publish them. */
static void published_vectors(void **state)
{
    static const char *const vectors[][2] = {
        {"", "6c62272e07bb014262b821756295c58d"},
        {"a", "d228cb696f1a8caf78912b704e4a8964"},
        {"ab", "08809544bbab1be95aa0733055b69a62"},
        {"abc", "a68d622cec8b5822836dbc7977af7f3b"},
        {"foobar", "343e1662793c64bf6f0d3597ba446f18"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        char text[33];
        struct posenc_hash hash = posenc_hash_start();
        posenc_hash_bytes(&hash, vectors[i][0], strlen(vectors[i][0]));
        print_hash(&hash, text);
        assert_string_equal(text, vectors[i][1]);
    }
}

/* Numbers are little-endian bytes, so fingerprints may travel between machines. */
static void numbers_as_bytes(void **state)
{
    static const unsigned char bytes[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0,    0,    0,    0,    0,    0,    0xf8, 0x3f,
                                          2,    0,    0,    0,    0,    0,    0,    0,
                                          'o',  'k'};
    char a[33], b[33];
    (void)state;
    struct posenc_hash hash = posenc_hash_start();
    posenc_hash_bytes(&hash, bytes, sizeof bytes);
    print_hash(&hash, a);
    hash = posenc_hash_start();
    posenc_hash_integer(&hash, -2);
    posenc_hash_real(&hash, 1.5);
    posenc_hash_text(&hash, "ok");
    print_hash(&hash, b);
    assert_string_equal(a, b);

    struct posenc_hash zero = posenc_hash_start(), minus = zero, none = zero, empty = zero;
    posenc_hash_real(&zero, 0.0);
    posenc_hash_real(&minus, -0.0);
    print_hash(&zero, a);
    print_hash(&minus, b);
    assert_string_equal(a, b);
    posenc_hash_text(&none, NULL);
    posenc_hash_text(&empty, "");
    print_hash(&none, a);
    print_hash(&empty, b);
    assert_string_not_equal(a, b);
}

struct print {
    uint8_t bytes[16];
};

static struct print print_of(const posenc_rope_params *params)
{
    struct print print;
    posenc_error error = {0, ""};
    posenc_plan *plan = test_plan(params);
    test_ok(posenc_plan_fingerprint(plan, print.bytes, &error), &error);
    posenc_plan_free(plan);
    return print;
}

static int equal(const posenc_rope_params *a, const posenc_rope_params *b)
{
    struct print x = print_of(a), y = print_of(b);
    return memcmp(&x, &y, sizeof x) == 0;
}

static posenc_rope_params plain(void)
{
    return test_params(POSENC_SPLIT_HALF, 64, 32);
}

static posenc_rope_params linear(void)
{
    posenc_rope_params p = plain();
    p.scaling = POSENC_SCALING_LINEAR;
    p.factor = 4;
    return p;
}

static posenc_rope_params llama3(void)
{
    posenc_rope_params p = plain();
    p.scaling = POSENC_SCALING_LLAMA3;
    p.factor = 8;
    p.original_max_position = 8192;
    p.low_freq_factor = 1;
    p.high_freq_factor = 4;
    return p;
}

static posenc_rope_params yarn(void)
{
    posenc_rope_params p = plain();
    p.scaling = POSENC_SCALING_YARN;
    p.factor = 16;
    p.original_max_position = 4096;
    return p;
}

static posenc_rope_params hf_f32(void)
{
    posenc_rope_params p = plain();
    p.recipe = POSENC_RECIPE_HF_F32;
    return p;
}

static double ramp[16], steps[16]; /* two lists of divisors */

static posenc_rope_params with_scaling(int32_t scaling)
{
    posenc_rope_params p = yarn();
    p.scaling = scaling;
    for (int i = 0; i < 16; i++) {
        ramp[i] = 1 + i / 8.0;
        steps[i] = 1 + i / 4;
    }
    p.short_factors = ramp;
    p.long_factors = steps;
    p.mixed_exponent = 0.6;
    p.rotating_pairs = 8;
    return p;
}

static posenc_rope_params ntk(void)
{
    return with_scaling(POSENC_SCALING_NTK);
}

static posenc_rope_params ntk_mixed(void)
{
    return with_scaling(POSENC_SCALING_NTK_MIXED);
}

static posenc_rope_params dynamic(void)
{
    return with_scaling(POSENC_SCALING_DYNAMIC_NTK);
}

static posenc_rope_params longrope(void)
{
    return with_scaling(POSENC_SCALING_LONGROPE);
}

static posenc_rope_params proportional(void)
{
    return with_scaling(POSENC_SCALING_PROPORTIONAL);
}

static posenc_rope_params xpos(void)
{
    posenc_rope_params p = plain();
    p.xpos = POSENC_XPOS_QUERIES;
    return p;
}

static posenc_rope_params ggml(void)
{
    posenc_rope_params p = yarn();
    p.recipe = POSENC_RECIPE_GGML;
    return p;
}

enum kind { INT32, INT64, REAL };

/* One field, and a value that gives another rotation. */
struct change {
    posenc_rope_params (*base)(void);
    const char *name;
    size_t offset;
    enum kind kind;
    double value;
};

#define FIELD(name) #name, offsetof(posenc_rope_params, name)

static posenc_rope_params changed(const struct change *change)
{
    posenc_rope_params p = change->base();
    int32_t narrow = (int32_t)change->value;
    int64_t wide = (int64_t)change->value;
    char *at = (char *)&p + change->offset;
    if (change->kind == REAL)
        memcpy(at, &change->value, sizeof change->value);
    else if (change->kind == INT64)
        memcpy(at, &wide, sizeof wide);
    else
        memcpy(at, &narrow, sizeof narrow);
    return p;
}

static const struct change changes[] = {
    {plain, FIELD(layout), INT32, POSENC_ADJACENT},
    {plain, FIELD(head_dim), INT32, 66},
    {plain, FIELD(rotary_dim), INT32, 30},
    {plain, FIELD(rotary_offset), INT32, 32},
    {plain, FIELD(base), REAL, 10001},
    {plain, FIELD(attention_factor), REAL, 1.25},
    {plain, FIELD(recipe), INT32, POSENC_RECIPE_HF_F32},
    {hf_f32, FIELD(row_dtype), INT32, POSENC_BF16},
    {hf_f32, FIELD(base), REAL, 10001},
    {linear, FIELD(scaling), INT32, POSENC_SCALING_NONE},
    {linear, FIELD(factor), REAL, 4.5},
    {llama3, FIELD(factor), REAL, 4},
    {llama3, FIELD(original_max_position), REAL, 4096},
    {llama3, FIELD(low_freq_factor), REAL, 0.5},
    {llama3, FIELD(high_freq_factor), REAL, 8},
    {yarn, FIELD(factor), REAL, 4},
    {yarn, FIELD(original_max_position), REAL, 8192},
    {yarn, FIELD(beta_fast), REAL, 16},
    {yarn, FIELD(beta_slow), REAL, 2},
    {yarn, FIELD(truncate), INT32, 0},
    {yarn, FIELD(magnitude_slope), REAL, 0.07},
    {yarn, FIELD(yarn_blend), INT32, POSENC_YARN_GEOMETRIC},
    {ntk, FIELD(factor), REAL, 4},
    {ntk, FIELD(scaling), INT32, POSENC_SCALING_NTK_SCALED},
    {ntk_mixed, FIELD(factor), REAL, 4},
    {ntk_mixed, FIELD(mixed_exponent), REAL, 0.5},
    {dynamic, FIELD(base), REAL, 10001},
    {dynamic, FIELD(factor), REAL, 4}, /* of lengths past L0 alone */
    {dynamic, FIELD(original_max_position), REAL, 8192},
    {dynamic, FIELD(length), INT64, 8192},
    {dynamic, FIELD(scaling), INT32, POSENC_SCALING_NTK},
    {longrope, FIELD(factor), REAL, 4},
    {longrope, FIELD(attention_factor), REAL, 1.5},
    {longrope, FIELD(short_attention), REAL, 1.5},
    {longrope, FIELD(long_attention), REAL, 1.5},
    {longrope, FIELD(length), INT64, 4096},
    {proportional, FIELD(factor), REAL, 4},
    {proportional, FIELD(rotating_pairs), INT32, 9},
    {xpos, FIELD(xpos), INT32, POSENC_XPOS_KEYS},
    {xpos, FIELD(xpos_scale_base), REAL, 256},
    {xpos, FIELD(xpos_center), INT64, 1},
    {xpos, FIELD(base), REAL, 10001},
    {ggml, FIELD(base), REAL, 10001},
    {ggml, FIELD(factor), REAL, 4},
    {ggml, FIELD(original_max_position), REAL, 8192},
    {ggml, FIELD(beta_fast), REAL, 16},
    {ggml, FIELD(beta_slow), REAL, 2},
    {ggml, FIELD(attention_factor), REAL, 1.5},
    {ggml, FIELD(recipe), INT32, POSENC_RECIPE_EXACT},
    {ggml, FIELD(scaling), INT32, POSENC_SCALING_LINEAR},
};

static void every_field_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        posenc_rope_params before = changes[i].base(), after = changed(&changes[i]);
        if (equal(&before, &after))
            fail_msg("%s = %g: the fingerprint does not tell", changes[i].name, changes[i].value);
        for (size_t k = 0; k < i; k++) {
            posenc_rope_params other = changed(&changes[k]);
            if (changes[k].base == changes[i].base && equal(&after, &other))
                fail_msg("%s and %s: the same fingerprint", changes[i].name, changes[k].name);
        }
    }
    posenc_rope_params p = yarn(), q = yarn();
    p.mscale = q.mscale = 1;
    p.mscale_all_dim = 1;
    q.mscale_all_dim = 0.5;
    assert_false(equal(&p, &q));
}

static void every_list_counts(void **state)
{
    (void)state;
    double other[16];
    static const double factors[3] = {1, 4, 8};
    int32_t axes[16] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
    posenc_rope_params p = longrope(), q = longrope();
    memcpy(other, ramp, sizeof ramp);
    other[15] = nextafter(other[15], 8);
    q.short_factors = other;
    assert_false(equal(&p, &q));
    q.short_factors = p.short_factors;
    memcpy(other, steps, sizeof steps);
    other[0] = 2;
    q.long_factors = other;
    assert_false(equal(&p, &q));
    p.length = q.length = 4096; /* where the long set is out of reach */
    assert_true(equal(&p, &q));
    p.length = q.length = 4097;
    assert_false(equal(&p, &q));

    p = linear();
    q = linear();
    p.factors = q.factors = factors;
    p.num_factors = 3;
    q.num_factors = 2;
    assert_false(equal(&p, &q));
    q.num_factors = 1;
    q.factors = factors + 1; /* that of linear() */
    p = linear();
    assert_true(equal(&p, &q));

    p = plain();
    q = plain();
    p.axes = q.axes = 3;
    p.axis_of_pair = axes;
    assert_false(equal(&p, &q));
    posenc_rope_params r = plain();
    assert_false(equal(&p, &r));
    assert_false(equal(&q, &r));
    struct print before = print_of(&p);
    axes[15] = 0;
    struct print after = print_of(&p);
    assert_memory_not_equal(&before, &after, sizeof before);
    axes[15] = 2;
    after = print_of(&p);
    assert_memory_equal(&before, &after, sizeof before);
}

/* Another recipe is another method, also where its bits happen to agree; but row_dtype 0 is F32. */
static void recipes_count(void **state)
{
    (void)state;
    posenc_rope_params p = hf_f32(), q = hf_f32();
    q.row_dtype = POSENC_F32;
    assert_true(equal(&p, &q));
    p = linear();
    q = linear();
    p.recipe = POSENC_RECIPE_HF_F32;
    q.recipe = POSENC_RECIPE_VLLM; /* divides positions, not frequencies */
    assert_false(equal(&p, &q));
    q.recipe = POSENC_RECIPE_GGML;
    assert_false(equal(&p, &q));
    p = q;
    p.factor = 2;
    assert_false(equal(&p, &q));
}

/* Bases so near that all frequencies of short lengths agree may part at longer ones. */
static void growing_bases(void **state)
{
    (void)state;
    posenc_rope_params p = dynamic(), q;
    p.rotary_dim = 4;
    q = p;
    q.base = nextafter(p.base, 0);
    assert_false(equal(&p, &q));
    p.length = q.length = 4096;
    assert_true(equal(&p, &q));
}

static void what_does_not_count(void **state)
{
    (void)state;
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);
    posenc_rope_params p = yarn(), q = yarn();
    for (size_t i = 0; i < count; i++) {
        q.isa = isas[i];
        assert_true(equal(&p, &q));
    }
    q.max_position = 4096;
    assert_true(equal(&p, &q));
    q.low_freq_factor = 3; /* of another scaling */
    assert_true(equal(&p, &q));
}

/* What counts are the rows, not how they were asked for. */
static void other_ways_to_the_same(void **state)
{
    (void)state;
    double given[16], twos[16];
    posenc_rope_params p = linear(), q = plain();
    posenc_plan *plan = test_plan(&p);
    assert_int_equal(posenc_plan_inv_freq(plan, given, 16, NULL), POSENC_OK);
    posenc_plan_free(plan);
    q.frequency_source = POSENC_FREQUENCIES_INVERSE;
    q.frequencies = given;
    assert_true(equal(&p, &q));
    given[15] = 0;
    assert_false(equal(&p, &q));
    posenc_rope_params r = q;
    double zeroed[16];
    memcpy(zeroed, given, sizeof given);
    zeroed[15] = -0.0;
    r.frequencies = zeroed;
    assert_true(equal(&q, &r));

    for (int i = 0; i < 16; i++)
        twos[i] = 2;
    q = plain();
    q.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    q.frequencies = twos;
    p.factor = 2;
    assert_true(equal(&p, &q));

    p.factor = 1;
    q = plain();
    assert_true(equal(&p, &q));
    p = yarn();
    q = yarn();
    plan = test_plan(&p);
    q.attention_factor = posenc_plan_attention_factor(plan);
    posenc_plan_free(plan);
    assert_true(equal(&p, &q));
}

static void tables_by_their_contents(void **state)
{
    float cos[2][32], sin[2][32];
    (void)state;
    for (int i = 0; i < 32; i++) {
        cos[0][i] = cos[1][i] = 1 - (float)i / 32;
        sin[0][i] = sin[1][i] = (float)i / 32;
    }
    posenc_rope_params p = plain(), q;
    p.cos_table = cos[0];
    p.sin_table = sin[0];
    p.cos_rows = p.sin_rows = 2;
    q = p;
    q.cos_table = cos[1];
    q.sin_table = sin[1];
    assert_true(equal(&p, &q));
    q.cos_rows = q.sin_rows = 1;
    assert_false(equal(&p, &q));
    q.cos_rows = q.sin_rows = 2;
    cos[1][31] += 0x1p-24f;
    assert_false(equal(&p, &q));
    cos[1][31] = cos[0][31];
    sin[1][0] = -0.0f; /* values are used as they are */
    assert_false(equal(&p, &q));
}

/* The serialisation must not drift: a cache may live longer than a version of the library. The
 * value is that of a computation apart (Python's integers and mpmath). */
static void stored(void **state)
{
    (void)state;
    static const uint8_t known[16] = {0xda, 0x8a, 0xce, 0xce, 0x7a, 0xbb, 0xe6, 0x7f,
                                      0x74, 0x16, 0x59, 0x05, 0x80, 0x63, 0x8e, 0xa3};
    posenc_rope_params p = plain();
    struct print print = print_of(&p);
    assert_memory_equal(print.bytes, known, 16);
}

static void refusals(void **state)
{
    (void)state;
    uint8_t bytes[16];
    posenc_error error;
    posenc_rope_params p = plain();
    posenc_plan *plan = test_plan(&p);
    test_refused(posenc_plan_fingerprint(NULL, bytes, &error), POSENC_ERROR_ARGUMENT, &error,
                 "plan|NULL");
    test_refused(posenc_plan_fingerprint(plan, NULL, &error), POSENC_ERROR_ARGUMENT, &error,
                 "fingerprint|NULL");
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),      cmocka_unit_test(numbers_as_bytes),
        cmocka_unit_test(every_field_counts),     cmocka_unit_test(every_list_counts),
        cmocka_unit_test(growing_bases),
        cmocka_unit_test(recipes_count),          cmocka_unit_test(what_does_not_count),
        cmocka_unit_test(other_ways_to_the_same), cmocka_unit_test(tables_by_their_contents),
        cmocka_unit_test(stored),                 cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
