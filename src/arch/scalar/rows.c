/* SPDX-License-Identifier: MIT */
/* Exact rows in plain C: the fallback everywhere, and the oracle of the other kernels. */
#include "base.h"

/* One pair of one token, by the base (c, s). */
static void step_from(const struct posenc_row_block *blocks, size_t i, uint32_t step, double c,
                      double s, double factor, uint64_t sine_sign, float *cos, float *sin)
{
    const struct posenc_row_block *block = &blocks[i / POSENC_ROW_BLOCK];
    double step_c = block->step_cos[step][i % POSENC_ROW_BLOCK];
    double step_s = block->step_sin[step][i % POSENC_ROW_BLOCK];
    double row_c = (c * step_c - s * step_s) * factor;
    double row_s = (s * step_c + c * step_s) * factor;
    *cos = (float)row_c;
    *sin = (float)posenc_double(posenc_bits64(row_s) ^ sine_sign);
}

void posenc_rows_scalar(const struct posenc_rows_job *job)
{
    for (size_t i = 0; i < job->pairs; i++) {
        double c, s;
        posenc_base_of(job->blocks[i / POSENC_ROW_BLOCK].w, i % POSENC_ROW_BLOCK, job->base, &c,
                       &s);
        for (size_t t = 0; t < job->count; t++) {
            ptrdiff_t at = (ptrdiff_t)t * job->stride + (ptrdiff_t)i;
            step_from(job->blocks, i, job->steps[t], c, s, job->factor, job->sine_sign,
                      job->cos + at, job->sin + at);
        }
    }
}
