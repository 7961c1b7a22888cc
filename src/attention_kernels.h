/* SPDX-License-Identifier: MIT */
/* What an ISA does with one tile of keys. The loops around it: attention_tiles.c. */
#ifndef POSENC_ATTENTION_KERNELS_H
#define POSENC_ATTENTION_KERNELS_H

#include "attention.h"

/*
 * A tile is the 64 logical keys from a multiple of 64 on; slot j is its j-th. Stored rows come as
 * 64 pointers, of which only those of the slots [begin, end) are set. Arrays by slot have 64
 * floats. Work arrays are aligned to 64 bytes; rows of `values` channels in them are padded to a
 * multiple of 16 floats. Tables by dtype are indexed by posenc_attention_type.
 *
 * The block kernels serve many rows by one tile, widened and packed once:
 *
 *   pack    packed = 64 floats by slot for each channel of the key, the channels in the order in
 *           which sums reads them (attention_chains.h); slots outside [begin, end) become 0
 *   widen   wide[slot][c] = channel c of the value, padding 0; other slots are left alone
 *   sums    sums[r][slot] = the 16-chain sum of q[r] with the slot, for all slots of
 *           [begin[r], end[r]); what other slots hold afterwards is not said. q[r] has `channels`
 *           floats, of which no more are read.
 *   totals  o[r][c] = fma(o[r][c], a[r], chain of fma(w[r][slot], wide[slot][c], .) from +0 over
 *           the slots [begin[r], end[r]) in order, not over those where bit `slot` of hidden[r]
 *           is set), with w and o rows 64 and padded floats apart; hidden NULL: none is
 *
 * A row with begin[r] >= end[r] is left alone: its q, w, a and o are not read.
 */
static inline int64_t posenc_attention_padded(int64_t channels)
{
    return (channels + 15) / 16 * 16;
}

enum { POSENC_ATTENTION_TYPES = 4 };

/* The width for which a whole tile's lines to fetch are a constant, and that of even tiles. */
enum { POSENC_ATTENTION_USUAL = 128 };

static inline int posenc_attention_type(int32_t dtype)
{
    return dtype == POSENC_I8 ? POSENC_ATTENTION_TYPES - 1 : dtype - 1;
}

/* I8: channel c of a slot is its integer times the float at[slot][c >> shift], one product that is
 * rounded. Other types have none. */
struct posenc_attention_scales {
    const void *const *at;
    int shift;
};

typedef void posenc_attention_pack(const void *const *key, struct posenc_attention_scales scales,
                                   int64_t begin, int64_t end, int64_t channels, float *packed);
typedef void posenc_attention_widen(const void *const *value, struct posenc_attention_scales scales,
                                    int64_t begin, int64_t end, int64_t values, float *wide);

struct posenc_attention_products {
    int64_t rows, channels;
    const float *const *q;
    const float *packed;
    const uint8_t *begin, *end;
    float *sums;
};

struct posenc_attention_totals {
    int64_t rows, values;
    const float *w, *a, *wide;
    const uint8_t *begin, *end;
    const uint64_t *hidden;
    float *o;
};

typedef void posenc_attention_block_sums(const struct posenc_attention_products *job);
typedef void posenc_attention_block_totals(const struct posenc_attention_totals *job);

/* 64 rows to fetch into the caches meanwhile, `bytes` from each address on; rows NULL: none. Each
 * line is asked for once, or again some rows later; of I8, and of F16 for four rows, once. */
struct posenc_attention_fetched {
    const void *const *rows;
    int64_t bytes;
    int again;
};

/*
 * The direct kernels serve few rows, from the stored rows as they lie.
 *
 *   sums    sums[r][slot] = the 16-chain sum of q[r] with the key, for the slots [begin, end)
 *   totals  o[r] = fma(o[r], a[r], chain over the slots [begin, end) in order), as block_totals
 */
struct posenc_attention_direct_sums {
    int64_t rows, channels;
    const float *const *q;
    const void *const *key;
    struct posenc_attention_fetched next;
    struct posenc_attention_scales scales;
    int64_t begin, end; /* begin < end */
    float *sums;        /* [rows][64] */
};

struct posenc_attention_direct_totals {
    int64_t rows, values;
    const float *w, *a; /* [rows][64], [rows] */
    const void *const *value;
    struct posenc_attention_fetched next;
    struct posenc_attention_scales scales;
    int64_t begin, end;
    float *o; /* [rows][padded] */
};

typedef void posenc_attention_direct_sums_kernel(const struct posenc_attention_direct_sums *job);
typedef void
posenc_attention_direct_totals_kernel(const struct posenc_attention_direct_totals *job);

/*
 * The even kernels serve a whole tile whose keys or values have the usual width and lie equally
 * apart: `step` bytes from one to the next, `head` bytes from head to head. No table of addresses
 * has to be made and read. They take one row of each of `heads` key heads, or `most` of one.
 * Several heads go in the order of memory, a few keys of all of them at a time.
 *
 * Meanwhile they fetch what is read about 64 rows later, of the tile itself, then from `next` on,
 * where rows lie as far apart (NULL: they fetch nothing). Lines of one head can be asked for again
 * four rows later.
 *
 *   sums    sums[r][slot] = the 16-chain sum of q[r] with the key
 *   totals  o[r] = fma(o[r], a[r], chain over the slots in order)
 *
 * spare: 128 floats for each of several heads, left with anything; NULL for one.
 */
