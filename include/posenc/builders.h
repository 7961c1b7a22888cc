/* SPDX-License-Identifier: MIT */
/* Builders: axis maps, position ids, frequencies of image encoders, query temperature.
 * Arrays of one call share no memory unless said otherwise; one without elements may be NULL. */
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
 * and sums to `pairs` (1..32768); a zero at the end changes nothing.
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
    POSENC_SEGMENT_GRID = 2, /* an image, or a video whose frames share one span */
    POSENC_SEGMENT_GRID_PLANE = 3 /* a video after which text goes on as after one frame of it */
};

/* A piece of a prompt. Fields of the other kind are ignored. This struct is frozen. */
typedef struct posenc_segment {
    int32_t kind;      /* POSENC_SEGMENT_* */
    int32_t reserved;  /* 0 */
    int64_t tokens;    /* TEXT: how many */
    int64_t frames;    /* GRID, GRID_PLANE: after merging, each >= 1 */
    int64_t rows;
    int64_t columns;
    double frame_step; /* positions a frame, 0..2^31: 1, or seconds a frame x positions a second */
} posenc_segment;

/*
 * Three-axis ids of text with images and videos: ids[0] is time, ids[1] row, ids[2] column, each of
 * `tokens` values, which must be the sum over the segments (a grid has frames*rows*columns tokens,
 * columns fastest).
 *
 *     c = first
 *     TEXT:        all axes c, c+1, ...; c += tokens
 *     GRID:        time c + (int64_t)((float)frame * (float)frame_step), row c + row,
 *                  column c + column; c = its largest id + 1
 *     GRID_PLANE:  the same ids; c += max(rows, columns)
 *
 * `next` receives the largest id of all + 1 (`first` without tokens): the position of the token
 * that follows. `delta` receives next - first - tokens: what to add to the number of cached tokens
 * while decoding. Either may be NULL. Source: get_rope_index of Qwen2-VL and Qwen2.5-VL, GRID in
 * transformers 4 and vLLM, GRID_PLANE for videos in transformers 5; they differ where a video lasts
 * longer than its frames are wide. Qwen3-VL has text between frames: each is a grid of one frame.
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
 * be the last offset. A sequence may be empty. */
POSENC_API int32_t posenc_ids_packed(const int64_t *offsets, size_t sequences,
                                     const int64_t *starts, int64_t *ids, size_t tokens,
                                     posenc_error *error);

/* Ids of one rank under context parallelism: of 2*ranks equal chunks of a sequence of `tokens`,
 * rank k holds chunk k and chunk 2*ranks-1-k. Writes tokens/ranks ids; tokens is a multiple of
 * 2*ranks. */
POSENC_API int32_t posenc_ids_context_parallel(int64_t tokens, int64_t rank, int64_t ranks,
                                               int64_t *ids, size_t count, posenc_error *error);

enum { /* which ids of dual chunk attention */
    POSENC_DUAL_CHUNK_INTRA = 1,      /* keys, and queries against keys of their own chunk */
    POSENC_DUAL_CHUNK_SUCCESSIVE = 2, /* queries against the chunk before */
    POSENC_DUAL_CHUNK_INTER = 3,      /* queries against earlier chunks */
    POSENC_DUAL_CHUNK_SUCCESSIVE_CRITICAL = 4,
    POSENC_DUAL_CHUNK_INTER_CRITICAL = 5
};

/*
 * Ids that dual chunk attention (Qwen2.5 of a million tokens, as vLLM has it) turns keys and
 * queries by. With s = chunk - local and p = positions[i] >= 0:
 *
 *     INTRA                 p mod s
 *     SUCCESSIVE            min(p mod s + s, chunk)
 *     INTER                 min(2 s - 1, chunk)
 *     SUCCESSIVE_CRITICAL   p mod s + s
 *     INTER_CRITICAL        p mod s + chunk
 *
 * chunk is 1..2^30, local 0..chunk-1. ids may be the same array as positions.
 */
POSENC_API int32_t posenc_ids_dual_chunk(int32_t kind, int64_t chunk, int64_t local,
                                         const int64_t *positions, int64_t *ids, size_t count,
                                         posenc_error *error);

