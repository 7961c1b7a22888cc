/* SPDX-License-Identifier: MIT */
/* NPY arrays as tensors and positions of libposenc, with the rules of the command on types. */
#ifndef POSENC_ARRAY_H
#define POSENC_ARRAY_H

#include "npy.h"
#include "tool.h"

/* --dtype and --in-dtype as given; 0 where they were not. */
struct array_types {
    int32_t dtype, in_dtype;
};

/* Takes the value of --dtype or --in-dtype. */
int array_take_dtype(int32_t *dtype, const char *option, const char *value);

/* Reads a data array of rank 3 or 4 and settles its dtype; `tensor` views it. */
int array_read(struct npy *array, posenc_tensor *tensor, const char *path,
               const struct array_types *types);

/* Reads data of any rank that stand beside those of array_read. Only uint16 follows from the
 * options; the others announce themselves. */
int array_read_any(struct npy *array, int32_t *dtype, const char *path,
                   const struct array_types *types);

/* The same for a table [row, column]; `tensor` views it as [1][rows][1][columns]. */
int array_read_table(struct npy *array, posenc_tensor *tensor, const char *path,
                     const struct array_types *types);

/* Reads positions [T], [B,T] or [axes,B,T], int32, int64 or float64; `batch` (1 for [T]) and
 * `tokens` receive how many there are. */
int array_read_ids(struct npy *array, posenc_positions *positions, const char *path,
                   int64_t *batch, int64_t *tokens);

/* The same for an array of `batch` x `tokens`, whose shape they must have. */
int array_read_positions(struct npy *array, posenc_positions *positions, const char *path,
                         int64_t batch, int64_t tokens);

/* Id i, as its own type holds it: integers are exact. */
double array_id(const posenc_positions *positions, int64_t i);

/* The largest of the positions of `batch` x `tokens`; INT64_MIN if there are none. */
int64_t array_last_position(const posenc_positions *positions, int64_t batch, int64_t tokens);

/* Writes `data` of `dtype` in the shape of `like` under `path`. */
int array_write(const char *path, const struct npy *like, const posenc_tensor *data);

#endif
