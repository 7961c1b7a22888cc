/* SPDX-License-Identifier: MIT */
/* Image encoders: frequencies, rotations that public models made, every wrong argument. */
#include "support/numbers.h"
#include "support/refuse.h"

#include <math.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, MAX = 1024, MAX_PAIRS = 64 };

static const char file[] = "builders_transformers5.txt";

/* The models compute frequencies, angles, sines and products in float32; angles are below 45. */
static const double TOLERANCE = 4e-6;
static const double WIDE_TOLERANCE = 2e-5;

/* Rotates x[tokens][head_dim] by the formula: pair i turns by its axis' id times its frequency. */
static void rotate(const posenc_rope_params *p, const double *ids, size_t tokens, double *x)
{
    int32_t half = p->rotary_dim / 2;

    for (size_t t = 0; t < tokens; t++) {
        for (int32_t i = 0; i < half; i++) {
            int32_t adjacent = p->layout == POSENC_ADJACENT;
            double angle = ids[(size_t)p->axis_of_pair[i] * tokens + t] * p->frequencies[i];
            double *a = x + t * (size_t)p->head_dim + p->rotary_offset + (adjacent ? 2 * i : i);
            double *b = a + (adjacent ? 1 : half), old = *a;

            *a = old * cos(angle) - *b * sin(angle);
            *b = *b * cos(angle) + old * sin(angle);
        }
    }
}

/* The same by the library: a plan from the parameters, real ids on its axes. */
static void rope(const posenc_rope_params *p, const double *ids, size_t tokens, float *x)
{
    posenc_plan *plan = NULL;
    posenc_positions positions = {.struct_size = sizeof positions,
                                  .kind = POSENC_POSITIONS_IDS, .dtype = POSENC_F64, .ids = ids,
                                  .stride = {0, 1}, .axes = p->axes,
                                  .axis_stride = (int64_t)tokens};
    posenc_tensor tensor;
    posenc_error error = {0, ""};

    test_ok(posenc_plan_create(&plan, p, &error), &error);
    assert_int_equal(posenc_plan_axes(plan), p->axes);
    posenc_tensor_contiguous(&tensor, x, POSENC_F32, 1, (int64_t)tokens, 1, p->head_dim);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &tensor, NULL, NULL, NULL, &error),
            &error);
    posenc_plan_free(plan);
}

/* Both against what the model made of the same numbers. */
struct rotation {
    double x[MAX];
    float y[MAX];
    size_t count;
};

static void rotation_read(struct rotation *r, const char *id)
{
    r->count = test_numbers(file, id, "q", r->x, MAX);
    for (size_t i = 0; i < r->count; i++) r->y[i] = (float)r->x[i];
}

static void rotation_turn(struct rotation *r, const posenc_rope_params *p, const double *ids)
{
    size_t tokens = r->count / (size_t)p->head_dim;

    rotate(p, ids, tokens, r->x);
    rope(p, ids, tokens, r->y);
}

static void rotation_check(const struct rotation *r, const char *id, double tolerance)
{
    double expected[MAX];

    assert_int_equal(test_numbers(file, id, "rotated", expected, MAX), r->count);
    for (size_t i = 0; i < r->count; i++) {
        if (!(fabs(r->x[i] - expected[i]) <= tolerance && fabs(r->x[i] - r->y[i]) <= 5e-7)) {
            fail_msg("%s [%zu]: %.9g and %.9g instead of %.9g", id, i, r->x[i], r->y[i],
                     expected[i]);
        }
    }
}

static void check_frequencies(const char *id, const double *inv_freq, size_t pairs)
{
    double expected[MAX_PAIRS];

    assert_int_equal(test_numbers(file, id, "inv_freq", expected, MAX_PAIRS), pairs);
    for (size_t i = 0; i < pairs; i++) {
        if (inv_freq[i] != expected[i]) {
            fail_msg("%s pair %zu: %a instead of %a", id, i, inv_freq[i], expected[i]);
        }
    }
}

