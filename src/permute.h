/* SPDX-License-Identifier: MIT */
/* The work behind the layout tools: heads whose rows (or channels, short rows) change places. */
#ifndef POSENC_PERMUTE_H
#define POSENC_PERMUTE_H

#include "kernels.h"

/* What is done to a head: `before` bytes stay, rotary_dim rows move, `after` bytes stay. */
struct posenc_permutation {
    int32_t to;
    size_t rotary_dim; /* even, 2..65536 */
    size_t row_bytes;
    size_t before, after;
    size_t call_bytes; /* of the source, in all jobs of a call */
};

/* Permutes the heads of a job, at least one, whose src and dst are whole heads: one and the same
 * memory or disjoint. */
void posenc_permute_heads(const struct posenc_permutation *p, const struct posenc_permute_job *job);

#endif
