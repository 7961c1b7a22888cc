/* SPDX-License-Identifier: MIT */
/*
 * Base rows over vectors of doubles. No fma: every machine rounds after each operation and gets the
 * same doubles.
 *
 * Template. Before the inclusion: vecd.h of the ISA.
 */
#include "../angle.h"
#include "../rows.h"

#define POSENC_INLINE inline __attribute__((always_inline))

enum { VECTORS = POSENC_ROW_BLOCK / F64_LANES };

struct posenc_base {
    f64s cos[VECTORS], sin[VECTORS];
};

/* p * W mod 1 by three products of 32 bits, then as posenc_sincos does it. */
static POSENC_INLINE void base_row(const uint32_t w[3][POSENC_ROW_BLOCK], uint32_t p, int v,
                                   f64s *cos, f64s *sin)
{
    const u64s position = set1_u64(p);
    u64s top = mul_u32(widen_u32(&w[2][v * F64_LANES]), position);
    u64s middle = mul_u32(widen_u32(&w[1][v * F64_LANES]), position);
    u64s bottom = mul_u32(widen_u32(&w[0][v * F64_LANES]), position);
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
