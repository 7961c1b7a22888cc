/* SPDX-License-Identifier: MIT */
/*
 * Rotation and conversion kernels over the vector layer, for every pair of dtypes and both layouts.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives the operations for its lane counts, POSENC_LANES (the largest) and
 *                       prefetch_write
 *   KERNEL(name)        the name of a kernel table of this ISA
 * It defines KERNEL(rotate) and KERNEL(convert), which kernels.h describes.
 *
 * Widths go down from POSENC_LANES to 4 lanes and then to single channels. Masked tails would be
 * shorter, but a masked store blocks the loads behind it for its full width: six times slower at
 * head width 80.
 */
#include "../float16.h"
#include "../fma.h"
#include "../kernels.h"

#define POSENC_INLINE inline __attribute__((always_inline))

/* The heads of one token, in bytes from head to head. */
struct posenc_heads {
    const char *src;
    char *dst;
    ptrdiff_t src_head, dst_head;
    size_t heads, partner;
};

/* How far to read ahead; measured: 2 KiB is too short for memory, 4 KiB reaches its limit. */
enum { POSENC_AHEAD = 4096 };

static POSENC_INLINE size_t posenc_size(int dtype)
{
    return dtype == POSENC_F32 ? 4 : 2;
}

/* Asks for the lines that `channels` of a later head will want. In place they will be written, so
 * they are asked for writing; so is an output of another dtype. */
static POSENC_INLINE void posenc_ahead(const char *src, char *dst, size_t channels, int from,
                                       int to)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < channels * posenc_size(from); i += 64)
        prefetch_write(src + i + POSENC_AHEAD);
    if (from != to) {
#pragma GCC unroll 8
        for (size_t i = 0; i < channels * posenc_size(to); i += 64)
            prefetch_write(dst + i + POSENC_AHEAD);
    }
}

#if POSENC_LANES >= 16
#define N 16
#include "element.h"
#include "rotate_chunk.h"
#endif
#if POSENC_LANES >= 8
#define N 8
#include "element.h"
#include "rotate_chunk.h"
#endif
#define N 4
#include "element.h"
#include "rotate_chunk.h"

static POSENC_INLINE float posenc_load(const char *p, size_t at, int dtype)
{
    if (dtype == POSENC_F32)
        return ((const float *)(const void *)p)[at];
    uint16_t half = ((const uint16_t *)(const void *)p)[at];
    return dtype == POSENC_F16 ? posenc_f16_to_f32(half) : posenc_bf16_to_f32(half);
}

static POSENC_INLINE void posenc_store(char *p, size_t at, int dtype, float x)
{
    if (dtype == POSENC_F32)
        ((float *)(void *)p)[at] = x;
    else
        ((uint16_t *)(void *)p)[at] = dtype == POSENC_F16 ? posenc_f32_to_f16(x)
                                                          : posenc_f32_to_bf16(x);
}

static POSENC_INLINE void single_pair(const struct posenc_heads *h, int from, int to, size_t p,
                                      size_t q, float c, float s)
{
    const char *src = h->src;
    char *dst = h->dst;
    for (size_t head = 0; head < h->heads; head++, src += h->src_head, dst += h->dst_head) {
        float a = posenc_load(src, p, from), b = posenc_load(src, q, from);
        posenc_store(dst, p, to, posenc_fmaf(-b, s, a * c));
        posenc_store(dst, q, to, posenc_fmaf(a, s, b * c));
    }
}

/* One token. A chunk holds its factors in half of the registers at most. */
static POSENC_INLINE void split_token(const struct posenc_heads *h, size_t pairs, int from, int to,
                                      int ahead, const float *cos, const float *sin)
{
    size_t at = 0;
#if POSENC_LANES >= 16
    for (; pairs - at >= 64; at += 64)
        split_chunk_16(h, 4, from, to, ahead, at, cos, sin);
    for (; pairs - at >= 32; at += 32)
        split_chunk_16(h, 2, from, to, ahead, at, cos, sin);
    for (; pairs - at >= 16; at += 16)
        split_chunk_16(h, 1, from, to, ahead, at, cos, sin);
#elif POSENC_LANES >= 8
    for (; pairs - at >= 32; at += 32)
        split_chunk_8(h, 4, from, to, ahead, at, cos, sin);
    for (; pairs - at >= 16; at += 16)
        split_chunk_8(h, 2, from, to, ahead, at, cos, sin);
#else
    for (; pairs - at >= 16; at += 16)
        split_chunk_4(h, 4, from, to, ahead, at, cos, sin);
#endif
#if POSENC_LANES >= 8
    for (; pairs - at >= 8; at += 8)
        split_chunk_8(h, 1, from, to, ahead, at, cos, sin);
#endif
    for (; pairs - at >= 4; at += 4)
        split_chunk_4(h, 1, from, to, ahead, at, cos, sin);
    for (; at < pairs; at++)
        single_pair(h, from, to, at, at + h->partner, cos[at], sin[at]);
}

