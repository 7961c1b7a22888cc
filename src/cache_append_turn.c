/* SPDX-License-Identifier: MIT */
/* Some heads of a token scaled and turned, with the weight of a norm folded into their row. */
#include "cache_append_norm.h"
#include "copy_channels.h"

/* The weights of the channels [first, first + count) of a head. Those of the last call stay. */
static const float *weights_of(const struct posenc_append *call,
                               struct posenc_append_weights *kept, int64_t head, int64_t first,
                               int64_t count)
{
    const posenc_tensor *w = call->params.weight;
    const char *data = posenc_element(w, 0, 0, w->shape[2] == 1 ? 0 : head, first);
    if (w->dtype == POSENC_F32 && !call->params.weight_plus_one)
        return (const float *)(const void *)data;
    if (kept->data == data && kept->count == count)
        return kept->w;
    if (w->dtype == POSENC_F32)
        memcpy(kept->w, data, (size_t)count * sizeof(float));
    else
        call->kernels->convert[w->dtype - 1][POSENC_F32 - 1](data, kept->w, (size_t)count);
    for (int64_t i = 0; call->params.weight_plus_one && i < count; i++)
        kept->w[i] = 1.0f + kept->w[i];
    kept->data = data;
    kept->count = count;
    return kept->w;
}

/* Heads with weights of their own go one by one. */
static int64_t alike(const struct posenc_append *call, const struct posenc_append_heads *heads)
{
    return heads->weighted && call->params.weight->shape[2] > 1 ? 1 : heads->count;
}

static struct posenc_norm_job job_of(const struct posenc_append_heads *heads, int64_t head,
                                     int64_t count, int64_t channel)
{
    const ptrdiff_t h = (ptrdiff_t)head, c = (ptrdiff_t)channel;
    return (struct posenc_norm_job){
        .src = heads->src + h * heads->src_head + c * (ptrdiff_t)posenc_dtype_size(heads->from),
        .dst = heads->dst + h * heads->dst_head + c * (ptrdiff_t)posenc_dtype_size(heads->to),
        .src_head = heads->src_head,
        .dst_head = heads->dst_head,
        .heads = (size_t)count,
        .g = heads->g + head,
    };
}

static void scale_channels(const struct posenc_append *call, struct posenc_append_room *room,
                           const struct posenc_append_heads *heads, int64_t from, int64_t to)
{
    const int64_t step = alike(call, heads);
    for (int64_t h = 0; h < heads->count; h += step)
        for (int64_t c = from; c < to; c += POSENC_APPEND_CHANNELS) {
            struct posenc_norm_job job = job_of(heads, h, step, c);
            const int64_t left = to - c;
            job.count = (size_t)(left < POSENC_APPEND_CHANNELS ? left : POSENC_APPEND_CHANNELS);
            if (heads->weighted)
                job.c = weights_of(call, &room->weights[2], heads->first + h, c,
                                   (int64_t)job.count);
            call->kernels->norm_scale[heads->from - 1][heads->to - 1](&job);
        }
}

void posenc_append_scale(const struct posenc_append *call, struct posenc_append_room *room,
                         const struct posenc_append_heads *heads)
{
    scale_channels(call, room, heads, 0, call->map.channels);
}

/* Pairs [first, first + count) of the row at `cos`, with the weights of a head, into the room. */
static void fold_row(const struct posenc_append *call, struct posenc_append_room *room,
                     const struct posenc_append_heads *heads, int64_t head, const float *cos,
                     int64_t first, int64_t count)
{
    const posenc_plan *plan = call->params.rope;
    const float *p = NULL, *q = NULL;
    if (heads->weighted && plan->layout == POSENC_ADJACENT)
        p = weights_of(call, &room->weights[0], head, call->window + 2 * first, 2 * count);
    else if (heads->weighted) {
        p = weights_of(call, &room->weights[0], head, call->window + first, count);
        q = weights_of(call, &room->weights[1], head, call->window + plan->pairs + first, count);
    }
    /* the room's own weights may have changed under the same address */
    if (room->folded_row == cos + first && room->folded_p == p &&
        (!p || p != room->weights[0].w || call->params.weight->shape[2] == 1))
        return;
    call->kernels->fold[plan->layout - 1](cos + first, cos + plan->pairs + first, p, q,
                                          (size_t)count, room->c, room->s);
    room->folded_row = cos + first;
    room->folded_p = p;
}

