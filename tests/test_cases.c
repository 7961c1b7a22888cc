/* SPDX-License-Identifier: MIT */
/* Cases from public bug reports on layouts, widths and kernels: K01, K02, K06, K07, K08, K18. */
#include "support/cases.h"
#include "support/guard.h"
#include "support/half.h"
#include "support/test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const int32_t layouts[2] = {POSENC_ADJACENT, POSENC_SPLIT_HALF};
static const char *const layout_names[2] = {"adjacent", "split_half"};

static const char *named(char *buffer, size_t size, const char *format, int a, const char *b)
{
    snprintf(buffer, size, format, a, b);
    return buffer;
}

/* B01-a: one head, split halves. B01-b: the magnitude is applied once. */
static void rotated_once(int32_t isa)
{
    posenc_plan *plain = case_plan(POSENC_SPLIT_HALF, 8, 8, isa), *scaled;
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 8, 8);
    float x[8];

    case_floats("B01-a", "input.x", x, 8);
    case_rope(plain, x, 1, 1, 1, 3);
    case_check("B01-a", "expected", x, 2e-6);

    params.isa = isa;
    params.attention_factor = 1.2;
    scaled = test_plan(&params);
    case_floats("B01-b", "input.x", x, 8);
    case_rope(scaled, x, 1, 1, 1, 3);
    case_rope(plain, x, 1, 1, 1, 4);
    case_check("B01-b", "expected", x, 2e-6);
    posenc_plan_free(plain);
    posenc_plan_free(scaled);
}

/* A plan over tables of the caller's. */
static posenc_plan *table_plan(int32_t layout, int32_t width, const float *cosine,
                               const float *sine, int64_t rows, int32_t isa)
{
    posenc_rope_params params = test_params(layout, width, width);

    params.isa = isa;
    params.cos_table = cosine;
    params.sin_table = sine;
    params.cos_rows = rows;
    params.sin_rows = rows;
    return test_plan(&params);
}

/* B02-a: cosine and sine values are values, not angles. B02-b: position 0 is the identity. */
static void values_not_angles(int32_t isa)
{
    float cosine[2], sine[2], x[8], kept[8];
    char name[64];

    case_floats("B02-a", "input.cos", cosine, 2);
    case_floats("B02-a", "input.sin", sine, 2);
    for (int l = 0; l < 2; l++) {
        posenc_plan *plan = table_plan(layouts[l], 4, cosine, sine, 1, isa);

        case_floats("B02-a", "input.x", x, 4);
        case_rope(plan, x, 1, 1, 1, 0);
        snprintf(name, sizeof name, "expected.%s", layout_names[l]);
        case_check("B02-a", name, x, 1e-6);
        posenc_plan_free(plan);
        plan = case_plan(layouts[l], 8, 8, isa);
        case_floats("B02-b", "input.x", x, 8);
        memcpy(kept, x, sizeof x);
        case_rope(plan, x, 1, 1, 1, 0);
        for (int i = 0; i < 8; i++) assert_true(x[i] == kept[i]);
        posenc_plan_free(plan);
    }
}

/* B03-a: permuting the rows of one layout gives the other, bit for bit. */
static void permuted_rows(int32_t isa)
{
    double order[8];
    float adjacent[8], split[8];
    posenc_plan *a = case_plan(POSENC_ADJACENT, 8, 8, isa),
                *s = case_plan(POSENC_SPLIT_HALF, 8, 8, isa);

    test_numbers("cases.txt", "B03-a", "expected.split_from_adjacent", order, 8);
    case_pattern(adjacent, 8);
    for (int i = 0; i < 8; i++) split[i] = adjacent[(int)order[i]];
    case_rope(a, adjacent, 1, 1, 1, 77);
    case_rope(s, split, 1, 1, 1, 77);
    for (int i = 0; i < 8; i++) assert_true(split[i] == adjacent[(int)order[i]]);
    posenc_plan_free(a);
    posenc_plan_free(s);
}

