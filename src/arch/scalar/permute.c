/* SPDX-License-Identifier: MIT */
/* Channels between the pair layouts in plain C: the fallback, and the oracle of all others. */
#include "../../kernels.h"

static inline void permute(const struct posenc_permute_job *job, int to, size_t size)
{
    for (size_t h = 0; h < job->heads; h++) {
        const char *src = job->src + (ptrdiff_t)h * job->src_head;
        char *dst = job->dst + (ptrdiff_t)h * job->dst_head;
        char copy[512];
        if (src == dst)
            src = memcpy(copy, src, 2 * job->pairs * size);
        for (size_t i = 0; i < job->pairs; i++)
            for (size_t s = 0; s < 2; s++) {
                size_t adjacent = size * (2 * i + s), split_half = size * (s * job->pairs + i);
                if (to == POSENC_ADJACENT)
                    memcpy(dst + adjacent, src + split_half, size);
                else
                    memcpy(dst + split_half, src + adjacent, size);
            }
    }
}

#define PERMUTE(to, size)                                                                      \
    static void permute_##to##_##size(const struct posenc_permute_job *job)                    \
    {                                                                                          \
        permute(job, POSENC_##to, size);                                                       \
    }

PERMUTE(ADJACENT, 2)
PERMUTE(ADJACENT, 4)
PERMUTE(ADJACENT, 8)
PERMUTE(SPLIT_HALF, 2)
PERMUTE(SPLIT_HALF, 4)
PERMUTE(SPLIT_HALF, 8)

posenc_permute_kernel *const posenc_permute_scalar[2][3] = {
    {permute_ADJACENT_2, permute_ADJACENT_4, permute_ADJACENT_8},
    {permute_SPLIT_HALF_2, permute_SPLIT_HALF_4, permute_SPLIT_HALF_8},
};
