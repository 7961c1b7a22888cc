/* SPDX-License-Identifier: MIT */
/* Strides of the memory orders, and filling with hostile neighbours. */
#include "view.h"

#include "half.h"

#include <math.h>

/* Sets the strides of dimensions `inner` to `outer` (3 names), innermost first, from `step` on. */
static void stack(posenc_tensor *tensor, const int order[3], int64_t step, const int64_t gap[3])
{
    for (int i = 0; i < 3; i++) {
        tensor->stride[order[i]] = step + gap[i];
        step = tensor->shape[order[i]] * tensor->stride[order[i]];
    }
}

static void set_strides(posenc_tensor *tensor, enum test_order order)
{
    static const int by_token[3] = {2, 1, 0}, by_head[3] = {1, 2, 0}, by_batch[3] = {2, 0, 1};
    static const int64_t none[3] = {0, 0, 0}, odd[3] = {3, 5, 1};
    int64_t channels = tensor->shape[3];

    tensor->stride[3] = 1;
    switch (order) {
    case TEST_GAPS: stack(tensor, by_token, channels, odd); break;
    case TEST_HEADS_FIRST: stack(tensor, by_head, channels, none); break;
    case TEST_TOKENS_FIRST: stack(tensor, by_batch, channels, none); break;
    case TEST_PACKED: {
        const int64_t others[3] = {0, 2 * channels, 0};
        stack(tensor, by_token, channels, others);
        break;
    }
    default: stack(tensor, by_token, channels, none); break;
    }
    if (order == TEST_NEGATIVE) {
        tensor->stride[1] = -tensor->stride[1];
        tensor->stride[2] = -tensor->stride[2];
    }
}

struct test_view test_view_new(enum test_order order, int32_t dtype, int64_t batch, int64_t tokens,
                               int64_t heads, int64_t channels)
{
    struct test_view view = {{NULL, dtype, {batch, tokens, heads, channels}, {0, 0, 0, 1}}, 1, 0};

    set_strides(&view.tensor, order);
    for (int i = 0; i < 4; i++) {
        int64_t reach = (view.tensor.shape[i] - 1) * view.tensor.stride[i];

        view.elements += reach < 0 ? -reach : reach;
        if (reach < 0) view.origin -= reach;
    }
    return view;
}

void test_view_at(struct test_view *view, void *memory)
{
    view->tensor.data = (char *)memory + view->origin * (int64_t)test_size(view->tensor.dtype);
}

int64_t test_view_index(const struct test_view *view, int64_t b, int64_t t, int64_t h, int64_t c)
{
    const int64_t *stride = view->tensor.stride;

    return view->origin + b * stride[0] + t * stride[1] + h * stride[2] + c;
}

/* Values are drawn in stretches from a pool, because rounding each one by value is slow. */
enum { POOL = 4099, STRETCH = 61 };

static void make_pool(void *pool, int32_t dtype, enum test_fill fill)
{
    struct test_random random = {(uint32_t)(10 * dtype + (int)fill)};
    double largest =
        dtype == POSENC_F16 ? 65504.0 : dtype == POSENC_BF16 ? 0x1.fep127 : 0x1.fffffep127;

    for (int64_t i = 0; i < POOL; i++) {
        double value = (double)test_unit(&random);

        if (fill == TEST_LARGE) value = value < 0 ? -largest : largest;
        if (fill == TEST_INFINITE) value = value < 0 ? -(double)INFINITY : (double)INFINITY;
        if (fill == TEST_NAN) value = (double)NAN;
        test_store(pool, dtype, i, value);
    }
}

void test_fill(void *memory, int32_t dtype, int64_t first, int64_t count, enum test_fill fill,
               struct test_random *random)
{
    static uint32_t pools[4][TEST_FILLS][POOL];
    static int made[4][TEST_FILLS];
    size_t size = test_size(dtype);
    char *to = (char *)memory + first * (int64_t)size;

    if (!made[dtype][fill]) make_pool(pools[dtype][fill], dtype, fill);
    made[dtype][fill] = 1;
    while (count > 0) {
        int64_t now = count < STRETCH ? count : STRETCH;

        memcpy(to, (char *)pools[dtype][fill] + test_below(random, POOL - STRETCH) * size,
               (size_t)now * size);
        to += now * (int64_t)size;
        count -= now;
    }
}

void test_view_fill(const struct test_view *view, void *memory, enum test_fill fill,
                    int64_t first, int64_t count, struct test_random *random)
{
    const int64_t *shape = view->tensor.shape;
    int32_t dtype = view->tensor.dtype;

    test_fill(memory, dtype, 0, view->elements, fill, random);
    for (int64_t b = 0; b < shape[0]; b++) {
        for (int64_t t = 0; t < shape[1]; t++) {
            for (int64_t h = 0; h < shape[2]; h++) {
                int64_t at = test_view_index(view, b, t, h, first);

                test_fill(memory, dtype, at, count, TEST_SMALL, random);
            }
        }
    }
}

int test_same(const void *a, const void *b, int32_t dtype, int64_t count)
{
    if (memcmp(a, b, (size_t)count * test_size(dtype)) == 0) return 1;
    for (int64_t i = 0; i < count; i++) {
        if (!test_same_element(a, b, dtype, i)) return 0;
    }
    return 1;
}
