/* SPDX-License-Identifier: MIT */
/* The softmax of chosen rows: a second walk through the keys of a row whose sums are known. */
#include "attention_walk.h"

enum { TILE = POSENC_ATTENTION_TILE };

/* The weights of the slots of a tile to where their keys are stored, not those of its gap: a later
 * key may lie there. */
static void put_slots(const struct posenc_attention_walk *walk,
                      const struct posenc_attention_tile *tile, int64_t begin, int64_t end,
                      const float *w, float *to)
{
    for (int64_t i = begin, n; i < end; i += n) {
        n = posenc_attention_run(walk->job, &walk->s, tile->first + i, end - i);
        memcpy(to + posenc_attention_index(walk->job, &walk->s, tile->first + i), w + i,
               (size_t)n * sizeof(float));
    }
}

/* A walk of one row, in the room of a larger one that has seen its last tile. */
static void put_row(struct posenc_attention_walk *walk, float scale, float m, float l, float *to)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const struct posenc_attention_range range =
        posenc_attention_seen(job, &walk->s, walk->token, 1);
    struct posenc_attention_tile tile;
    walk->ready = 0;
    posenc_attention_queries(walk, walk->head, 1);
    if (range.begin >= range.end)
        return;
    for (int64_t first = range.begin - range.begin % TILE; first < range.end;
         first = posenc_attention_after(range, first, TILE)) {
        posenc_attention_place(walk, walk->head, first, range, &tile);
        room->begin[0] = (uint8_t)tile.begin;
        room->end[0] = (uint8_t)tile.end;
        posenc_attention_sum_directly(walk, &tile, &(struct posenc_attention_fetched){0});
        const float *const *bias = posenc_attention_biases(walk, &tile);
        const struct posenc_attention_weights row = {
            .rows = 1, .cap = (float)job->params.softcap, .w = room->w, .scale = &scale,
            .bias = bias, .begin = room->begin, .end = room->end};
        walk->kernels->shares(&row, m, l);
        put_slots(walk, &tile, tile.begin, tile.gap, room->w, to);
        put_slots(walk, &tile, tile.resume, tile.end, room->w, to);
    }
}

void posenc_attention_put_shares(const struct posenc_attention_walk *walk, int64_t key_head,
                                 int64_t row, float m, float l)
{
    const struct posenc_attention_job *job = walk->job;
    const posenc_tensor *weights = job->params.weights;
    int64_t query = walk->token + row / walk->members, member = walk->member + row % walk->members;
    int64_t h = posenc_attention_query_head(job, key_head, member);
    int64_t at = (key_head - walk->head) * walk->rows + row;
    for (int64_t n = 0; n < weights->shape[1]; n++) {
        if (job->params.weight_rows[n] != walk->s.first_query + query)
            continue;
        float *to = (float *)(void *)posenc_element(weights, walk->s.batch, n, h, 0);
        struct posenc_attention_walk one = *walk;
        float scale = walk->room.scale[at];
        one.head = key_head;
        one.member = member;
        one.token = query;
        one.heads = one.members = one.tokens = one.rows = 1;
        if (walk->room.slope)
            one.room.slope += (key_head - walk->head) * walk->members + row % walk->members;
        memset(to, 0, (size_t)weights->shape[3] * sizeof(float));
        put_row(&one, scale, m, l, to);
    }
}
