/* SPDX-License-Identifier: MIT */
/* The inside of a plan: what rows and rotation need, made once, never changed. */
#ifndef POSENC_PLAN_H
#define POSENC_PLAN_H

#include "dd.h"
#include "positions.h"
#include "rows.h"
#include "rows_ggml.h"

/* How rows come about. VLLM has HF_F32's operations, by frequencies of its own. */
enum {
    POSENC_ROWS_EXACT,
    POSENC_ROWS_XPOS,
    POSENC_ROWS_HF_F32,
    POSENC_ROWS_GGML,
    POSENC_ROWS_TABLE
};

/* What one set of frequencies is to rows. */
struct posenc_frequency_set {
    double *inv_freq;                /* [pairs], NULL for tables */
    float *inv_freq_f32;             /* [pairs], HF_F32; GGML: divisors of its angles */
    struct posenc_row_block *blocks; /* [ceil(pairs / 16)], EXACT */
    double attention_factor;
    float position_divisor; /* HF_F32: float32 positions are divided by it; 1 but for VLLM LINEAR */
};

/* Rotation in place of tensors of one dtype. All but the kernel are bytes. */
struct posenc_in_place {
    posenc_rotate_kernel *kernel;
    uint32_t size;   /* of an element */
    uint32_t offset; /* from the start of a head to its window */
    uintptr_t last;  /* from the first byte of a head to its last */
    uintptr_t reach; /* a head and a row together, less 1: see glance.h */
};

struct posenc_plan {
    const struct posenc_kernels *kernels;
    struct posenc_in_place in_place[3]; /* by dtype - 1 */
    int32_t layout, out_layout, head_dim, rotary_dim, rotary_offset, pairs;
    int32_t rows_by;           /* POSENC_ROWS_* */
    int32_t row_dtype;         /* what the values of a recipe are rounded to; never 0 */
    struct posenc_range range; /* of positions */
    posenc_rope_params params; /* as checked; its pointers are to the plan's own copies, but for
                                  the tables */
    int32_t axes;
    const int32_t *axis_of_pair; /* [pairs], NULL where all are 0 */
    /*
     * LINEAR with several factors: one set for each. Where `depends_on_length` (the caller gives
     * the length with each call): LONGROPE has sets 0 for lengths <= L0 and 1 for longer ones;
     * DYNAMIC_NTK set 0 for lengths <= L0, longer ones take posenc_frequencies. Otherwise one.
     */
    int32_t num_sets;
    struct posenc_frequency_set *sets;
    int depends_on_length;
    posenc_dd *log_decay;    /* [pairs], XPOS: see posenc_xpos_prepare */
    struct posenc_ggml ggml; /* GGML */
    uint8_t fingerprint[16]; /* but for tables, which are large and the caller's */
};

/* What posenc_plan_fingerprint answers, computed from a plan that is filled. */
void posenc_fingerprint_compute(const struct posenc_plan *plan, uint8_t fingerprint[16]);

/* XPOS: the logarithm of the decay of each pair, for one position. */
void posenc_xpos_prepare(const posenc_rope_params *params, posenc_dd *log_decay);

/* Checks every field of params that were completed by their defaults. */
int32_t posenc_rope_params_check(const posenc_rope_params *params, posenc_error *error);

/* The set that a length (where the plan depends on it) or a factor selects. -1 for lengths beyond
 * L0 of DYNAMIC_NTK: posenc_frequencies has it. */
int32_t posenc_plan_set(const struct posenc_plan *plan, int64_t length, int32_t factor);

#endif
