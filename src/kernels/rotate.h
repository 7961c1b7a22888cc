/* SPDX-License-Identifier: MIT */
/*
 * Rotation and conversion kernels over the vector layer, for every pair of dtypes and both layouts.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives the operations for its lane counts, POSENC_LANES (the largest; 4, 8
 *                       and 16 are tested), POSENC_REGISTERS (16 or 32) and prefetch_write
 *   KERNEL(name)        the name of a kernel table of this ISA
 * It defines KERNEL(rotate) and KERNEL(convert), which kernels.h describes.
 *
 * Widths go down from POSENC_LANES to 4 lanes and then to single channels. Masked tails would be
 * shorter, but a masked store blocks the loads behind it for its full width: six times slower at
 * head width 80.
 */
#include "channel.h"

/* How far to read ahead; measured: 2 KiB is too short for memory, 4 KiB reaches its limit. */
enum { POSENC_AHEAD = 4096, POSENC_AHEAD_NEAR = 2048 };

/* Asks for the lines that `channels` of a later head will want. In place they will be written, so
 * they are asked for writing; so is an output of another dtype. */
static POSENC_INLINE void posenc_ahead(const char *src, char *dst, size_t channels, int from,
                                       int to, int ahead)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < channels * posenc_size(from); i += 64)
        prefetch_write(src + i + ahead);
    if (from != to) {
#pragma GCC unroll 8
        for (size_t i = 0; i < channels * posenc_size(to); i += 64)
            prefetch_write(dst + i + ahead);
    }
}

/* Where registers hold no whole row, this many heads at a time go through all of it: passes over
 * all heads would go through the second cache with long steps. */
enum { POSENC_GROUP = 8 };

#define N 4
#include "element.h"
#include "rotate_chunk.h"
#if POSENC_LANES >= 8
#define N 8
#include "element.h"
#include "rotate_chunk.h"
#endif
#if POSENC_LANES >= 16
#define N 16
#include "element.h"
#include "rotate_chunk.h"
#endif

static POSENC_INLINE void single_pair(const struct posenc_rotate_side *h, int sides, int from,
                                      int to, size_t p, size_t q, float c, float s)
{
    for (; sides; sides--, h++) {
        const char *src = h->src;
        char *dst = h->dst;
        for (size_t head = 0; head < h->heads; head++) {
            float a = posenc_load(src, p, from), b = posenc_load(src, q, from);
            posenc_store(dst, p, to, posenc_fmaf(-b, s, a * c));
            posenc_store(dst, q, to, posenc_fmaf(a, s, b * c));
            src += h->src_head;
            dst += h->dst_head;
        }
    }
}

#if POSENC_LANES >= 16
/* Less than 64 pairs, except for the last 7 or fewer: one pass, half a vector included. */
static POSENC_INLINE size_t split_rest(const struct posenc_rotate_job *job,
                                       const struct posenc_rotate_side *side, int sides, int from,
                                       int to, int ahead, size_t at)
{
    const size_t partner = job->partner, eights = (job->pairs - at) / 8;
    const float *cos = job->cos, *sin = job->sin;
#define CHUNK(vectors, half)                                                                       \
    split_chunk_16(side, sides, vectors, half, from, to, ahead, partner, at, cos, sin)
    switch (eights) {
    case 7: CHUNK(3, 1); break;
    case 6: CHUNK(3, 0); break;
    case 5: CHUNK(2, 1); break;
    case 4: CHUNK(2, 0); break;
    case 3: CHUNK(1, 1); break;
    case 2: CHUNK(1, 0); break;
    case 1: split_chunk_8(side, sides, 1, 0, from, to, ahead, partner, at, cos, sin); break;
    default: break;
    }
#undef CHUNK
    return at + 8 * eights;
}
#endif

/* One token. A chunk holds its factors in half of the registers at most. */
static POSENC_INLINE void split_heads(const struct posenc_rotate_job *job,
                                      const struct posenc_rotate_side *side, int sides, int from,
                                      int to, int ahead)
{
    const size_t pairs = job->pairs, partner = job->partner;
    const float *cos = job->cos, *sin = job->sin;
    size_t at = 0;
#define CHUNKS(lanes, vectors)                                                                     \
    for (; pairs - at >= lanes * vectors; at += lanes * vectors)                                   \
        split_chunk_##lanes(side, sides, vectors, 0, from, to, ahead, partner, at, cos, sin)
#if POSENC_LANES >= 16
    CHUNKS(16, 4);
    at = split_rest(job, side, sides, from, to, ahead, at);
#elif POSENC_LANES >= 8
    CHUNKS(8, 4);
    CHUNKS(8, 2);
    CHUNKS(8, 1);
#else
    CHUNKS(4, 4);
#endif
    CHUNKS(4, 1);
#undef CHUNKS
    for (; at < pairs; at++)
        single_pair(side, sides, from, to, at, at + partner, cos[at], sin[at]);
}

static POSENC_INLINE void split_token(const struct posenc_rotate_job *job, int from, int to,
                                      int ahead)
{
#if POSENC_REGISTERS >= 32
    split_heads(job, job->side, job->sides, from, to, ahead);
#else
    for (int n = 0; n < job->sides; n++) {
        struct posenc_rotate_side part = job->side[n];
        for (size_t left = part.heads; left; left -= part.heads) {
            part.heads = job->pairs > 4 * POSENC_LANES && left > POSENC_GROUP ? POSENC_GROUP : left;
            split_heads(job, &part, 1, from, to, ahead);
            part.src += (ptrdiff_t)part.heads * part.src_head;
            part.dst += (ptrdiff_t)part.heads * part.dst_head;
        }
    }
#endif
}

