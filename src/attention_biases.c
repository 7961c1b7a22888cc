/* SPDX-License-Identifier: MIT */
/* What attention adds to the scores of a tile, for all rows of a walk at once. */
#include "alibi.h"
#include "attention_walk.h"

enum { TILE = POSENC_ATTENTION_TILE };

/* 1 if the terms of all rows of a head are the same for a key. */
static int is_by_key(const struct posenc_attention_job *job)
{
    return job->params.alibi && posenc_alibi_is_by_key(job->alibi.form);
}

/*
 * Terms depend on the key alone or on key - query, so that one line serves all rows of a head: its
 * element i belongs to slot i of the last query, and each query before reads one element later.
 */
static void make_line(struct posenc_attention_walk *walk, const struct posenc_attention_tile *tile,
                      int64_t member, float *line)
{
    const struct posenc_attention_job *job = walk->job;
    int64_t last = walk->s.place + walk->token + walk->tokens - 1;
    int64_t begin = tile->begin, end = tile->end;
    walk->bias.head = posenc_attention_query_head(job, tile->head, member + walk->member);
    if (job->params.alibi)
        walk->bias.slope = walk->room.slope[(tile->head - walk->head) * walk->members + member];
    if (!is_by_key(job))
        end += walk->tokens - 1;
    for (int64_t i = begin; i < end; i++)
        line[i] = posenc_attention_term(&walk->bias, &walk->s, last, tile->first + i);
}

static void point_to_lines(struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile)
{
    int64_t length = TILE + walk->tokens - 1, shift = !is_by_key(walk->job);
    for (int64_t g = 0; g < walk->members; g++) {
        float *line = walk->room.line + g * length;
        make_line(walk, tile, g, line);
        for (int64_t t = 0; t < walk->tokens; t++)
            walk->room.bias[t * walk->members + g] = line + shift * (walk->tokens - 1 - t);
    }
}

/* The product of a row of position queries and the key of a slot. */
static float product(struct posenc_attention_walk *walk, const posenc_tensor *t, const void *head,
                     const struct posenc_attention_tile *tile, int64_t slot)
{
    const struct posenc_attention_job *job = walk->job;
    float sums[TILE], *wide = walk->room.pair;
    const float *q = head;
    const void *key[TILE];
    posenc_attention_turn(walk, tile, slot, slot + 1,
                          wide + posenc_attention_padded(job->channels), key);
    if (t->dtype != POSENC_F32) {
        job->kernels->convert[t->dtype - 1][POSENC_F32 - 1](head, wide, (size_t)job->channels);
        q = wide;
    }
    walk->kernels->direct_sums[POSENC_F32 - 1](&(struct posenc_attention_direct_sums){
        .rows = 1, .channels = job->channels, .q = &q, .key = key, .begin = slot,
        .end = slot + 1, .sums = sums});
    return sums[slot];
}

/* (t1 + t2) scale: a stored row by place with the query, and another one with the key. */
static void deberta_terms(struct posenc_attention_walk *walk,
                          const struct posenc_attention_tile *tile, int64_t r, float *terms)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *keys = job->deberta.position_keys;
    const posenc_tensor *queries = job->deberta.position_queries;
    int64_t query = walk->token + r / walk->members, token = walk->s.first_query + query;
    int64_t h = posenc_attention_query_head(job, tile->head, walk->member + r % walk->members);
    float c = posenc_attention_scale(job, walk->s.batch, token, h);
    const void *key[TILE];
    int64_t begin = walk->room.begin[r], end = walk->room.end[r], row[TILE];
    for (int64_t i = begin; i < end; i++) {
        row[i] = posenc_attention_deberta_row(&walk->bias, walk->s.place + query, tile->first + i);
        if (keys)
            key[i] = posenc_element(keys, 0, row[i], h, 0);
    }
    if (keys && begin < end)
        walk->kernels->direct_sums[keys->dtype - 1](&(struct posenc_attention_direct_sums){
            .rows = 1, .channels = job->channels, .q = &walk->room.q[r], .key = key,
            .begin = begin, .end = end, .sums = terms});
    for (int64_t i = begin; i < end; i++) {
        float t2 = queries ? product(walk, queries, posenc_element(queries, 0, row[i], h, 0),
                                     tile, i)
                           : 0;
        terms[i] = (keys && queries ? terms[i] + t2 : keys ? terms[i] : t2) * c;
    }
}