/* B04-a, B04-d: part of a head, in place and into a tensor full of NaN. B04-c: zero frequencies. */
static void partial_width(int32_t isa)
{
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 16, 4, isa);
    double frequencies[8] = {0};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 16, 16);
    posenc_positions positions;
    posenc_tensor in, out;
    float x[16], y[16];

    case_floats("B04-a", "input.x", x, 16);
    posenc_tensor_contiguous(&in, x, POSENC_F32, 1, 1, 1, 16);
    posenc_tensor_contiguous(&out, y, POSENC_F32, 1, 1, 1, 16);
    posenc_positions_start(&positions, 5);
    for (int i = 0; i < 16; i++) y[i] = NAN;
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &in, &out, NULL, NULL, NULL), NULL);
    case_check("B04-d", "expected", y, 2e-6);
    assert_memory_equal(y + 4, x + 4, 12 * sizeof(float));
    case_rope(plan, x, 1, 1, 1, 5);
    case_check("B04-a", "expected", x, 2e-6);
    posenc_plan_free(plan);

    for (int i = 0; i < 2; i++) frequencies[i] = pow(10000, -2.0 * i / 16);
    params.isa = isa;
    params.frequency_source = POSENC_FREQUENCIES_INVERSE;
    params.frequencies = frequencies;
    plan = test_plan(&params);
    case_floats("B04-c", "input.x", x, 16);
    case_rope(plan, x, 1, 1, 1, 5);
    case_check("B04-c", "expected", x, 2e-6);
    posenc_plan_free(plan);
}

/* B05-a, B05-c: widths that must be refused, and one odd head that must not. */
static void widths(int32_t isa)
{
    static const int32_t tries[][3] = {{128, 192, 0}, {65, 65, 0}, {65, 64, 1}, {33, 33, 0},
                                       {8, -2, 0}, {100, 25, 0}, {80, 32, 1}, {64, 19, 0},
                                       {64, 0, 0}, {100, 28, 1}};

    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, tries[i][0], tries[i][1]);
        posenc_plan *plan = NULL;
        posenc_error error = {0, ""};
        int32_t status;

        params.isa = isa;
        status = posenc_plan_create(&plan, &params, &error);
        if (tries[i][2]) test_ok(status, &error);
        else test_refused(status, POSENC_ERROR_ARGUMENT, &error, "rotary_dim");
        assert_int_equal(plan != NULL, tries[i][2]);
        posenc_plan_free(plan);
    }
}

/* B16-a, B16-b: one token per row, more than one batch row. */
static void one_token_batches(int32_t isa)
{
    static float x[2 * 16 * 256];
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 8, 8, isa);

    for (int i = 0; i < 4; i++) {
        case_floats("B16-a", "input.x_of_every_batch_row_and_head", x + 8 * i, 8);
    }
    case_rope(plan, x, 2, 1, 2, 5);
    for (int i = 0; i < 4; i++) {
        case_check("B16-a", "expected.every_batch_row_and_head", x + 8 * i, 2e-6);
    }
    posenc_plan_free(plan);
    plan = case_plan(POSENC_SPLIT_HALF, 256, 256, isa);
    for (int i = 0; i < 2 * 16 * 256; i++) x[i] = 1;
    case_rope(plan, x, 2, 1, 16, 6);
    for (int i = 0; i < 32; i++) {
        case_check("B16-b", "expected.first_four_of_every_head", x + 256 * i, 2e-6);
    }
    for (int i = 0; i < 2 * 16 * 256; i++) assert_true(x[i] != 0);
    posenc_plan_free(plan);
}

/* B17-a: in place inside rows with gaps. B21-b: addresses that are only element-aligned. */
static void strided_rows(const char *id, int32_t isa, int32_t layout, int width, int stride,
                         int tokens, int64_t start, size_t shift, const char *expected)
{
    static float buffer[64];
    posenc_plan *plan = case_plan(layout, width, width, isa);
    posenc_positions positions;
    posenc_tensor tensor;
    float *x = buffer + 16 - ((uintptr_t)buffer % 64) / 4 + shift / 4;
    char name[64];

    for (int i = 0; i < 64; i++) buffer[i] = 777.0f;
    for (int t = 0; t < tokens; t++) {
        case_floats(id, named(name, sizeof name, "input.x.%d%s", t, ""), x + stride * t,
                    (size_t)width);
    }
    posenc_tensor_contiguous(&tensor, x, POSENC_F32, 1, tokens, 1, width);
    tensor.stride[1] = stride;
    posenc_positions_start(&positions, start);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &tensor, NULL, NULL, NULL, NULL), NULL);
    for (int t = 0; t < tokens; t++) {
        snprintf(name, sizeof name, "%s.%d", expected, t);
        case_check(id, name, x + stride * t, 2e-6);
        for (int i = width; i < stride && t + 1 < tokens; i++) {
            assert_true(x[stride * t + i] == 777.0f);
        }
    }
    assert_true(x[-1] == 777.0f && x[stride * (tokens - 1) + width] == 777.0f);
    posenc_plan_free(plan);
}

