/* SPDX-License-Identifier: MIT */
/*
 * Rotation from one pair layout into the other, for every pair of dtypes: what rotate.h does, with
 * the pairs written to other channels. Source and destination are disjoint.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives the operations for its lane counts and POSENC_LANES (4, 8 and 16 are
 *                       tested)
 *   KERNEL(name)        the name of a kernel table of this ISA
 * It defines KERNEL(rotate_across), which kernels.h describes. A vector of factors serves all
 * heads before the next one is loaded, as in rotate.h.
 */
#include "channel.h"

#define N 4
#include "element.h"
#include "rotate_across_chunk.h"
#if POSENC_LANES >= 8
#define N 8
#include "element.h"
#include "rotate_across_chunk.h"
#endif
#if POSENC_LANES >= 16
#define N 16
#include "element.h"
#include "rotate_across_chunk.h"
#endif

/* The channels of pair `at`, in both layouts. */
static POSENC_INLINE void across_pair(const struct posenc_rotate_side *h, int layout, int from,
                                      int to, size_t partner, size_t at, float c, float s)
{
    const size_t p = layout == POSENC_ADJACENT ? 2 * at : at;
    const size_t q = layout == POSENC_ADJACENT ? 2 * at + 1 : at + partner;
    const size_t out_p = layout == POSENC_ADJACENT ? at : 2 * at;
    const size_t out_q = layout == POSENC_ADJACENT ? at + partner : 2 * at + 1;
    const char *src = h->src;
    char *dst = h->dst;
    for (size_t head = 0; head < h->heads; head++) {
        float a = posenc_load(src, p, from), b = posenc_load(src, q, from);
        posenc_store(dst, out_p, to, posenc_fmaf(-b, s, a * c));
        posenc_store(dst, out_q, to, posenc_fmaf(a, s, b * c));
        src += h->src_head;
        dst += h->dst_head;
    }
}

static POSENC_INLINE void across_token(const struct posenc_rotate_job *job, int layout, int from,
                                       int to)
{
    const float *cos = job->cos, *sin = job->sin;
    for (int n = 0; n < job->sides; n++) {
        const struct posenc_rotate_side *side = &job->side[n];
        size_t at = 0;
#define CHUNKS(lanes, vectors)                                                                 \
    for (; job->pairs - at >= lanes * vectors; at += lanes * vectors)                          \
        across_chunk_##lanes(side, vectors, layout, from, to, job->partner, at, cos + at, sin + at)
#if POSENC_LANES >= 16
        CHUNKS(16, 4);
        CHUNKS(16, 1);
#endif
#if POSENC_LANES >= 8
        CHUNKS(8, 2);
        CHUNKS(8, 1);
#endif
        CHUNKS(4, 1);
#undef CHUNKS
        for (; at < job->pairs; at++)
            across_pair(side, layout, from, to, job->partner, at, cos[at], sin[at]);
    }
}

static POSENC_INLINE void across_tokens(struct posenc_rotate_job *job, int layout, int from, int to)
{
    for (;;) {
        across_token(job, layout, from, to);
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

#define ACROSS(layout, from, to)                                                               \
    static void across_##layout##_##from##_##to(struct posenc_rotate_job *job)                 \
    {                                                                                          \
        across_tokens(job, POSENC_##layout, POSENC_##from, POSENC_##to);                       \
    }

#include "instances_across.h"
