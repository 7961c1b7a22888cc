/* SPDX-License-Identifier: MIT */
/* The kernel table: what an ISA must offer. One const instance per ISA, typed and complete. */
#ifndef POSENC_KERNELS_H
#define POSENC_KERNELS_H

#include "common.h"

/* Pairs per block of the row tables and positions per step table: see rows.h. */
enum { POSENC_ROW_BLOCK = 16, POSENC_ROW_STEPS = 16 };

/*
 * Exact rows for one run of positions that share sign and |p| - |p| mod 16. For token t of `count`
 * and pair i of `pairs`: cos[t*stride + i], sin[t*stride + i]. `pairs` counts from the start of
 * `blocks`.
 */
struct posenc_rows_job {
    const struct posenc_row_block *blocks;
    uint32_t base;        /* |p| - |p| mod 16 */
    const uint8_t *steps; /* [count], |p| mod 16 of each token */
    size_t count;
    size_t pairs;
    uint64_t sine_sign;   /* 0, or the sign bit of a double for negative positions */
    double factor;        /* attention factor */
    float *cos;
    float *sin;
    ptrdiff_t stride;     /* floats from token to token */
};

/* Q or K: the first channel of the window of the token and head to begin with. Strides count bytes.
 */
struct posenc_rotate_side {
    const char *src;
    char *dst;
    ptrdiff_t src_token, src_head;
    ptrdiff_t dst_token, dst_head;
    size_t heads;
};

/* Rotates the pairs [0, pairs) of every head of one or two sides for `tokens` >= 1 tokens, by a row
 * each. The src and dst of a side are the same view or disjoint. A kernel moves the pointers on.
 * For one token the strides from token to token are not read. */
struct posenc_rotate_job {
    const float *cos; /* of the first token; the next token's are row_stride floats on */
    const float *sin;
    ptrdiff_t row_stride;
    size_t tokens, pairs;
    size_t partner; /* split_half: channels from the first of a pair to the second */
    int ahead;      /* 1: lines to come are asked for */
    int sides;
    struct posenc_rotate_side side[2];
};

/* Moves the windows of `heads` heads, `pairs` pairs each, into the other layout: to memory that is
 * disjoint, or in place if a window has 128, 256 or 512 bytes. Strides count bytes. */
struct posenc_permute_job {
    const char *src;
    char *dst;
    ptrdiff_t src_head, dst_head;
    size_t heads, pairs;
    int ahead;  /* 1: lines to come are asked for */
    int stream; /* 1: it is disjoint and so large that lines need not stay in any cache */
};

/*
 * Rows added to embeddings, one fused operation in float32: y[t][i] = x[t][i] scale + row[t][i],
 * for `copies` of x and y. x and y are the same view or disjoint. Pairs come as two rows and go
 * side by side: channel 2i takes row[t][i], channel 2i + 1 odd[t][i]; `count` then counts pairs,
 * there is one copy, and the kernels that only write them do not read x and scale.
 */
struct posenc_add_job {
    const char *x;
    char *y;
    ptrdiff_t x_token, y_token, x_copy, y_copy; /* bytes */
    const float *row, *odd;                     /* odd: of pairs alone */
    ptrdiff_t row_token;                        /* floats; 0: one row for all */
    size_t tokens, count, copies;
    float scale;
    ptrdiff_t ahead; /* bytes from y to what will be written later and is asked for; 0: nothing */
};

/*
 * Rows of a sinusoid for positions one after another, from `step` above a multiple of 64 whose base
 * row `state` holds, written, or added as above, in float32. step + tokens <= 64.
 */
struct posenc_sinusoid_job {
    const struct posenc_sinusoid_block *blocks;
    struct posenc_sinusoid_state *state;
    size_t count; /* of blocks */
    size_t step, tokens;
    int goes_on; /* 1: behind the last position of the call before, which left `state` as it is */
    const char *x; /* NULL: rows are written */
    char *y;
    ptrdiff_t x_token, y_token; /* bytes */
    ptrdiff_t second; /* bytes from the first of a pair to the second; 0: side by side */
    int cosine_first;
    float scale;
    int ahead; /* 1: the rows to come are asked for */
};

/*
 * Sums of squares of the channels of 1..16 heads, of which `first` is the index of the first one:
 * part[h][(first + c) % 16] = fma(x[c], x[c], part[...]), in the order of c. `together`: one head
 * after the other into part[0]. `afresh`: part is not read, the chains begin at 0.
 */
struct posenc_squares_job {
    const char *src;
    ptrdiff_t head; /* bytes */
    size_t heads, channels, first;
    int together, afresh;
    float *part; /* [heads][16] */
};

/*
 * A norm on its way to the cache: u[c] = x[c] g[head], then its rotation by folded rows or its
 * product with a weight. The heads are the same view or disjoint. Strides count bytes.
 */
struct posenc_norm_job {
    const char *src;
    char *dst;
    ptrdiff_t src_head, dst_head;
    size_t heads;
    const float *g;      /* [heads] */
    const float *c, *s;  /* as `fold` leaves them; to scale: the weight of each channel, or NULL */
    size_t count;        /* pairs; to scale: channels */
    size_t partner, dst_partner; /* split_half: channels from the first of a pair to the second */
};