static void gaps_and_alignment(int32_t isa)
{
    strided_rows("B17-a", isa, POSENC_SPLIT_HALF, 8, 12, 3, 11, 8, "expected.split_half");
    strided_rows("B17-a", isa, POSENC_ADJACENT, 8, 12, 3, 11, 8, "expected.adjacent");
    strided_rows("B21-b", isa, POSENC_ADJACENT, 10, 11, 2, 4, 4, "expected");
    strided_rows("B21-b", isa, POSENC_ADJACENT, 10, 11, 2, 4, 28, "expected");
}

/* B18-b: norms over widths that are no powers of two, or wider than one vector. */
static void norms(int32_t isa)
{
    double all[32];
    size_t n = test_numbers("cases.txt", "B18-b", "input.rotary_dims", all, 32);

    for (size_t i = 0; i < 2 * n; i++) {
        int width = (int)all[i / 2];
        posenc_plan *plan = case_plan(layouts[i % 2], width, width, isa);
        float x[1024];
        double sum = 0, expected;
        char name[64];

        case_pattern(x, width);
        case_rope(plan, x, 1, 1, 1, 1000);
        for (int c = 0; c < width; c++) sum += (double)x[c] * (double)x[c];
        expected = case_number("B18-b",
                               named(name, sizeof name, "expected.sum_of_squares.%d%s", width, ""));
        if (fabs(sum - expected) > 1e-6 * expected)
            fail_msg("width %d: %g, %g", width, sum, expected);
        posenc_plan_free(plan);
    }
}

/* B19-a, B19-b, B20-a: tails, with x, both tables and the destination at unreadable pages. */
static void tails(int32_t isa)
{
    static const int sizes[] = {2, 6, 10, 14, 18, 30, 34, 66};
    struct test_guard guards[4];

    for (int g = 0; g < 4; g++) guards[g] = test_guard_new(4096);
    for (int n = 0; n < 8 * 2 * 2; n++) {
        int width = sizes[n / 4], l = n / 2 % 2;
        enum test_place place = n % 2 ? TEST_AT_START : TEST_AT_END;
        size_t size = (size_t)width * sizeof(float);
        float *x = test_guard_at(&guards[0], size, 4, place);
        float *y = test_guard_at(&guards[1], size, 4, place);
        float *cosine = test_guard_at(&guards[2], size / 2, 4, place);
        float *sine = test_guard_at(&guards[3], size / 2, 4, place);
        posenc_plan *exact = case_plan(layouts[l], width, width, isa), *plan;
        posenc_positions positions;
        posenc_tensor in, out;
        float row[66];
        char name[64];

        case_row(exact, 3, row);
        posenc_plan_free(exact);
        memcpy(cosine, row, size / 2);
        memcpy(sine, row + width / 2, size / 2);
        plan = table_plan(layouts[l], width, cosine, sine, 1, isa);
        case_pattern(x, width);
        posenc_positions_start(&positions, 0);
        posenc_tensor_contiguous(&in, x, POSENC_F32, 1, 1, 1, width);
        posenc_tensor_contiguous(&out, y, POSENC_F32, 1, 1, 1, width);
        test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &in, &out, NULL, NULL, NULL), NULL);
        case_check("B19-a", named(name, sizeof name, "expected.%d.%s", width, layout_names[l]), y,
                   2e-6);
        if (width == 2) case_check("B19-b", "expected", y, 2e-6);
        posenc_plan_free(plan);
    }
    {
        float *cosine = test_guard_at(&guards[2], 64, 4, TEST_AT_END);
        float *sine = test_guard_at(&guards[3], 64, 4, TEST_AT_END);
        posenc_plan *plan;
        float x[32];

        assert_int_equal(case_floats("B20-a", "input.cos", cosine, 16), 16);
        assert_int_equal(case_floats("B20-a", "input.sin", sine, 16), 16);
        plan = table_plan(POSENC_ADJACENT, 32, cosine, sine, 1, isa);
        case_floats("B20-a", "input.x", x, 32);
        case_rope(plan, x, 1, 1, 1, 0);
        case_check("B20-a", "expected", x, 2e-6);
        posenc_plan_free(plan);
    }
    for (int g = 0; g < 4; g++) test_guard_free(&guards[g]);
}

