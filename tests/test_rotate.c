/* SPDX-License-Identifier: MIT */
/* Rotation: scalar against the truth, then every ISA against scalar over the whole matrix of dtype,
 * layout, width, window, memory order, alignment and neighbours, beside unreadable pages. */
#include "support/guard.h"
#include "support/half.h"
#include "support/test.h"
#include "support/truth.h"
#include "support/view.h"

#include <math.h>

enum { BATCH = 2, TOKENS = 2, HEADS = 2, WIDEST = 258, MARGIN = 12 };
enum { ROOM = BATCH * TOKENS * (HEADS + 2) * (WIDEST + MARGIN + 16) * 4 + 4096 };

/* How the rotary window lies in the head. */
struct window { int32_t before, after; int alone; }; /* alone: the tensor has the window only */

static const struct window windows[] = {{0, 0, 0}, {0, 6, 0}, {5, 7, 0}, {7, 0, 0}, {3, 7, 1}};

enum { WINDOWS = sizeof windows / sizeof *windows, WIDTHS = WIDEST / 2 };

static const int32_t dtypes[3] = {POSENC_F32, POSENC_F16, POSENC_BF16};

/* Plans of one layout, width and window, on every ISA. */
struct plans {
    posenc_plan *plan[TEST_ISAS];
    size_t count;
    int32_t isas[TEST_ISAS];
    int32_t width, channels, offset; /* offset: of the window in the tensor's channels */
};

static struct plans plans_new(int32_t layout, int32_t width, const struct window *window,
                              double factor)
{
    struct plans plans = {{NULL}, 0, {0}, width, width, 0};
    posenc_rope_params params =
        test_params(layout, width + window->before + window->after, width);

    params.rotary_offset = window->before;
    params.attention_factor = factor;
    if (!window->alone) {
        plans.channels = params.head_dim;
        plans.offset = window->before;
    }
    plans.count = test_isas(plans.isas);
    for (size_t i = 0; i < plans.count; i++) {
        params.isa = plans.isas[i];
        plans.plan[i] = test_plan(&params);
    }
    return plans;
}

static void plans_free(struct plans *plans)
{
    for (size_t i = 0; i < plans->count; i++) posenc_plan_free(plans->plan[i]);
}

static const int64_t ids[BATCH * TOKENS] = {3, 1000003, -77, INT32_MIN};

static void make_rows(const posenc_plan *plan, posenc_tensor *rows, void *memory)
{
    posenc_error error = {0, ""};
    posenc_positions positions;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I64;
    positions.ids = ids;
    positions.stride[0] = TOKENS;
    positions.stride[1] = 1;
    posenc_tensor_contiguous(rows, memory, POSENC_F32, BATCH, TOKENS, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, &positions, rows, &error), &error);
}

/* ---- truth -> scalar ---- */

/* The value that channel `c` of x[] should have after a rotation, and the size of its summands. */
struct expected { long double value, size; };

static struct expected rotated(const double *x, int32_t c, int32_t layout, int32_t offset,
                               int32_t r, const long double *cosine, const long double *sine)
{
    int32_t in = c - offset, i, p, q;

    if (in < 0 || in >= r) return (struct expected){(long double)x[c], 0};
    i = layout == POSENC_ADJACENT ? in / 2 : in % (r / 2);
    p = offset + (layout == POSENC_ADJACENT ? 2 * i : i);
    q = layout == POSENC_ADJACENT ? p + 1 : p + r / 2;
    return (struct expected){c == p ? (long double)x[p] * cosine[i] - (long double)x[q] * sine[i]
                                    : (long double)x[q] * cosine[i] + (long double)x[p] * sine[i],
                             fabsl((long double)x[p]) + fabsl((long double)x[q])};
}

struct truth_case { int32_t layout, in, out, direction; double factor; };

