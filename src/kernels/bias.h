/* SPDX-License-Identifier: MIT */
/*
 * Distances times a slope, over vectors of doubles: the lines of ALiBi.
 *
 * Template. Before the inclusion:
 *   vecd.h of the ISA   gives f64s of F64_LANES lanes and its operations
 *   KERNEL(name)        the name of a kernel of this ISA
 * It defines KERNEL(scale).
 */
#include <stddef.h>
#include <string.h>

void KERNEL(scale)(const double *distances, size_t count, double slope, float *out)
{
    const f64s by = set1_f64(slope), zero = set1_f64(0);
    size_t i = 0;
    for (; i + F64_LANES <= count; i += F64_LANES)
        store_as_f32(out + i, add_f64(mul_f64(load_f64(distances + i), by), zero));
    if (i < count) {
        double rest[F64_LANES] = {0};
        float done[F64_LANES];
        memcpy(rest, distances + i, (count - i) * sizeof(*rest));
        store_as_f32(done, add_f64(mul_f64(load_f64(rest), by), zero));
        memcpy(out + i, done, (count - i) * sizeof(*done));
    }
}
