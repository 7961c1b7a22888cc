/* SPDX-License-Identifier: MIT */
/* An append that computes: norm, scale and rotation of a token, a few heads at a time. */
#include "cache_append_norm.h"

enum { CHAINS = POSENC_ATTENTION_CHAINS, HEADS = POSENC_APPEND_HEADS };

static const float ones[HEADS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* A token of src, its row and its slot. */
struct token {
    const struct posenc_append *call;
    struct posenc_append_room *room;
    const char *src;
    const float *cos; /* NULL without rotation */
    struct posenc_cache_slot slot;
    int64_t group; /* heads that go together */
    int whole;     /* they go by one kernel, all at once */
    int staged;    /* what is stored goes through the room, as floats where it is quantised */
};

static ptrdiff_t head_step(const posenc_tensor *t)
{
    return posenc_step(t, 2) * (ptrdiff_t)posenc_dtype_size(t->dtype);
}

static struct posenc_append_heads heads_of(const struct token *t, int64_t first)
{
    const posenc_tensor *src = t->call->src, *rows = &t->call->map.cache.rows;
    const int64_t left = src->shape[2] - first;
    return (struct posenc_append_heads){
        .src = t->src + (ptrdiff_t)first * head_step(src),
        .dst = posenc_cache_row(&t->call->map, t->slot, first),
        .src_head = head_step(src),
        .dst_head = head_step(rows),
        .from = src->dtype,
        .to = rows->dtype,
        .first = first,
        .count = left < t->group ? left : t->group,
        .g = t->room->g,
        .weighted = t->call->params.weight != NULL,
    };
}

/* R(x) as floats in the room, in place of x. */
static void turn_first(const struct token *t, struct posenc_append_heads *heads)
{
    const ptrdiff_t bytes = (ptrdiff_t)t->call->map.channels * (ptrdiff_t)sizeof(float);
    struct posenc_append_heads turn = *heads;
    turn.dst = (char *)t->room->turned;
    turn.dst_head = bytes;
    turn.to = POSENC_F32;
    turn.g = ones;
    turn.weighted = 0;
    if (t->cos)
        posenc_append_turn(t->call, t->room, &turn, t->cos);
    else
        posenc_append_scale(t->call, t->room, &turn);
    heads->src = turn.dst;
    heads->src_head = bytes;
    heads->from = POSENC_F32;
}

/* Their squares into the chains in the room: of each head by itself, or all together. */
static void add_squares(const struct token *t, const struct posenc_append_heads *heads,
                        int together, int afresh)
{
    const struct posenc_squares_job job = {
        .src = heads->src,
        .head = heads->src_head,
        .heads = (size_t)heads->count,
        .channels = (size_t)t->call->map.channels,
        .together = together,
        .afresh = afresh,
        .part = t->room->part,
    };
    t->call->kernels->squares[heads->from - 1](&job);
}

static void norm_heads(const struct token *t, const struct posenc_append_heads *heads)
{
    struct posenc_append_room *room = t->room;
    add_squares(t, heads, 0, 1);
    t->call->kernels->roots(room->part, (size_t)heads->count, (float)t->call->map.channels,
                            t->call->eps, t->call->scale, room->g);
}

static void norm_projection(const struct token *t)
{
    const struct posenc_append *call = t->call;
    const float n = (float)(call->map.channels * call->map.heads);
    for (int64_t h = 0; h < call->map.heads; h += t->group) {
        struct posenc_append_heads heads = heads_of(t, h);
        if (call->params.norm_after)
            turn_first(t, &heads);
        add_squares(t, &heads, 1, h == 0);
    }
    call->kernels->roots(t->room->part, 1, n, call->eps, call->scale, t->room->g);
    for (int h = 1; h < HEADS; h++)
        t->room->g[h] = t->room->g[0];
}

/* Staged floats as I8: where they are stored or, to be streamed, into the room. */
static const char *quantise_heads(const struct token *t, const struct posenc_append_heads *heads)
{
    const struct posenc_cache_map *map = &t->call->map;
    char *room = (char *)t->room->turned;
    for (int64_t h = 0; h < heads->count; h++) {
        char *q = t->call->params.stream ? room + h * map->channels
                                         : posenc_cache_row(map, t->slot, heads->first + h);
        t->call->kernels->quantise(t->room->staged + h * map->channels, (size_t)map->groups,
                                   (size_t)(map->channels / map->groups), (int8_t *)q,
                                   posenc_cache_scale(map, t->slot, heads->first + h),
                                   map->cache.scales.dtype);
    }
    return room;
}

/* From the room past the caches. */
static void stream_heads(const struct token *t, const struct posenc_append_heads *heads,
                         const char *from)
{
    const posenc_tensor *rows = &t->call->map.cache.rows;
    const size_t bytes = (size_t)(t->call->map.channels * posenc_dtype_size(rows->dtype));
    const int joined = head_step(rows) == (ptrdiff_t)bytes;
    for (int64_t h = 0; h < (joined ? 1 : heads->count); h++)
        t->call->kernels->stream(from + (size_t)h * bytes,
                                 posenc_cache_row(&t->call->map, t->slot, heads->first + h),
                                 joined ? bytes * (size_t)heads->count : bytes);
}

static void append_heads(const struct token *t, int64_t first)
{
    const struct posenc_append *call = t->call;
    const char *stored = (const char *)t->room->staged;
    struct posenc_append_heads heads = heads_of(t, first);
    const int quantised = heads.to == POSENC_I8;
    if (quantised)
        heads.to = POSENC_F32;
    if (t->staged) {
        heads.dst = (char *)t->room->staged;
        heads.dst_head = (ptrdiff_t)(call->map.channels * posenc_dtype_size(heads.to));
    }
    if (call->params.norm_after)
        turn_first(t, &heads);
    if (call->params.norm == POSENC_NORM_HEAD)
        norm_heads(t, &heads);
    if (t->cos && !call->params.norm_after)
        posenc_append_turn(call, t->room, &heads, t->cos);
    else
        posenc_append_scale(call, t->room, &heads);
    if (quantised)
        stored = quantise_heads(t, &heads);
    if (t->staged && call->params.stream)
        stream_heads(t, &heads, stored);
}

void posenc_append_token_by_token(const struct posenc_append *call,
                                  const struct posenc_append_run *run)
{
    const posenc_tensor *rows = call->params.rows;
    const int64_t fits = POSENC_APPEND_FLOATS / call->map.channels;
    struct posenc_append_room room;
    struct token t = {.call = call, .room = &room, .group = HEADS, .slot = run->slot};
    t.staged = (call->params.stream || call->map.cache.rows.dtype == POSENC_I8) && fits > 0;
    if ((t.staged || call->params.norm_after) && fits < HEADS)
        t.group = fits;
    t.whole = posenc_append_norms_and_turns(call);
    if (t.whole)
        t.group = call->map.heads;
    room.folded_row = room.folded_p = NULL;
    for (int i = 0; i < 3; i++)
        room.weights[i].data = NULL;
    for (int h = 0; h < HEADS && call->params.norm == POSENC_NORM_NONE; h++)
        room.g[h] = call->scale;
    for (int64_t i = 0; i < run->tokens; i++, t.slot.token++) {
        t.src = posenc_element(call->src, run->batch, run->token + i, 0, 0);
        if (rows)
            t.cos = (const float *)(const void *)posenc_element(
                rows, rows->shape[0] > 1 ? run->batch : 0, run->token + i, 0, 0);
        if (t.whole) {
            const struct posenc_append_heads heads = heads_of(&t, 0);
            posenc_append_norm_turn(call, &room, &heads, t.cos);
            continue;
        }
        if (call->params.norm == POSENC_NORM_PROJECTION)
            norm_projection(&t);
        for (int64_t h = 0; h < call->map.heads; h += t.group)
            append_heads(&t, h);
    }
}
