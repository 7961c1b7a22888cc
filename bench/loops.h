/* SPDX-License-Identifier: MIT */
/* Plain loops that the compiler vectorises, once per ISA: the limit, and rotation as a baseline. */
#ifndef POSENC_BENCH_LOOPS_H
#define POSENC_BENCH_LOOPS_H

#include <cstddef>
#include <cstdint>

namespace bench {

struct loops {
    const char *name;
    /* The limit: each byte is read and written once, in place. Memory is 64-byte aligned. 16-bit
     * data is touched as integers: as f32 its bits may be subnormal, which is slow to multiply. */
    void (*scale)(float *data, size_t count, float by);
    void (*flip)(uint32_t *data, size_t count, uint32_t by);
    /* The limit of what is only written: each byte is stored once. */
    void (*store)(float *data, size_t count, float value);
    /* heads of 2 * pairs channels, all by one row [cos | sin] */
    void (*rotate_adjacent)(float *data, const float *row, size_t heads, size_t pairs);
    void (*rotate_split_half)(float *data, const float *row, size_t heads, size_t pairs);
};

extern const loops loops_baseline;
#if defined(__x86_64__)
extern const loops loops_avx2;
extern const loops loops_avx512;
#endif

/* The widest that this machine can run. */
const loops &widest_loops();

} // namespace bench

#endif