/* One form of the file: form, head_dim, base, rows, columns, kind of coordinates. */
static void check_form(const char *id)
{
    static struct rotation rotation;
    double n[6], inv_freq[MAX_PAIRS], ids[64];
    int32_t axes[MAX_PAIRS];
    posenc_error error = {0, ""};

    test_numbers(file, id, "form", n, 6);
    rotation_read(&rotation, id);
    size_t tokens = (size_t)(n[3] * n[4]);
    test_ok(posenc_ids_grid((int64_t)n[3], (int64_t)n[4], 1, (int32_t)n[5], ids, tokens, &error),
            &error);
    for (size_t i = 0; (int32_t)n[0] == POSENC_VISION_LLAMA4 && i < 2 * tokens; i++) ids[i]++;
    for (int32_t part = 0; part < ((int32_t)n[0] == POSENC_VISION_GEMMA4_X ? 2 : 1); part++) {
        for (int usual = 0; usual < 2; usual++) {
            posenc_rope_params params;

            posenc_rope_params_init(&params);
            test_ok(posenc_vision_params(&params, (int32_t)n[0] + part, (int32_t)n[1],
                                         usual ? 0 : n[2], inv_freq, axes, &error), &error);
            check_frequencies(id, inv_freq, (size_t)n[1] / 2);
            if (usual) rotation_turn(&rotation, &params, ids);
        }
    }
    rotation_check(&rotation, id, TOLERANCE);
}

static void test_forms(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id(file, "form", n, id, sizeof id); n++) check_form(id);
    assert_int_equal(n, 12);
}

static void test_axial(void **state)
{
    static struct rotation rotation;
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id(file, "widths", n, id, sizeof id); n++) {
        double widths[4], ids[64], inv_freq[MAX_PAIRS];
        int32_t width[4], axes[MAX_PAIRS], sum = 0;
        size_t count = test_numbers(file, id, "widths", widths, 4);
        posenc_rope_params params;
        posenc_error error = {0, ""};

        test_numbers(file, id, "ids", ids, 64);
        for (size_t a = 0; a < count; a++) sum += width[a] = (int32_t)widths[a];
        posenc_rope_params_init(&params);
        test_ok(posenc_axial_params(&params, POSENC_ADJACENT, width, (int32_t)count, 0, inv_freq,
                                    axes, &error), &error);
        assert_int_equal(params.head_dim, sum);
        check_frequencies(id, inv_freq, (size_t)sum / 2);
        rotation_read(&rotation, id);
        rotation_turn(&rotation, &params, ids);
        rotation_check(&rotation, id, WIDE_TOLERANCE);
    }
    assert_int_equal(n, 2);
}

/* Two axes of half the head are Qwen's form; one axis is the plain rotation. */
static void test_axial_is_general(void **state)
{
    static const int32_t halves[] = {20, 20}, whole[] = {40};
    double qwen[20], axial[20], base = 12345.5;
    int32_t qwen_axes[20], axes[20];
    posenc_rope_params a, b;
    posenc_plan *plan;

    (void)state;
    posenc_rope_params_init(&a);
    posenc_rope_params_init(&b);
    test_ok(posenc_vision_params(&a, POSENC_VISION_QWEN, 40, base, qwen, qwen_axes, NULL), NULL);
    test_ok(posenc_axial_params(&b, POSENC_SPLIT_HALF, halves, 2, base, axial, axes, NULL), NULL);
    assert_memory_equal(qwen, axial, sizeof qwen);
    assert_memory_equal(qwen_axes, axes, sizeof axes);
    assert_int_equal(a.layout, b.layout);
    assert_int_equal(a.axes, b.axes);
    test_ok(posenc_axial_params(&b, POSENC_SPLIT_HALF, whole, 1, base, axial, axes, NULL), NULL);
    test_ok(posenc_plan_create_simple(&plan, POSENC_SPLIT_HALF, 40, base, NULL), NULL);
    test_ok(posenc_plan_inv_freq(plan, qwen, 20, NULL), NULL);
    assert_memory_equal(qwen, axial, sizeof qwen);
    posenc_plan_free(plan);
}

