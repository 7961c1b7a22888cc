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
#include "../angle.h"
#include "../rows.h"

#define POSENC_INLINE inline __attribute__((always_inline))

enum { VECTORS = POSENC_ROW_BLOCK / F64_LANES };

struct posenc_base {
    f64s cos[VECTORS], sin[VECTORS];
};

/* p * W mod 1 by three products of 32 bits, then as posenc_sincos does it. */
static POSENC_INLINE void base_row(const struct posenc_row_block *block, uint32_t p, int v,
                                   f64s *cos, f64s *sin)
{
    const u64s position = set1_u64(p);
    u64s top = mul_u32(widen_u32(&block->w[2][v * F64_LANES]), position);
    u64s middle = mul_u32(widen_u32(&block->w[1][v * F64_LANES]), position);
    u64s bottom = mul_u32(widen_u32(&block->w[0][v * F64_LANES]), position);
    u64s high = add_u64(add_u64(shift_left(top, 32), middle), shift_right(bottom, 32));
    u64s low = and_u64(bottom, set1_u64(0xffffffff));

    u64s quarter = add_u64(high, set1_u64(UINT64_C(1) << 61));
    f64s rest = from_i64(or_u64(shift_left(high, 2), shift_right(low, 30)));
    f64s tail = mul_f64(from_u32(and_u64(low, set1_u64(0x3fffffff))), set1_f64(0x1p-30));
    f64s t = mul_f64(add_f64(tail, rest), set1_f64(0x1p-66));
    f64s z = mul_f64(t, t), s = set1_f64(posenc_sin_poly[0]), c = set1_f64(posenc_cos_poly[0]);
#pragma GCC unroll 6
    for (int i = 1; i < 7; i++) {
        s = add_f64(mul_f64(s, z), set1_f64(posenc_sin_poly[i]));
        c = add_f64(mul_f64(c, z), set1_f64(posenc_cos_poly[i]));
    }
    s = mul_f64(s, t);
    c = add_f64(mul_f64(c, z), set1_f64(1));
    u64s top_bit = set1_u64(UINT64_C(1) << 63), twice = shift_left(quarter, 1);
    *sin = xor_f64(select_by_top(twice, c, s), and_u64(quarter, top_bit));
    *cos = xor_f64(select_by_top(twice, s, c), and_u64(xor_u64(quarter, twice), top_bit));
}

/* One token: 16 cosines and 16 sines. */
static POSENC_INLINE void token_row(const struct posenc_row_block *block,
                                    const struct posenc_base *base, unsigned step, f64s factor,
                                    u64s sine_sign, float *cos, float *sin)
{
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) {
        f64s c = base->cos[v], s = base->sin[v];
        f64s step_c = load_f64(&block->step_cos[step][v * F64_LANES]);
        f64s step_s = load_f64(&block->step_sin[step][v * F64_LANES]);
        f64s row_c = sub_f64(mul_f64(c, step_c), mul_f64(s, step_s));
        f64s row_s = add_f64(mul_f64(s, step_c), mul_f64(c, step_s));
        store_as_f32(cos + v * F64_LANES, mul_f64(row_c, factor));
        store_as_f32(sin + v * F64_LANES, xor_f64(mul_f64(row_s, factor), sine_sign));
    }
}

void KERNEL(rows)(const struct posenc_rows_job *job)
{
    const f64s factor = set1_f64(job->factor);
    const u64s sine_sign = set1_u64(job->sine_sign);
    for (size_t i = 0; i < job->pairs; i += POSENC_ROW_BLOCK) {
        const struct posenc_row_block *block = &job->blocks[i / POSENC_ROW_BLOCK];
        size_t rest = job->pairs - i;
        struct posenc_base base;
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            base_row(block, job->base, v, &base.cos[v], &base.sin[v]);
        float *cos = job->cos + i, *sin = job->sin + i;
        if (rest >= POSENC_ROW_BLOCK) {
            for (size_t t = 0; t < job->count; t++, cos += job->stride, sin += job->stride)
                token_row(block, &base, job->steps[t], factor, sine_sign, cos, sin);
            continue;
        }
        for (size_t t = 0; t < job->count; t++, cos += job->stride, sin += job->stride) {
            float whole[2][POSENC_ROW_BLOCK];
            token_row(block, &base, job->steps[t], factor, sine_sign, whole[0], whole[1]);
            memcpy(cos, whole[0], rest * sizeof(float));
            memcpy(sin, whole[1], rest * sizeof(float));
        }
    }
}
