/* SPDX-License-Identifier: MIT */
/* One tile of keys and values taken into the sums of rows of attention. */
#include "attention_rotate.h"
#include "attention_scales.h"
#include "attention_walk.h"

enum { TILE = POSENC_ATTENTION_TILE, CHAINS = POSENC_ATTENTION_CHAINS };

/* 1 if the rows of a query see the whole tile. */
static int sees_all(const struct posenc_attention_walk *walk,
                    const struct posenc_attention_tile *tile, int64_t query)
{
    const struct posenc_attention_range range = posenc_attention_clip(
        posenc_attention_summed(walk->job, &walk->s, query, 1), tile->first, tile->first + TILE);
    return range.begin == tile->first && range.end == tile->first + TILE &&
           range.gap == range.end;
}

/* Which slots each row sees, but for those that a bias hides or that lie in its gap. The queries
 * that see a key follow one another, so that the first and the last speak for the others. */
static void set_slots(const struct posenc_attention_walk *walk,
                      const struct posenc_attention_tile *tile)
{
    uint8_t *begin = walk->room.begin, *end = walk->room.end;
    if (walk->tokens == 1) {
        memset(begin, (int)tile->begin, (size_t)walk->rows);
        memset(end, (int)tile->end, (size_t)walk->rows);
        return;
    }
    if (walk->tokens > 2 && sees_all(walk, tile, walk->token) &&
        sees_all(walk, tile, walk->token + walk->tokens - 1)) {
        memset(begin, 0, (size_t)walk->rows);
        memset(end, TILE, (size_t)walk->rows);
        return;
    }
    for (int64_t t = 0; t < walk->tokens; t++) {
        const struct posenc_attention_range range = posenc_attention_clip(
            posenc_attention_summed(walk->job, &walk->s, walk->token + t, 1), tile->first,
            tile->first + TILE);
        int64_t from = range.begin - tile->first, to = range.end - tile->first;
        if (from >= to)
            from = to = 0;
        for (int64_t g = 0; g < walk->members; g++) {
            *begin++ = (uint8_t)from;
            *end++ = (uint8_t)to;
        }
    }
}

static void widen_query(const struct posenc_attention_walk *walk, int64_t token, const void *head,
                        float *to)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *rows = job->params.query_rows;
    const struct posenc_attention_head q = {head, NULL};
    if (rows)
        posenc_attention_rotate(
            job->kernels, job->params.rope, job->q, NULL, q,
            (const float *)posenc_element(rows, walk->s.batch, token, 0, 0), to);
    else
        posenc_attention_widen_head(job->kernels, job->q, NULL, q, to);
}

/* 1 if the rows' queries follow one another in memory as their floats do in the room. */
static int are_one_piece(const struct posenc_attention_walk *walk)
{
    const struct posenc_attention_job *job = walk->job;
    return !job->params.query_rows && walk->tokens == 1 &&
           job->params.head_map == POSENC_HEADS_GROUPED &&
           posenc_step(job->q, 2) == job->channels &&
           posenc_attention_padded(job->channels) == job->channels;
}

/* Those of the key head at place n of those side by side. */
static void queries_of_head(const struct posenc_attention_walk *walk, int64_t key_head, int64_t n)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const int64_t width = posenc_attention_padded(job->channels);
    for (int64_t r = 0, at = n * walk->rows; r < walk->rows; r++, at++) {
        const char *head = posenc_attention_row(walk, job->q, key_head, r);
        const int64_t token = walk->s.first_query + walk->token + r / walk->members;
        room->q[at] = (const float *)(const void *)head;
        if (!walk->needs.wide_q)
            continue;
        if (r + POSENC_ATTENTION_AHEAD < walk->rows)
            posenc_attention_ask(
                job->q,
                posenc_attention_row(walk, job->q, key_head, r + POSENC_ATTENTION_AHEAD), 0);
        room->q[at] = room->wide_q + at * width;
        widen_query(walk, token, head, room->wide_q + at * width);
    }
}

void posenc_attention_queries(struct posenc_attention_walk *walk, int64_t key_head, int64_t heads)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const int64_t width = posenc_attention_padded(job->channels);
    if (walk->ready == heads && walk->widened == key_head)
        return;
    walk->widened = key_head;
    walk->ready = heads;
    if (walk->needs.wide_q && job->q->dtype != POSENC_F32 && are_one_piece(walk)) {
        for (int64_t r = 0; r < heads * walk->rows; r++)
            room->q[r] = room->wide_q + r * width;
        job->kernels->convert[job->q->dtype - 1][POSENC_F32 - 1](
            posenc_attention_row(walk, job->q, key_head, 0), room->wide_q,
            (size_t)(heads * walk->rows * width));
        return;
    }
    for (int64_t n = 0; n < heads; n++)
        queries_of_head(walk, key_head + n, n);
}

/* 1 if a key of a tile may be one that is rotated: in a cache, whose slots may lie in any order. */
static int turns(const struct posenc_attention_walk *walk, const struct posenc_attention_tile *tile)
{
    return walk->needs.turned &&
           (walk->job->k_map ||
            tile->first + tile->end - walk->s.first_key > walk->job->params.rotate_from);
}

