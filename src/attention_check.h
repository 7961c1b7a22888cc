/* SPDX-License-Identifier: MIT */
/* The checks of an attention call, from the outside in. */
#ifndef POSENC_ATTENTION_CHECK_H
#define POSENC_ATTENTION_CHECK_H

#include "array.h"
#include "attention_job.h"

/* Logical indices that a caller names: sums of a few of them are far from overflow. */
static const int64_t posenc_farthest = INT64_C(1) << 53;

/* Everything that a call reads and writes, to see what shares memory. */
struct posenc_attention_memory {
    struct posenc_view in[16], out[4];
    struct posenc_array array[20];
    int ins, outs, arrays;
};

/* Reads params and what they point to into the job; checks what can be checked without views. */
int32_t posenc_attention_params_check(struct posenc_attention_job *job,
                                      const posenc_attention_params *params, posenc_error *error);

/* Checks q, k, v, whose shapes go into the job, and all that params say of them. */
int32_t posenc_attention_inputs_check(struct posenc_attention_job *job,
                                      struct posenc_attention_memory *memory, posenc_error *error);

/* Its part on k and v of posenc_attention_cached: what both say of themselves and of each other. */
int32_t posenc_attention_caches_check(struct posenc_attention_job *job,
                                      struct posenc_attention_memory *memory, posenc_error *error);

/* Its part on sequences: where they begin, and that their places are in range. */
int32_t posenc_attention_sequences_check(struct posenc_attention_job *job,
                                         struct posenc_attention_memory *memory,
                                         posenc_error *error);

/* Fails unless the dimensions of a view are `shape`; bit d of `broadcast` lets dimension d be 1. */
int32_t posenc_attention_shape_check(const posenc_tensor *t, const char *name,
                                     const int64_t shape[4], unsigned broadcast,
                                     posenc_error *error);

/* Checks what a call for rows [batch][queries][heads] writes: out, or in spans state, then lse and
 * weights; and output_rows. The number of spans goes into the job. */
int32_t posenc_attention_outputs_check(struct posenc_attention_job *job,
                                       struct posenc_attention_memory *memory,
                                       const int64_t shape[3], posenc_error *error);

/* Fails if anything that is written, the workspace included, shares memory with anything else; and
 * aligns the workspace. */
int32_t posenc_attention_apart(struct posenc_attention_job *job,
                               struct posenc_attention_memory *memory, posenc_error *error);

/* The last of them for caches: keys that a row sees have slots, in pages that there are. */
int32_t posenc_attention_slots_check(const struct posenc_attention_job *job, posenc_error *error);

/* A whole call whose views, and maps if it has any, are in the job: for out, or for the sums of
 * spans. */
int32_t posenc_attention_to_out(struct posenc_attention_job *job,
                                const posenc_attention_params *params, posenc_error *error);
int32_t posenc_attention_to_state(struct posenc_attention_job *job,
                                  const posenc_attention_params *params, int64_t first_span,
                                  posenc_error *error);

#endif