static POSENC_INLINE void adjacent_token(const struct posenc_heads *h, size_t pairs, int from,
                                         int to, int ahead, const float *cos, const float *sin)
{
    size_t at = 0, channels = 2 * pairs;
#if POSENC_LANES >= 16
    for (; channels - at >= 128; at += 128)
        adjacent_chunk_16(h, 8, from, to, ahead, at, cos, sin);
    for (; channels - at >= 64; at += 64)
        adjacent_chunk_16(h, 4, from, to, ahead, at, cos, sin);
    for (; channels - at >= 16; at += 16)
        adjacent_chunk_16(h, 1, from, to, ahead, at, cos, sin);
#elif POSENC_LANES >= 8
    for (; channels - at >= 32; at += 32)
        adjacent_chunk_8(h, 4, from, to, ahead, at, cos, sin);
#else
    for (; channels - at >= 32; at += 32)
        adjacent_chunk_4(h, 8, from, to, ahead, at, cos, sin);
#endif
#if POSENC_LANES >= 8
    for (; channels - at >= 8; at += 8)
        adjacent_chunk_8(h, 1, from, to, ahead, at, cos, sin);
#endif
    for (; channels - at >= 4; at += 4)
        adjacent_chunk_4(h, 1, from, to, ahead, at, cos, sin);
    for (; at < channels; at += 2)
        single_pair(h, from, to, at, at + 1, cos[at / 2], sin[at / 2]);
}

/* Wide heads take several chunks; a few heads at a time keep what they touch in the first cache. */
enum { POSENC_HEAD_GROUP = 16 };

static POSENC_INLINE void rotate_tokens(const struct posenc_rotate_job *job, int layout, int from,
                                        int to, int ahead)
{
    ptrdiff_t in = (ptrdiff_t)posenc_size(from), out = (ptrdiff_t)posenc_size(to);
    const float *cos = job->cos, *sin = job->sin;
    struct posenc_heads h = {NULL, NULL, job->src_head * in, job->dst_head * out, 0, job->partner};
    for (size_t t = 0; t < job->tokens; t++, cos += job->row_stride, sin += job->row_stride) {
        h.src = (const char *)job->src + (ptrdiff_t)t * job->src_token * in;
        h.dst = (char *)job->dst + (ptrdiff_t)t * job->dst_token * out;
        for (size_t left = job->heads; left; left -= h.heads) {
            h.heads = job->pairs > 64 && left > POSENC_HEAD_GROUP ? POSENC_HEAD_GROUP : left;
            if (layout == POSENC_SPLIT_HALF)
                split_token(&h, job->pairs, from, to, ahead, cos, sin);
            else
                adjacent_token(&h, job->pairs, from, to, ahead, cos, sin);
            h.src += (ptrdiff_t)h.heads * h.src_head;
            h.dst += (ptrdiff_t)h.heads * h.dst_head;
        }
    }
}

static POSENC_INLINE void convert_channels(const char *src, char *dst, size_t count, int from,
                                           int to)
{
    size_t at = 0;
#if POSENC_LANES >= 16
    at = convert_run_16(src, dst, at, count, from, to);
#endif
#if POSENC_LANES >= 8
    at = convert_run_8(src, dst, at, count, from, to);
#endif
    at = convert_run_4(src, dst, at, count, from, to);
    for (; at < count; at++)
        posenc_store(dst, at, to, posenc_load(src, at, from));
}

/* The instances: whole names, so that a debugger and grep find them. */
#define ROTATE(layout, from, to)                                                               \
    static __attribute__((noinline)) void rotate_ahead_##layout##_##from##_##to(               \
        const struct posenc_rotate_job *job)                                                   \
    {                                                                                          \
        rotate_tokens(job, POSENC_##layout, POSENC_##from, POSENC_##to, 1);                    \
    }                                                                                          \
    static void rotate_##layout##_##from##_##to(const struct posenc_rotate_job *job)           \
    {                                                                                          \
        if (job->ahead)                                                                        \
            rotate_ahead_##layout##_##from##_##to(job);                                        \
        else                                                                                   \
            rotate_tokens(job, POSENC_##layout, POSENC_##from, POSENC_##to, 0);                \
    }
#define ROTATE_FROM(layout, from)                                                              \
    ROTATE(layout, from, F32) ROTATE(layout, from, F16) ROTATE(layout, from, BF16)
#define ROTATE_ALL(layout)                                                                     \
    ROTATE_FROM(layout, F32) ROTATE_FROM(layout, F16) ROTATE_FROM(layout, BF16)
#define ROW(layout, from)                                                                      \
    {rotate_##layout##_##from##_F32, rotate_##layout##_##from##_F16,                           \
     rotate_##layout##_##from##_BF16}
#define CONVERT(from, to)                                                                      \
    static void convert_##from##_##to(const void *src, void *dst, size_t count)                \
    {                                                                                          \
        convert_channels(src, dst, count, POSENC_##from, POSENC_##to);                         \
    }

ROTATE_ALL(ADJACENT)
ROTATE_ALL(SPLIT_HALF)
CONVERT(F32, F16)
CONVERT(F32, BF16)
CONVERT(F16, F32)
CONVERT(F16, BF16)
CONVERT(BF16, F32)
CONVERT(BF16, F16)

posenc_rotate_kernel *const KERNEL(rotate)[2][3][3] = {
    {ROW(ADJACENT, F32), ROW(ADJACENT, F16), ROW(ADJACENT, BF16)},
    {ROW(SPLIT_HALF, F32), ROW(SPLIT_HALF, F16), ROW(SPLIT_HALF, BF16)},
};

posenc_convert_kernel *const KERNEL(convert)[3][3] = {
    {NULL, convert_F32_F16, convert_F32_BF16},
    {convert_F16_F32, NULL, convert_F16_BF16},
    {convert_BF16_F32, convert_BF16_F16, NULL},
};

#undef ROTATE
#undef ROTATE_FROM
#undef ROTATE_ALL
#undef ROW
#undef CONVERT
