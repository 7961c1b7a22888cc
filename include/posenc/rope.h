/* SPDX-License-Identifier: MIT */
/* Rotary plans, rows and rotation. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_ROPE_H
#define POSENC_POSENC_ROPE_H

#include <posenc/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { /* layout: which two channels of the rotary window form pair i of r/2 */
    POSENC_ADJACENT = 1,  /* 2i, 2i+1  elsewhere "GPT-J", "interleaved", "NORMAL", "traditional" */
    POSENC_SPLIT_HALF = 2 /* i, i+r/2  elsewhere "NeoX", "rotate_half", "halves" */
};

enum { /* scaling: what was done to the frequencies to reach longer contexts */
    POSENC_SCALING_NONE = 0,
    POSENC_SCALING_LINEAR = 1, /* position interpolation */
    POSENC_SCALING_LLAMA3 = 2,
    POSENC_SCALING_YARN = 3,
    POSENC_SCALING_NTK = 4,         /* a larger base: "alpha", NTK-aware */
    POSENC_SCALING_NTK_SCALED = 5,  /* base times s, then every frequency / s^(2/r) */
    POSENC_SCALING_NTK_MIXED = 6,   /* pair by pair between 1 and s, exponent mixed_exponent */
    POSENC_SCALING_DYNAMIC_NTK = 7, /* a base that grows with the running length */
    POSENC_SCALING_LONGROPE = 8,    /* two sets of divisors, chosen by the running length; "su" */
    POSENC_SCALING_PROPORTIONAL = 9 /* the pairs from rotating_pairs on stand still */
};

enum { /* frequencies: where they come from */
    POSENC_FREQUENCIES_FORMULA = 0, /* base^(-2i/r), then the scaling */
    POSENC_FREQUENCIES_INVERSE = 1, /* the caller's, in radians per position ("inv_freq") */
    POSENC_FREQUENCIES_DIVISORS = 2, /* base^(-2i/r) / the caller's divisor i ("freq_factors") */
    POSENC_FREQUENCIES_PERIODS = 3   /* 1 / the caller's period i, in positions per radian */
};

enum { /* recipe: how a cosine/sine row follows from the frequencies */
    POSENC_RECIPE_EXACT = 0, /* within 0.501 x 2^-24 of the truth for every position */
    POSENC_RECIPE_HF_F32 = 1, /* as transformers computes it in float32, see posenc_rows */
    POSENC_RECIPE_VLLM = 2,   /* as vLLM fills its table */
    POSENC_RECIPE_GGML = 3    /* as ggml does on a CPU: a float32 recurrence over the pairs */
};

enum { /* yarn_blend: how YARN goes from scaled to unscaled frequencies */
    POSENC_YARN_LINEAR = 0,
    POSENC_YARN_GEOMETRIC = 1 /* the blend of the logarithms */
};

enum { /* xpos: which side a plan with a decay is for; one plan for each */
    POSENC_XPOS_NONE = 0,
    POSENC_XPOS_QUERIES = 1,
    POSENC_XPOS_KEYS = -1
};

enum { /* direction of a rotation */
    POSENC_FORWARD = 0,
    POSENC_INVERSE = 1,  /* undoes FORWARD: minus the angle, the attention factor divided out */
    POSENC_TRANSPOSE = 2 /* the gradient: minus the angle, the attention factor kept */
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
    int32_t row_dtype;             /* HF_F32, VLLM: rows rounded to F32 (0), F16 or BF16 */
    int32_t isa;                   /* POSENC_ISA_* */
    int64_t max_position;          /* positions >= this are refused; 0 = no limit */
    int32_t frequency_source;      /* POSENC_FREQUENCIES_* */
    int32_t reserved;              /* 0 */
    const double *frequencies;     /* r/2, copied. INVERSE: in [0, 2^76). DIVISORS: */
                                   /* 2^-64..2^1000, times the factor >= 2^-75. PERIODS: */
                                   /* 2^-75..2^1000; infinite = stands still */
    const float *cos_table;        /* instead of frequencies: [cos_rows][r/2], kept by reference, */
    const float *sin_table;        /* [sin_rows][r/2]; row p is position p; else both NULL */
    int64_t cos_rows;
    int64_t sin_rows;
    int64_t length;                /* DYNAMIC_NTK, LONGROPE: > 0 fixes the running length for the */
                                   /* plan's life, 0 = each call gives it (posenc_positions) */
    const double *short_factors;   /* LONGROPE: r/2 divisors for lengths <= L0, */
    const double *long_factors;    /* and > L0; 2^-64..2^1000, copied */
    double short_attention;        /* LONGROPE: the factor of one set ("short_mscale"); 0 = that */
    double long_attention;         /* of both */
    const double *factors;         /* LINEAR: several in one plan (posenc_positions.sets), */
    int32_t num_factors;           /* <= 65536, copied; NULL and 0: `factor` alone */
    int32_t axes;                  /* position axes, 1..4; 0 = 1 */
    const int32_t *axis_of_pair;   /* [r/2] 0..axes-1, copied; NULL = all 0. See builders.h */
    double mixed_exponent;         /* NTK_MIXED: B, 0..16; no default */
    double magnitude_slope;        /* YARN: of g, see below; 0.1 */
    int32_t yarn_blend;            /* POSENC_YARN_* */
    int32_t rotating_pairs;        /* PROPORTIONAL: 0..r/2; no default */
    int32_t xpos;                  /* POSENC_XPOS_* */
    int32_t reserved2;             /* 0 */
    double xpos_scale_base;        /* B of the decay; 512 */
    int64_t xpos_center;           /* c of the decay, in [-2^31, 2^31): pinned, so that cached */
                                   /* keys stay valid; 0 */
    int32_t out_layout;            /* pair layout of what a rotation writes; 0 = layout. Another */
                                   /* one is for q_out and k_out that are not in place */
    int32_t reserved3;             /* 0 */
} posenc_rope_params;

