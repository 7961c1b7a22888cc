/* SPDX-License-Identifier: MIT */
/* Plain loops, compiled at -O3 once per ISA with LOOPS (the table's name) and LOOPS_NAME set. */
#include "loops.h"

namespace bench {
namespace {

void scale(float *data, size_t count, float by) {
    float *x = static_cast<float *>(__builtin_assume_aligned(data, 64));
    for (size_t i = 0; i < count; i++)
        x[i] *= by;
}

void flip(uint32_t *data, size_t count, uint32_t by) {
    uint32_t *x = static_cast<uint32_t *>(__builtin_assume_aligned(data, 64));
    for (size_t i = 0; i < count; i++)
        x[i] ^= by;
}

void store(float *data, size_t count, float value) {
    float *x = static_cast<float *>(__builtin_assume_aligned(data, 64));
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

void rotate_adjacent(float *data, const float *row, size_t heads, size_t pairs) {
    for (size_t h = 0; h < heads; h++, data += 2 * pairs)
        for (size_t i = 0; i < pairs; i++) {
            const float a = data[2 * i], b = data[2 * i + 1];
            data[2 * i] = a * row[i] - b * row[pairs + i];
            data[2 * i + 1] = b * row[i] + a * row[pairs + i];
        }
}

void rotate_split_half(float *data, const float *row, size_t heads, size_t pairs) {
    for (size_t h = 0; h < heads; h++, data += 2 * pairs)
        for (size_t i = 0; i < pairs; i++) {
            const float a = data[i], b = data[pairs + i];
            data[i] = a * row[i] - b * row[pairs + i];
            data[pairs + i] = b * row[i] + a * row[pairs + i];
        }
}

} // namespace

extern const loops LOOPS = {LOOPS_NAME, scale, flip, store, rotate_adjacent, rotate_split_half};

} // namespace bench
