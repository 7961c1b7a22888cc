/* SPDX-License-Identifier: MIT */
/* Builders: axis maps, position ids, frequencies of image encoders, query temperature. */
#ifndef POSENC_POSENC_BUILDERS_H
#define POSENC_POSENC_BUILDERS_H

#include <posenc/base.h>
#include <posenc/rope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Which position axis turns which pair
 * --------------------------------------------------------------------------------------------- */

enum { /* pattern of axes over the pairs */
    POSENC_AXES_SECTIONS = 1,    /* axis 0 takes the first section[0] pairs, axis 1 the next, ... */
    POSENC_AXES_INTERLEAVED = 2, /* as transformers has it: 0 1 2 0 1 2 ..., see below */
    POSENC_AXES_INTERLEAVED_GGML = 3, /* as ggml has it: leftover pairs go to axis 3 */
    POSENC_AXES_ERNIE = 4        /* section = [h, w, t]: h and w alternate, then t */
};

/*
 * Fills axis_of_pair[pairs] for posenc_rope_params. section[sections] counts pairs, none negative,
 * and sums to `pairs`; a zero at the end changes nothing.
 *
 *     SECTIONS          1..4 sections (Qwen2-VL 3, Hunyuan-VL "XD-RoPE" 4)
 *     INTERLEAVED       3 sections: pair i is axis 1 where i % 3 == 1 and i < 3 section[1], axis 2
 *                       where i % 3 == 2 and i < 3 section[2], else axis 0          (Qwen3-VL)
 *     INTERLEAVED_GGML  the same, but axis 0 also needs i % 3 == 0 and i < 3 section[0], and what
 *                       is left goes to axis 3
 *     ERNIE             3 sections [h, w, t], h == w: pair i < h + w is axis 1 (h) if even, axis 2
 *                       (w) if odd; the last t pairs are axis 0                     (Ernie 4.5-VL)
 */
