/* SPDX-License-Identifier: MIT */
/* The order of channels in a packed tile: chain after chain, as the kernel of sums reads them. */
#ifndef POSENC_ATTENTION_CHAINS_H
#define POSENC_ATTENTION_CHAINS_H

#include "../attention.h"

/* The numbers 0 to 15 with their four bits in reverse: chains that the halving tree adds come one
 * after the other. */
static const uint8_t posenc_chain_order[POSENC_ATTENTION_CHAINS] = {
    0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15,
};

/* How many of `channels` channels chain r has: r, r + 16, ... */
static inline int64_t posenc_chain_length(int64_t r, int64_t channels)
{
    return (channels - r + POSENC_ATTENTION_CHAINS - 1) / POSENC_ATTENTION_CHAINS;
}

#endif
