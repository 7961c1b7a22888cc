/* SPDX-License-Identifier: MIT */
/*
 * libposenc: positional encodings for attention, exact and at memory speed.
 *
 * Data flows one way and each stage can be used alone:
 *
 *     parameters -> plan -> rows (cos/sin of this step) -> rotated Q, K -> attention
 *
 * Conventions of every function here
 *
 *   Status    A function that can fail returns POSENC_OK (0) or a positive POSENC_ERROR_* code and,
 *             if its last argument is not NULL, describes the failure there. All arguments are
 *             checked before the first store: after an error nothing has been written.
 *   Threads   A plan never changes after its creation and may be shared by all threads. No function
 *             has hidden state; calls that write to different memory may run at the same time.
 *   Memory    Only posenc_plan_create* allocates and only posenc_plan_free releases. No alignment
 *             is demanded beyond that of the element type.
 *   Floats    Results assume round-to-nearest. Rotation and attention also assume that the caller
 *             did not switch on flush-to-zero. The floating-point environment is never changed.
 *   Bits      Equal input gives equal bits on every ISA, for every split of the work, in place or
 *             not, fused or in steps. NaNs appear in the same places; their payload is free.
 *   Units     Positions count tokens; angles are radians; strides count elements, not bytes.
 *
 * Types are fixed-width integers, size_t, double and pointers; f16 and bf16 are uint16_t bits.
 */
#ifndef POSENC_POSENC_H
#define POSENC_POSENC_H

#include <stddef.h>
#include <stdint.h>

#ifndef POSENC_API
#define POSENC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Version
 * --------------------------------------------------------------------------------------------- */

#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0

/* The version of the library that is running, as "0.1.0". Never NULL, never freed. */
POSENC_API const char *posenc_version(void);

/* ------------------------------------------------------------------------------------------------
 * Errors
 * --------------------------------------------------------------------------------------------- */

enum {
    POSENC_OK = 0,
    POSENC_ERROR_ARGUMENT = 1,    /* an argument breaks its rule */
    POSENC_ERROR_POSITION = 2,    /* a position is outside the table, the limit or the range */
    POSENC_ERROR_OVERLAP = 3,     /* memory of two arguments overlaps where it must not */
    POSENC_ERROR_UNSUPPORTED = 4, /* this build or CPU does not offer what was asked for */
    POSENC_ERROR_MEMORY = 5,      /* the system has no memory left */
    POSENC_ERROR_IO = 6,          /* a file could not be read (libposenc-contract) */
    POSENC_ERROR_FORMAT = 7,      /* a file is malformed (libposenc-contract) */
    POSENC_ERROR_MODEL = 8        /* a model's description is refused (libposenc-contract) */
};

/* What went wrong, in memory of the caller. `text` names the argument, its value and the rule, is
 * one line of ASCII and always ends with a NUL. Written only when a function fails. */
typedef struct posenc_error {
    int32_t code;
    char text[252];
} posenc_error;

/* A short name for a status: "ok", "argument", "position", ... or "unknown". Never freed. */
POSENC_API const char *posenc_status_name(int32_t status);

/* ------------------------------------------------------------------------------------------------
 * Constants. 0 is never a valid dtype or layout, so that a forgotten field is noticed.
 * --------------------------------------------------------------------------------------------- */

enum { /* dtype */
    POSENC_F32 = 1,
    POSENC_F16 = 2,  /* IEEE binary16, as uint16_t */
    POSENC_BF16 = 3, /* upper half of a binary32, as uint16_t */
    POSENC_I32 = 4,
    POSENC_I64 = 5
};

enum { /* layout: which two channels of the rotary window form pair i of r/2 */
    POSENC_ADJACENT = 1,  /* 2i, 2i+1  elsewhere "GPT-J", "interleaved", "NORMAL", "traditional" */
    POSENC_SPLIT_HALF = 2 /* i, i+r/2  elsewhere "NeoX", "rotate_half", "halves" */
};

