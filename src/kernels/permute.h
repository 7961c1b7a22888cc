/* SPDX-License-Identifier: MIT */
/*
 * Channels between the pair layouts, for elements of 16, 32 and 64 bits.
 *
 * Template. Before the inclusion:
 *   POSENC_VECTOR_BYTES   of the largest vectors: 16, 32 and 64 are tested
 *   vec.h of the ISA      gives STREAM-ing stores of that width and stream_end
 *   KERNEL(name)          the name of a kernel table of this ISA
 * It defines KERNEL(permute), which kernels.h describes. Heads too short for the largest vectors
 * take those of 16 bytes, shorter ones go element by element.
 */
#include "../kernels.h"

#define POSENC_INLINE inline __attribute__((always_inline))

#if POSENC_VECTOR_BYTES == 64
#define STREAM stream_f32_16
#define STREAM_VECTOR f32x16
#elif POSENC_VECTOR_BYTES == 32
#define STREAM stream_f32_8
#define STREAM_VECTOR f32x8
#else
#define STREAM stream_f32_4
#define STREAM_VECTOR f32x4
#endif

#define BITS 16
#define BYTES 16
#include "permute_run.h"
#if POSENC_VECTOR_BYTES > 16
#define BYTES POSENC_VECTOR_BYTES
#include "permute_run.h"
#endif
#undef BITS
#define BITS 32
#define BYTES 16
#include "permute_run.h"
#if POSENC_VECTOR_BYTES > 16
#define BYTES POSENC_VECTOR_BYTES
#include "permute_run.h"
#endif
#undef BITS
#define BITS 64
#define BYTES 16
#include "permute_run.h"
#if POSENC_VECTOR_BYTES > 16
#define BYTES POSENC_VECTOR_BYTES
#include "permute_run.h"
#endif
#undef BITS

static inline void short_head(const char *src, char *dst, size_t bytes, size_t size, int adjacent)
{
    for (size_t at = 0; at < bytes; at += size)
        for (size_t s = 0; s < 2; s++) {
            const size_t halves = s * bytes + at, pairs = 2 * at + s * size;
            memcpy(dst + (adjacent ? pairs : halves), src + (adjacent ? halves : pairs), size);
        }
}

enum { AHEAD = 4096, LINE = 64 };

static inline void read_source_ahead(const char *src, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch(src + at + AHEAD, 0, 3);
}

/* Asks for the lines that a later head will want, the destination's for writing. */
static inline void read_ahead(const char *src, char *dst, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE) {
        __builtin_prefetch(dst + at + AHEAD, 1, 3);
        if (src != dst)
            __builtin_prefetch(src + at + AHEAD, 0, 3);
    }
}

/* Every head of the destination has whole lines. */
static inline int by_lines(const struct posenc_permute_job *job)
{
    return (uintptr_t)job->dst % LINE == 0 && job->dst_head % LINE == 0;
}

#define PASTE_(name, bits, bytes) name##_##bits##_##bytes
#define PASTE(name, bits, bytes) PASTE_(name, bits, bytes)
/* All heads by `run`, which may be given `half` as a constant. */
#define HEADS(run, half)                                                                       \
    for (size_t h = 0; h < job->heads; h++, src += job->src_head, dst += job->dst_head) {      \
        if (job->ahead)                                                                        \
            read_ahead(src, dst, 2 * (half));                                                  \
        run(src, dst, half);                                                                   \
    }
#define STREAM_HEADS(run, half)                                                                \
    for (size_t h = 0; h < job->heads; h++, src += job->src_head, dst += job->dst_head) {      \
        read_source_ahead(src, 2 * (half));                                                    \
        run(src, dst, half);                                                                   \
    }
#define PERMUTE(layout, run, bits)                                                             \
    static inline void short_##layout##_##bits(const char *src, char *dst, size_t bytes)       \
    {                                                                                          \
        short_head(src, dst, bytes, bits / 8, POSENC_##layout == POSENC_ADJACENT);             \
    }                                                                                          \
    static void stream_##layout##_##bits(const struct posenc_permute_job *job, size_t half)    \
    {                                                                                          \
        const char *src = job->src;                                                            \
        char *dst = job->dst;                                                                  \
        if (half == 64)                                                                        \
            STREAM_HEADS(PASTE(run##_stream, bits, POSENC_VECTOR_BYTES), 64)                   \
        else if (half == 128)                                                                  \
            STREAM_HEADS(PASTE(run##_stream, bits, POSENC_VECTOR_BYTES), 128)                  \
        else                                                                                   \
            STREAM_HEADS(PASTE(run##_stream, bits, POSENC_VECTOR_BYTES), 256)                  \
        stream_end();                                                                          \
    }                                                                                          \
    static void permute_##layout##_##bits(const struct posenc_permute_job *job)                \
    {                                                                                          \
        const char *src = job->src;                                                            \
        char *dst = job->dst;                                                                  \
        const size_t half = job->pairs * (bits / 8);                                           \
        if (job->stream && by_lines(job) && (half == 64 || half == 128 || half == 256))        \
            stream_##layout##_##bits(job, half);                                               \
        else if (half == 64)                                                                   \
            HEADS(PASTE(run##_whole, bits, POSENC_VECTOR_BYTES), 64)                           \
        else if (half == 128)                                                                  \
            HEADS(PASTE(run##_whole, bits, POSENC_VECTOR_BYTES), 128)                          \
        else if (half == 256)                                                                  \
            HEADS(PASTE(run##_whole, bits, POSENC_VECTOR_BYTES), 256)                          \
        else if (half >= POSENC_VECTOR_BYTES)                                                  \
            HEADS(PASTE(run, bits, POSENC_VECTOR_BYTES), half)                                 \
        else if (half >= 16)                                                                   \
            HEADS(PASTE(run, bits, 16), half)                                                  \
        else                                                                                   \
            HEADS(short_##layout##_##bits, half)                                               \
    }

PERMUTE(ADJACENT, zip, 16)
PERMUTE(ADJACENT, zip, 32)
PERMUTE(ADJACENT, zip, 64)
PERMUTE(SPLIT_HALF, unzip, 16)
PERMUTE(SPLIT_HALF, unzip, 32)
PERMUTE(SPLIT_HALF, unzip, 64)

posenc_permute_kernel *const KERNEL(permute)[2][3] = {
    {permute_ADJACENT_16, permute_ADJACENT_32, permute_ADJACENT_64},
    {permute_SPLIT_HALF_16, permute_SPLIT_HALF_32, permute_SPLIT_HALF_64},
};

#undef PASTE_
#undef PASTE
#undef HEADS
#undef STREAM_HEADS
#undef STREAM
#undef STREAM_VECTOR
#undef PERMUTE
