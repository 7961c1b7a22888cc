/* SPDX-License-Identifier: MIT */
/* Keys of I8 turned in place: dequantised, rotated in float32, quantised with new scales. */
#include "cache_turn.h"

/* The groups of a head that hold channels of the window, and what they are in floats. */
struct part {
    int64_t first, groups, group; /* group: channels that share a scale */
    int64_t channels, window;     /* of the part; where the window begins in it */
};

static struct part part_of(const struct posenc_turn *turn)
{
    const int64_t group = turn->map.channels / turn->map.groups;
    const int64_t window = posenc_turn_window(turn), last = window + turn->plan->rotary_dim - 1;
    const int64_t first = window / group, groups = last / group + 1 - first;
    return (struct part){first, groups, group, groups * group, window - first * group};
}

/* Heads [head, head + heads) of a token through floats. */
static void turn_heads(const struct posenc_turn *turn, const struct part *part,
                       struct posenc_cache_slot slot, int64_t head, int64_t heads, const float *cos,
                       const float *sin)
{
    float values[POSENC_TURN_CHANNELS];
    const struct posenc_cache_map *map = &turn->map;
    const struct posenc_kernels *kernels = turn->plan->kernels;
    const int32_t layout = turn->plan->out_layout, scale_dtype = map->cache.scales.dtype;
    const int64_t scale = part->first * posenc_dtype_size(scale_dtype);
    struct posenc_rotate_job job = {
        .cos = cos,
        .sin = sin,
        .tokens = 1,
        .pairs = (size_t)turn->plan->pairs,
        .partner = (size_t)turn->plan->pairs,
        .sides = 1,
    };
    job.side[0].src = job.side[0].dst = (char *)(values + part->window);
    job.side[0].src_head = job.side[0].dst_head = part->channels * (ptrdiff_t)sizeof(float);
    job.side[0].heads = (size_t)heads;
    for (int64_t h = 0; h < heads; h++)
        kernels->dequantise((int8_t *)posenc_cache_row(map, slot, head + h) +
                                part->first * part->group,
                            posenc_cache_scale(map, slot, head + h) + scale, scale_dtype,
                            (size_t)part->groups, (size_t)part->group,
                            values + h * part->channels);
    kernels->rotate[layout - 1][POSENC_F32 - 1][POSENC_F32 - 1](&job);
    for (int64_t h = 0; h < heads; h++)
        kernels->quantise(values + h * part->channels, (size_t)part->groups, (size_t)part->group,
                          (int8_t *)posenc_cache_row(map, slot, head + h) +
                              part->first * part->group,
                          posenc_cache_scale(map, slot, head + h) + scale, scale_dtype);
}

void posenc_turn_int8(const struct posenc_turn *turn, int64_t b, int64_t token, int64_t tokens,
                      const struct posenc_rows_target *rows)
{
    const struct part part = part_of(turn);
    const int64_t most = POSENC_TURN_CHANNELS / part.channels;
    const float *cos = rows->cos, *sin = rows->sin;
    for (int64_t t = 0; t < tokens; t++) {
        const struct posenc_cache_slot slot =
            posenc_cache_slot_of(&turn->map, turn->sequence + b, turn->first + token + t);
        for (int64_t head = 0; head < turn->map.heads; head += most) {
            const int64_t left = turn->map.heads - head;
            turn_heads(turn, &part, slot, head, left < most ? left : most, cos, sin);
        }
        if (!turn->one_row) {
            cos += rows->stride;
            sin += rows->stride;
        }
    }
}