/* Fields that a form does not set stay the caller's. */
static void test_other_fields(void **state)
{
    double inv_freq[8];
    int32_t axes[8];
    posenc_rope_params params;

    (void)state;
    posenc_rope_params_init(&params);
    params.max_position = 77;
    params.attention_factor = 1.5;
    test_ok(posenc_vision_params(&params, POSENC_VISION_GEMMA4_Y, 16, 0, inv_freq, axes, NULL),
            NULL);
    assert_int_equal(params.rotary_dim, 8);
    assert_int_equal(params.rotary_offset, 8);
    assert_int_equal(params.axes, 2);
    assert_ptr_equal(params.frequencies, inv_freq);
    assert_ptr_equal(params.axis_of_pair, axes);
    assert_int_equal(params.max_position, 77);
    assert_true(params.attention_factor == 1.5);
    for (int i = 0; i < 4; i++) assert_int_equal(axes[i], 0);
    test_ok(posenc_vision_params(&params, POSENC_VISION_QWEN, 4, 0, inv_freq, axes, NULL), NULL);
    assert_int_equal(params.rotary_offset, 0);
    assert_true(inv_freq[0] == 1 && inv_freq[1] == 1);
    test_ok(posenc_vision_params(&params, POSENC_VISION_PIXEL, 4, 0, inv_freq, axes, NULL), NULL);
    assert_true(inv_freq[0] == 0x1.921fb54442d18p+1);
}

/* Everything that a call may write, and good parameters in front. */
struct memory {
    posenc_rope_params params;
    double inv_freq[16];
    int32_t axes[16];
};

static struct memory fresh(void)
{
    struct memory m;

    memset(&m, 0xa5, sizeof m);
    posenc_rope_params_init(&m.params);
    return m;
}

/* `call` uses m and error. */
#define REFUSE_PARAMS(call, status, words)                                                        \
    do {                                                                                          \
        struct memory kept = m;                                                                   \
        posenc_error refused = {0, ""}, *error = &refused;                                        \
        test_refused(call, status, error, words);                                                 \
        assert_memory_equal(&m, &kept, sizeof m);                                                 \
        error = NULL;                                                                             \
        assert_int_equal(call, status);                                                           \
        assert_memory_equal(&m, &kept, sizeof m);                                                 \
    } while (0)

static void refuse_numbers(int32_t form, int32_t head_dim, double base, const char *words)
{
    struct memory m = fresh();

    REFUSE_PARAMS(posenc_vision_params(&m.params, form, head_dim, base, m.inv_freq, m.axes, error),
                  ARGUMENT, words);
}

static void test_bad_numbers(void **state)
{
    (void)state;
    refuse_numbers(0, 16, 0, "form is 0");
    refuse_numbers(8, 16, 0, "form is 8");
    refuse_numbers(-1, 16, 0, "form is -1");
    refuse_numbers(1, 0, 0, "head_dim is 0|multiple of 4");
    refuse_numbers(1, 18, 0, "head_dim is 18|multiple of 4");
    refuse_numbers(1, -16, 0, "head_dim is -16");
    refuse_numbers(1, 65540, 0, "head_dim is 65540|65536");
    refuse_numbers(1, 16, 1, "base is 1|> 1");
    refuse_numbers(1, 16, -10000, "base is -10000");
    refuse_numbers(1, 16, 0x1p76, "base is|2^76");
    refuse_numbers(1, 16, (double)NAN, "base is nan");
    refuse_numbers(1, 16, (double)INFINITY, "base is inf");
    refuse_numbers(7, 16, 0x1p75, "base is|2^75|PIXEL");
}

/* What a form accepts, a plan can be made of. */
static void test_largest_bases(void **state)
{
    (void)state;
    for (int32_t form = POSENC_VISION_QWEN; form <= POSENC_VISION_PIXEL; form++) {
        const double base = form == POSENC_VISION_PIXEL ? 0x1.fffffffffffffp74
                                                        : 0x1.fffffffffffffp75;
        struct memory m = fresh();

        test_ok(posenc_vision_params(&m.params, form, 16, base, m.inv_freq, m.axes, NULL), NULL);
        posenc_plan_free(test_plan(&m.params));
    }
}