/* Adds what the tensor has for the keys that a row sees to its terms, or puts it in their place. */
static void tensor_values(struct posenc_attention_walk *walk,
                          const struct posenc_attention_tile *tile, int64_t r, const float *terms,
                          float *sum)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *t = job->params.bias;
    int64_t begin = walk->room.begin[r], end = walk->room.end[r];
    int64_t query = walk->token + r / walk->members;
    int64_t h = posenc_attention_query_head(job, tile->head, walk->member + r % walk->members);
    float value[TILE];
    if (begin >= end)
        return;
    for (int64_t i = begin, n; i < end; i += n) {
        int64_t j = tile->first + i;
        n = posenc_attention_run(job, &walk->s, j, end - i);
        const void *from = posenc_element(t, walk->s.batch, walk->s.first_query + query, h,
                                          posenc_attention_index(job, &walk->s, j));
        if (t->dtype == POSENC_F32)
            memcpy(value + i, from, (size_t)n * sizeof(float));
        else
            job->kernels->convert[t->dtype - 1][POSENC_F32 - 1](from, value + i, (size_t)n);
    }
    for (int64_t i = begin; i < end; i++)
        sum[i] = !terms || value[i] < -FLT_MAX ? value[i] : terms[i] + value[i];
}

/* Rows without terms: scores that -0 is added to keep their bits. */
static const float nothing[TILE] = {
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f};

/* -inf in the gaps of the rows of a query, whose part of the tile is `range`. */
static void hide_gap(struct posenc_attention_walk *walk, struct posenc_attention_range range,
                     int64_t first, int64_t r)
{
    float *own = walk->room.biases + r * TILE;
    const float *terms = walk->room.bias[r];
    for (int64_t i = range.begin - first; terms != own && i < range.end - first; i++)
        own[i] = terms[i];
    for (int64_t i = range.gap - first; i < range.resume - first; i++)
        own[i] = posenc_float(0xff800000u);
    walk->room.bias[r] = own;
}

/* Returns 1 if a row has a gap in the tile. */
static int hide_gaps(struct posenc_attention_walk *walk, const struct posenc_attention_tile *tile,
                     int has_terms)
{
    int64_t first = tile->first, members = walk->members;
    int any = 0;
    for (int64_t r = 0; !has_terms && r < walk->rows; r++)
        walk->room.bias[r] = nothing;
    for (int64_t t = 0; t < walk->tokens; t++) {
        const struct posenc_attention_range range = posenc_attention_clip(
            posenc_attention_summed(walk->job, &walk->s, walk->token + t, 1), first, first + TILE);
        if (range.begin >= range.end || range.gap >= range.resume)
            continue;
        any = 1;
        for (int64_t r = t * members; r < (t + 1) * members; r++)
            hide_gap(walk, range, first, r);
    }
    return any;
}

const float *const *posenc_attention_biases(struct posenc_attention_walk *walk,
                                            const struct posenc_attention_tile *tile)
{
    struct posenc_attention_room *room = &walk->room;
    if (!room->bias)
        return NULL;
    if (walk->needs.lines)
        point_to_lines(walk, tile);
    for (int64_t r = 0; walk->needs.biases && r < walk->rows; r++) {
        const float *terms = walk->needs.lines ? room->bias[r] : NULL;
        float *own = room->biases + r * TILE;
        if (walk->job->params.deberta) {
            deberta_terms(walk, tile, r, own);
            terms = own;
        }
        if (walk->job->params.bias)
            tensor_values(walk, tile, r, terms, own);
        room->bias[r] = own;
    }
    int has_terms = walk->needs.lines || walk->needs.biases;
    if (walk->needs.gaps)
        has_terms |= hide_gaps(walk, tile, has_terms);
    return has_terms ? room->bias : NULL;
}
