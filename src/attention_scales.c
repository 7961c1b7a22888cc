/* SPDX-License-Identifier: MIT */
/* Stored keys and values of I8 for attention: their scales as floats, heads as floats. */
#include "attention_scales.h"

enum {
    GROUP_SHIFT = 5, /* of groups of 32 channels */
    HEAD_SHIFT = 12, /* no head has more than 4096 */
    STAGE = 512,     /* scales that are widened at a time */
};

void posenc_attention_widen_head(const struct posenc_kernels *kernels, const posenc_tensor *t,
                                 const struct posenc_cache_map *map,
                                 struct posenc_attention_head head, float *to)
{
    const size_t channels = (size_t)t->shape[3];
    if (t->dtype == POSENC_F32)
        memcpy(to, head.row, channels * sizeof(float));
    else if (t->dtype == POSENC_I8)
        kernels->dequantise(head.row, head.scales, map->cache.scales.dtype, (size_t)map->groups,
                            channels / (size_t)map->groups, to);
    else
        kernels->convert[t->dtype - 1][POSENC_F32 - 1](head.row, to, channels);
}

/* One after the other first: few of them lie so, and a conversion of few costs as much as of many.
 */
static void widen(const struct posenc_kernels *kernels, const void *const *stored, int64_t groups,
                  int64_t begin, int64_t end, float *wide)
{
    uint16_t stage[STAGE];
    const int64_t most = STAGE / groups;
    for (int64_t i = begin, n; i < end; i += n) {
        n = end - i < most ? end - i : most;
        for (int64_t j = 0; j < n; j++)
            for (int64_t g = 0; g < groups; g++)
                stage[j * groups + g] = ((const uint16_t *)stored[i + j])[g];
        kernels->convert[POSENC_F16 - 1][POSENC_F32 - 1](stage, wide + i * groups,
                                                         (size_t)(n * groups));
    }
}

struct posenc_attention_scales
posenc_attention_scales_of(const struct posenc_kernels *kernels, const struct posenc_cache_map *map,
                           const void *const *stored, int64_t begin, int64_t end, float *wide,
                           const void *at[POSENC_ATTENTION_TILE])
{
    if (!map || !map->groups)
        return (struct posenc_attention_scales){NULL, 0};
    struct posenc_attention_scales scales = {stored, map->groups == 1 ? HEAD_SHIFT : GROUP_SHIFT};
    if (map->cache.scales.dtype == POSENC_F32)
        return scales;
    widen(kernels, stored, map->groups, begin, end, wide);
    for (int64_t i = begin; i < end; i++)
        at[i] = wide + i * map->groups;
    scales.at = at;
    return scales;
}