static void test_bad_memory(void **state)
{
    struct memory m = fresh();
    double *odd = (double *)(void *)((char *)m.inv_freq + 4), *inside = (double *)(void *)&m.params;
    int32_t *odd_axes = (int32_t *)(void *)((char *)m.axes + 2);

    (void)state;
    REFUSE_PARAMS(posenc_vision_params(NULL, 1, 16, 0, m.inv_freq, m.axes, error), ARGUMENT,
                  "params is NULL");
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, NULL, m.axes, error), ARGUMENT,
                  "inv_freq is NULL");
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, m.inv_freq, NULL, error), ARGUMENT,
                  "axis_of_pair is NULL");
    if (_Alignof(double) == 8) {
        REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, odd, m.axes, error), ARGUMENT,
                      "inv_freq|aligned|8");
    }
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, m.inv_freq, odd_axes, error),
                  ARGUMENT, "axis_of_pair|aligned|4");
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, m.inv_freq,
                                       (int32_t *)(void *)(m.inv_freq + 7), error),
                  POSENC_ERROR_OVERLAP, "inv_freq|axis_of_pair|share memory");
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, inside, m.axes, error),
                  POSENC_ERROR_OVERLAP, "params|inv_freq|share memory");
    m.params.struct_size = 0;
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, m.inv_freq, m.axes, error), ARGUMENT,
                  "params.struct_size is 0");
    m.params.struct_size = (uint32_t)offsetof(posenc_rope_params, axis_of_pair);
    REFUSE_PARAMS(posenc_vision_params(&m.params, 1, 16, 0, m.inv_freq, m.axes, error), ARGUMENT,
                  "params.struct_size is");
}

static void refuse_axial(int32_t layout, int32_t first, int32_t axes, double base,
                         const char *words)
{
    struct memory m = fresh();
    const int32_t width[] = {first, 8, 4, 4};

    REFUSE_PARAMS(posenc_axial_params(&m.params, layout, width, axes, base, m.inv_freq, m.axes,
                                      error), ARGUMENT, words);
}

static void test_bad_axial(void **state)
{
    static const int32_t width[] = {8, 8}, wide[] = {65536, 2};
    struct memory m = fresh();
    int32_t *odd = (int32_t *)(void *)((char *)m.axes + 2);

    (void)state;
    refuse_axial(0, 8, 2, 0, "layout is 0");
    refuse_axial(3, 8, 2, 0, "layout is 3");
    refuse_axial(1, 8, 0, 0, "axes is 0|1..4");
    refuse_axial(1, 8, 5, 0, "axes is 5|1..4");
    refuse_axial(1, 0, 2, 0, "width[0] is 0|even");
    refuse_axial(1, 7, 2, 0, "width[0] is 7|even");
    refuse_axial(1, -8, 2, 0, "width[0] is -8");
    refuse_axial(1, 8, 2, 0.5, "base is 0.5");
    refuse_axial(1, 8, 2, (double)NAN, "base is nan");
    REFUSE_PARAMS(posenc_axial_params(&m.params, 1, wide, 2, 0, m.inv_freq, m.axes, error),
                  ARGUMENT, "width[1] is 2|65536");
    REFUSE_PARAMS(posenc_axial_params(&m.params, 1, NULL, 2, 0, m.inv_freq, m.axes, error),
                  ARGUMENT, "width is NULL");
    REFUSE_PARAMS(posenc_axial_params(&m.params, 1, odd, 2, 0, m.inv_freq, m.axes, error),
                  ARGUMENT, "width|aligned|4");
    REFUSE_PARAMS(posenc_axial_params(NULL, 1, width, 2, 0, m.inv_freq, m.axes, error), ARGUMENT,
                  "params is NULL");
    REFUSE_PARAMS(posenc_axial_params(&m.params, 1, width, 2, 0, NULL, m.axes, error), ARGUMENT,
                  "inv_freq is NULL");
    REFUSE_PARAMS(posenc_axial_params(&m.params, 1, width, 2, 0, m.inv_freq, NULL, error),
                  ARGUMENT, "axis_of_pair is NULL");
    m.axes[14] = m.axes[15] = 8;
    REFUSE_PARAMS(posenc_axial_params(&m.params, 1, m.axes + 14, 2, 0, m.inv_freq, m.axes + 8,
                                      error), POSENC_ERROR_OVERLAP, "axis_of_pair|width");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_axial),
        cmocka_unit_test(test_axial_is_general),
        cmocka_unit_test(test_other_fields),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_largest_bases),
        cmocka_unit_test(test_bad_memory),
        cmocka_unit_test(test_bad_axial),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
