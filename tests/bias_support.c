/* SPDX-License-Identifier: MIT */
/* Bits of a bias: on every ISA, in every memory order, for every split, between guard pages. */
#include "bias_support.h"

#include "support/guard.h"
#include "support/half.h"

enum { MARK = 0xa5 };

void bias_mark(void *memory, size_t bytes)
{
    memset(memory, MARK, bytes);
}

int bias_untouched(const void *memory, size_t bytes)
{
    const unsigned char *p = memory;

    for (size_t i = 0; i < bytes; i++) {
        if (p[i] != MARK) return 0;
    }
    return 1;
}

/* Elements equal `whole`, laid out [B][T][H][D]; what lies between them still holds the mark. */
static void compare(const struct test_view *view, const unsigned char *memory,
                    const unsigned char *whole, const char *how)
{
    const int64_t *shape = view->tensor.shape;
    size_t size = test_size(view->tensor.dtype), bytes = (size_t)view->elements * size, seen = 0;
    unsigned char *rest = malloc(bytes);

    assert_non_null(rest);
    memcpy(rest, memory, bytes);
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0; t < shape[1]; t++)
            for (int64_t h = 0; h < shape[2]; h++)
                for (int64_t c = 0; c < shape[3]; c++, seen++) {
                    size_t at = (size_t)test_view_index(view, b, t, h, c) * size;

                    if (memcmp(memory + at, whole + seen * size, size) != 0)
                        fail_msg("%s: element %d %d %d %d differs", how, (int)b, (int)t, (int)h,
                                 (int)c);
                    bias_mark(rest + at, size);
                }
    if (!bias_untouched(rest, bytes)) fail_msg("%s: written between the elements", how);
    free(rest);
}

static void fill(const struct bias_maker *maker, int32_t isa, int64_t query, int64_t head,
                 int64_t key, const posenc_tensor *bias)
{
    posenc_error error = {0, ""};

    test_ok(maker->fill(maker, isa, query, head, key, bias, &error), &error);
}

/* Queries, heads and (where they may be) keys in pieces of 1, 2, 3, ... */
static void fill_pieces(const struct bias_maker *maker, int32_t isa, const struct test_view *view)
{
    const posenc_tensor *t = &view->tensor;
    int64_t size = (int64_t)test_size(t->dtype), step = 1;

    for (int64_t q = 0, nq; q < t->shape[1]; q += nq) {
        nq = step % 5 + 1 < t->shape[1] - q ? step % 5 + 1 : t->shape[1] - q;
        for (int64_t h = 0, nh; h < t->shape[2]; h += nh) {
            nh = step % 3 + 1 < t->shape[2] - h ? step % 3 + 1 : t->shape[2] - h;
            for (int64_t k = 0, nk; k < t->shape[3]; k += nk, step++) {
                nk = maker->by_keys ? 1 + step * 37 % 450 : t->shape[3];
                if (nk > t->shape[3] - k) nk = t->shape[3] - k;
                posenc_tensor part = *t;
                part.data = (char *)t->data + (q * t->stride[1] + h * t->stride[2] + k) * size;
                part.shape[1] = nq;
                part.shape[2] = nh;
                part.shape[3] = nk;
                fill(maker, isa, q, h, k, &part);
            }
        }
    }
}

static void check_order(const struct bias_maker *maker, const struct test_guard *guard,
                        struct test_view *view, const unsigned char *whole, int32_t isa)
{
    size_t size = test_size(view->tensor.dtype), bytes = (size_t)view->elements * size;

    for (int place = 0; place < TEST_PLACES; place++) {
        unsigned char *memory = test_guard_at(guard, bytes, size, (enum test_place)place);

        bias_mark(memory, bytes);
        test_view_at(view, memory);
        fill(maker, isa, 0, 0, 0, &view->tensor);
        compare(view, memory, whole, posenc_isa_name(isa));
        if (place == TEST_AT_START) {
            bias_mark(memory, bytes);
            fill_pieces(maker, isa, view);
            compare(view, memory, whole, "pieces");
        }
    }
}

void bias_check(const struct bias_maker *maker, int32_t dtype, int64_t batch, int64_t queries,
                int64_t heads, int64_t keys)
{
    size_t bytes = (size_t)(batch * queries * heads * keys) * test_size(dtype);
    unsigned char *whole = malloc(bytes);
    struct test_guard guard = test_guard_new(4 * bytes + 4096);
    posenc_tensor plain;
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);

    assert_non_null(whole);
    posenc_tensor_contiguous(&plain, whole, dtype, batch, queries, heads, keys);
    fill(maker, POSENC_ISA_SCALAR, 0, 0, 0, &plain);
    for (size_t i = 0; i < count; i++)
        for (int order = 0; order < TEST_ORDERS; order++) {
            struct test_view view =
                test_view_new((enum test_order)order, dtype, batch, queries, heads, keys);

            check_order(maker, &guard, &view, whole, isas[i]);
        }
    test_guard_free(&guard);
    free(whole);
}
