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
 * outer dimensions may be 0: nothing to do, channels are at least 1), strides and sizes that fit the
 * address space. `name` is the argument's name for the text.
 */
int32_t posenc_tensor_check(const posenc_tensor *t, const char *name, posenc_error *error);

/* The rest is for views that have passed posenc_tensor_check. */

/* 1 if both describe the same elements in the same order (strides of single elements aside). */
int posenc_views_equal(const posenc_tensor *a, const posenc_tensor *b);

/* 1 if some byte belongs to both. Exact, so interleaved views pass; views with strides so unusual that
 * this cannot be decided in a bounded number of steps count as overlapping. */
int posenc_views_overlap(const posenc_tensor *a, const posenc_tensor *b);

/* 1 if two elements of the view share a byte: such a view cannot be written to. */
int posenc_view_self_overlaps(const posenc_tensor *t);

/* Checks a view that will be written: posenc_tensor_check, and no overlap with itself. */
int32_t posenc_output_check(const posenc_tensor *t, const char *name, posenc_error *error);

/* Fails with POSENC_ERROR_OVERLAP if a and b (either may be NULL) share memory. */
int32_t posenc_disjoint_check(const posenc_tensor *a, const char *a_name, const posenc_tensor *b,
                              const char *b_name, posenc_error *error);

#endif