void posenc_attention_turn(const struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile, int64_t begin, int64_t end,
                           float *to, const void **key)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *k = job->k;
    for (int64_t i = begin; i < end; i++, to += posenc_attention_padded(job->channels)) {
        const float *row = posenc_attention_key_row(job, &walk->s, tile->first + i);
        const struct posenc_attention_head head = {
            tile->key[i], k->dtype == POSENC_I8 ? tile->key_scale[i] : NULL};
        key[i] = to;
        if (row)
            posenc_attention_rotate(job->kernels, job->params.rope, k, job->k_map, head, row, to);
        else if (k->dtype == POSENC_F32)
            key[i] = tile->key[i];
        else
            posenc_attention_widen_head(job->kernels, k, job->k_map, head, to);
    }
}

void posenc_attention_sum_directly(struct posenc_attention_walk *walk,
                                   const struct posenc_attention_tile *tile,
                                   const struct posenc_attention_fetched *next)
{
    const struct posenc_attention_job *job = walk->job;
    struct posenc_attention_direct_sums sums = {
        .rows = walk->rows, .channels = job->channels, .q = walk->room.q, .key = tile->key,
        .next = {next->rows, next->bytes, next->again},
        .begin = tile->begin, .end = tile->end, .sums = walk->room.w,
    };
    const void *at[TILE]; /* of scales, or of turned keys */
    if (!turns(walk, tile)) {
        sums.scales = posenc_attention_scales_of(job->kernels, job->k_map, tile->key_scale,
                                                 tile->begin, tile->end, walk->room.scales, at);
        walk->kernels->direct_sums[posenc_attention_type(job->k->dtype)](&sums);
        return;
    }
    sums.key = at;
    for (int64_t begin = tile->begin; begin < tile->end; begin = sums.end) {
        sums.begin = begin;
        sums.end = begin + walk->turned_keys;
        if (sums.end > tile->end)
            sums.end = tile->end;
        posenc_attention_turn(walk, tile, sums.begin, sums.end, walk->room.turned, at);
        walk->kernels->direct_sums[POSENC_F32 - 1](&sums);
    }
}

/* Rows of a block between which a share of what comes next is asked for: all at once would wait for
 * one another. */
enum { SHARE = 12 };

/* The share of the rows from r on of the next tile's keys or values, if there is one. */
static void ask_share(const struct posenc_attention_walk *walk, const posenc_tensor *t,
                      const void *const *next, int64_t r, int64_t rows)
{
    if (!next)
        return;
    for (int64_t i = r * TILE / walk->rows; i < (r + rows) * TILE / walk->rows; i++)
        posenc_attention_ask(t, next[i], 0);
}

static void sum_block(struct posenc_attention_walk *walk, const struct posenc_attention_tile *tile,
                      const struct posenc_attention_tile *next)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const void *at[TILE]; /* of scales, or of turned keys */
    const void *const *key = tile->key;
    struct posenc_attention_scales scales = {NULL, 0};
    int32_t dtype = job->k->dtype;
    if (turns(walk, tile)) {
        posenc_attention_turn(walk, tile, tile->begin, tile->end, room->turned, at);
        key = at;
        dtype = POSENC_F32;
    } else {
        scales = posenc_attention_scales_of(job->kernels, job->k_map, tile->key_scale, tile->begin,
                                            tile->end, room->scales, at);
    }
    walk->kernels->pack[posenc_attention_type(dtype)](key, scales, tile->begin, tile->end,
                                                      job->channels, room->tile);
    for (int64_t r = 0; r < walk->rows; r += SHARE) {
        int64_t rows = walk->rows - r < SHARE ? walk->rows - r : SHARE;
        ask_share(walk, job->k, next ? next->key : NULL, r, rows);
        walk->kernels->block_sums(&(struct posenc_attention_products){
            rows, job->channels, room->q + r, room->tile, room->begin + r, room->end + r,
            room->w + r * TILE});
    }
}

/* The values of a tile as the block kernels want them: in place if they lie like that. */
static const float *wide_values(const struct posenc_attention_walk *walk,
                                const struct posenc_attention_tile *tile)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *v = job->v;
    const void *at[TILE];
    int in_place = v->dtype == POSENC_F32 && v->shape[3] == walk->padded && tile->begin == 0;
    const int64_t row = walk->padded * (int64_t)sizeof(float);
    for (int64_t i = 1; in_place && i < tile->end; i++)
        in_place = tile->value[i] == (const char *)tile->value[i - 1] + row;
    if (in_place)
        return tile->value[0];
    const struct posenc_attention_scales scales =
        posenc_attention_scales_of(job->kernels, job->v_map, tile->value_scale, tile->begin,
                                   tile->end, walk->room.scales, at);
    walk->kernels->widen[posenc_attention_type(v->dtype)](tile->value, scales, tile->begin,
                                                          tile->end, v->shape[3], walk->room.tile);
    return walk->room.tile;
}

