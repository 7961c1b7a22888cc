/* SPDX-License-Identifier: MIT */
/* Rotation inside attention: one head into floats, with the bits of posenc_rotate. */
#include "attention_rotate.h"

#include "rotate_f64.h"

enum { CHUNK_PAIRS = 256 };

static posenc_rotate_kernel *kernel_of(const struct posenc_kernels *kernels,
                                       const posenc_plan *plan, int32_t from)
{
    const int32_t layout = plan->layout - 1;
    return plan->out_layout == plan->layout
               ? kernels->rotate[layout][from - 1][POSENC_F32 - 1]
               : kernels->rotate_across[layout][from - 1][POSENC_F32 - 1];
}

static struct posenc_rotate_job one_head(const posenc_plan *plan, const char *src, char *dst)
{
    return (struct posenc_rotate_job){
        .tokens = 1,
        .partner = (size_t)plan->pairs,
        .sides = 1,
        .side[0] = {.src = src, .dst = dst, .heads = 1},
    };
}

/* The first channel of the pairs from `first` on. */
static size_t skipped(int32_t layout, size_t first)
{
    return first * (layout == POSENC_ADJACENT ? 2 : 1);
}

/* The channels [c, c + count) of a head of I8 as floats. */
static void widen_part(const struct posenc_kernels *kernels, const struct posenc_cache_map *map,
                       struct posenc_attention_head head, size_t c, size_t count, float *to)
{
    const size_t group = (size_t)(map->channels / map->groups);
    const int32_t dtype = map->cache.scales.dtype;
    for (size_t n; count > 0; c += n, count -= n, to += n) {
        n = group - c % group < count ? group - c % group : count;
        kernels->dequantise((const int8_t *)head.row + c,
                            (const char *)head.scales +
                                c / group * (size_t)posenc_dtype_size(dtype),
                            dtype, 1, n, to);
    }
}

/* The window of `to`, which has the widened head already: where it lies, or from floats of some
 * pairs at a time if channels trade places. */
static void rotate_integers(const struct posenc_kernels *kernels, const posenc_plan *plan,
                            const struct posenc_cache_map *map, struct posenc_attention_head head,
                            const float *row, int64_t window, float *to)
{
    float some[2 * CHUNK_PAIRS];
    const size_t pairs = (size_t)plan->pairs, from = (size_t)window;
    const int across = plan->out_layout != plan->layout;
    size_t count = across ? CHUNK_PAIRS : pairs;
    for (size_t i = 0; i < pairs; i += count) {
        count = pairs - i < count ? pairs - i : count;
        struct posenc_rotate_job job =
            one_head(plan, (const char *)(to + from),
                     (char *)(to + from + skipped(plan->out_layout, i)));
        if (across) {
            job.side[0].src = (const char *)some;
            if (plan->layout == POSENC_ADJACENT) {
                widen_part(kernels, map, head, from + 2 * i, 2 * count, some);
            } else {
                widen_part(kernels, map, head, from + i, count, some);
                widen_part(kernels, map, head, from + pairs + i, count, some + count);
                job.partner = count;
            }
        }
        job.cos = row + i;
        job.sin = row + pairs + i;
        job.pairs = count;
        kernel_of(kernels, plan, POSENC_F32)(&job);
    }
}

void posenc_attention_rotate(const struct posenc_kernels *kernels, const posenc_plan *plan,
                             const posenc_tensor *t, const struct posenc_cache_map *map,
                             struct posenc_attention_head head, const float *row, float *to)
{
    const int64_t window = posenc_window(plan, t), size = posenc_dtype_size(t->dtype);
    posenc_attention_widen_head(kernels, t, map, head, to);
    if (t->dtype == POSENC_I8) {
        rotate_integers(kernels, plan, map, head, row, window, to);
        return;
    }
    struct posenc_rotate_job job =
        one_head(plan, (const char *)head.row + window * size, (char *)(to + window));
    job.cos = row;
    job.sin = row + plan->pairs;
    job.pairs = (size_t)plan->pairs;
    kernel_of(kernels, plan, t->dtype)(&job);
}

void posenc_attention_turn_back(const struct posenc_kernels *kernels, const posenc_plan *plan,
                                const float *head, int64_t channels, const float *row, float *to)
{
    float cos[CHUNK_PAIRS], sin[CHUNK_PAIRS];
    const size_t window = channels == plan->rotary_dim ? 0 : (size_t)plan->rotary_offset;
    const size_t pairs = (size_t)plan->pairs;
    const double scale = posenc_turned_scale(plan, POSENC_INVERSE);
    memcpy(to, head, (size_t)channels * sizeof(float));
    for (size_t i = 0; i < pairs; i += CHUNK_PAIRS) {
        const size_t count = pairs - i < CHUNK_PAIRS ? pairs - i : CHUNK_PAIRS;
        posenc_turn_row(scale, row + i, row + pairs + i, count, cos, sin);
        struct posenc_rotate_job job =
            one_head(plan, (const char *)(head + window + skipped(plan->layout, i)),
                     (char *)(to + window + skipped(plan->out_layout, i)));
        job.cos = cos;
        job.sin = sin;
        job.pairs = count;
        kernel_of(kernels, plan, POSENC_F32)(&job);
    }
}