/* cos and sin that the direction asks for, factor included. */
static void true_row(const struct plans *plans, const struct truth_case *test, int64_t id,
                     long double *cosine, long double *sine)
{
    double frequencies[WIDEST / 2];
    long double scale = (long double)posenc_plan_attention_factor(plans->plan[0]);

    if (test->direction == POSENC_INVERSE) scale = 1 / scale;
    test_ok(posenc_plan_inv_freq(plans->plan[0], frequencies, (size_t)plans->width / 2, NULL),
            NULL);
    for (int32_t i = 0; i < plans->width / 2; i++) {
        test_cos_sin(id, frequencies[i], &cosine[i], &sine[i]);
        cosine[i] *= scale;
        sine[i] *= test->direction == POSENC_FORWARD ? scale : -scale;
    }
}

static void check_truth(const struct truth_case *test, int32_t width, const struct window *window,
                        struct test_random *random)
{
    struct plans plans = plans_new(test->layout, width, window, test->factor);
    int64_t channels = plans.channels;
    static float rows_memory[BATCH * TOKENS * WIDEST];
    static char in_memory[ROOM], out_memory[ROOM];
    struct test_view in = test_view_new(TEST_CONTIGUOUS, test->in, BATCH, TOKENS, HEADS, channels);
    struct test_view out =
        test_view_new(TEST_CONTIGUOUS, test->out, BATCH, TOKENS, HEADS, channels);
    /* docs/accuracy.md, Rotation; INVERSE rounds the row once more. */
    long double factor = (long double)test->factor, most = fmaxl(1, factor);
    long double k = test->direction == POSENC_INVERSE ? (3 + 1.01L * most / factor) / factor
                                                      : 3 * most;
    posenc_tensor rows;
    posenc_error error = {0, ""};

    make_rows(plans.plan[0], &rows, rows_memory);
    test_view_fill(&in, in_memory, TEST_SMALL, 0, channels, random);
    test_view_at(&in, in_memory);
    test_view_at(&out, out_memory);
    test_ok(posenc_rotate(plans.plan[0], test->direction, &rows, &in.tensor, &out.tensor, NULL,
                          NULL, &error),
            &error);
    for (int64_t t = 0; t < BATCH * TOKENS; t++) {
        long double cosine[WIDEST / 2], sine[WIDEST / 2];

        true_row(&plans, test, ids[t], cosine, sine);
        for (int64_t at = t * HEADS * channels; at < (t + 1) * HEADS * channels; at += channels) {
            double x[WIDEST + MARGIN];

            for (int64_t c = 0; c < channels; c++) x[c] = test_load(in_memory, test->in, at + c);
            for (int32_t c = 0; c < channels; c++) {
                struct expected e =
                    rotated(x, c, test->layout, plans.offset, width, cosine, sine);
                double got = test_load(out_memory, test->out, at + c);
                long double bound = k * 0x1p-24L * e.size + 0x1p-149L;

                if (e.size == 0) bound = 0;
                if (test->out != POSENC_F32) bound += (long double)test_half_ulp(got, test->out);
                if (!(fabsl((long double)got - e.value) <= bound)) {
                    fail_msg("layout %d, width %d, %d -> %d, channel %d: %a instead of %La",
                             test->layout, width, test->in, test->out, c, got, e.value);
                }
            }
        }
    }
    plans_free(&plans);
}

static void test_truth(void **state)
{
    static const int32_t widths[] = {2, 4, 6, 16, 18, 64, 66, 96, 128, 258};
    static const double factors[] = {1.0, 1.2772588722239781, 0.8, 3.5};
    struct test_random random = {1};

    (void)state;
    for (int n = 0; n < 2 * 3 * 3 * 3 * 4; n++) {
        struct truth_case test = {1 + n % 2, dtypes[n / 2 % 3], dtypes[n / 6 % 3], n / 18 % 3,
                                  factors[n / 54]};

        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            check_truth(&test, widths[w], &windows[(w + (size_t)n) % WINDOWS], &random);
        }
    }
}

