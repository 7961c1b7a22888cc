/* SPDX-License-Identifier: MIT */
/* A checked append: what goes where, and what is done to it on the way. */
#ifndef POSENC_CACHE_APPEND_H
#define POSENC_CACHE_APPEND_H

#include "cache.h"
#include "kernels.h"
#include "plan.h"

struct posenc_append {
    const struct posenc_kernels *kernels;
    posenc_append_params params;
    struct posenc_cache_map map;
    const posenc_tensor *src;
    int64_t sequences;
    float scale, eps;
    int64_t window, turned; /* the first rotated channel, and how many: 0 without rotation */
    int in_place;           /* the cache's rows are src, and every token is where it belongs */
    int computed;           /* not by runs: there is a norm, a scale, I8 or streaming */
    int ahead;              /* posenc_asks_ahead */
};

/* Reads and checks all arguments of a call. */
int32_t posenc_append_check(struct posenc_append *call, const posenc_append_params *params,
                            const posenc_tensor *src, const posenc_cache *cache,
                            posenc_error *error);

/* Its part on sequences: where they begin, and that every key has a slot. */
int32_t posenc_append_sequences_check(struct posenc_append *call, posenc_error *error);

/* Does a call that is sure to pass these checks, one plain token, and returns 1; else 0. */
int posenc_append_glance(const posenc_append_params *params, const posenc_tensor *src,
                         const posenc_cache *cache);

/* The rest is for calls that have passed. */

/* The tokens [first, end) of a batch row of src. */
struct posenc_append_sequence {
    int64_t batch, first, end;
};

static inline struct posenc_append_sequence
posenc_append_sequence_of(const struct posenc_append *call, int64_t sequence)
{
    const posenc_append_params *p = &call->params;
    if (p->sequences)
        return (struct posenc_append_sequence){0, p->token_starts[sequence],
                                               p->token_starts[sequence + 1]};
    return (struct posenc_append_sequence){sequence, 0, call->src->shape[1]};
}

/* `count` tokens that become the keys from `key` on; key < 0: one that is left out. */
struct posenc_append_stretch {
    int64_t key, count;
};

static inline struct posenc_append_stretch
posenc_append_stretch_of(const struct posenc_append *call, int64_t sequence,
                         const struct posenc_append_sequence *s, int64_t token)
{
    const posenc_append_params *p = &call->params;
    if (!p->keys) {
        int64_t start = p->starts ? p->starts[sequence] : p->start;
        return (struct posenc_append_stretch){start + token - s->first, s->end - token};
    }
    const int64_t *keys = p->keys + s->batch * p->key_stride[0] + token * p->key_stride[1];
    int64_t count = 1;
    while (keys[0] >= 0 && token + count < s->end) {
        int64_t next = keys[count * p->key_stride[1]];
        if (next < 0 || next - count != keys[0])
            break;
        count++;
    }
    return (struct posenc_append_stretch){keys[0], count};
}

/* `tokens` tokens of src from `token` on, and the slots one after the other that they go to. */
struct posenc_append_run {
    int64_t batch, token, tokens;
    struct posenc_cache_slot slot;
};

/* The tokens of a run one by one, by the definition in cache.h: norm, scale, I8, streaming. */
void posenc_append_token_by_token(const struct posenc_append *call,
                                  const struct posenc_append_run *run);

#endif
