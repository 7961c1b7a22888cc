/* SPDX-License-Identifier: MIT */
/*
 * The norm kernels of kernels.h over the vector layer, for every pair of dtypes and both layouts.
 *
 * Template. Before the inclusion: vec.h of the ISA, and KERNEL(name), the name of a kernel table.
 */
#include "attention_vector.h"
#include "norm_squares.h"

static POSENC_INLINE void stream_line(const char *in, char *out)
{
#pragma GCC unroll 4
    for (int i = 0; i < 64; i += 4 * LANES)
        V(stream_f32_)((float *)(void *)(out + i), V(load_f32_)((const void *)(in + i)));
}

/* Whole lines past the caches, ragged ends by plain stores. */
void KERNEL(stream)(const void *src, void *dst, size_t bytes)
{
    const char *in = src;
    char *out = dst;
    size_t head = (size_t)(-(uintptr_t)dst & 63);
    head = head < bytes ? head : bytes;
    memcpy(out, in, head);
    for (in += head, out += head, bytes -= head; bytes >= 64; in += 64, out += 64, bytes -= 64)
        stream_line(in, out);
    memcpy(out, in, bytes);
}

void KERNEL(stream_end)(void)
{
    stream_end();
}

#include "attention_vector_end.h"

#define N 4
#include "element.h"
#include "norm_chunk.h"
#include "element_end.h"
#if POSENC_LANES >= 8
#define N 8
#include "element.h"
#include "norm_chunk.h"
#include "element_end.h"
#endif
#if POSENC_LANES >= 16
#define N 16
#include "element.h"
#include "norm_chunk.h"
#include "norm_whole.h"
#include "element_end.h"
#endif

static POSENC_INLINE void norm_pair(const struct posenc_norm_job *job, int layout, int from, int to,
                                    size_t i)
{
    const int adjacent = layout == POSENC_ADJACENT;
    const size_t p = adjacent ? 2 * i : i, second = adjacent ? p + 1 : job->count + i;
    const size_t q = adjacent ? p + 1 : job->partner + i;
    const float sine = adjacent ? -job->s[p] : job->s[p];
    const char *src = job->src;
    char *dst = job->dst;
    for (size_t h = 0; h < job->heads; h++) {
        float a = posenc_load(src, p, from) * job->g[h], b = posenc_load(src, q, from) * job->g[h];
        posenc_store(dst, p, to, posenc_fmaf(-b, sine, a * job->c[p]));
        posenc_store(dst, adjacent ? q : job->dst_partner + i, to,
                     posenc_fmaf(a, job->s[second], b * job->c[second]));
        src += job->src_head;
        dst += job->dst_head;
    }
}

static POSENC_INLINE void norm_rotate(const struct posenc_norm_job *job, int layout, int from,
                                      int to)
{
    const int adjacent = layout == POSENC_ADJACENT;
    const size_t end = adjacent ? 2 * job->count : job->count;
    size_t at = 0;
#define CHUNKS(lanes, wide, vectors)                                                           \
    for (; adjacent && end - at >= lanes * wide; at += lanes * wide)                           \
        norm_adjacent_##lanes(job, wide, from, to, at);                                        \
    for (; !adjacent && end - at >= lanes * vectors; at += lanes * vectors)                    \
        norm_split_##lanes(job, vectors, from, to, at)
#if POSENC_LANES >= 16
    CHUNKS(16, 8, 4);
    CHUNKS(16, 2, 2);
    CHUNKS(16, 1, 1);
#endif
#if POSENC_LANES >= 8
    CHUNKS(8, 4, 2);
    CHUNKS(8, 1, 1);
#else
    CHUNKS(4, 8, 4);
#endif
    CHUNKS(4, 1, 1);
#undef CHUNKS
    for (; at < end; at += adjacent ? 2 : 1)
        norm_pair(job, layout, from, to, adjacent ? at / 2 : at);
}

static POSENC_INLINE void scale_channels(const char *in, char *out, const float *w, float g,
                                         size_t count, int from, int to)
{
    size_t at = 0;
#if POSENC_LANES >= 16
    at = norm_scale_16(in, out, w, g, at, count, from, to);
#endif
#if POSENC_LANES >= 8
    at = norm_scale_8(in, out, w, g, at, count, from, to);
#endif
    at = norm_scale_4(in, out, w, g, at, count, from, to);
    for (; at < count; at++) {
        float u = posenc_load(in, at, from) * g;
        posenc_store(out, at, to, w ? u * w[at] : u);
    }
}

static POSENC_INLINE void norm_scale(const struct posenc_norm_job *job, int from, int to)
{
    const char *in = job->src;
    char *out = job->dst;
    for (size_t h = 0; h < job->heads; h++) {
        if (job->c)
            scale_channels(in, out, job->c, job->g[h], job->count, from, to);
        else
            scale_channels(in, out, NULL, job->g[h], job->count, from, to);
        in += job->src_head;
        out += job->dst_head;
    }
}

static void fold_SPLIT_HALF(const float *cos, const float *sin, const float *p, const float *q,
                            size_t pairs, float *c, float *s)
{
    size_t at = 0;
#if POSENC_LANES >= 16
    for (; pairs - at >= 16; at += 16)
        fold_split_16(cos, sin, p, q, at, pairs, c, s);
#endif
#if POSENC_LANES >= 8
    for (; pairs - at >= 8; at += 8)
        fold_split_8(cos, sin, p, q, at, pairs, c, s);
#endif
    for (; pairs - at >= 4; at += 4)
        fold_split_4(cos, sin, p, q, at, pairs, c, s);
    for (; at < pairs; at++) {
        c[at] = p ? cos[at] * p[at] : cos[at];
        c[pairs + at] = p ? cos[at] * q[at] : cos[at];
        s[at] = p ? sin[at] * q[at] : sin[at];
        s[pairs + at] = p ? sin[at] * p[at] : sin[at];
    }
}

static void fold_ADJACENT(const float *cos, const float *sin, const float *p, const float *q,
                          size_t pairs, float *c, float *s)
{
    const size_t end = 2 * pairs;
    size_t at = 0;
    (void)q;
#if POSENC_LANES >= 16
    for (; end - at >= 16; at += 16)
        fold_adjacent_16(cos, sin, p, at, c, s);
#endif
#if POSENC_LANES >= 8
    for (; end - at >= 8; at += 8)
        fold_adjacent_8(cos, sin, p, at, c, s);
#endif
    for (; end - at >= 4; at += 4)
        fold_adjacent_4(cos, sin, p, at, c, s);
    for (; at < end; at += 2) {
        float x = cos[at / 2], y = sin[at / 2];
        c[at] = p ? x * p[at] : x;
        c[at + 1] = p ? x * p[at + 1] : x;
        s[at] = -(p ? y * p[at + 1] : y);
        s[at + 1] = p ? y * p[at] : y;
    }
}

#if POSENC_LANES >= 16
/* Widths 64 and 128 take whole vectors and fit the registers. */
static POSENC_INLINE void norm_turn(const struct posenc_norm_turn_job *job, int layout, int from,
                                    int to)
{
    if (job->turn.count == 64)
        whole_heads_16(job, layout, 8, from, to);
    else
        whole_heads_16(job, layout, 4, from, to);
}
#define NORM_TURN(layout, from, to)                                                            \
    static void norm_turn_##layout##_##from##_##to(const struct posenc_norm_turn_job *job)     \
    {                                                                                          \
        norm_turn(job, POSENC_##layout, POSENC_##from, POSENC_##to);                           \
    }
#endif

#include "instances_norm.h"
