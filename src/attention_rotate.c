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

void posenc_attention_rotate(const struct posenc_kernels *kernels, const posenc_plan *plan,
                             const posenc_tensor *t, const void *head, const float *row, float *to)
{
    const int64_t window = posenc_window(plan, t), size = posenc_dtype_size(t->dtype);
    if (t->dtype == POSENC_F32)
        memcpy(to, head, (size_t)t->shape[3] * sizeof(float));
    else
        kernels->convert[t->dtype - 1][POSENC_F32 - 1](head, to, (size_t)t->shape[3]);
    struct posenc_rotate_job job =
        one_head(plan, (const char *)head + window * size, (char *)(to + window));
    job.cos = row;
    job.sin = row + plan->pairs;
    job.pairs = (size_t)plan->pairs;
    kernel_of(kernels, plan, t->dtype)(&job);
}

/* The first channel of the pairs from `first` on. */
static size_t skipped(int32_t layout, size_t first)
{
    return first * (layout == POSENC_ADJACENT ? 2 : 1);
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
