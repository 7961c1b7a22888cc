/* SPDX-License-Identifier: MIT */
/*
 * Decoding one query from keys and values that lie equally apart.
 *
 * So little is computed for each byte that a tile's addresses, the wait between its keys and its
 * values, and 512 bits on CPUs that halve them, cost as much as reading it does. Here a tile is a
 * place and a step, and key heads that lie side by side, up to eight rows of them, take their keys
 * before any takes its values: their weights do not wait for one another. Where L1 cannot hold a
 * head's rows, heads go in the order of memory, a few keys of all of them at a time.
 */
#include "attention_walk.h"

/* FAR: bytes of keys and values that are hardly still in a shared cache since the call before: half
 * of what eight cores of these CPUs share. CROWDED: L1 holds at most 16 rows that lie so many bytes
 * apart, or a multiple of them. */
enum {
    TILE = POSENC_ATTENTION_TILE,
    CHAINS = POSENC_ATTENTION_CHAINS,
    WIDTH = POSENC_ATTENTION_USUAL,
    FAR = 16 << 20,
    CROWDED = 2048,
    LINE = 64
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

/* 1 if a sequence sees so many keys that they come from memory, where lines that no stream foresees
 * get lost among the many that wait. Of fewer hardly one does, and asking again costs more than it
 * gains. */
static int is_far(const struct posenc_attention_walk *walk)
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

void posenc_attention_even_begin(struct posenc_attention_walk *walk, int64_t rows)
{
    const struct posenc_attention_job *job = walk->job;
    struct posenc_attention_even_plan *even = &walk->even;
    even->key = bytes_of(job->k, 1);
    even->key_head = bytes_of(job->k, 2);
    even->value = bytes_of(job->v, 1);
    even->value_head = bytes_of(job->v, 2);
    even->alike = even->key == even->value && even->key_head == even->value_head;
    even->again = rows > 1 || is_far(walk);
    even->in_order = !even->again && even->alike && even->key % CROWDED == 0;
    /* A head by itself in near memory is slower with it. */
    even->pages = (even->again || even->in_order) && posenc_attention_shares_pages(job);
}

/* Scores of `rows` rows to weights; `at` is the first one's place among the states. */
static void weigh(const struct posenc_attention_walk *walk, int64_t at, int64_t rows)
{
    const struct posenc_attention_room *room = &walk->room;
    memset(room->begin, 0, LINE); /* more than the rows: one store, since the length is known */
    memset(room->end, TILE, LINE);
    walk->kernels->weights(&(struct posenc_attention_weights){
        .rows = rows, .cap = (float)walk->job->params.softcap, .w = room->w,
        .scale = room->scale + at, .begin = room->begin, .end = room->end,
        .hidden = room->hidden, .m = room->m + at, .l = room->l + at * CHAINS, .a = room->a});
}

/* All rows of some heads, as many at a time as a kernel takes; the first fetch what comes next. */
static void sum_heads(const struct posenc_attention_walk *walk, struct posenc_attention_even *keys,
                      int64_t at)
{
    const struct posenc_attention_even_kernels *even = walk->kernels->even;
    const int64_t some = walk->rows == 1 ? 1 : even->most;
    for (int64_t r = 0; r < walk->rows; r += some, keys->next = NULL)
        even->sums[posenc_attention_type(walk->job->k->dtype)](
            some, walk->room.q + at + r, keys, walk->room.spare, walk->room.w + (at + r) * TILE);
}

static void total_heads(const struct posenc_attention_walk *walk,
                        struct posenc_attention_even *values, int64_t at, float *o)
{
    const struct posenc_attention_even_kernels *even = walk->kernels->even;
    const int64_t some = walk->rows == 1 ? 1 : even->most;
    for (int64_t r = 0; r < walk->rows; r += some, values->next = NULL)
        even->totals[posenc_attention_type(walk->job->v->dtype)](
            some, walk->room.w + (at + r) * TILE, walk->room.a + at + r, values, walk->room.spare,
            o + r * walk->padded);
}

void posenc_attention_even_step(struct posenc_attention_walk *walk,
                                const struct posenc_attention_place *at,
                                const struct posenc_attention_place *next)
{
    const struct posenc_attention_even_plan *even = &walk->even;
    const int64_t rows = walk->rows;
    memset(walk->room.fresh, 1, (size_t)(walk->heads * rows));
    for (int64_t first = 0, n; first < walk->heads; first += n) {
        n = walk->heads - first < walk->needs.together ? walk->heads - first
                                                       : walk->needs.together;
        const int64_t side = even->in_order ? n : 1;
        struct posenc_attention_even keys = {.step = even->key, .head = even->key_head,
                                             .heads = side, .again = even->again};
        struct posenc_attention_even values = {.step = even->value, .head = even->value_head,
                                               .heads = side, .again = even->again};
        posenc_attention_queries(walk, walk->head + first, n);
        for (int64_t i = 0, h = first; i < n; i += side, h += side) {
            keys.rows = at->key + h * even->key_head;
            keys.next = even->alike ? at->value + h * even->value_head
                                    : next->key + h * even->key_head;
            sum_heads(walk, &keys, i * rows);
        }
        weigh(walk, first * rows, n * rows);
        for (int64_t i = 0, h = first; i < n; i += side, h += side) {
            values.rows = at->value + h * even->value_head;
            values.next = even->alike ? next->key + h * even->key_head
                                      : next->value + h * even->value_head;
            total_heads(walk, &values, i * rows, walk->room.o + h * rows * walk->padded);
        }
    }
}
