/* SPDX-License-Identifier: MIT */
/*
 * Decoding one query from keys and values that lie equally apart.
 *
 * So little is computed for each byte that a tile's addresses, the wait between its keys and its
 * values, and 512 bits on CPUs that halve them, cost as much as reading it does. Here a tile is a
 * place and a step, and key heads that lie side by side, up to eight rows of them, take their keys
 * before any takes its values: their weights do not wait for one another.
 */
#include "attention_walk.h"

/* FAR: bytes of keys and values that are hardly still in a shared cache since the call before: half
 * of what eight cores of these CPUs share. */
enum {
    TILE = POSENC_ATTENTION_TILE,
    CHAINS = POSENC_ATTENTION_CHAINS,
    WIDTH = POSENC_ATTENTION_USUAL,
    FAR = 16 << 20
};

int posenc_attention_can_be_even(const struct posenc_attention_walk *walk, int64_t rows)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_even_kernels *even = walk->kernels->even;
    return walk->again && even && even->sums[posenc_attention_type(job->k->dtype)] &&
           even->totals[posenc_attention_type(job->v->dtype)] && job->channels == WIDTH &&
           job->values == WIDTH && (rows == 1 || (even->most > 1 && rows % even->most == 0)) &&
           !walk->needs.turned && !walk->needs.block && !posenc_attention_has_bias(job);
}

int posenc_attention_is_far(const struct posenc_attention_walk *walk)
{
    const struct posenc_attention_job *job = walk->job;
    const int64_t each = job->channels * (int64_t)posenc_dtype_size(job->k->dtype) +
                         job->values * (int64_t)posenc_dtype_size(job->v->dtype);
    const struct posenc_attention_range seen =
        posenc_attention_seen(job, &walk->s, 0, walk->s.queries);
    const int64_t keys = seen.end - seen.begin - (seen.resume - seen.gap);
    return keys > FAR / (each * job->key_heads) / job->sequences;
}

static ptrdiff_t bytes_of(const posenc_tensor *t, int axis)
{
    return posenc_step(t, axis) * (ptrdiff_t)posenc_dtype_size(t->dtype);
}

/* Scores of `rows` rows to weights; `at` is the first one's place among the states. */
static void weigh(const struct posenc_attention_walk *walk, int64_t at, int64_t rows)
{
    const struct posenc_attention_room *room = &walk->room;
    memset(room->begin, 0, (size_t)rows);
    memset(room->end, TILE, (size_t)rows);
    memset(room->fresh + at, 1, (size_t)rows);
    walk->kernels->weights(&(struct posenc_attention_weights){
        .rows = rows, .cap = (float)walk->job->params.softcap, .w = room->w,
        .scale = room->scale + at, .begin = room->begin, .end = room->end,
        .hidden = room->hidden, .m = room->m + at, .l = room->l + at * CHAINS, .a = room->a});
}

/* All rows of a head, as many at a time as a kernel takes; the first ask for what comes next. */
static void sum_head(const struct posenc_attention_walk *walk, struct posenc_attention_even keys,
                     int64_t at)
{
    const struct posenc_attention_even_kernels *even = walk->kernels->even;
    const int64_t some = walk->rows == 1 ? 1 : even->most;
    for (int64_t r = 0; r < walk->rows; r += some, keys.next = NULL)
        even->sums[posenc_attention_type(walk->job->k->dtype)](
            some, walk->room.q + at + r, &keys, walk->room.w + (at + r) * TILE);
}

static void total_head(const struct posenc_attention_walk *walk,
                       struct posenc_attention_even values, int64_t at, float *o)
{
    const struct posenc_attention_even_kernels *even = walk->kernels->even;
    const int64_t some = walk->rows == 1 ? 1 : even->most;
    for (int64_t r = 0; r < walk->rows; r += some, values.next = NULL)
        even->totals[posenc_attention_type(walk->job->v->dtype)](
            some, walk->room.w + (at + r) * TILE, walk->room.a + at + r, &values,
            o + r * walk->padded);
}

void posenc_attention_even_step(struct posenc_attention_walk *walk,
                                const struct posenc_attention_place *at,
                                const struct posenc_attention_place *next)
{
    const struct posenc_attention_job *job = walk->job;
    const ptrdiff_t key = bytes_of(job->k, 1), key_head = bytes_of(job->k, 2);
    const ptrdiff_t value = bytes_of(job->v, 1), value_head = bytes_of(job->v, 2);
    const int64_t rows = walk->rows;
    for (int64_t first = 0, n; first < walk->heads; first += n) {
        n = walk->heads - first < walk->needs.together ? walk->heads - first
                                                       : walk->needs.together;
        posenc_attention_queries(walk, walk->head + first, n);
        for (int64_t i = 0, h = first; i < n; i++, h++)
            sum_head(walk,
                     (struct posenc_attention_even){at->key + h * key_head,
                                                    at->value + h * value_head, key, value,
                                                    walk->even_again},
                     i * rows);
        weigh(walk, first * rows, n * rows);
        for (int64_t i = 0, h = first; i < n; i++, h++)
            total_head(walk,
                       (struct posenc_attention_even){at->value + h * value_head,
                                                      next->key + h * key_head, value, key,
                                                      walk->even_again},
                       i * rows, walk->room.o + h * rows * walk->padded);
    }
}
