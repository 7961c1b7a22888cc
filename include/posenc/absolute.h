/* SPDX-License-Identifier: MIT */
/* Absolute positions: sinusoids and learned tables. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_ABSOLUTE_H
#define POSENC_POSENC_ABSOLUTE_H

#include <posenc/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Sinusoids
 * --------------------------------------------------------------------------------------------- */

enum { /* arrangement: where the sine and the cosine of frequency i stand; 0 is no default */
    POSENC_SINUSOID_INTERLEAVED = 1, /* channels 2i, 2i+1 */
    POSENC_SINUSOID_HALVES = 2       /* channels i, h+i */
};

enum { /* odd width: what the last channel of an odd width holds */
    POSENC_ODD_REFUSED = 0,
    POSENC_ODD_ZERO = 1, /* 0: h = floor(d/2) frequencies (fairseq, diffusers) */
    POSENC_ODD_SINE = 2  /* a sine more than cosines: h = ceil(d/2) (Vaswani, Marian) */
};

/*
 * Parameters of a sinusoid of d channels with h = floor(d/2) frequencies (ceil for ODD_SINE). Fill
 * with posenc_sinusoid_params_init, then set what differs.
 *
 *     frequency(i) = base^(-i / (numerator - shift)),  numerator = d/2 as a real number where
 *                    exponent_by_width is 1, else h
 *     angle(p, i)  = scale * (p + position_offset) * frequency(i)
 *
 *     Vaswani et al. 2017       INTERLEAVED, exponent_by_width 1, shift 0
 *     Marian, XLM, DistilBERT   HALVES, exponent_by_width 1, shift 0
 *     fairseq, M2M100, Whisper  HALVES, shift 1 (M2M100: position_offset 2, padding_row)
 *     diffusers, ggml           HALVES, shift 1 or 0, cosine_first ("flip"), real positions
 *     DiT, CogVideoX            axes
 */
typedef struct posenc_sinusoid_params {
    uint32_t struct_size;      /* sizeof(posenc_sinusoid_params) */
    int32_t dim;               /* d: channels, 1..65536; no default */
    int32_t arrangement;       /* POSENC_SINUSOID_*; no default */
    int32_t cosine_first;      /* 1: cosine before sine */
    int32_t odd;               /* POSENC_ODD_* */
    int32_t exponent_by_width; /* 1: the denominator counts d/2, 0: h; they differ where d is odd */
    double base;               /* > 1, < 2^76; 10000 ("max_period") */
    double shift;              /* numerator - shift > 0; 0 */
    double scale;              /* of the angle, 2^-64..2^64; 1 */
    int64_t position_offset;   /* added to every position; 0 */
    int64_t padding_row;       /* position + offset of an axis whose channels are 0; -1 = none */
    int64_t max_position;      /* positions >= this are refused; 0 = no limit */
    int32_t isa;               /* POSENC_ISA_* */
    int32_t axes;              /* 1..4; 0 = 1. Axis a fills axis_dim[a] channels, one after */
    int32_t axis_dim[4];       /* another, each by these rules; their sum is d. 1 axis: not read */
} posenc_sinusoid_params;

/* Sets every field to its default (struct_size included); those without one become 0. */
POSENC_API void posenc_sinusoid_params_init(posenc_sinusoid_params *params);

/* What is needed to compute rows, made once; immutable, shared by all threads. */
typedef struct posenc_sinusoid posenc_sinusoid;

POSENC_API int32_t posenc_sinusoid_create(posenc_sinusoid **sinusoid,
                                          const posenc_sinusoid_params *params,
                                          posenc_error *error);

/* Frees a sinusoid; NULL is allowed. */
POSENC_API void posenc_sinusoid_free(posenc_sinusoid *sinusoid);

/*
 * out[b][t][0] = row(position(b, t)): shape [batch][tokens][1][d], any dtype (F32, F16, BF16, F64).
 * A value is within 0.501 x 2^-24 of the truth before it is rounded to 16 bits, within 2^-53 for
 * F64, where scale * frequency(i) is rounded once to a double; the same bits on every ISA and for
 * every split. Positions are integers or real; the sum of a real one and an offset is rounded once.
 */
POSENC_API int32_t posenc_sinusoid_fill(const posenc_sinusoid *sinusoid,
                                        const posenc_positions *positions,
                                        const posenc_tensor *out, posenc_error *error);

/*
 * y = x * embedding_scale + row(position), one pass, shape [batch][tokens][1][d]; `out` NULL or the
 * same view: in place. embedding_scale is 1 or, as some models do, sqrt(d). Arithmetic is float32
 * (double for F64, which x and out then both have): fmaf(x, (float)scale, row), rounded once to the
 * dtype of out.
 */
POSENC_API int32_t posenc_sinusoid_add(const posenc_sinusoid *sinusoid,
                                       const posenc_positions *positions, double embedding_scale,
                                       const posenc_tensor *x, const posenc_tensor *out,
                                       posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Learned tables: a view [1][rows][1][d] of F32, F16 or BF16
 * --------------------------------------------------------------------------------------------- */

/*
 * y = x * embedding_scale + table[position(b, t) + offset]; x NULL: the row alone. Every row number
 * is checked against the table before the first store (POSENC_ERROR_POSITION). Shapes and `out` as
 * posenc_sinusoid_add; the table shares no memory with `out`.
 */
POSENC_API int32_t posenc_learned_add(const posenc_tensor *table, int64_t offset,
                                      const posenc_positions *positions, double embedding_scale,
                                      const posenc_tensor *x, const posenc_tensor *out,
                                      int32_t isa, posenc_error *error);

/* Row numbers from token ids, tokens[batch][count] (RoBERTa, M2M100): the number of tokens that are
 * not `padding` up to and with this one, plus past, plus padding; `padding` on padding itself. */
POSENC_API int32_t posenc_learned_rows(const int64_t *tokens, size_t batch, size_t count,
                                       int64_t padding, int64_t past, int64_t *rows,
                                       posenc_error *error);

enum { /* resampling */
    POSENC_RESAMPLE_LINEAR = 1,       /* corners aligned: linspace(0, n-1, m) */
    POSENC_RESAMPLE_LINEAR_CENTRES = 2 /* torch's align_corners=False */
};

/*
 * Resamples the `rows` x `columns` grid of a table, row-major, to out_rows x out_columns
 * (rows = 1: a table of one dimension), bilinear in float32. table and out are views
 * [1][n][1][d] of F32, F16 or BF16 with n the product of the grid; they share no memory.
 */
POSENC_API int32_t posenc_learned_resample(const posenc_tensor *table, int64_t rows,
                                           int64_t columns, const posenc_tensor *out,
                                           int64_t out_rows, int64_t out_columns, int32_t mode,
                                           posenc_error *error);

/* Fills a table with normal values of mean 0 and deviation `deviation`, from `seed`: splitmix64 and
 * the Box-Muller transform, the same bits on every machine (docs/absolute.md). */
POSENC_API int32_t posenc_learned_init(const posenc_tensor *table, double deviation, uint64_t seed,
                                       posenc_error *error);

/* Compares a trained table with the deviation it was initialised with: used[r] = 1 where row r's
 * root mean square lies outside [low, high] times `deviation` (rows that training never touched
 * keep their first size). used[rows]; `count` receives how many are used. Either may be NULL. */
POSENC_API int32_t posenc_learned_used(const posenc_tensor *table, double deviation, double low,
                                       double high, uint8_t *used, int64_t *count,
                                       posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
