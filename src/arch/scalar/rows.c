/* SPDX-License-Identifier: MIT */
/* Exact rows in plain C: the fallback everywhere, and the oracle of the other kernels. */
#include "../../angle.h"
#include "../../rows.h"

static void pair_rows(const struct posenc_rows_job *job, size_t i)
{
    const struct posenc_row_block *block = &job->blocks[i / POSENC_ROW_BLOCK];
    size_t j = i % POSENC_ROW_BLOCK;
    struct posenc_turns w = {(uint64_t)block->w[2][j] << 32 | block->w[1][j], block->w[0][j]};
    double c, s;
    posenc_sincos(posenc_turns_times(w, job->base), &s, &c);
    for (size_t t = 0; t < job->count; t++) {
        double step_c = block->step_cos[job->steps[t]][j],
               step_s = block->step_sin[job->steps[t]][j];
        double row_c = (c * step_c - s * step_s) * job->factor;
        double row_s = (s * step_c + c * step_s) * job->factor;
        job->cos[(ptrdiff_t)t * job->stride + (ptrdiff_t)i] = (float)row_c;
        job->sin[(ptrdiff_t)t * job->stride + (ptrdiff_t)i] =
            (float)posenc_double(posenc_bits64(row_s) ^ job->sine_sign);
    }
}

void posenc_rows_scalar(const struct posenc_rows_job *job)
{
    for (size_t i = 0; i < job->pairs; i++)
        pair_rows(job, i);
}
