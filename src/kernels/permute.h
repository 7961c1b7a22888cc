/* SPDX-License-Identifier: MIT */
/*
 * Channels between the pair layouts, for elements of 16, 32 and 64 bits.
 *
 * Template. Before the inclusion:
 *   POSENC_VECTOR_BYTES   of the largest vectors: 16, 32 and 64 are tested
 *   KERNEL(name)          the name of a kernel table of this ISA
 * It defines KERNEL(permute), which kernels.h describes. Heads too short for the largest vectors
 * take those of 16 bytes, shorter ones go element by element.
 */
#include "../kernels.h"

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

#define PASTE_(name, bits, bytes) name##_##bits##_##bytes
#define PASTE(name, bits, bytes) PASTE_(name, bits, bytes)
#define PERMUTE(layout, run, bits)                                                             \
    static void permute_##layout##_##bits(const struct posenc_permute_job *job)                \
    {                                                                                          \
        const char *src = job->src;                                                            \
        char *dst = job->dst;                                                                  \
        const size_t bytes = job->pairs * (bits / 8);                                          \
        for (size_t h = 0; h < job->heads; h++, src += job->src_head, dst += job->dst_head) {  \
            if (bytes >= POSENC_VECTOR_BYTES)                                                  \
                PASTE(run, bits, POSENC_VECTOR_BYTES)(src, dst, bytes);                        \
            else if (bytes >= 16)                                                              \
                PASTE(run, bits, 16)(src, dst, bytes);                                         \
            else                                                                               \
                short_head(src, dst, bytes, bits / 8, POSENC_##layout == POSENC_ADJACENT);     \
        }                                                                                      \
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
#undef PERMUTE
