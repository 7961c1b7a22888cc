/* SPDX-License-Identifier: MIT */
/* Checks on views: their own form, and which memory they share. */
#ifndef POSENC_TENSOR_H
#define POSENC_TENSOR_H

#include "common.h"

/* Bytes per element of F32, F16, BF16, F64, I8. */
static inline int64_t posenc_dtype_size(int32_t dtype)
{
    return dtype == POSENC_F32 ? 4 : dtype == POSENC_F64 ? 8 : dtype == POSENC_I8 ? 1 : 2;
}

static inline int posenc_tensor_is_empty(const posenc_tensor *t)
{
    return t->shape[0] == 0 || t->shape[1] == 0 || t->shape[2] == 0;
}

/* A checked view with the addresses between which all its elements lie. */
struct posenc_view {
    const posenc_tensor *tensor;
    const char *name;
    uintptr_t begin, end;
};

/*
 * Checks one view by itself: pointer, dtype (F32, F16, BF16), alignment to the element, shape (the
 * outer dimensions may be 0: nothing to do, channels are at least 1), strides and sizes that fit
 * the address space. `name` is the argument's name for the text.
 */
int32_t posenc_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                          posenc_error *error);

/* The same for F32, F16, BF16 and F64: Q and K. */
int32_t posenc_data_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                               posenc_error *error);

/* The same for F32 and F64: rows and angles. */
int32_t posenc_row_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                              posenc_error *error);

/* The same for F32, F16, BF16 and I8: what a cache stores. */
int32_t posenc_stored_view_check(struct posenc_view *view, const posenc_tensor *t, const char *name,
                                 posenc_error *error);

/* The rest is for views that have passed. */

/* 1 if both describe the same elements in the same order (strides of single elements aside). */
int posenc_views_equal(const posenc_tensor *a, const posenc_tensor *b);

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

/* The stride of a dimension; of a single element it means nothing and may be anything. */
static inline ptrdiff_t posenc_step(const posenc_tensor *t, int d)
{
    return t->shape[d] > 1 ? (ptrdiff_t)t->stride[d] : 0;
}

/* Where an element lies in a view that is not empty; a dimension of one element stands for all. */
static inline char *posenc_element(const posenc_tensor *t, int64_t b, int64_t token, int64_t head,
                                   int64_t channel)
{
    int64_t at = b * posenc_step(t, 0) + token * posenc_step(t, 1) + head * posenc_step(t, 2);
    return (char *)t->data + (at + channel) * posenc_dtype_size(t->dtype);
}

#endif