struct posenc_attention_even {
    const char *rows, *next;
    ptrdiff_t step, head;
    int64_t heads;
    int again; /* 0 for several heads */
};

typedef void posenc_attention_even_sums(int64_t rows, const float *const *q,
                                        const struct posenc_attention_even *keys, float *spare,
                                        float *sums);
typedef void posenc_attention_even_totals(int64_t rows, const float *w, const float *a,
                                          const struct posenc_attention_even *values, float *spare,
                                          float *o);

/* By dtype, NULL where there is none. */
struct posenc_attention_even_kernels {
    posenc_attention_even_sums *sums[POSENC_ATTENTION_TYPES];
    posenc_attention_even_totals *totals[POSENC_ATTENTION_TYPES];
    int64_t most; /* rows */
};

/*
 * The row kernels, 1 for all dtypes. How sums become scores: x = sum, s = x scale, or with a cap
 * tanh(x scale) cap; with a bias that is added in the same fma.
 *
 *   weights   turns the sums of a tile into weights, updates m, l and a, and gives the slots whose
 *             bias is -inf; a row that sees nothing of the tile gets begin = end = 0. Weights of
 *             slots that a row does not see are +0. Returns 1 if any slot of a row is hidden.
 *   shares    one row, with m and l final: weights become E((s - m) log2e) / l
 *   fold      the sums of a span into those of a row: m, l, o into total, which is not read for the
 *             first span; the span's l and o become 0, m -FLT_MAX
 *   quotient  out[c] = o[c] / l, every NaN the canonical one; out has padded floats, may be o
 */
struct posenc_attention_weights {
    int64_t rows;
    float cap; /* 0: none */
    float *w;  /* [rows][64] */
    const float *scale;       /* [rows] */
    const float *const *bias; /* [rows], 64 floats each; NULL: none */
    uint8_t *begin, *end;     /* [rows], slots */
    uint64_t *hidden;         /* [rows] */
    float *m, *l, *a;         /* [rows], [rows][16], [rows] */
};

struct posenc_attention_state {
    float *m, *l, *o;
};

typedef int posenc_attention_weigh(const struct posenc_attention_weights *job);
typedef void posenc_attention_share(const struct posenc_attention_weights *row, float m, float l);
typedef void posenc_attention_fold_kernel(int first, const struct posenc_attention_state *total,
                                          const struct posenc_attention_state *span,
                                          int64_t values);
typedef void posenc_attention_divide(const float *o, float l, int64_t values, float *out);

struct posenc_attention_kernels {
    posenc_attention_pack *const *pack;   /* [from dtype] */
    posenc_attention_widen *const *widen; /* [from dtype] */
    posenc_attention_block_sums *block_sums;
    posenc_attention_block_totals *block_totals;
    posenc_attention_direct_sums_kernel *const *direct_sums;     /* [key dtype] */
    posenc_attention_direct_totals_kernel *const *direct_totals; /* [value dtype] */
    const struct posenc_attention_even_kernels *even;            /* or NULL */
    posenc_attention_weigh *weights;
    posenc_attention_share *shares;
    posenc_attention_fold_kernel *fold;
    posenc_attention_divide *quotient;
};

/* What the files of an ISA give to it, and the body of attention_table.c. */
#define POSENC_ATTENTION_KERNELS_OF(isa)                                                       \
    extern posenc_attention_pack *const posenc_attention_pack_##isa[POSENC_ATTENTION_TYPES];   \
    extern posenc_attention_widen *const posenc_attention_widen_##isa[POSENC_ATTENTION_TYPES]; \
    posenc_attention_block_sums posenc_attention_sums_##isa;                                   \
    posenc_attention_block_totals posenc_attention_totals_##isa;                               \
    extern posenc_attention_direct_sums_kernel                                                 \
        *const posenc_attention_direct_sums_##isa[POSENC_ATTENTION_TYPES];                     \
    extern posenc_attention_direct_totals_kernel                                               \
        *const posenc_attention_direct_totals_##isa[POSENC_ATTENTION_TYPES];                   \
    posenc_attention_weigh posenc_attention_weights_##isa;                                     \
    posenc_attention_share posenc_attention_shares_##isa;                                      \
    posenc_attention_fold_kernel posenc_attention_fold_##isa;                                  \
    posenc_attention_divide posenc_attention_quotient_##isa

POSENC_ATTENTION_KERNELS_OF(avx2);
POSENC_ATTENTION_KERNELS_OF(avx512);
POSENC_ATTENTION_KERNELS_OF(neon);

extern const struct posenc_attention_even_kernels posenc_attention_even_avx2;
extern const struct posenc_attention_even_kernels posenc_attention_even_avx512;

#define POSENC_ATTENTION_TABLE(isa, even_kernels)                                              \
    const struct posenc_attention_kernels posenc_attention_kernels_##isa = {                   \
        .pack = posenc_attention_pack_##isa,                                                   \
        .widen = posenc_attention_widen_##isa,                                                 \
        .block_sums = posenc_attention_sums_##isa,                                             \
        .block_totals = posenc_attention_totals_##isa,                                         \
        .direct_sums = posenc_attention_direct_sums_##isa,                                     \
        .direct_totals = posenc_attention_direct_totals_##isa,                                 \
        .even = even_kernels,                                                                  \
        .weights = posenc_attention_weights_##isa,                                             \
        .shares = posenc_attention_shares_##isa,                                               \
        .fold = posenc_attention_fold_##isa,                                                   \
        .quotient = posenc_attention_quotient_##isa,                                           \
    }

#endif
