/* SPDX-License-Identifier: MIT */
/* Reading parameter structs that grow at their end. */
#ifndef POSENC_STRUCTS_H
#define POSENC_STRUCTS_H

#include "common.h"

/*
 * Copies a caller's struct, whose first member is uint32_t struct_size, into `to` of `known` bytes.
 * The sizes known are `first`, where its oldest form ended, and `known`. Refused: NULL, any other
 * size below `known`, and a size above it whose tail is not all zero, because the caller set
 * something that this version does not know. `to` keeps its own bytes where the caller's struct
 * ends early: fill it with defaults before.
 */
int32_t posenc_struct_read(void *to, size_t known, size_t first, const void *from,
                           const char *name, posenc_error *error);

#endif
