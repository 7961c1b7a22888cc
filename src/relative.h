/* SPDX-License-Identifier: MIT */
/* One bucket of T5, one index of DeBERTa: what biases and attention are made of. */
#ifndef POSENC_RELATIVE_H
#define POSENC_RELATIVE_H

#include "log_scale.h"

/* Where the buckets of T5 begin. */
struct posenc_t5 {
    int32_t bidirectional;
    int32_t side;  /* n: buckets of a direction */
    int32_t exact; /* e: of these, one for each distance */
    struct posenc_log_scale scale;
};

/* Of checked parameters. */
void posenc_t5_init(struct posenc_t5 *t, const posenc_t5_params *params);

/* The bucket of key - query. */
int32_t posenc_t5_bucket(const struct posenc_t5 *t, int64_t relative);

/* Where the buckets of DeBERTa begin. */
struct posenc_deberta {
    int32_t buckets, middle;
    int64_t span; /* half the rows of the embedding */
    struct posenc_log_scale scale;
};

/* Of checked arguments, for indices. */
void posenc_deberta_init(struct posenc_deberta *d, int32_t buckets, int64_t max_distance);

/* The index, in an embedding of 2 span rows, of sign (1 or -1) times the bucket of a distance. */
int64_t posenc_deberta_index(const struct posenc_deberta *d, int64_t distance, int32_t sign);

#endif