static void total_block(struct posenc_attention_walk *walk,
                        const struct posenc_attention_tile *tile,
                        const struct posenc_attention_tile *next, int hidden, float *o)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const float *wide = wide_values(walk, tile);
    for (int64_t r = 0; r < walk->rows; r += SHARE) {
        int64_t rows = walk->rows - r < SHARE ? walk->rows - r : SHARE;
        ask_share(walk, job->v, next ? next->value : NULL, r, rows);
        walk->kernels->block_totals(&(struct posenc_attention_totals){
            rows, job->values, room->w + r * TILE, room->a + r, wide, room->begin + r,
            room->end + r, hidden ? room->hidden + r : NULL, o + r * walk->padded});
    }
}

/* A row that passes over hidden slots: the others, moved together. */
static void total_some(const struct posenc_attention_walk *walk,
                       const struct posenc_attention_tile *tile,
                       struct posenc_attention_direct_totals *totals, int64_t r)
{
    const void *value[TILE], *scale[TILE];
    float w[TILE];
    int64_t n = 0;
    for (int64_t i = totals->begin; i < totals->end; i++) {
        if (walk->room.hidden[r] >> i & 1)
            continue;
        value[n] = tile->value[i];
        if (totals->scales.at)
            scale[n] = totals->scales.at[i];
        w[n++] = totals->w[i];
    }
    totals->value = value;
    totals->scales.at = scale;
    totals->w = w;
    totals->begin = 0;
    totals->end = n;
    totals->next.rows = NULL;
    walk->kernels->direct_totals[posenc_attention_type(walk->job->v->dtype)](totals);
}

/* Rows in a row that see the same slots go together. */
static void total_directly(struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile,
                           const struct posenc_attention_fetched *next, float *o)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const void *at[TILE];
    const struct posenc_attention_scales scales =
        posenc_attention_scales_of(job->kernels, job->v_map, tile->value_scale, tile->begin,
                                   tile->end, room->scales, at);
    const void *const *rows = next->rows; /* in the first call alone */
    for (int64_t r = 0, end; r < walk->rows; r = end) {
        for (end = r + 1; end < walk->rows && room->begin[end] == room->begin[r] &&
                          room->end[end] == room->end[r] && !room->hidden[end] && !room->hidden[r];)
            end++;
        if (room->begin[r] >= room->end[r])
            continue;
        struct posenc_attention_direct_totals totals = {
            .rows = end - r, .values = job->values, .scales = scales,
            .w = room->w + r * TILE, .a = room->a + r,
            .value = tile->value, .next = {rows, next->bytes, next->again},
            .begin = room->begin[r], .end = room->end[r], .o = o + r * walk->padded,
        };
        rows = NULL;
        if (room->hidden[r])
            total_some(walk, tile, &totals, r);
        else
            walk->kernels->direct_totals[posenc_attention_type(job->v->dtype)](&totals);
    }
}

static struct posenc_attention_fetched fetched(const struct posenc_attention_walk *walk,
                                               const posenc_tensor *t, const void *const *rows)
{
    return (struct posenc_attention_fetched){
        rows, t->shape[3] * posenc_dtype_size(t->dtype), walk->again};
}

static struct posenc_attention_fetched during_keys(const struct posenc_attention_walk *walk,
                                                   const struct posenc_attention_tile *tile,
                                                   const struct posenc_attention_tile *next)
{
    if (walk->alternates)
        return fetched(walk, walk->job->v, tile->value);
    return fetched(walk, walk->job->k, next ? next->key : NULL);
}

static struct posenc_attention_fetched during_values(const struct posenc_attention_walk *walk,
                                                     const struct posenc_attention_tile *next)
{
    if (walk->alternates)
        return fetched(walk, walk->job->k, next ? next->key : NULL);
    return fetched(walk, walk->job->v, next ? next->value : NULL);
}

void posenc_attention_step(struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile,
                           const struct posenc_attention_tile *next)
{
    const struct posenc_attention_room *room = &walk->room;
    int64_t at = (tile->head - walk->head) * walk->rows;
    set_slots(walk, tile);
    posenc_attention_queries(walk, tile->head, 1);
    /* Before the sums: a struct that was only just stored waits for its parts to be read whole. */
    const struct posenc_attention_fetched ahead[2] = {during_keys(walk, tile, next),
                                                      during_values(walk, next)};
    if (walk->needs.block)
        sum_block(walk, tile, next);
    else
        posenc_attention_sum_directly(walk, tile, &ahead[0]);
    const float *const *bias = posenc_attention_biases(walk, tile);
    int hidden = walk->kernels->weights(&(struct posenc_attention_weights){
        .rows = walk->rows, .cap = (float)walk->job->params.softcap,
        .w = room->w, .scale = room->scale + at, .bias = bias, .begin = room->begin,
        .end = room->end, .hidden = room->hidden, .m = room->m + at,
        .l = room->l + at * CHAINS, .a = room->a});
    for (int64_t r = 0; r < walk->rows; r++)
        room->fresh[at + r] |= room->begin[r] < room->end[r];
    if (walk->needs.block)
        total_block(walk, tile, next, hidden, room->o + at * walk->padded);
    else
        total_directly(walk, tile, &ahead[1], room->o + at * walk->padded);
}
