/* SPDX-License-Identifier: MIT */
/* Kinds of rope blocks: one bit each, so that a key can name those that it changes. */
#ifndef POSENC_CONTRACT_KIND_H
#define POSENC_CONTRACT_KIND_H

#include "reader.h"

enum {
    POSENC_KIND_DEFAULT = 1,
    POSENC_KIND_LINEAR = 2,
    POSENC_KIND_LLAMA3 = 4,
    POSENC_KIND_YARN = 8,
    POSENC_KIND_DYNAMIC = 16,
    POSENC_KIND_LONGROPE = 32,
    POSENC_KIND_PROPORTIONAL = 64,
    POSENC_KIND_NTK = 128, /* vLLM's, with mixed_b or without */
    POSENC_KIND_ALPHA = 256
};

struct posenc_kind {
    const char *name;     /* as the block spells it, after aliases */
    const char *reported; /* as the contract spells it */
    int32_t bit;
    int32_t scaling; /* POSENC_SCALING_* */
};

/* scaling.c: pieces that more than one kind needs. 0, or -1 refused. */

/* A number that the kind cannot do without, within what a plan takes. */
int posenc_need_real(struct posenc_reader *reader, const struct posenc_node *block,
                     const char *key, const struct posenc_kind *kind, double *value);

/* One that keeps its default where it is not given. */
int posenc_optional_real(struct posenc_reader *reader, const struct posenc_node *block,
                         const char *key, double *value);

/* The length before extension: beside the block, then in it, then the declared limit. */
int posenc_read_original(struct posenc_reader *reader, const struct posenc_node *block,
                         struct posenc_set *set);

/* The factor of a kind that may leave it to the two lengths, as transformers does it: where it is
 * null (yarn), null or absent (longrope). After the original length. */
int posenc_read_ratio(struct posenc_reader *reader, const struct posenc_node *block,
                      const struct posenc_kind *kind, struct posenc_set *set);

/* longrope.c */
int posenc_read_longrope(struct posenc_reader *reader, const struct posenc_node *block,
                         const struct posenc_kind *kind, struct posenc_set *set);

#endif
