/* SPDX-License-Identifier: MIT */
/*
 * Exact rows over vectors of doubles: the base row of a block of positions, then one complex
 * product per token. No fma anywhere: every machine rounds after each operation and gets the same
 * doubles.
 *
 * Template. Before the inclusion:
 *   vecd.h of the ISA   gives f64s and u64s of F64_LANES lanes and their operations
 *   KERNEL(name)        the name of a kernel of this ISA
 * It defines KERNEL(rows).
 */
#include "base.h"

/* One token: 16 cosines and 16 sines. A factor of 1 and no sign, which is what most calls have,
 * change no bit and are left out. */
static POSENC_INLINE void token_row(const struct posenc_row_block *block,
                                    const struct posenc_base *base, unsigned step, int plain,
                                    f64s factor, u64s sine_sign, float *cos, float *sin)
{
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) {
        f64s c = base->cos[v], s = base->sin[v];
        f64s step_c = load_f64(&block->step_cos[step][v * F64_LANES]);
        f64s step_s = load_f64(&block->step_sin[step][v * F64_LANES]);
        f64s row_c = sub_f64(mul_f64(c, step_c), mul_f64(s, step_s));
        f64s row_s = add_f64(mul_f64(s, step_c), mul_f64(c, step_s));
        if (!plain) {
            row_c = mul_f64(row_c, factor);
            row_s = xor_f64(mul_f64(row_s, factor), sine_sign);
        }
        store_as_f32(cos + v * F64_LANES, row_c);
        store_as_f32(sin + v * F64_LANES, row_s);
    }
}

static POSENC_INLINE void all_rows(const struct posenc_rows_job *job, int plain)
{
    const f64s factor = set1_f64(job->factor);
    const u64s sine_sign = set1_u64(job->sine_sign);
    for (size_t i = 0; i < job->pairs; i += POSENC_ROW_BLOCK) {
        const struct posenc_row_block *block = &job->blocks[i / POSENC_ROW_BLOCK];
        size_t rest = job->pairs - i;
        struct posenc_base base;
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            base_row(block->w, job->base, v, &base.cos[v], &base.sin[v]);
        float *cos = job->cos + i, *sin = job->sin + i;
        if (rest >= POSENC_ROW_BLOCK) {
            for (size_t t = 0; t < job->count; t++, cos += job->stride, sin += job->stride)
                token_row(block, &base, job->steps[t], plain, factor, sine_sign, cos, sin);
            continue;
        }
        for (size_t t = 0; t < job->count; t++, cos += job->stride, sin += job->stride) {
            float whole[2][POSENC_ROW_BLOCK];
            token_row(block, &base, job->steps[t], plain, factor, sine_sign, whole[0],
                      whole[1]);
            memcpy(cos, whole[0], rest * sizeof(float));
            memcpy(sin, whole[1], rest * sizeof(float));
        }
    }
}

void KERNEL(rows)(const struct posenc_rows_job *job)
{
    if (job->factor == 1 && !job->sine_sign)
        all_rows(job, 1);
    else
        all_rows(job, 0);
}
