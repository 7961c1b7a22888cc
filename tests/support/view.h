/* SPDX-License-Identifier: MIT */
/* Tensor views in every memory order that engines use, and their fill and comparison. */
#ifndef TEST_VIEW_H
#define TEST_VIEW_H

#include "random.h"
#include "test.h"

enum test_order {
    TEST_CONTIGUOUS,  /* [B][T][H][D] */
    TEST_GAPS,        /* the same with odd gaps behind every head and token */
    TEST_HEADS_FIRST, /* [B][H][T][D] */
    TEST_TOKENS_FIRST,/* [T][B][H][D] */
    TEST_PACKED,      /* [B][T][H + 2][D], as Q or K lie inside a packed QKV */
    TEST_NEGATIVE,    /* [B][T][H][D] with tokens and heads backwards */
    TEST_ORDERS
};

/* What lies in the gaps and in channels that nothing may compute with. */
enum test_fill { TEST_SMALL, TEST_LARGE, TEST_INFINITE, TEST_NAN, TEST_FILLS };

struct test_view {
    posenc_tensor tensor; /* data is set by test_view_at */
    int64_t elements;     /* from the lowest to the highest element of the view, both included */
    int64_t origin;       /* of element (0, 0, 0, 0), from the lowest */
};

/* A view without memory. */
struct test_view test_view_new(enum test_order order, int32_t dtype, int64_t batch, int64_t tokens,
                               int64_t heads, int64_t channels);

/* Puts the view over `elements` elements of memory. */
void test_view_at(struct test_view *view, void *memory);

/* Index of an element, counted from the lowest. */
int64_t test_view_index(const struct test_view *view, int64_t b, int64_t t, int64_t h, int64_t c);

/* Fills memory with `fill`, then the channels [first, first + count) of every head with values in
 * [-1, 1). */
void test_view_fill(const struct test_view *view, void *memory, enum test_fill fill,
                    int64_t first, int64_t count, struct test_random *random);

/* Elements [first, first + count) of memory become values of the kind `fill`. */
void test_fill(void *memory, int32_t dtype, int64_t first, int64_t count, enum test_fill fill,
               struct test_random *random);

/* 1 if two memories of `count` elements have equal bits, NaN payloads aside. */
int test_same(const void *a, const void *b, int32_t dtype, int64_t count);

#endif
