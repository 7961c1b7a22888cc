/* SPDX-License-Identifier: MIT */
/*
 * The order of channels in a packed tile: as the kernel of sums reads them, two chains at a time.
 *
 * The chains r and r + 8, which the halving tree adds first, are the channels r, r + 8, r + 16, ...
 * in turns.
 */
#ifndef POSENC_ATTENTION_CHAINS_H
#define POSENC_ATTENTION_CHAINS_H

#include "../attention.h"

enum { POSENC_CHAIN_PAIRS = POSENC_ATTENTION_CHAINS / 2 };

/* The numbers 0 to 7 with their three bits in reverse: what the halving tree adds is neighbours. */
static const uint8_t posenc_pair_order[POSENC_CHAIN_PAIRS] = {0, 4, 2, 6, 1, 5, 3, 7};

/* How many of `channels` channels the pair of the chains r and r + 8 has. */
static inline int64_t posenc_pair_length(int64_t r, int64_t channels)
{
    return (channels - r + POSENC_CHAIN_PAIRS - 1) / POSENC_CHAIN_PAIRS;
}

#endif
