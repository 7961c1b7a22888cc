/* SPDX-License-Identifier: MIT */
/* One tile of keys and values taken into the sums of rows of attention. */
#include "attention_rotate.h"
#include "attention_walk.h"

enum { TILE = POSENC_ATTENTION_TILE, CHAINS = POSENC_ATTENTION_CHAINS };

/* The only place that knows how stored rows lie. Slots without a key repeat the nearest one. */
void posenc_attention_place(const struct posenc_attention_walk *walk, int64_t key_head,
                            int64_t first, struct posenc_attention_range range,
                            struct posenc_attention_tile *tile)
{
    const struct posenc_attention_sequence *s = &walk->s;
    const posenc_tensor *k = walk->job->k, *v = walk->job->v;
    int64_t begin = range.begin > first ? range.begin - first : 0;
    int64_t end = range.end < first + TILE ? range.end - first : TILE;
    int64_t token = s->first_stored + first - s->first_key;
    ptrdiff_t k_step = posenc_step(k, 1) * (ptrdiff_t)posenc_dtype_size(k->dtype);
    ptrdiff_t v_step = posenc_step(v, 1) * (ptrdiff_t)posenc_dtype_size(v->dtype);
    const char *key = posenc_element(k, s->batch, token + begin, key_head, 0);
    const char *value = posenc_element(v, s->batch, token + begin, key_head, 0);
    tile->head = key_head;
    tile->first = first;
    tile->begin = begin;
    tile->end = end;
    for (int64_t i = 0; i < TILE; i++) {
        tile->key[i] = key;
        tile->value[i] = value;
        if (i >= begin && i + 1 < end) {
            key += k_step;
            value += v_step;
        }
    }
}

struct posenc_attention_range posenc_attention_wanted_keys(const struct posenc_attention_walk *walk,
                                                           int64_t query)
{
    const struct posenc_attention_job *job = walk->job;
    struct posenc_attention_range range = posenc_attention_seen(job, &walk->s, query);
    if (job->state) {
        int64_t begin = job->first_span * POSENC_ATTENTION_SPAN;
        int64_t end = (job->first_span + job->spans) * POSENC_ATTENTION_SPAN;
        range.begin = range.begin > begin ? range.begin : begin;
        range.end = range.end < end ? range.end : end;
    }
    return range;
}

/* Which slots each row sees, but for those that a bias hides. */
static void set_slots(const struct posenc_attention_walk *walk,
                      const struct posenc_attention_tile *tile)
{
    uint8_t *begin = walk->room.begin, *end = walk->room.end;
    for (int64_t t = 0; t < walk->tokens; t++) {
        struct posenc_attention_range range = posenc_attention_wanted_keys(walk, walk->token + t);
        int64_t from = range.begin - tile->first, to = range.end - tile->first;
        from = from > 0 ? from : 0;
        to = to < TILE ? to : TILE;
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
    if (rows)
        posenc_attention_rotate(
            job->kernels, job->params.rope, job->q, head,
            (const float *)posenc_element(rows, walk->s.batch, token, 0, 0), to);
    else if (job->q->dtype == POSENC_F32)
        memcpy(to, head, (size_t)job->channels * sizeof(float));
    else
        job->kernels->convert[job->q->dtype - 1][POSENC_F32 - 1](head, to, (size_t)job->channels);
}

void posenc_attention_queries(struct posenc_attention_walk *walk, int64_t key_head)
{
    const struct posenc_attention_job *job = walk->job;
    int64_t width = posenc_attention_padded(job->channels);
    if (walk->widened == key_head)
        return;
    walk->widened = key_head;
    for (int64_t r = 0; r < walk->rows; r++) {
        const char *head = posenc_attention_row(walk, job->q, key_head, r);
        int64_t token = walk->s.first_query + walk->token + r / walk->members;
        walk->room.q[r] = (const float *)(const void *)head;
        if (!walk->needs.wide_q)
            continue;
        if (r + POSENC_ATTENTION_AHEAD < walk->rows)
            posenc_attention_ask(
                job->q,
                posenc_attention_row(walk, job->q, key_head, r + POSENC_ATTENTION_AHEAD), 0);
        walk->room.q[r] = walk->room.wide_q + r * width;
        widen_query(walk, token, head, walk->room.wide_q + r * width);
    }
}

/* 1 if a key of a tile is one that is rotated. */
static int turns(const struct posenc_attention_walk *walk, const struct posenc_attention_tile *tile)
{
    return walk->needs.turned &&
           tile->first + tile->end - walk->s.first_key > walk->job->params.rotate_from;
}

void posenc_attention_turn(const struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile, int64_t begin, int64_t end,
                           float *to, const void **key)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *rows = job->params.key_rows, *k = job->k;
    for (int64_t i = begin; i < end; i++, to += posenc_attention_padded(job->channels)) {
        int64_t stored = tile->first + i - walk->s.first_key;
        key[i] = to;
        if (rows && stored >= job->params.rotate_from)
            posenc_attention_rotate(job->kernels, job->params.rope, k, tile->key[i],
                                    (const float *)posenc_element(
                                        rows, walk->s.batch, walk->s.first_stored + stored, 0, 0),
                                    to);
        else if (k->dtype == POSENC_F32)
            key[i] = tile->key[i];
        else
            job->kernels->convert[k->dtype - 1][POSENC_F32 - 1](tile->key[i], to,
                                                                (size_t)job->channels);
    }
}