POSENC_API int32_t posenc_axis_map(int32_t *axis_of_pair, size_t pairs, int32_t pattern,
                                   const int32_t *section, size_t sections, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Position ids
 * --------------------------------------------------------------------------------------------- */

enum { /* kind of segment */
    POSENC_SEGMENT_TEXT = 1,
    POSENC_SEGMENT_GRID = 2 /* an image, or a video whose frames share one span */
};

/* A piece of a prompt. This struct is frozen. */
typedef struct posenc_segment {
    int32_t kind;      /* POSENC_SEGMENT_* */
    int32_t reserved;  /* 0 */
    int64_t tokens;    /* TEXT: how many */
    int64_t frames;    /* GRID: after merging, each >= 1 */
    int64_t rows;
    int64_t columns;
    double frame_step; /* GRID: positions a frame, >= 0: frame f is floor(f step) on */
} posenc_segment;

/*
 * Three-axis ids of text with images and videos: ids[0] is time, ids[1] row, ids[2] column, each of
 * `tokens` values, which must be the sum over the segments (a grid has frames*rows*columns tokens,
 * columns fastest).
 *
 *     c = first
 *     TEXT:  all axes c, c+1, ...; c += tokens
 *     GRID:  time c + floor(frame*frame_step), row c + row, column c + column; c = largest id + 1
 *
 * `next` receives c: the position of the token that follows. `delta` receives c - first - tokens:
 * what to add to the number of cached tokens while decoding. Either may be NULL.
 * Source: get_rope_index of Qwen2-VL; its later versions give each frame a grid of its own.
 */
POSENC_API int32_t posenc_ids_multimodal(const posenc_segment *segments, size_t count,
                                         int64_t first, int64_t *ids, size_t tokens, int64_t *next,
                                         int64_t *delta, posenc_error *error);

/* Ids from a padding mask, mask[batch][tokens] bytes, not 0 = a token: the number of tokens before
 * it in its row; padding gets `padding`. */
POSENC_API int32_t posenc_ids_from_mask(const uint8_t *mask, size_t batch, size_t tokens,
                                        int64_t padding, int64_t *ids, posenc_error *error);

/* Ids of sequences packed one after another: offsets[sequences + 1] rises from 0 ("cu_seqlens"),
 * sequence s is tokens offsets[s]..offsets[s+1]-1 and starts at starts[s] (NULL: 0). `tokens` must
 * be the last offset. */
POSENC_API int32_t posenc_ids_packed(const int64_t *offsets, size_t sequences,
                                     const int64_t *starts, int64_t *ids, size_t tokens,
                                     posenc_error *error);

/* Ids of one rank under context parallelism: of 2*ranks equal chunks of a sequence of `tokens`,
 * rank k holds chunk k and chunk 2*ranks-1-k. Writes tokens/ranks ids; tokens is a multiple of
 * 2*ranks. */
POSENC_API int32_t posenc_ids_context_parallel(int64_t tokens, int64_t rank, int64_t ranks,
                                               int64_t *ids, size_t count, posenc_error *error);

/* Ids (y, x) of a rows x columns grid of patches, ids[0] y and ids[1] x, each rows*columns, as F64.
 * merge m >= 1: in the order of m x m blocks (rows and columns are multiples of m). With normalised
 * 1 each coordinate is that of a patch centre in (-1, 1): 2 (k + 0.5) / n - 1; else the index k. */
POSENC_API int32_t posenc_ids_grid(int64_t rows, int64_t columns, int64_t merge,
                                   int32_t normalised, double *ids, size_t count,
                                   posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Image encoders
 * --------------------------------------------------------------------------------------------- */

enum { /* form of a two-axis rotation; D = head_dim */
    POSENC_VISION_QWEN = 1,    /* Qwen-VL, ggml VISION: base^(-4j/D) for y, again for x */
    POSENC_VISION_PIXTRAL = 2, /* base^(-2j/D): y takes even j, x odd j; y block, then x block */
    POSENC_VISION_LLAMA4 = 3,  /* adjacent pairs that alternate x, y; positions x + 1, y + 1 */
    POSENC_VISION_GEMMA4_Y = 4, /* first half of the head, split_half inside it: one axis */
    POSENC_VISION_GEMMA4_X = 5, /* second half of the head: one plan for each half */
    POSENC_VISION_DINOV3 = 6   /* 2 pi base^(-4j/D) of normalised (y, x), tiled twice */
};

/*
 * Sets layout, widths, axes, frequency_source and the pointers of `params`, which
 * posenc_rope_params_init filled, for a form. inv_freq[head_dim/2] and axis_of_pair[head_dim/2]
 * are the caller's and must live until the plan is made. head_dim is a multiple of 4 (of 8 for
 * GEMMA4); base 0 is the usual one (10000; DINOV3 100). docs/schemes.md gives each formula.
 */
POSENC_API int32_t posenc_vision_params(posenc_rope_params *params, int32_t form, int32_t head_dim,
                                        double base, double *inv_freq, int32_t *axis_of_pair,
                                        posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Query temperature
 * --------------------------------------------------------------------------------------------- */

/*
 * What some models multiply a query by, after the rotation: scale[b][t], F32 of shape
 * [batch][tokens][1][1], correctly rounded. Positions are integers >= 0.
 *
 *     1 + factor * ln(1 + floor((position + offset) / period))
 *
 * Llama 4: 0.1, 8192, offset 1; Ministral 3: llama_4_scaling_beta, the original length, offset 0.
 */
POSENC_API int32_t posenc_query_temperature(double factor, int64_t period, int64_t offset,
                                            const posenc_positions *positions,
                                            const posenc_tensor *scale, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * ALiBi
 * --------------------------------------------------------------------------------------------- */

/* Slopes of heads [first, first + count) of `heads`, each the double nearest to the formula, with
 * n = the largest power of two <= heads:
 *
 *     2^(-max_bias (k+1) / n)  for k < n,  2^(-(max_bias/2) (2 (k-n) + 1) / n)  for the rest
 *
 * Press et al. 2021; max_bias is 8 there, here > 0 and <= 64. heads 1..65536. */
POSENC_API int32_t posenc_alibi_slopes(double *slopes, int64_t first, int64_t count, int64_t heads,
                                       double max_bias, posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
