/* SPDX-License-Identifier: MIT */
/* Filling a bias from lines that its rows have in common. */
#ifndef POSENC_BIAS_H
#define POSENC_BIAS_H

#include "array.h"
#include "kernels.h"
#include "tensor.h"

/*
 * The bias of a head depends on key - query or on the key alone. So the rows of a tile of queries x
 * keys are copied from one line in L1: in the first case row i is a window that begins one element
 * earlier than that of row i - 1, in the second all rows are the line. A line is made 1/64 as often
 * as it is read, so what it is made by matters little but for a single query.
 */
enum { POSENC_BIAS_KEYS = 2048, POSENC_BIAS_QUERIES = 64, POSENC_BIAS_HEADS = 64 };
enum { POSENC_BIAS_LINE = POSENC_BIAS_KEYS + POSENC_BIAS_QUERIES, POSENC_BIAS_SPARE = 16 };

struct posenc_bias_tile {
    int64_t batch, query, queries, key, keys;
    int64_t first; /* what line[0] belongs to: key - query, or the key */
    size_t length; /* elements of the line, consecutive */
};

/* Who makes the lines. */
struct posenc_bias_source {
    void *self;
    const struct posenc_kernels *kernels;
    int by_key; /* 1: rows depend on the key alone */
    /* Heads [first, first + count) come next, count <= POSENC_BIAS_HEADS; NULL: nothing to do. */
    void (*heads)(void *self, int64_t first, int64_t count);
    /* A tile comes next, in all these heads. */
    void (*tile)(void *self, const struct posenc_bias_tile *tile);
    /* The line of a head in the dtype of the bias, room for POSENC_BIAS_LINE elements of 4
     * bytes and POSENC_BIAS_SPARE more. */
    void (*line)(void *self, const struct posenc_bias_tile *tile, int64_t head, void *line);
};

/* Fills a checked view; causal: keys after the query, at key index offset + i, become -inf. */
void posenc_bias_fill(const struct posenc_bias_source *source, const posenc_tensor *bias,
                      int64_t offset, int causal);

/* `count` elements of 2 or 4 bytes become `bits`. */
void posenc_bias_repeat(void *to, size_t count, size_t size, uint32_t bits);

/* Fails unless key - query fits int32 for all keys and all queries from query_offset on. */
int32_t posenc_bias_distances(int64_t queries, int64_t keys, int64_t query_offset,
                              posenc_error *error);

/* Fails with POSENC_ERROR_OVERLAP if a checked array lies in the memory of a view. */
int32_t posenc_bias_apart(const struct posenc_array *array, const struct posenc_view *view,
                          posenc_error *error);

/* Fails unless `value` is 0 or 1. */
int32_t posenc_flag_check(int32_t value, const char *name, posenc_error *error);

#endif