enum { /* coordinates: what patch k of n stands at, rounded once */
    POSENC_GRID_INDEX = 0,   /* k */
    POSENC_GRID_CENTRES = 1, /* 2 (k + 0.5) / n - 1, in (-1, 1): DINOv3 */
    POSENC_GRID_EDGES = 2    /* 2 k / (n - 1) - 1, from -1 to 1; -1 where n is 1: PIXEL */
};

/* Ids (y, x) of a rows x columns grid of patches, as F64: ids[0] y and ids[1] x, each of `count`,
 * which must be rows*columns. merge m >= 1: in the order of m x m blocks (rows and columns are
 * multiples of m). */
POSENC_API int32_t posenc_ids_grid(int64_t rows, int64_t columns, int64_t merge,
                                   int32_t coordinates, double *ids, size_t count,
                                   posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Image encoders
 * --------------------------------------------------------------------------------------------- */

enum { /* form of a two-axis rotation; D = head_dim */
    POSENC_VISION_QWEN = 1,    /* Qwen-VL, ggml VISION: base^(-4j/D) for y, again for x */
    POSENC_VISION_PIXTRAL = 2, /* base^(-2j/D): y takes even j, x odd j; y block, then x block */
    POSENC_VISION_LLAMA4 = 3,  /* as QWEN with adjacent pairs and x first; ids x + 1, y + 1 */
    POSENC_VISION_GEMMA4_X = 4, /* first half of the head, split_half inside it, for x */
    POSENC_VISION_GEMMA4_Y = 5, /* second half of the head, for y: one plan for each half */
    POSENC_VISION_DINOV3 = 6,  /* 2 pi base^(-4j/D) of normalised (y, x), tiled twice */
    POSENC_VISION_PIXEL = 7    /* adjacent, pi times D/4 numbers from 1 to base/2, y then x */
};

/*
 * Sets layout, widths, axes, frequency_source and the pointers of `params`, which
 * posenc_rope_params_init filled, for a form; frequencies are the doubles nearest to its formula
 * (docs/positions.md). The plan takes ids on two axes, y and x, as posenc_ids_grid writes them.
 * inv_freq[head_dim/2] and axis_of_pair[head_dim/2] are the caller's and must live until the plan
 * is made. head_dim is a multiple of 4; base 0 is the usual one: 10000, for GEMMA4 and DINOV3 100,
 * for PIXEL ("max_freq", below 2^75) 10.
 */
POSENC_API int32_t posenc_vision_params(posenc_rope_params *params, int32_t form, int32_t head_dim,
                                        double base, double *inv_freq, int32_t *axis_of_pair,
                                        posenc_error *error);

/*
 * The same for `axes` axes (1..4) of even widths, side by side, whose sum is the head: pair j of
 * axis a turns by base^(-2j/width[a]); base 0 is 10000. inv_freq and axis_of_pair hold half of it.
 * FLUX and other diffusion transformers: POSENC_ADJACENT, {16, 56, 56}, ids (0, y, x) for images.
 */
POSENC_API int32_t posenc_axial_params(posenc_rope_params *params, int32_t layout,
                                       const int32_t *width, int32_t axes, double base,
                                       double *inv_freq, int32_t *axis_of_pair,
                                       posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Query temperature
 * --------------------------------------------------------------------------------------------- */

/*
 * What some models multiply a query by, after the rotation: scale[b][t], F32 of shape
 * [batch][tokens][1][1], correctly rounded. Positions are integers >= 0 on one axis. factor is
 * 0..2^64, period >= 1, offset 0..2^31; scale shares no memory with positions.
 *
 *     1 + factor * ln(1 + floor((position + offset) / period))
 *
 * Llama 4: 0.1, 8192, offset 1; Ministral 3: llama_4_scaling_beta, the original length, offset 0.
 */
POSENC_API int32_t posenc_query_temperature(double factor, int64_t period, int64_t offset,
                                            const posenc_positions *positions,
                                            const posenc_tensor *scale, posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
