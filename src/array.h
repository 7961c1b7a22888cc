/* SPDX-License-Identifier: MIT */
/* Checks on the plain arrays of a call: their pointers, sizes, and which memory they share. */
#ifndef POSENC_ARRAY_H
#define POSENC_ARRAY_H

#include "common.h"

/* A checked array: the addresses between which it lies. */
struct posenc_array {
    const char *name;
    uintptr_t begin, end;
};

/* A size for posenc_fail, which takes int64_t. */
static inline int64_t posenc_size(size_t n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/*
 * Checks `count` elements of `size` bytes at `data`: given, aligned, within the address space. An
 * array without elements may be NULL. `name` is the argument's name for the text.
 */
int32_t posenc_array_check(struct posenc_array *array, const void *data, size_t count, size_t size,
                           const char *name, posenc_error *error);

/* Fails with POSENC_ERROR_OVERLAP if one of the first `outputs` of `count` checked arrays shares
 * memory with any other. */
int32_t posenc_arrays_apart(const struct posenc_array *arrays, int outputs, int count,
                            posenc_error *error);

#endif
