/* SPDX-License-Identifier: MIT */
/*
 * The lines of ALiBi, distances times a slope over vectors of doubles, and rows from lines.
 *
 * Template. Before the inclusion:
 *   vecd.h of the ISA   gives f64s of F64_LANES lanes and its operations
 *   KERNEL(name)        the name of a kernel of this ISA
 * It defines KERNEL(scale) and KERNEL(windows), which kernels.h describes.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void KERNEL(scale)(const double *distances, size_t count, double slope, float *out)
{
    const f64s by = set1_f64(slope), zero = set1_f64(0);
    size_t i = 0;
    for (; i + 2 * F64_LANES <= count; i += 2 * F64_LANES) {
        f64s a = mul_f64(load_f64(distances + i), by);
        f64s b = mul_f64(load_f64(distances + i + F64_LANES), by);
        store_two_as_f32(out + i, add_f64(a, zero), add_f64(b, zero));
    }
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

/* A vector of any bits: loads and stores of doubles do not look at them. */
static inline void copy_vector(char *to, const char *from)
{
    store_f64((void *)to, load_f64((const void *)from));
}

/*
 * One row of at least a vector. Its first and its last vector may overlap their neighbours. The
 * stores between are aligned: across two cache lines one costs as much as two. Loads need not be.
 * The lines of the row `step` further on are asked for meanwhile, which saves 6 to 12 % in L2.
 */
static inline void copy_row(char *to, const char *from, size_t bytes, ptrdiff_t step)
{
    enum { VECTOR = F64_LANES * 8 };
    size_t at = -(uintptr_t)to % VECTOR;
    if (at)
        copy_vector(to, from);
    for (; at + 4 * VECTOR <= bytes; at += 4 * VECTOR) {
        f64s a = load_f64((const void *)(from + at));
        f64s b = load_f64((const void *)(from + at + VECTOR));
        f64s c = load_f64((const void *)(from + at + 2 * VECTOR));
        f64s d = load_f64((const void *)(from + at + 3 * VECTOR));
#pragma GCC unroll 4
        for (size_t ahead = 0; ahead < 4 * VECTOR; ahead += 64)
            __builtin_prefetch(to + step + at + ahead, 1, 3);
        store_f64((void *)(to + at), a);
        store_f64((void *)(to + at + VECTOR), b);
        store_f64((void *)(to + at + 2 * VECTOR), c);
        store_f64((void *)(to + at + 3 * VECTOR), d);
    }
    for (; at + VECTOR <= bytes; at += VECTOR)
        copy_vector(to + at, from + at);
    if (at < bytes)
        copy_vector(to + bytes - VECTOR, from + bytes - VECTOR);
}

void KERNEL(windows)(const char *line, ptrdiff_t move, char *row, ptrdiff_t step, size_t bytes,
                     size_t rows)
{
    if (bytes < F64_LANES * 8)
        for (size_t i = 0; i < rows; i++, line += move, row += step)
            memcpy(row, line, bytes);
    else
        for (size_t i = 0; i < rows; i++, line += move, row += step)
            copy_row(row, line, bytes, i + 1 < rows ? step : 0);
}