/*
 * A norm of heads whose channels are all turned, the pairs being 32 or 64: `squares` of each head
 * by itself, their `roots`, and `norm_rotate` with these. turn.g is not read, and turn.partner and
 * turn.dst_partner are the pairs. `ahead`: lines to come are asked for.
 */
struct posenc_norm_turn_job {
    struct posenc_norm_job turn;
    float n, eps, scale;
    int ahead;
};

/*
 * A weight folded into the row of `pairs` pairs: c and s [2 pairs] for each channel. split_half has
 * those of the first channels, then those of the second, p and q; adjacent has the channels as they
 * lie, their weights all in p, and s with its sign. p is NULL where there is no weight.
 */
typedef void posenc_fold_kernel(const float *cos, const float *sin, const float *p, const float *q,
                                size_t pairs, float *c, float *s);

/* g[h] = 1 / sqrt(tree(part[h]) / n + eps) scale. */
typedef void posenc_roots_kernel(const float *part, size_t heads, float n, float eps, float scale,
                                 float *g);

struct posenc_attention_kernels;

typedef void posenc_squares_kernel(const struct posenc_squares_job *job);
typedef void posenc_norm_kernel(const struct posenc_norm_job *job);
typedef void posenc_norm_turn_kernel(const struct posenc_norm_turn_job *job);
typedef void posenc_stream_kernel(const void *src, void *dst, size_t bytes);
typedef void posenc_rotate_kernel(struct posenc_rotate_job *job);
typedef void posenc_convert_kernel(const void *src, void *dst, size_t count);
typedef void posenc_permute_kernel(const struct posenc_permute_job *job);
typedef void posenc_add_kernel(const struct posenc_add_job *job);

/* out[i] = (float)(distances[i] * slope), -0 as +0. */
typedef void posenc_scale_kernel(const double *distances, size_t count, double slope, float *out);

/* Row i of a head's tile, `bytes` long and `step` after row i - 1, becomes what begins at
 * line + i move. Lines and rows do not overlap. */
typedef void posenc_windows_kernel(const char *line, ptrdiff_t move, char *row, ptrdiff_t step,
                                   size_t bytes, size_t rows);

/*
 * A head of I8: `groups` groups of `group` channels with a scale each, F32 or F16. Of a group with
 * the largest magnitude a, each operation rounded by itself:
 *
 *   quantise    d = a / 127, no more than the scales of quantise.h, rounded to scale_dtype, is
 *               stored; q = y / d rounded to an integer, ties to even, in -127..127. If d is 0, q
 *               is; if a is not finite d is NaN, q 0
 *   dequantise  y = (float)q * d
 */
typedef void posenc_quantise_kernel(const float *y, size_t groups, size_t group, int8_t *q,
                                    void *scales, int32_t scale_dtype);
typedef void posenc_dequantise_kernel(const int8_t *q, const void *scales, int32_t scale_dtype,
                                      size_t groups, size_t group, float *y);

/* Indices of the tables by dtype and layout are the public values minus 1. */
struct posenc_kernels {
    int32_t isa;
    void (*rows)(const struct posenc_rows_job *job);
    posenc_rotate_kernel *const (*rotate)[3][3]; /* [layout][from dtype][to dtype] */
    posenc_rotate_kernel *const (*rotate_across)[3][3]; /* from `layout` into the other one */
    posenc_convert_kernel *const (*convert)[3];  /* [from dtype][to dtype]; NULL: a copy */
    posenc_permute_kernel *const (*permute)[3];  /* [to layout][elements of 2, 4, 8 bytes] */
    const struct posenc_attention_kernels *attention_tiles; /* NULL in plain C */
    posenc_add_kernel *const (*add)[3];           /* [from dtype][to dtype] */
    posenc_add_kernel *const (*add_pairs)[3];     /* [from dtype][to dtype] */
    posenc_add_kernel *const *write_pairs;        /* [to dtype] */
    void (*sinusoid_base)(const struct posenc_sinusoid_block *blocks, size_t count,
                          uint32_t position, struct posenc_sinusoid_state *state);
    void (*sinusoid)(const struct posenc_sinusoid_job *job);
    posenc_scale_kernel *scale;
    posenc_windows_kernel *windows;
    posenc_quantise_kernel *quantise;
    posenc_dequantise_kernel *dequantise;
    posenc_squares_kernel *const *squares;             /* [from dtype] */
    posenc_roots_kernel *roots;
    posenc_fold_kernel *const *fold;                   /* [layout] */
    posenc_norm_kernel *const (*norm_rotate)[3][3];    /* [layout][from dtype][to dtype] */
    posenc_norm_turn_kernel *const (*norm_turn)[3][3]; /* the same; of NULL where there is none */
    posenc_norm_kernel *const (*norm_scale)[3];        /* [from dtype][to dtype] */
    posenc_stream_kernel *stream; /* a copy past the caches of the CPU, where it has such stores */
    void (*stream_end)(void);     /* after the last of them */
};