/* Sets every field to its default (struct_size included); those without one become 0. */
POSENC_API void posenc_rope_params_init(posenc_rope_params *params);

/*
 * Makes a plan. With w(i) = base^(-2i/r), h = r/2, i = 0..h-1, and every frequency the IEEE double
 * nearest to:
 *
 *     NONE         w                                                        Su et al. 2021
 *     LINEAR       w / s                                                    Chen et al. 2023
 *     LLAMA3       w / s        where 2 pi / w > L0 / low
 *                  w            where 2 pi / w < L0 / high
 *                  (1-t) w/s + t w otherwise, t = (L0 w / 2 pi - low) / (high - low)
 *     YARN         m w/s + (1-m) w, m = clamp((i - lo) / (hi - lo), 0, 1)   Peng et al. 2023
 *                  c(n) = r ln(L0 / (2 pi n)) / (2 ln base)
 *                  lo = max(c(beta_fast), 0), hi = min(c(beta_slow), r - 1); with truncate c is
 *                  rounded down for lo and up for hi first; hi += 0.001 where hi = lo
 *                  GEOMETRIC: w s^-m
 *     NTK          b^(-2i/r), b = base s^(r/(r-2))                          "alpha", s = alpha
 *     NTK_SCALED   b^(-2i/r) / s^(2/r), b = base s
 *     NTK_MIXED    w exp(-a (i+1)^B), a = ln(s) / h^B
 *     DYNAMIC_NTK  b^(-2i/r), b = base (s N/L0 - (s-1))^(r/(r-2)), N = max(length, L0)
 *     LONGROPE     w / short_factors[i] where length <= L0, else w / long_factors[i]
 *     PROPORTIONAL w / s for i < rotating_pairs, else 0                     s = factor, 0 = 1
 *
 * For r = 2 the only frequency of NTK and DYNAMIC_NTK is 1, whatever the base.
 *
 * The attention factor is the one given, else 1, but for
 *     YARN         with g(m) = 1 if s <= 1, otherwise slope m ln s + 1 (slope = magnitude_slope):
 *                  g(mscale) / g(mscale_all_dim) if both are given, g(1) if not
 *     LONGROPE     of each set the one given, else attention_factor, else
 *                  sqrt(1 + ln s / ln L0), or 1 if s <= 1 (s = factor, 0 = 1)
 *
 * xPos (Sun et al. 2022): rows are multiplied by z(i)^(+-(p - xpos_center) / xpos_scale_base), with
 * z(i) = (2i + 0.4 r) / (1.4 r); + in a plan for queries, - in one for keys. It goes with EXACT
 * rows, formula frequencies, one axis. To undo the rotation of one side TRANSPOSE with rows of the
 * other side's plan; INVERSE is refused.
 *
 * DIVISORS goes with NONE and LINEAR, INVERSE, PERIODS and tables with NONE alone. Recipes other
 * than EXACT take integer positions and refuse what their system does not have (docs/schemes.md).
 * Fields of another scaling than the one chosen are ignored.
 * Tables must stay valid and unchanged while the plan lives; each value is used as it is.
 */
POSENC_API int32_t posenc_plan_create(posenc_plan **plan, const posenc_rope_params *params,
                                      posenc_error *error);

/* Frees a plan; NULL is allowed. No call may be using it. */
POSENC_API void posenc_plan_free(posenc_plan *plan);

/* r/2: a row holds this many cosines, then this many sines. 0 if plan is NULL. */
POSENC_API int32_t posenc_plan_pairs(const posenc_plan *plan);

/* The factor in force on cosine and sine (for tables 1 unless given). 0 if plan is NULL. Where it
 * depends on the length: that of length 1. */
POSENC_API double posenc_plan_attention_factor(const posenc_plan *plan);

/* What families with DeepSeek's attention multiply the softmax scale by, beside the attention
 * factor: for YARN g(mscale_all_dim)^2 where mscale_all_dim is not 0, otherwise 1. No function of
 * this library applies it by itself; the softmax_scale of a contract (contract.h) contains it for
 * the models that want it. 0 if plan is NULL. */
POSENC_API double posenc_plan_softmax_multiplier(const posenc_plan *plan);