/* B22-b: three tokens 2^30 elements apart, in 8 GiB of address space that is never committed. */
#if UINTPTR_MAX > 0xffffffff
static void far_strides(int32_t isa)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ((size_t)1 << 33) + page;
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 8, 8, isa);
    posenc_positions positions;
    posenc_tensor tensor;
    float *x;
    char name[64];

    x = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0);
    if (x == MAP_FAILED) skip();
    posenc_tensor_contiguous(&tensor, x, POSENC_F32, 1, 3, 1, 8);
    tensor.stride[1] = INT64_C(1) << 30;
    for (int64_t t = 0; t < 3; t++) {
        case_floats("B22-b", "input.x_of_every_token", x + t * tensor.stride[1], 8);
    }
    posenc_positions_start(&positions, 0);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &tensor, NULL, NULL, NULL, NULL), NULL);
    for (int t = 0; t < 3; t++) {
        case_check("B22-b", named(name, sizeof name, "expected.%d%s", t, ""),
                   x + t * tensor.stride[1], 2e-6);
    }
    assert_int_equal(munmap(x, size), 0);
    posenc_plan_free(plan);
}
#else
static void far_strides(int32_t isa)
{
    (void)isa;
    skip();
}
#endif

/* B49-a: float32 to bfloat16, to nearest even, NaN kept, in computed and in copied channels. */
static void bfloat16_rounding(int32_t isa)
{
    double bits[16];
    size_t n = test_numbers("cases.txt", "B49-a", "input.float32_bits", bits, 16);
    posenc_plan *plan = case_plan(POSENC_SPLIT_HALF, 40, 2, isa);
    uint32_t in[40] = {0};
    uint16_t out[40];
    posenc_positions positions;
    posenc_tensor from, to;

    for (size_t i = 0; i < n; i++) in[20 + i] = (uint32_t)bits[i];
    posenc_positions_start(&positions, 3);
    posenc_tensor_contiguous(&from, in, POSENC_F32, 1, 1, 1, 40);
    posenc_tensor_contiguous(&to, out, POSENC_BF16, 1, 1, 1, 40);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &from, &to, NULL, NULL, NULL), NULL);
    for (size_t i = 0; i < n; i++) {
        uint16_t got = out[20 + i];
        char name[64];

        if (i == 5 || i == 6) {
            assert_true(isnan(test_widen(got, POSENC_BF16)));
            continue;
        }
        snprintf(name, sizeof name, "expected.%zu", i);
        assert_int_equal(got, (uint16_t)case_number("B49-a", name));
    }
    posenc_plan_free(plan);
}

#define CASE(name) static void test_##name(void **state) { (void)state; case_each_isa(name); }
CASE(rotated_once)
CASE(values_not_angles)
CASE(permuted_rows)
CASE(partial_width)
CASE(widths)
CASE(one_token_batches)
CASE(gaps_and_alignment)
CASE(norms)
CASE(tails)
CASE(far_strides)
CASE(bfloat16_rounding)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotated_once),
        cmocka_unit_test(test_values_not_angles),
        cmocka_unit_test(test_permuted_rows),
        cmocka_unit_test(test_partial_width),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_one_token_batches),
        cmocka_unit_test(test_gaps_and_alignment),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_far_strides),
        cmocka_unit_test(test_bfloat16_rounding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