enum { /* isa: the kernels that do the work; they give equal bits */
    POSENC_ISA_DEFAULT = 0, /* the best of this CPU, or what POSENC_ISA in the environment names */
    POSENC_ISA_SCALAR = 1,
    POSENC_ISA_AVX2 = 2,   /* AVX2, FMA and F16C */
    POSENC_ISA_AVX512 = 3, /* AVX-512 F, BW, DQ, VL */
    POSENC_ISA_NEON = 4
};

enum { /* scaling: what was done to the frequencies to reach longer contexts */
    POSENC_SCALING_NONE = 0,
    POSENC_SCALING_LINEAR = 1, /* position interpolation */
    POSENC_SCALING_LLAMA3 = 2,
    POSENC_SCALING_YARN = 3
};

enum { /* frequencies: where they come from */
    POSENC_FREQUENCIES_FORMULA = 0, /* base^(-2i/r), then the scaling */
    POSENC_FREQUENCIES_INVERSE = 1, /* the caller's, in radians per position ("inv_freq") */
    POSENC_FREQUENCIES_DIVISORS = 2 /* base^(-2i/r) / the caller's divisor i ("freq_factors") */
};

enum { /* recipe: how a cosine/sine row follows from the frequencies */
    POSENC_RECIPE_EXACT = 0, /* within 0.501 x 2^-24 of the truth for every position */
    POSENC_RECIPE_HF_F32 = 1 /* as transformers computes it in float32, see posenc_rows */
};

enum { /* direction of a rotation */
    POSENC_FORWARD = 0,
    POSENC_INVERSE = 1,  /* undoes FORWARD: minus the angle, the attention factor divided out */
    POSENC_TRANSPOSE = 2 /* the gradient: minus the angle, the attention factor kept */
};

enum { /* kind of positions */
    POSENC_POSITIONS_START = 0,  /* start, start+1, ... in every batch row */
    POSENC_POSITIONS_STARTS = 1, /* a start of its own for each batch row */
    POSENC_POSITIONS_IDS = 2     /* an id of its own for each token */
};

/* ------------------------------------------------------------------------------------------------
 * Simple use: contiguous arrays, no struct to fill
 * --------------------------------------------------------------------------------------------- */

/* All that must be known to rotate, made once per frequency set; see "Plans". */
typedef struct posenc_plan posenc_plan;

/*
 * Makes a plan that rotates whole heads of `head_dim` channels by the unscaled frequencies
 * base^(-2i/head_dim). `layout` is POSENC_ADJACENT or POSENC_SPLIT_HALF; `head_dim` is even.
 */
POSENC_API int32_t posenc_plan_create_simple(posenc_plan **plan, int32_t layout, int32_t head_dim,
                                             double base, posenc_error *error);

/*
 * Rotates contiguous q[batch][tokens][q_heads][head_dim] and k[batch][tokens][k_heads][head_dim] of
 * one dtype in place; token t of every batch row stands at position start + t. Either of q and k
 * may be NULL, with 0 heads. Equal bits as posenc_rope on the same data:
 *
 *     for (b, t, h, i)                                  // i < pairs, the same for k
 *         w = start + t, (c, s) = (cos, sin)(w * inv_freq[i]) * attention_factor
 *         (x[p], x[q]) = (x[p]*c - x[q]*s, x[q]*c + x[p]*s)   // channels p, q of pair i
 */