/* The ISA whose kernels the plan uses, POSENC_ISA_SCALAR or higher. 0 if plan is NULL. */
POSENC_API int32_t posenc_plan_isa(const posenc_plan *plan);

/* Writes the r/2 effective frequencies, in radians per position: those of length 1 and set 0 where
 * they depend on them. `count` must be r/2. Refused with POSENC_ERROR_UNSUPPORTED for a plan made
 * from tables. */
POSENC_API int32_t posenc_plan_inv_freq(const posenc_plan *plan, double *inv_freq, size_t count,
                                        posenc_error *error);

/* The same for a running length (> 0; ignored where the plan does not depend on it) and a set of
 * LINEAR's factors (0 where there is one). `attention_factor` may be NULL. */
POSENC_API int32_t posenc_plan_inv_freq_at(const posenc_plan *plan, int64_t length, int32_t set,
                                           double *inv_freq, size_t count,
                                           double *attention_factor, posenc_error *error);

/* Which frequencies a running length selects: all lengths in [first, next) have the same. `next` is
 * INT64_MAX where no change follows; a plan that does not depend on the length answers 1 and
 * INT64_MAX. Keys cached before `next` is reached were rotated by other frequencies. */
POSENC_API int32_t posenc_plan_length_range(const posenc_plan *plan, int64_t length, int64_t *first,
                                            int64_t *next, posenc_error *error);

/* Position axes of the plan, 1..4. 0 if plan is NULL. */
POSENC_API int32_t posenc_plan_axes(const posenc_plan *plan);

/* Writes 16 bytes that stand for all that changes the result of a rotation: widths, layout, recipe,
 * frequencies at every length, factors, axes; not the ISA and not max_position. Equal plans have
 * equal fingerprints on every machine; a cache of rotated keys can be refused by it. */
POSENC_API int32_t posenc_plan_fingerprint(const posenc_plan *plan, uint8_t *fingerprint,
                                           posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Rows, rotation, and both in one call
 * --------------------------------------------------------------------------------------------- */

/*
 * Writes the rows of a step: rows[b][t] = [cos 0..r/2-1 | sin 0..r/2-1] of position(b, t), the
 * attention factor included. `rows` is F32 or F64 of shape [batch or 1][tokens][1][r]; its first
 * two dimensions say how many positions are read. Made once per step, used by all layers.
 *
 * A row depends on its absolute position alone. EXACT: for attention factor A <= 1 each value is
 * within 0.501 x 2^-24 of the truth, and within 2^ceil(log2 A) times that for larger A; the row of
 * -p is that of p with the sines negated. HF_F32: inv_freq in float32 by transformers' own
 * operations (the power correctly rounded), angle = float32(position) * inv_freq rounded to
 * float32, then correctly rounded cosine and sine, times float32(A), then rounded to row_dtype.
 * VLLM, GGML: docs/schemes.md gives them operation by operation. Tables: copied.
 *
 * Real positions (F64 ids) keep the bound of EXACT; an integral one gives the bits of the integer,
 * a subnormal one those of 0.
 * F64 rows (EXACT plans and tables alone) are within 2^-53 x 2^ceil(log2 max(1, A)) of the truth.
 * With a decay (xpos) A times the decay takes the place of A in both bounds; the decay's logarithm
 * is cut at +-600, where F32 rows have long become infinite or 0.
 */
POSENC_API int32_t posenc_rows(const posenc_plan *plan, const posenc_positions *positions,
                               const posenc_tensor *rows, posenc_error *error);

/*
 * Rows from angles that the caller computed ("freqs" of some training frameworks): cosine and sine
 * of angles[b][t][0][i], F32 or F64, finite and < 2^76 in size, each times the plan's attention
 * factor (that of length 1), within the bound of EXACT rows. angles have shape
 * [batch][tokens][1][r/2], rows [batch][tokens][1][r] of F32 or F64; they share no memory. A plan
 * with a decay (xpos) is refused.
 */
POSENC_API int32_t posenc_rows_from_angles(const posenc_plan *plan, const posenc_tensor *angles,
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
 * Where out_layout is another layout, out[p] and out[q] are written to the channels of pair i in
 * that one, in every direction: x is in `layout`, out in `out_layout`. So what a plan from one into
 * the other has turned, the plan with both exchanged turns back. In place that is refused.
 *
 * INVERSE and TRANSPOSE first replace s by -s; INVERSE also multiplies c and s by A^-2, in double,
 * rounded once to float. Arithmetic is float32; f16 and bf16 are widened exactly and rounded once,
 * to nearest even. F64 tensors go with F64 rows alone, both ways, in double arithmetic by a plain
 * loop: within 4 x 2^-53 x max(1, A) x (|a| + |b|) + 2^-1074. q_out and k_out may be NULL or the
 * same view: then the rotation is in place. Otherwise they have the input's shape, any dtype (F64
 * only for F64), and share no memory with any other argument. Q and K may interleave in one buffer.
 * Either of q and k may be NULL.
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

#ifdef __cplusplus
}
#endif

#endif