/* Turned in one layout, moved into the other, stored: head by head. */
static void turn_across(const struct posenc_append *call, struct posenc_append_room *room,
                        const struct posenc_append_heads *heads, const struct posenc_norm_job *turn,
                        int64_t first)
{
    const posenc_plan *plan = call->params.rope;
    const int to_adjacent = plan->out_layout == POSENC_ADJACENT;
    const int64_t count = (int64_t)turn->count, size = posenc_dtype_size(heads->to);
    struct posenc_norm_job job = *turn;
    const struct posenc_permute_job permute = {
        .src = (const char *)room->across[0],
        .dst = (char *)room->across[1],
        .heads = 1,
        .pairs = turn->count,
    };
    const struct posenc_copy copy = {
        .from = POSENC_F32,
        .to = heads->to,
        .src_head = (ptrdiff_t)(count * (int64_t)sizeof(float)),
        .dst_head = (ptrdiff_t)(plan->pairs * size),
        .tokens = 1,
        .heads = to_adjacent ? 1 : 2,
        .channels = to_adjacent ? 2 * count : count,
    };
    job.dst = (char *)room->across[0];
    job.dst_partner = turn->count;
    job.heads = 1;
    for (size_t h = 0; h < turn->heads; h++) {
        char *dst = turn->dst + (ptrdiff_t)h * turn->dst_head;
        call->kernels->norm_rotate[plan->layout - 1][heads->from - 1][POSENC_F32 - 1](&job);
        call->kernels->permute[plan->out_layout - 1][1](&permute);
        posenc_copy_channels(call->kernels, &copy, (const char *)room->across[1],
                             dst + (to_adjacent ? 2 * first : first) * size);
        job.src += job.src_head;
        job.g++;
    }
}

static void turn_window(const struct posenc_append *call, struct posenc_append_room *room,
                        const struct posenc_append_heads *heads, int64_t h, int64_t step,
                        const float *cos)
{
    const posenc_plan *plan = call->params.rope;
    const int adjacent = plan->layout == POSENC_ADJACENT;
    for (int64_t first = 0; first < plan->pairs; first += POSENC_APPEND_PAIRS) {
        const int64_t left = plan->pairs - first;
        const int64_t count = left < POSENC_APPEND_PAIRS ? left : POSENC_APPEND_PAIRS;
        struct posenc_norm_job job = job_of(heads, h, step, call->window);
        fold_row(call, room, heads, heads->first + h, cos, first, count);
        job.src += (adjacent ? 2 * first : first) * posenc_dtype_size(heads->from);
        job.c = room->c;
        job.s = room->s;
        job.count = (size_t)count;
        job.partner = job.dst_partner = (size_t)plan->pairs;
        if (plan->out_layout != plan->layout) {
            turn_across(call, room, heads, &job, first);
            continue;
        }
        job.dst += (adjacent ? 2 * first : first) * posenc_dtype_size(heads->to);
        call->kernels->norm_rotate[plan->layout - 1][heads->from - 1][heads->to - 1](&job);
    }
}

void posenc_append_turn(const struct posenc_append *call, struct posenc_append_room *room,
                        const struct posenc_append_heads *heads, const float *cos)
{
    const int64_t step = alike(call, heads);
    for (int64_t h = 0; h < heads->count; h += step)
        turn_window(call, room, heads, h, step, cos);
    scale_channels(call, room, heads, 0, call->window);
    scale_channels(call, room, heads, call->window + call->turned, call->map.channels);
}

int posenc_append_norms_and_turns(const struct posenc_append *call)
{
    const posenc_append_params *p = &call->params;
    const posenc_tensor *src = call->src;
    const int32_t to = call->map.cache.rows.dtype;
    return p->norm == POSENC_NORM_HEAD && p->rope && !p->norm_after && !p->stream &&
           to != POSENC_I8 && p->rope->layout == p->rope->out_layout &&
           (p->rope->pairs == 32 || p->rope->pairs == 64) && call->turned == src->shape[3] &&
           (!p->weight || p->weight->shape[2] == 1) &&
           call->kernels->norm_turn[p->rope->layout - 1][src->dtype - 1][to - 1];
}

void posenc_append_norm_turn(const struct posenc_append *call, struct posenc_append_room *room,
                             const struct posenc_append_heads *heads, const float *cos)
{
    const posenc_plan *plan = call->params.rope;
    struct posenc_norm_turn_job job = {
        .turn = job_of(heads, 0, heads->count, 0),
        .n = (float)call->map.channels,
        .eps = call->eps,
        .scale = call->scale,
        .ahead = call->ahead,
    };
    fold_row(call, room, heads, 0, cos, 0, plan->pairs);
    job.turn.c = room->c;
    job.turn.s = room->s;
    job.turn.count = job.turn.partner = job.turn.dst_partner = (size_t)plan->pairs;
    call->kernels->norm_turn[plan->layout - 1][heads->from - 1][heads->to - 1](&job);
}
