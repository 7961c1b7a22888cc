/* SPDX-License-Identifier: MIT */
/* Keys of a cache turned in place, by rows made on the way: what moving and re-basing share. */
#ifndef POSENC_CACHE_TURN_H
#define POSENC_CACHE_TURN_H

#include "cache.h"
#include "plan.h"

/* The keys [first, first + count) of the sequences [sequence, sequence + sequences): batch row b of
 * the positions is sequence + b. */
struct posenc_turn {
    struct posenc_cache_map map;
    const posenc_plan *plan; /* of the stored layout, the widths and the kernels */
    int64_t sequence, sequences, first, count;
    int one_row; /* 1: the keys of a sequence have one row, that of token 0 */
    /*
     * Fills the rows of the tokens [token, token + tokens) of batch row b; stays[t] becomes 1 where
     * the pairs of `to` keep their bytes, else 0. At most POSENC_TURN_TOKENS.
     */
    void (*rows)(const struct posenc_turn *turn, int64_t b, int64_t token, size_t tokens,
                 const struct posenc_rows_target *to, uint8_t *stays);
    const struct posenc_positions *positions[2]; /* for `rows` */
    const posenc_plan *to_plan;
};

/* Floats of a row, and of heads of I8, that lie on the stack: 32 KiB. */
enum { POSENC_TURN_TOKENS = 64, POSENC_TURN_CHANNELS = 8192 };

/* The first channel of a head's window. */
static inline int64_t posenc_turn_window(const struct posenc_turn *turn)
{
    return turn->map.channels == turn->plan->rotary_dim ? 0 : turn->plan->rotary_offset;
}

/* Reads the cache and checks it, the keys and what of the plan is about widths. `sequence` -1
 * stands for all. */
int32_t posenc_turn_check(struct posenc_turn *turn, const posenc_plan *plan, const char *plan_name,
                          const posenc_cache *cache, int64_t sequence, int64_t first, int64_t count,
                          posenc_error *error);

/* Fails if the positions, a copy that has passed its check, lie in memory of the cache. */
int32_t posenc_turn_apart(const struct posenc_turn *turn, const posenc_positions *positions,
                          posenc_error *error);

/* Puts the argument's name before a text that speaks of positions; returns `status`. */
int32_t posenc_turn_named(int32_t status, const char *name, posenc_error *error);

/* Tokens [token, token + tokens) of I8 of batch row b, by whole rows. */
void posenc_turn_int8(const struct posenc_turn *turn, int64_t b, int64_t token, int64_t tokens,
                      const struct posenc_rows_target *rows);

/* Turns the keys. All has been checked. */
void posenc_turn_keys(const struct posenc_turn *turn);

#endif