static POSENC_INLINE void adjacent_token(const struct posenc_rotate_job *job, int from, int to,
                                         int ahead)
{
    const size_t channels = 2 * job->pairs;
    const float *cos = job->cos, *sin = job->sin;
    size_t at = 0;
#define CHUNKS(lanes, vectors)                                                                 \
    for (; channels - at >= lanes * vectors; at += lanes * vectors)                            \
        adjacent_chunk_##lanes(job->side, job->sides, vectors, from, to, ahead, at, cos, sin)
#if POSENC_LANES >= 16
    CHUNKS(16, 8);
    CHUNKS(16, 4);
    CHUNKS(16, 1);
#elif POSENC_LANES >= 8
    if (from != POSENC_BF16 || to != POSENC_BF16)
        for (size_t wide; (wide = channels - at) >= 32; at += wide) {
            wide = wide < POSENC_WIDE ? wide / 32 * 32 : POSENC_WIDE;
            adjacent_wide_8(job->side, job->sides, wide, from, to, ahead, at, cos, sin);
        }
    CHUNKS(8, 4);
#else
    CHUNKS(4, 8);
#endif
#if POSENC_LANES >= 8
    CHUNKS(8, 1);
#endif
    CHUNKS(4, 1);
#undef CHUNKS
    for (; at < channels; at += 2)
        single_pair(job->side, job->sides, from, to, at, at + 1, cos[at / 2], sin[at / 2]);
}

static POSENC_INLINE void rotate_tokens(struct posenc_rotate_job *job, int layout, int from, int to,
                                        int ahead)
{
    for (;;) {
        if (layout == POSENC_SPLIT_HALF)
            split_token(job, from, to, ahead);
        else
            adjacent_token(job, from, to, ahead);
        if (!--job->tokens)
            return;
        job->cos += job->row_stride;
        job->sin += job->row_stride;
        for (int n = 0; n < job->sides; n++) {
            job->side[n].src += job->side[n].src_token;
            job->side[n].dst += job->side[n].dst_token;
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

#if POSENC_LANES >= 16
/*
 * One token whose row is a single chunk of at least 16 pairs, as decoding mostly has it. It needs
 * so few registers that none is saved and restored, which would go through memory at the very time
 * when stores of the last heads are still under way: 2 % of a call on 40 heads x 128, and 15 %
 * where the adjacent layout would take a row in several chunks (widths 96 and 112).
 */
static POSENC_INLINE int is_short(const struct posenc_rotate_job *job)
{
    return job->tokens == 1 && job->pairs - 16 <= 48 && job->pairs % 8 == 0;
}

static POSENC_INLINE void rotate_short(const struct posenc_rotate_job *job, int layout, int from,
                                       int to)
{
    const struct posenc_rotate_side *side = job->side;
    const int sides = job->sides;
    const float *cos = job->cos, *sin = job->sin;
#define SPLIT(vectors, half)                                                                       \
    split_chunk_16(side, sides, vectors, half, from, to, 0, job->partner, 0, cos, sin)
#define ADJACENT(vectors) adjacent_chunk_16(side, sides, vectors, from, to, 0, 0, cos, sin)
    if (layout == POSENC_SPLIT_HALF)
        switch (job->pairs / 8) {
        case 8: SPLIT(4, 0); break;
        case 7: SPLIT(3, 1); break;
        case 6: SPLIT(3, 0); break;
        case 5: SPLIT(2, 1); break;
        case 4: SPLIT(2, 0); break;
        case 3: SPLIT(1, 1); break;
        case 2: SPLIT(1, 0); break;
        default: break;
        }
    else
        switch (job->pairs / 8) {
        case 8: ADJACENT(8); break;
        case 7: ADJACENT(7); break;
        case 6: ADJACENT(6); break;
        case 5: ADJACENT(5); break;
        case 4: ADJACENT(4); break;
        case 3: ADJACENT(3); break;
        case 2: ADJACENT(2); break;
        default: break;
        }
#undef SPLIT
#undef ADJACENT
}
#else
static POSENC_INLINE int is_short(const struct posenc_rotate_job *job)
{
    (void)job;
    return 0;
}

static POSENC_INLINE void rotate_short(const struct posenc_rotate_job *job, int layout, int from,
                                       int to)
{
    (void)job, (void)layout, (void)from, (void)to;
}
#endif

#define ROTATE(layout, from, to)                                                               \
    static __attribute__((noinline)) void rotate_ahead_##layout##_##from##_##to(               \
        struct posenc_rotate_job *job)                                                         \
    {                                                                                          \
        rotate_tokens(job, POSENC_##layout, POSENC_##from, POSENC_##to, POSENC_AHEAD);         \
    }                                                                                          \
    static __attribute__((noinline)) void rotate_near_##layout##_##from##_##to(                \
        struct posenc_rotate_job *job)                                                         \
    {                                                                                          \
        rotate_tokens(job, POSENC_##layout, POSENC_##from, POSENC_##to, 0);                    \
    }                                                                                          \
    static void rotate_##layout##_##from##_##to(struct posenc_rotate_job *job)                 \
    {                                                                                          \
        if (job->ahead)                                                                        \
            rotate_ahead_##layout##_##from##_##to(job);                                        \
        else if (is_short(job))                                                                \
            rotate_short(job, POSENC_##layout, POSENC_##from, POSENC_##to);                    \
        else                                                                                   \
            rotate_near_##layout##_##from##_##to(job);                                         \
    }
#define CONVERT(from, to)                                                                      \
    static void convert_##from##_##to(const void *src, void *dst, size_t count)                \
    {                                                                                          \
        convert_channels(src, dst, count, POSENC_##from, POSENC_##to);                         \
    }

#include "instances.h"