/* ---- scalar -> every ISA ---- */

struct arena { struct test_guard in, out, rows; };

struct matrix_case {
    const struct plans *plans;
    const posenc_tensor *rows;
    int32_t layout, in, out, direction;
    int in_place;
    enum test_order order, out_order;
    enum test_place place;
    enum test_fill fill;
};

static void fail_case(const struct matrix_case *test, size_t isa, const char *what)
{
    fail_msg("%s, %s: layout %d, %d -> %d, width %d of %d at %d, %s, direction %d, order %d, "
             "place %d, fill %d", what, posenc_isa_name(test->plans->isas[isa]), test->layout,
             test->in, test->out, test->plans->width, test->plans->channels, test->plans->offset,
             test->in_place ? "in place" : "elsewhere", test->direction, (int)test->order,
             (int)test->place, (int)test->fill);
}

/* 1 if everything in memory but the view's own elements is as it was before. */
static int gaps_untouched(const struct test_view *view, const void *memory, const void *before)
{
    static char mask[ROOM];
    const int64_t *shape = view->tensor.shape;

    memset(mask, 0, (size_t)view->elements);
    for (int64_t n = 0; n < shape[0] * shape[1] * shape[2]; n++) {
        int64_t at = test_view_index(view, n / (shape[1] * shape[2]), n / shape[2] % shape[1],
                                     n % shape[2], 0);

        memset(mask + at, 1, (size_t)shape[3]);
    }
    for (int64_t i = 0; i < view->elements; i++) {
        if (!mask[i] && !test_same_element(memory, before, view->tensor.dtype, i)) return 0;
    }
    return 1;
}

/* 1 if the channels outside the window are the input's, as bits where the types are the same. */
static int others_copied(const struct matrix_case *test, const struct test_view *in,
                         const void *before, const struct test_view *out, const void *after)
{
    const int64_t *shape = in->tensor.shape;
    size_t size = test_size(test->in);

    for (int64_t n = 0; n < shape[0] * shape[1] * shape[2]; n++) {
        int64_t b = n / (shape[1] * shape[2]), t = n / shape[2] % shape[1], h = n % shape[2];

        for (int64_t c = 0; c < shape[3]; c++) {
            int64_t i = test_view_index(in, b, t, h, c), o = test_view_index(out, b, t, h, c);

            if (c >= test->plans->offset && c < test->plans->offset + test->plans->width) continue;
            if (test->in == test->out) {
                if (memcmp((const char *)before + i * (int64_t)size,
                           (const char *)after + o * (int64_t)size, size) != 0) return 0;
            } else {
                char expected[4];

                test_store(expected, test->out, 0, test_load(before, test->in, i));
                test_store(expected, test->out, 0, test_load(expected, test->out, 0));
                if (!test_same_element(expected, (const char *)after
                                                     + o * (int64_t)test_size(test->out),
                                       test->out, 0)) return 0;
            }
        }
    }
    return 1;
}

/* Runs one case on every ISA; the scalar result is also held against what must not change. */
static void check_case(const struct matrix_case *test, struct arena *arena,
                       struct test_random *random)
{
    static char in_before[ROOM], out_before[ROOM], scalar[ROOM];
    const struct plans *plans = test->plans;
    struct test_view in =
        test_view_new(test->order, test->in, BATCH, TOKENS, HEADS, plans->channels);
    struct test_view out =
        test_view_new(test->out_order, test->out, BATCH, TOKENS, HEADS, plans->channels);
    size_t in_size = (size_t)in.elements * test_size(test->in);
    size_t out_size = (size_t)out.elements * test_size(test->out);
    char *in_memory = test_guard_at(&arena->in, in_size, test_size(test->in), test->place);
    char *out_memory = test_guard_at(&arena->out, out_size, test_size(test->out), test->place);

