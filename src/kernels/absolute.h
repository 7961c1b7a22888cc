/* SPDX-License-Identifier: MIT */
/*
 * Rows added to embeddings, and pairs that go side by side, over the vector layer.
 *
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives the operations for its lane counts and POSENC_LANES, the largest
 *   KERNEL(name)        the name of a kernel table of this ISA
 * It defines KERNEL(add), KERNEL(add_pairs) and KERNEL(write_pairs), which kernels.h describes.
 */
#include "channel.h"

/* One token of a job. */
struct posenc_place {
    const char *x;
    char *y;
    const float *row, *odd;
};

/* Where the others of its copies are. */
struct posenc_copies {
    size_t count;
    ptrdiff_t x, y;
};

/* Asks for the lines of some bytes, for writing. */
static POSENC_INLINE void ask(const char *p, size_t bytes)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < bytes; i += 64)
        prefetch_write(p + i);
}

#define N 4
#include "element.h"
#include "absolute_chunk.h"
#if POSENC_LANES >= 8
#define N 8
#include "element.h"
#include "absolute_chunk.h"
#endif
#if POSENC_LANES >= 16
#define N 16
#include "element.h"
#include "absolute_chunk.h"
#endif

#if POSENC_LANES >= 16
#define WIDEST(name) name##_16
#elif POSENC_LANES >= 8
#define WIDEST(name) name##_8
#else
#define WIDEST(name) name##_4
#endif

static POSENC_INLINE void add_channels(const struct posenc_place *p, size_t count, int from, int to,
                                       float scale, ptrdiff_t ahead)
{
    size_t at = 0;
    for (; count - at >= 4 * POSENC_LANES; at += 4 * POSENC_LANES) {
        if (ahead)
            ask(p->y + at * posenc_size(to) + ahead, 4 * POSENC_LANES * posenc_size(to));
        WIDEST(add_vectors)(p, at, 4, from, to, scale);
    }
    for (; count - at >= POSENC_LANES; at += POSENC_LANES) {
        if (ahead)
            ask(p->y + at * posenc_size(to) + ahead, POSENC_LANES * posenc_size(to));
        WIDEST(add_vectors)(p, at, 1, from, to, scale);
    }
#if POSENC_LANES > 4
    for (; count - at >= 4; at += 4)
        add_vectors_4(p, at, 1, from, to, scale);
#endif
    for (; at < count; at++)
        posenc_store(p->y, at, to, posenc_fmaf(posenc_load(p->x, at, from), scale, p->row[at]));
}

/* The same for several copies. */
static POSENC_INLINE void add_to_copies(const struct posenc_place *p,
                                        const struct posenc_copies *copies, size_t count, int from,
                                        int to, float scale, ptrdiff_t ahead)
{
    size_t at = 0;
    for (; count - at >= 4 * POSENC_LANES; at += 4 * POSENC_LANES)
        WIDEST(copy_vectors)(*p, copies, at, 4, from, to, scale, ahead);
    for (; count - at >= POSENC_LANES; at += POSENC_LANES)
        WIDEST(copy_vectors)(*p, copies, at, 1, from, to, scale, ahead);
#if POSENC_LANES > 4
    for (; count - at >= 4; at += 4)
        copy_vectors_4(*p, copies, at, 1, from, to, scale, ahead);
#endif
    for (; at < count; at++) {
        const char *x = p->x;
        char *y = p->y;
        for (size_t left = copies->count; left; left--, x += copies->x, y += copies->y)
            posenc_store(y, at, to, posenc_fmaf(posenc_load(x, at, from), scale, p->row[at]));
    }
}

static POSENC_INLINE void pair_channels(const struct posenc_place *p, size_t pairs, int write,
                                        int from, int to, float scale, ptrdiff_t ahead)
{
    size_t at = 0;
    for (; pairs - at >= POSENC_LANES; at += POSENC_LANES) {
        if (ahead)
            ask(p->y + 2 * at * posenc_size(to) + ahead, 2 * POSENC_LANES * posenc_size(to));
        WIDEST(pair_vectors)(p, at, write, from, to, scale);
    }
#if POSENC_LANES > 4
    for (; pairs - at >= 4; at += 4)
        pair_vectors_4(p, at, write, from, to, scale);
#endif
    for (; at < pairs; at++)
        for (size_t i = 0; i < 2; i++) {
            float v = i ? p->odd[at] : p->row[at];
            if (!write)
                v = posenc_fmaf(posenc_load(p->x, 2 * at + i, from), scale, v);
            posenc_store(p->y, 2 * at + i, to, v);
        }
}

static POSENC_INLINE void each_token(const struct posenc_add_job *job, int pairs, int write,
                                     int from, int to)
{
    struct posenc_place p = {job->x, job->y, job->row, job->odd};
    const struct posenc_copies copies = {job->copies, job->x_copy, job->y_copy};
    for (size_t left = job->tokens;;) {
        if (pairs)
            pair_channels(&p, job->count, write, from, to, job->scale, job->ahead);
        else if (copies.count > 1)
            add_to_copies(&p, &copies, job->count, from, to, job->scale, job->ahead);
        else
            add_channels(&p, job->count, from, to, job->scale, job->ahead);
        if (!--left)
            return;
        p.row += job->row_token;
        p.y += job->y_token;
        if (!write)
            p.x += job->x_token;
        if (pairs)
            p.odd += job->row_token;
    }
}

#define ADD(from, to)                                                                          \
    static void add_##from##_##to(const struct posenc_add_job *job)                            \
    {                                                                                          \
        each_token(job, 0, 0, POSENC_##from, POSENC_##to);                                     \
    }                                                                                          \
    static void add_pairs_##from##_##to(const struct posenc_add_job *job)                      \
    {                                                                                          \
        each_token(job, 1, 0, POSENC_##from, POSENC_##to);                                     \
    }
#define WRITE(to)                                                                              \
    static void write_pairs_##to(const struct posenc_add_job *job)                             \
    {                                                                                          \
        each_token(job, 1, 1, POSENC_F32, POSENC_##to);                                        \
    }

#include "absolute_instances.h"
