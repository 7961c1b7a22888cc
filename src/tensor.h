/* SPDX-License-Identifier: MIT */
/* Checks on views: their own form, and which memory they share. */
#ifndef POSENC_TENSOR_H
#define POSENC_TENSOR_H

#include "common.h"

/* Bytes per element of F32, F16, BF16. */
static inline int64_t posenc_dtype_size(int32_t dtype)
{
    return dtype == POSENC_F32 ? 4 : 2;
}

static inline int posenc_tensor_is_empty(const posenc_tensor *t)
{
    return t->shape[0] == 0 || t->shape[1] == 0 || t->shape[2] == 0;
}

/*
 * Checks one view by itself: pointer, dtype (F32, F16, BF16), alignment to the element, shape (the
 * outer dimensions may be 0: nothing to do, channels are at least 1), strides and sizes that fit
 * the address space. `name` is the argument's name for the text.
 */
int32_t posenc_tensor_check(const posenc_tensor *t, const char *name, posenc_error *error);

/* A checked view with the addresses between which all its elements lie. */
struct posenc_view {
    const posenc_tensor *tensor;
    const char *name;
    uintptr_t begin, end;
};

/* posenc_tensor_check, keeping what it finds. */
int32_t posenc_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                          posenc_error *error);

/*
 * Recognises at a glance the view that nearly every call brings: not empty, its dimensions in
 * memory order, nothing overlapping, sizes far from any overflow. 1 means that posenc_view_check
 * and posenc_writable_check would accept it too; 0 means nothing, they must look. A call on one
 * token and one head takes some ten nanoseconds, and the full checks as long again.
 */
static inline int posenc_view_is_plain(struct posenc_view *view, const posenc_tensor *t,
                                       const char *name)
{
    if (!t || (uint32_t)t->dtype - POSENC_F32 > POSENC_BF16 - POSENC_F32)
        return 0;
    const uint64_t b = (uint64_t)t->shape[0] - 1, n = (uint64_t)t->shape[1] - 1;
    const uint64_t h = (uint64_t)t->shape[2] - 1, c = (uint64_t)t->shape[3];
    const uint64_t sb = (uint64_t)t->stride[0], sn = (uint64_t)t->stride[1];
    const uint64_t sh = (uint64_t)t->stride[2], size = (uint64_t)posenc_dtype_size(t->dtype);
    /* Below 2^24 and 2^32: products below 2^56, sums far below 2^63; 0 - 1 is above both. */
    if ((b | n | h | (c - 1)) >> 24 | (sb | sn | sh) >> 32 | (uint64_t)(t->stride[3] != 1))
        return 0;
    const uint64_t head_end = h * sh + c, token_end = n * sn + head_end;
    const uintptr_t data = (uintptr_t)t->data;
    if ((h && sh < c) || (n && sn < head_end) || (b && sb < token_end))
        return 0;
    if (!data || data & ((size - 1) | ~(UINTPTR_MAX >> 2)))
        return 0;
    view->tensor = t;
    view->name = name;
    view->begin = data;
    view->end = data + (uintptr_t)((b * sb + token_end) * size);
    return 1;
}

/* The rest is for views that have passed one of the two. */

/* 1 if both describe the same elements in the same order (strides of single elements aside). */
int posenc_views_equal(const posenc_tensor *a, const posenc_tensor *b);

/* 1 if some byte belongs to both. Exact, so interleaved views pass; views with strides so unusual
 * that this cannot be decided in a bounded number of steps count as overlapping. */
int posenc_views_overlap(const posenc_tensor *a, const posenc_tensor *b);

/* 1 if two elements of the view share a byte: such a view cannot be written to. */
int posenc_view_self_overlaps(const posenc_tensor *t);

/* Fails with POSENC_ERROR_OVERLAP if the view cannot be written because it overlaps itself. */
int32_t posenc_writable_check(const struct posenc_view *view, posenc_error *error);

/* Fails with POSENC_ERROR_OVERLAP if a and b share memory. Almost always two ranges of addresses
 * lie apart and that is all there is to it. */
int32_t posenc_overlap_error(const struct posenc_view *a, const struct posenc_view *b,
                             posenc_error *error);

static inline int32_t posenc_disjoint_check(const struct posenc_view *a,
                                            const struct posenc_view *b, posenc_error *error)
{
    if (a->end <= b->begin || b->end <= a->begin)
        return POSENC_OK;
    return posenc_overlap_error(a, b, error);
}

#endif