void posenc_attention_sum_directly(struct posenc_attention_walk *walk,
                                   const struct posenc_attention_tile *tile,
                                   const struct posenc_attention_tile *next)
{
    const struct posenc_attention_job *job = walk->job;
    struct posenc_attention_direct_sums sums = {
        .rows = walk->rows, .channels = job->channels, .q = walk->room.q, .key = tile->key,
        .next = next ? next->key : NULL, .begin = tile->begin, .end = tile->end,
        .sums = walk->room.w,
    };
    if (!turns(walk, tile)) {
        walk->kernels->direct_sums[job->k->dtype - 1](&sums);
        return;
    }
    const void *key[TILE];
    sums.key = key;
    sums.next = NULL;
    for (int64_t begin = tile->begin; begin < tile->end; begin = sums.end) {
        sums.begin = begin;
        sums.end = begin + walk->turned_keys;
        if (sums.end > tile->end)
            sums.end = tile->end;
        posenc_attention_turn(walk, tile, sums.begin, sums.end, walk->room.turned, key);
        walk->kernels->direct_sums[POSENC_F32 - 1](&sums);
    }
}

/* Rows of a block between which a share of what comes next is asked for: all at once would wait for
 * one another. */
enum { SHARE = 12 };

/* The share of the rows from r on of the next tile's keys or values, or of the results. */
static void ask_share(const struct posenc_attention_walk *walk, const posenc_tensor *t,
                      const void *const *next, int64_t key_head, int64_t r, int64_t rows)
{
    if (next)
        for (int64_t i = r * TILE / walk->rows; i < (r + rows) * TILE / walk->rows; i++)
            posenc_attention_ask(t, next[i], 0);
    else if (walk->job->out && t == walk->job->v)
        for (int64_t i = r; i < r + rows; i++)
            posenc_attention_ask(walk->job->out,
                                 posenc_attention_row(walk, walk->job->out, key_head, i), 1);
}

static void sum_block(struct posenc_attention_walk *walk, const struct posenc_attention_tile *tile,
                      const struct posenc_attention_tile *next)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const void *turned[TILE];
    const void *const *key = tile->key;
    int32_t dtype = job->k->dtype;
    if (turns(walk, tile)) {
        posenc_attention_turn(walk, tile, tile->begin, tile->end, room->turned, turned);
        key = turned;
        dtype = POSENC_F32;
    }
    walk->kernels->pack[dtype - 1](key, tile->begin, tile->end, job->channels, room->tile);
    for (int64_t r = 0; r < walk->rows; r += SHARE) {
        int64_t rows = walk->rows - r < SHARE ? walk->rows - r : SHARE;
        ask_share(walk, job->k, next ? next->key : NULL, tile->head, r, rows);
        walk->kernels->block_sums(&(struct posenc_attention_products){
            rows, job->channels, room->q + r, room->tile, room->begin + r, room->end + r,
            room->w + r * TILE});
    }
}

/* The values of a tile as the block kernels want them: in place if they lie like that. */
static const float *wide_values(const struct posenc_attention_walk *walk,
                                const struct posenc_attention_tile *tile)
{
    const posenc_tensor *v = walk->job->v;
    int in_place = v->dtype == POSENC_F32 && v->shape[3] == walk->padded && tile->begin == 0;
    const int64_t row = walk->padded * (int64_t)sizeof(float);
    for (int64_t i = 1; in_place && i < tile->end; i++)
        in_place = tile->value[i] == (const char *)tile->value[i - 1] + row;
    if (in_place)
        return tile->value[0];
    walk->kernels->widen[v->dtype - 1](tile->value, tile->begin, tile->end, v->shape[3],
                                       walk->room.tile);
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
        ask_share(walk, job->v, next ? next->value : NULL, tile->head, r, rows);
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
    const void *value[TILE];
    float w[TILE];
    int64_t n = 0;
    for (int64_t i = totals->begin; i < totals->end; i++) {
        if (walk->room.hidden[r] >> i & 1)
            continue;
        value[n] = tile->value[i];
        w[n++] = totals->w[i];
    }
    totals->value = value;
    totals->w = w;
    totals->begin = 0;
    totals->end = n;
    totals->next = NULL;
    walk->kernels->direct_totals[walk->job->v->dtype - 1](totals);
}

/* Rows in a row that see the same slots go together. */
static void total_directly(struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile,
                           const struct posenc_attention_tile *next, float *o)
{
    const struct posenc_attention_room *room = &walk->room;
    const void *const *fetched = next ? next->value : NULL;
    for (int64_t r = 0, end; r < walk->rows; r = end) {
        for (end = r + 1; end < walk->rows && room->begin[end] == room->begin[r] &&
                          room->end[end] == room->end[r] && !room->hidden[end] && !room->hidden[r];)
            end++;
        if (room->begin[r] >= room->end[r])
            continue;
        struct posenc_attention_direct_totals totals = {
            .rows = end - r, .values = walk->job->values,
            .w = room->w + r * TILE, .a = room->a + r,
            .value = tile->value, .next = fetched,
            .begin = room->begin[r], .end = room->end[r], .o = o + r * walk->padded,
        };
        fetched = NULL;
        if (room->hidden[r])
            total_some(walk, tile, &totals, r);
        else
            walk->kernels->direct_totals[walk->job->v->dtype - 1](&totals);
    }
}

void posenc_attention_step(struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile,
                           const struct posenc_attention_tile *next)
{
    const struct posenc_attention_room *room = &walk->room;
    int64_t at = (tile->head - walk->head) * walk->rows;
    set_slots(walk, tile);
    posenc_attention_queries(walk, tile->head);
    if (walk->needs.block)
        sum_block(walk, tile, next);
    else
        posenc_attention_sum_directly(walk, tile, next);
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
        total_directly(walk, tile, next, room->o + at * walk->padded);
}