POSENC_API int32_t posenc_rope_flat(const posenc_plan *plan, void *q, void *k, int32_t dtype,
                                    size_t batch, size_t tokens, size_t q_heads, size_t k_heads,
                                    int64_t start, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Tensors and positions
 * --------------------------------------------------------------------------------------------- */

/*
 * A strided view of rank 4, [batch][token][head][channel]. Element (b, t, h, c) lies at
 * data + b*stride[0] + t*stride[1] + h*stride[2] + c, counted in elements of dtype; stride[3] is 1.
 * Any memory order and any packing is a choice of strides; a stride may be negative, and its value
 * is ignored where the dimension has one element. This struct is frozen: it will never change.
 */
typedef struct posenc_tensor {
    void *data;
    int32_t dtype;
    int64_t shape[4];
    int64_t stride[4];
} posenc_tensor;

/* Fills `tensor` as a contiguous view. No argument is checked here; the call that uses it does. */
POSENC_API void posenc_tensor_contiguous(posenc_tensor *tensor, void *data, int32_t dtype,
                                         int64_t batch, int64_t tokens, int64_t heads,
                                         int64_t channels);

/*
 * Where the tokens stand. Positions are integers in [-2^31, 2^31); negative ones are legal where
 * rows are computed and refused where a table is read.
 *
 *     START:   position(b, t) = start + t
 *     STARTS:  position(b, t) = ids[b*stride[0]] + t
 *     IDS:     position(b, t) = ids[b*stride[0] + t*stride[1]]     // stride[0] = 0 shares one row
 */
typedef struct posenc_positions {
    uint32_t struct_size; /* sizeof(posenc_positions) */
    int32_t kind;         /* POSENC_POSITIONS_* */
    int32_t dtype;        /* of ids: POSENC_I32 or POSENC_I64 */
    int32_t reserved;     /* 0 */
    int64_t start;
    const void *ids;
    int64_t stride[2];
} posenc_positions;

/* Sets `positions` to START at `start`. */
POSENC_API void posenc_positions_start(posenc_positions *positions, int64_t start);

/* ------------------------------------------------------------------------------------------------
 * Plans
 * --------------------------------------------------------------------------------------------- */

/*
 * Parameters of a rotary plan. Fill with posenc_rope_params_init, then set what differs. New fields
 * come at the end: a smaller known struct_size is accepted, a larger one if its tail is zero.
 * Factors and betas, where no other range is given, lie in 2^-64..2^64.
 */
typedef struct posenc_rope_params {
    uint32_t struct_size;  /* sizeof(posenc_rope_params) */
    int32_t layout;        /* POSENC_ADJACENT or POSENC_SPLIT_HALF; no default */
    int32_t head_dim;      /* channels of a head, 2..65536; no default */
    int32_t rotary_dim;    /* r: channels that turn, even, 2..head_dim; no default */
    int32_t rotary_offset; /* first channel that turns; 0, or the "nope" width for MLA */
    int32_t scaling;       /* POSENC_SCALING_* */
    double base;           /* > 1, < 2^76; 10000 */
    double factor;         /* s of LINEAR, LLAMA3, YARN; no default */
    double attention_factor;       /* multiplies cosine and sine; 0 = by the rule of the scaling */
    double original_max_position;  /* L0 of LLAMA3 and YARN: 1..2^64; no default */
    double low_freq_factor;        /* LLAMA3: < high_freq_factor; no default */
    double high_freq_factor;       /* LLAMA3; no default */
    double beta_fast;              /* YARN; 32 */
    double beta_slow;              /* YARN: <= beta_fast; 1 */
    double mscale;                 /* YARN: see below; 0..2^64, 0 = not given */
    double mscale_all_dim;         /* the same */
    int32_t truncate;              /* YARN: 1 rounds the range out to whole pairs, 0 does not */
    int32_t recipe;                /* POSENC_RECIPE_* */
    int32_t row_dtype;             /* HF_F32: cosine and sine rounded to F32 (0), F16 or BF16 */
    int32_t isa;                   /* POSENC_ISA_* */
    int64_t max_position;          /* positions >= this are refused; 0 = no limit */
    int32_t frequency_source;      /* POSENC_FREQUENCIES_* */
    int32_t reserved;              /* 0 */
    const double *frequencies;     /* INVERSE: r/2 in [0, 2^76); DIVISORS: r/2 > 0; copied */
    const float *cos_table;        /* instead of frequencies: [cos_rows][r/2], kept by reference, */
    const float *sin_table;        /* [sin_rows][r/2]; row p is position p; else both NULL */
    int64_t cos_rows;
    int64_t sin_rows;
} posenc_rope_params;

/* Sets every field to its default (struct_size included); those without one become 0. */
POSENC_API void posenc_rope_params_init(posenc_rope_params *params);

/*
 * Makes a plan. With w(i) = base^(-2i/r), h = r/2, and every frequency the IEEE double nearest to:
 *
 *     NONE     w                                                            Su et al. 2021
 *     LINEAR   w / s                                                        Chen et al. 2023
 *     LLAMA3   w / s        where 2 pi / w > L0 / low
 *              w            where 2 pi / w < L0 / high
 *              (1-t) w/s + t w otherwise, t = (L0 w / 2 pi - low) / (high - low)
 *     YARN     m w/s + (1-m) w, m = clamp((i - lo) / (hi - lo), 0, 1)       Peng et al. 2023
 *              c(n) = r ln(L0 / (2 pi n)) / (2 ln base)
 *              lo = max(c(beta_fast), 0), hi = min(c(beta_slow), r - 1); with truncate c is rounded
 *              down for lo and up for hi first; hi += 0.001 where hi = lo
 *
 * The attention factor is the one given, else 1, else for YARN with g(m) = 1 if s <= 1, otherwise
 * 0.1 m ln s + 1: g(mscale) / g(mscale_all_dim) if both are given, g(1) if not.
 * DIVISORS goes with NONE and LINEAR, INVERSE and tables with NONE alone.
 * Fields of another scaling than the one chosen are ignored.
 * Tables must stay valid and unchanged while the plan lives; each value is used as it is.
 */
POSENC_API int32_t posenc_plan_create(posenc_plan **plan, const posenc_rope_params *params,
                                      posenc_error *error);

/* Frees a plan; NULL is allowed. No call may be using it. */
POSENC_API void posenc_plan_free(posenc_plan *plan);

/* r/2: a row holds this many cosines, then this many sines. 0 if plan is NULL. */
POSENC_API int32_t posenc_plan_pairs(const posenc_plan *plan);

/* The factor in force on cosine and sine (for tables 1 unless given). 0 if plan is NULL. */
POSENC_API double posenc_plan_attention_factor(const posenc_plan *plan);

/* The ISA whose kernels the plan uses, POSENC_ISA_SCALAR or higher. 0 if plan is NULL. */
POSENC_API int32_t posenc_plan_isa(const posenc_plan *plan);

/* Writes the r/2 effective frequencies, in radians per position. `count` must be r/2. Refused with
 * POSENC_ERROR_UNSUPPORTED for a plan made from tables. */
POSENC_API int32_t posenc_plan_inv_freq(const posenc_plan *plan, double *inv_freq, size_t count,
                                        posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Rows, rotation, and both in one call
 * --------------------------------------------------------------------------------------------- */

/*
 * Writes the rows of a step: rows[b][t] = [cos 0..r/2-1 | sin 0..r/2-1] of position(b, t), the
 * attention factor included. `rows` is F32 of shape [batch or 1][tokens][1][r]; its first two
 * dimensions say how many positions are read. Made once per step, used by all layers.
 *
 * A row depends on its absolute position alone. EXACT: for attention factor A <= 1 each value is
 * within 0.501 x 2^-24 of the truth, and within 2^ceil(log2 A) times that for larger A; the row of
 * -p is that of p with the sines negated. HF_F32: inv_freq in float32 by transformers' own
 * operations (the power correctly rounded), angle = float32(position) * inv_freq rounded to
 * float32, then correctly rounded cosine and sine, times float32(A), then rounded to row_dtype.
 * Tables: copied.
 */
POSENC_API int32_t posenc_rows(const posenc_plan *plan, const posenc_positions *positions,
                               const posenc_tensor *rows, posenc_error *error);

/*
 * Rotates q and k by rows. Tensors have shape [batch][tokens][heads][channels] with the rows' batch
 * (or any, if the rows have 1) and tokens; q and k have heads of their own. `channels` is the
 * plan's head_dim (the window starts at rotary_offset) or its rotary_dim (the window alone). For
 * each token and head, with o the start of the window and c, s from the row:
 *
 *     for (i = 0; i < r/2; i++) {
 *         p = adjacent ? o + 2*i : o + i;  q = adjacent ? p + 1 : p + r/2;
 *         out[p] = fmaf(-x[q], s[i], x[p] * c[i]);
 *         out[q] = fmaf( x[p], s[i], x[q] * c[i]);
 *     }
 *     the other channels are copied
 *
 * INVERSE and TRANSPOSE first replace s by -s; INVERSE also multiplies c and s by A^-2, in double,
 * rounded once to float. Arithmetic is float32; f16 and bf16 are widened exactly and rounded once,
 * to nearest even. q_out and k_out may be NULL or the same view: then the rotation is in place.
 * Otherwise they have the input's shape, any dtype, and share no memory with any other argument. Q
 * and K may interleave in one buffer. Either of q and k may be NULL.
 */
POSENC_API int32_t posenc_rotate(const posenc_plan *plan, int32_t direction,
                                 const posenc_tensor *rows, const posenc_tensor *q,
                                 const posenc_tensor *q_out, const posenc_tensor *k,
                                 const posenc_tensor *k_out, posenc_error *error);

/*
 * posenc_rows and posenc_rotate in one call, with equal bits, without a row buffer and without
 * allocation. If both q and k are given they have equal batch and tokens.
 */
POSENC_API int32_t posenc_rope(const posenc_plan *plan, int32_t direction,
                               const posenc_positions *positions, const posenc_tensor *q,
                               const posenc_tensor *q_out, const posenc_tensor *k,
                               const posenc_tensor *k_out, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Attention: small and exact, to check an engine against
 * --------------------------------------------------------------------------------------------- */

typedef struct posenc_attention_params {
    uint32_t struct_size; /* sizeof(posenc_attention_params) */
    int32_t causal;       /* 1: query i of Tq stands at key Tk - Tq + i and sees keys up to it */
    double scale;         /* multiplies q.k, finite; 0 = 1/sqrt(channels of q) */
    int32_t isa;          /* POSENC_ISA_* */
    int32_t reserved;     /* 0 */
} posenc_attention_params;

/* Sets every field to its default (struct_size included): not causal, scale by the rule. */
POSENC_API void posenc_attention_params_init(posenc_attention_params *params);

/*
 * out = softmax(scale q k^T) v. Shapes: q [B][Tq][Hq][D], k [B][Tk][Hk][D], v [B][Tk][Hk][E],
 * out [B][Tq][Hq][E], all F32, D and E 1..4096. Hq is a multiple of Hk: query head h reads key head
 * h / (Hq / Hk). A query that sees no key gives zeros. `out` shares no memory with the inputs.
 *
 *     for (b, i, h) {
 *         n = causal ? max(0, Tk - Tq + i + 1) : Tk
 *         out = sum_j<n exp(scale q.k_j - max) v_j / sum_j<n exp(scale q.k_j - max)
 *     }
 *
 * A row's bits depend on its own query and the keys it sees alone, so one prefill and decoding
 * token by token agree. docs/attention.md gives the arithmetic operation by operation.
 */
POSENC_API int32_t posenc_attention(const posenc_attention_params *params, const posenc_tensor *q,
                                    const posenc_tensor *k, const posenc_tensor *v,
                                    const posenc_tensor *out, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * ISA
 * --------------------------------------------------------------------------------------------- */

/* 1 if this build and this CPU (its operating system included) can run `isa`, else 0. */
POSENC_API int32_t posenc_isa_available(int32_t isa);

/* What POSENC_ISA_DEFAULT means in this process: the best available, or the available one that the
 * environment variable POSENC_ISA names. The variable is read at the first use, once. */
POSENC_API int32_t posenc_isa_default(void);

/* "scalar", "avx2", "avx512", "neon", "default", or NULL for an unknown value. Never freed. */
POSENC_API const char *posenc_isa_name(int32_t isa);

#ifdef __cplusplus
}
#endif

#endif