/* What the files of an ISA give to its table. */
#define POSENC_KERNELS_OF(isa)                                                                 \
    void posenc_rows_##isa(const struct posenc_rows_job *job);                                 \
    extern posenc_rotate_kernel *const posenc_rotate_##isa[2][3][3];                           \
    extern posenc_rotate_kernel *const posenc_rotate_across_##isa[2][3][3];                    \
    extern posenc_convert_kernel *const posenc_convert_##isa[3][3];                            \
    extern posenc_permute_kernel *const posenc_permute_##isa[2][3];                            \
    extern posenc_add_kernel *const posenc_add_##isa[3][3];                                    \
    extern posenc_add_kernel *const posenc_add_pairs_##isa[3][3];                              \
    extern posenc_add_kernel *const posenc_write_pairs_##isa[3];                               \
    void posenc_sinusoid_base_##isa(const struct posenc_sinusoid_block *blocks, size_t count,  \
                                    uint32_t position,                                         \
                                    struct posenc_sinusoid_state *state);                      \
    void posenc_sinusoid_##isa(const struct posenc_sinusoid_job *job);                         \
    posenc_scale_kernel posenc_scale_##isa;                                                    \
    posenc_windows_kernel posenc_windows_##isa;                                                \
    posenc_quantise_kernel posenc_quantise_##isa;                                              \
    posenc_dequantise_kernel posenc_dequantise_##isa;                                          \
    extern posenc_squares_kernel *const posenc_squares_##isa[3];                               \
    posenc_roots_kernel posenc_roots_##isa;                                                    \
    extern posenc_fold_kernel *const posenc_fold_##isa[2];                                     \
    extern posenc_norm_kernel *const posenc_norm_rotate_##isa[2][3][3];                        \
    extern posenc_norm_turn_kernel *const posenc_norm_turn_##isa[2][3][3];                     \
    extern posenc_norm_kernel *const posenc_norm_scale_##isa[3][3];                            \
    posenc_stream_kernel posenc_stream_##isa;                                                  \
    void posenc_stream_end_##isa(void);                                                        \
    extern const struct posenc_kernels posenc_kernels_##isa

POSENC_KERNELS_OF(scalar);
POSENC_KERNELS_OF(avx2);
POSENC_KERNELS_OF(avx512);
POSENC_KERNELS_OF(neon);
extern const struct posenc_attention_kernels posenc_attention_kernels_avx2;
extern const struct posenc_attention_kernels posenc_attention_kernels_avx512;
extern const struct posenc_attention_kernels posenc_attention_kernels_neon;

/* The body of table.c of an ISA. */
#define POSENC_KERNELS_TABLE(name, value, tiles)                                               \
    const struct posenc_kernels posenc_kernels_##name = {                                      \
        .isa = value,                                                                          \
        .rows = posenc_rows_##name,                                                            \
        .rotate = posenc_rotate_##name,                                                        \
        .rotate_across = posenc_rotate_across_##name,                                          \
        .convert = posenc_convert_##name,                                                      \
        .permute = posenc_permute_##name,                                                      \
        .attention_tiles = tiles,                                                              \
        .add = posenc_add_##name,                                                              \
        .add_pairs = posenc_add_pairs_##name,                                                  \
        .write_pairs = posenc_write_pairs_##name,                                              \
        .sinusoid_base = posenc_sinusoid_base_##name,                                          \
        .sinusoid = posenc_sinusoid_##name,                                                    \
        .scale = posenc_scale_##name,                                                          \
        .windows = posenc_windows_##name,                                                      \
        .quantise = posenc_quantise_##name,                                                    \
        .dequantise = posenc_dequantise_##name,                                                \
        .squares = posenc_squares_##name,                                                      \
        .roots = posenc_roots_##name,                                                          \
        .fold = posenc_fold_##name,                                                            \
        .norm_rotate = posenc_norm_rotate_##name,                                              \
        .norm_turn = posenc_norm_turn_##name,                                                  \
        .norm_scale = posenc_norm_scale_##name,                                                \
        .stream = posenc_stream_##name,                                                        \
        .stream_end = posenc_stream_end_##name,                                                \
    }

/*
 * How this CPU wants memory asked for; docs/performance.md has the figures. Measured on Zen 4 and
 * taken for all CPUs of AMD.
 *
 *   asks_ahead     1: a plain stream of so many bytes is faster if lines to come are asked for. It
 *                  is larger than the nearer caches, and not on AMD, which foresees it better
 *   fetches_twice  1: lines that no stream foresees get lost, and are better asked for twice
 */
int posenc_asks_ahead(int64_t bytes);
int posenc_fetches_twice(void);

/* The table of an ISA (POSENC_ISA_DEFAULT included), or NULL if it is not available here. */
const struct posenc_kernels *posenc_kernels_get(int32_t isa);

/* The same for an argument of that name: fails, and says why, where there is none. */
int32_t posenc_kernels_choose(const struct posenc_kernels **kernels, int32_t isa, const char *name,
                              posenc_error *error);

#endif