    test_view_fill(&in, in_before, test->fill, plans->offset, plans->width, random);
    test_fill(out_before, test->out, 0, out.elements, test->fill, random);
    test_view_at(&in, in_memory);
    test_view_at(&out, out_memory);
    for (size_t k = 0; k < plans->count; k++) {
        posenc_error error = {0, ""};
        char *result = test->in_place ? in_memory : out_memory;
        const char *before = test->in_place ? in_before : out_before;

        memcpy(in_memory, in_before, in_size);
        if (!test->in_place) memcpy(out_memory, out_before, out_size);
        test_ok(posenc_rotate(plans->plan[k], test->direction, test->rows, &in.tensor,
                              test->in_place ? NULL : &out.tensor, NULL, NULL, &error), &error);
        if (!test->in_place && memcmp(in_memory, in_before, in_size) != 0) {
            fail_case(test, k, "input changed");
        }
        if (k == 0) {
            memcpy(scalar, result, out_size);
            if (!gaps_untouched(&out, result, before)) fail_case(test, k, "gap written");
            if (!others_copied(test, &in, in_before, &out, result)) {
                fail_case(test, k, "channel outside the window not copied");
            }
        } else if (!test_same(scalar, result, test->out, out.elements)) {
            fail_case(test, k, "bits differ from scalar");
        }
    }
}

/* All dtypes and memory orders for one layout, width and window; alignment, neighbours and
 * direction go round so that every combination of them occurs many times over the widths. */
static void check_width(const struct plans *plans, int32_t layout, struct arena *arena,
                        unsigned *turn, struct test_random *random)
{
    posenc_tensor rows;
    size_t rows_size = BATCH * TOKENS * (size_t)plans->width * sizeof(float);

    for (int n = 0; n < 12 * TEST_ORDERS; n++, (*turn)++) {
        int types = n % 12;
        unsigned order = (unsigned)n / 12;
        struct matrix_case test = {
            .plans = plans,
            .rows = &rows,
            .layout = layout,
            .in = dtypes[types < 9 ? types / 3 : types - 9],
            .out = dtypes[types < 9 ? types % 3 : types - 9],
            .direction = (int32_t)(*turn / 5 % 3),
            .in_place = types >= 9,
            .order = (enum test_order)order,
            .out_order = (enum test_order)((order + (types < 9 ? *turn / 11 : 0)) % TEST_ORDERS),
            .place = (enum test_place)(*turn % TEST_PLACES),
            .fill = (enum test_fill)(*turn / 7 % TEST_FILLS),
        };

        make_rows(plans->plan[0], &rows,
                  test_guard_at(&arena->rows, rows_size, sizeof(float),
                                (enum test_place)(*turn / 2 % TEST_PLACES)));
        check_case(&test, arena, random);
    }
}

static int is_quick_width(int32_t width)
{
    return width <= 36 || (width > 60 && width < 68) || (width > 126 && width < 132) || width > 254;
}

static void check_matrix(int32_t layout)
{
    struct arena arena = {test_guard_new(ROOM), test_guard_new(ROOM), test_guard_new(ROOM)};
    struct test_random random = {(uint32_t)layout};
    unsigned turn = 0;

    for (int32_t width = 2; width <= WIDEST; width += 2) {
        if (test_quick() && !is_quick_width(width)) continue;
        for (size_t w = 0; w < WINDOWS; w++) {
            struct plans plans = plans_new(layout, width, &windows[w], width % 3 ? 0 : 1.3);

            check_width(&plans, layout, &arena, &turn, &random);
            plans_free(&plans);
        }
    }
    test_guard_free(&arena.in);
    test_guard_free(&arena.out);
    test_guard_free(&arena.rows);
}

static void test_matrix_adjacent(void **state)
{
    (void)state;
    check_matrix(POSENC_ADJACENT);
}

static void test_matrix_split_half(void **state)
{
    (void)state;
    check_matrix(POSENC_SPLIT_HALF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_matrix_adjacent),
        cmocka_unit_test(test_matrix_split_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
