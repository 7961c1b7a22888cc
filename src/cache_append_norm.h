/* SPDX-License-Identifier: MIT */
/* The memory of an append that computes, and the steps from src to where a head is stored. */
#ifndef POSENC_CACHE_APPEND_NORM_H
#define POSENC_CACHE_APPEND_NORM_H

#include "attention.h"
#include "cache_append.h"

enum {
    POSENC_APPEND_HEADS = 16,     /* at a time */
    POSENC_APPEND_PAIRS = 256,    /* of a row folded at a time */
    POSENC_APPEND_FLOATS = POSENC_ATTENTION_CHANNELS, /* of heads on their way: one at least */
    POSENC_APPEND_CHANNELS = 2 * POSENC_APPEND_PAIRS
};

/* The weights of some channels as floats, and where they came from. */
struct posenc_append_weights {
    const char *data;
    int64_t count;
    float w[POSENC_APPEND_CHANNELS];
};

/* On the stack, 48 KiB. What was made for a token or head is kept while the next wants the same. */
struct posenc_append_room {
    _Alignas(64) float c[POSENC_APPEND_CHANNELS], s[POSENC_APPEND_CHANNELS]; /* a folded row */
    const float *folded_row, *folded_p;
    struct posenc_append_weights weights[3];
    float part[POSENC_APPEND_HEADS * POSENC_ATTENTION_CHAINS];
    float g[POSENC_APPEND_HEADS];
    _Alignas(64) float across[2][POSENC_APPEND_CHANNELS]; /* a head in either layout */
    _Alignas(64) float turned[POSENC_APPEND_FLOATS]; /* R(x), whose norm comes after */
    _Alignas(64) float staged[POSENC_APPEND_FLOATS]; /* before it is quantised or streamed */
};

/* `count` heads of a token from head `first` on. Strides count bytes. */
struct posenc_append_heads {
    const char *src;
    char *dst;
    ptrdiff_t src_head, dst_head;
    int32_t from, to;
    int64_t first, count;
    const float *g;
    int weighted;
};

/* All channels of some heads: out[c] = (x[c] g) w[c]. */
void posenc_append_scale(const struct posenc_append *call, struct posenc_append_room *room,
                         const struct posenc_append_heads *heads);

/* The same with the window turned by the row at `cos`: out = R(x g), its row folded with w. */
void posenc_append_turn(const struct posenc_append *call, struct posenc_append_room *room,
                        const struct posenc_append_heads *heads, const float *cos);

/* Whether posenc_append_norm_turn does all that the heads of a call want. */
int posenc_append_norms_and_turns(const struct posenc_append *call);

/* All heads of a token by one kernel. */
void posenc_append_norm_turn(const struct posenc_append *call, struct posenc_append_room *room,
                             const struct posenc_append_heads *heads, const float *cos);

#endif
