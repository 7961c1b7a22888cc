/* SPDX-License-Identifier: MIT */
/* What an ISA does with one tile of keys. The loops around it: attention_tiles.c. */
#ifndef POSENC_ATTENTION_KERNELS_H
#define POSENC_ATTENTION_KERNELS_H

#include "attention.h"

/*
 * A tile is the 64 logical keys from a multiple of 64 on; slot j is its j-th. Stored rows come as
 * 64 pointers, of which only those of the slots [begin, end) are set. Arrays by slot have 64
 * floats. Work arrays are aligned to 64 bytes; rows of `values` channels in them are padded to a
 * multiple of 16 floats. Tables by dtype are indexed by the public value minus 1.
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
typedef void posenc_attention_pack(const void *const *key, int64_t begin, int64_t end,
                                   int64_t channels, float *packed);
typedef void posenc_attention_widen(const void *const *value, int64_t begin, int64_t end,
                                    int64_t values, float *wide);

struct posenc_attention_sums {
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

typedef void posenc_attention_block_sums(const struct posenc_attention_sums *job);
typedef void posenc_attention_block_totals(const struct posenc_attention_totals *job);

struct posenc_attention_kernels {
    posenc_attention_pack *const *pack;   /* [from dtype] */
    posenc_attention_widen *const *widen; /* [from dtype] */
    posenc_attention_block_sums *block_sums;
    posenc_attention_block_totals *block_totals;
};

/* What the files of an ISA give to it, and the body of attention_table.c. */
#define POSENC_ATTENTION_KERNELS_OF(isa)                                                       \
    extern posenc_attention_pack *const posenc_attention_pack_##isa[3];                        \
    extern posenc_attention_widen *const posenc_attention_widen_##isa[3];                      \
    posenc_attention_block_sums posenc_attention_sums_##isa;                                   \
    posenc_attention_block_totals posenc_attention_totals_##isa

POSENC_ATTENTION_KERNELS_OF(avx2);
POSENC_ATTENTION_KERNELS_OF(avx512);
POSENC_ATTENTION_KERNELS_OF(neon);

#define POSENC_ATTENTION_TABLE(isa)                                                            \
    const struct posenc_attention_kernels posenc_attention_kernels_##isa = {                   \
        .pack = posenc_attention_pack_##isa,                                                   \
        .widen = posenc_attention_widen_##isa,                                                 \
        .block_sums = posenc_attention_sums_##isa,                                             \
        .block_totals = posenc_attention_totals_##isa,                                         \
    }

#endif
