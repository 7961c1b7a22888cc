/* SPDX-License-Identifier: MIT */
/* The softmax of chosen rows: a second walk through the keys of a row whose sums are known. */
#include "attention_walk.h"

enum { TILE = POSENC_ATTENTION_TILE };

/* A walk of one row, in the room of a larger one that has seen its last tile. */
static void put_row(struct posenc_attention_walk *walk, float scale, float m, float l, float *to)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    const struct posenc_attention_range range = posenc_attention_wanted_keys(walk, walk->token);
    struct posenc_attention_tile tile;
    walk->widened = -1;
    posenc_attention_queries(walk, walk->head);
    if (range.begin >= range.end)
        return;
    for (int64_t first = range.begin - range.begin % TILE; first < range.end; first += TILE) {
        posenc_attention_place(walk, walk->head, first, range, &tile);
        room->begin[0] = (uint8_t)tile.begin;
        room->end[0] = (uint8_t)tile.end;
        posenc_attention_sum_directly(walk, &tile, NULL);
        const float *const *bias = posenc_attention_biases(walk, &tile);
        const struct posenc_attention_weights row = {
            .rows = 1, .cap = (float)job->params.softcap, .w = room->w, .scale = &scale,
            .bias = bias, .begin = room->begin, .end = room->end};
        walk->kernels->shares(&row, m, l);
        memcpy(to + first + tile.begin - walk->s.first_key, room->w + tile.begin,
               (size_t)(tile.end - tile.begin) * sizeof(float));
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
