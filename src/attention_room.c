/* SPDX-License-Identifier: MIT */
/* The memory of rows of attention that walk together. */
#include "attention_walk.h"

struct cut {
    char *memory;
    size_t used;
};

/* Whole lines of 64 bytes. */
static void *take(struct cut *cut, int64_t count, size_t size)
{
    size_t at = cut->used;
    cut->used += ((size_t)count * size + 63) / 64 * 64;
    return cut->memory && count ? cut->memory + at : NULL;
}

size_t posenc_attention_room(struct posenc_attention_room *room,
                             const struct posenc_attention_needs *needs, int64_t heads,
                             int64_t rows, int64_t turned_keys, void *memory)
{
    enum { TILE = POSENC_ATTENTION_TILE, CHAINS = POSENC_ATTENTION_CHAINS };
    struct cut cut = {memory, 0};
    int64_t all = heads * rows, channels = posenc_attention_padded(needs->channels);
    int64_t values = posenc_attention_padded(needs->values);
    int64_t wider = channels > values ? channels : values;
    int64_t beside = needs->together * rows;
    room->m = take(&cut, all, 4);
    room->total_m = take(&cut, all, 4);
    room->scale = take(&cut, all, 4);
    room->fresh = take(&cut, all, 1);
    room->any = take(&cut, all, 1);
    room->slope = take(&cut, needs->lines ? all : 0, 8);
    room->l = take(&cut, all * CHAINS, 4);
    room->total_l = take(&cut, all * CHAINS, 4);
    room->o = take(&cut, all * values, 4);
    room->total_o = take(&cut, all * values, 4);
    room->q = take(&cut, beside, sizeof(float *));
    room->wide_q = take(&cut, needs->wide_q ? beside * channels : 0, 4);
    room->w = take(&cut, beside * TILE, 4);
    room->a = take(&cut, beside, 4);
    room->spare = take(&cut, needs->in_order ? beside * wider : 0, 4);
    room->begin = take(&cut, beside, 1);
    room->end = take(&cut, beside, 1);
    room->hidden = take(&cut, beside, 8);
    room->bias = take(&cut, needs->lines || needs->biases || needs->gaps ? rows : 0,
                      sizeof(float *));
    room->biases = take(&cut, needs->biases || needs->gaps ? rows * TILE : 0, 4);
    /* tokens x members are `rows`, so that members lines of TILE + tokens floats fit */
    room->line = take(&cut, needs->lines ? rows * TILE + rows : 0, 4);
    room->tile = take(&cut, needs->block ? TILE * wider : 0, 4);
    room->turned = take(&cut, needs->turned ? turned_keys * channels : 0, 4);
    room->scales = take(&cut, needs->scales, 4);
    room->pair = take(&cut, needs->deberta ? 2 * channels : 0, 4);
    return cut.used;
}
