/* SPDX-License-Identifier: MIT */
/*
 * The channels of one head between the pair layouts, by vectors of one width.
 *
 * Template, included by permute.h. Before the inclusion:
 *   BITS     of an element: 16, 32 or 64
 *   BYTES    of a vector: 16, 32 or 64
 * It defines RUN(zip) and RUN(unzip), for disjoint memory and at least one vector in each half, and
 * RUN(zip_whole) and RUN(unzip_whole), which load a head before they store it, from its first line
 * to its last; vectors of the largest width also as RUN(zip_stream) and RUN(unzip_stream), to lines
 * that are not read. The vectors are the compiler's own: moving elements needs nothing that an ISA
 * has for itself. A last vector that is not full begins earlier and moves some elements twice,
 * which no one can see.
 */
#define RUN_PASTE_(name, bits, bytes) name##_##bits##_##bytes
#define RUN_PASTE(name, bits, bytes) RUN_PASTE_(name, bits, bytes)
#define RUN(name) RUN_PASTE(name, BITS, BYTES)
#define RUN_LANES (8 * BYTES / BITS)
#define ELEMENT_(bits) uint##bits##_t
#define ELEMENT(bits) ELEMENT_(bits)

typedef ELEMENT(BITS) RUN(vector) __attribute__((vector_size(BYTES)));
typedef RUN(vector) RUN(anywhere) __attribute__((aligned(1), may_alias));

/* The index lists of the four shuffles, by doubling. Two vectors are numbered through. */
#define ZIP_1(i) (i), (i) + RUN_LANES
#define ZIP_2(i) ZIP_1(i), ZIP_1((i) + 1)
#define ZIP_4(i) ZIP_2(i), ZIP_2((i) + 2)
#define ZIP_8(i) ZIP_4(i), ZIP_4((i) + 4)
#define ZIP_16(i) ZIP_8(i), ZIP_8((i) + 8)
#define EACH_2(i) (i), (i) + 2
#define EACH_4(i) EACH_2(i), EACH_2((i) + 4)
#define EACH_8(i) EACH_4(i), EACH_4((i) + 8)
#define EACH_16(i) EACH_8(i), EACH_8((i) + 16)
#define EACH_32(i) EACH_16(i), EACH_16((i) + 32)
#if RUN_LANES == 32
#define ZIP ZIP_16
#define EACH EACH_32
#elif RUN_LANES == 16
#define ZIP ZIP_8
#define EACH EACH_16
#elif RUN_LANES == 8
#define ZIP ZIP_4
#define EACH EACH_8
#elif RUN_LANES == 4
#define ZIP ZIP_2
#define EACH EACH_4
#else
#define ZIP ZIP_1
#define EACH EACH_2
#endif

static inline void RUN(zip_once)(const char *first, const char *second, char *out)
{
    RUN(vector) a = *(const RUN(anywhere) *)first, b = *(const RUN(anywhere) *)second;
    *(RUN(anywhere) *)out = __builtin_shufflevector(a, b, ZIP(0));
    *(RUN(anywhere) *)(out + BYTES) = __builtin_shufflevector(a, b, ZIP(RUN_LANES / 2));
}

static inline void RUN(unzip_once)(const char *in, char *first, char *second)
{
    RUN(vector) a = *(const RUN(anywhere) *)in, b = *(const RUN(anywhere) *)(in + BYTES);
    *(RUN(anywhere) *)first = __builtin_shufflevector(a, b, EACH(0));
    *(RUN(anywhere) *)second = __builtin_shufflevector(a, b, EACH(1));
}

/* Two halves of `bytes` each become pairs. */
static inline void RUN(zip)(const char *src, char *dst, size_t bytes)
{
    size_t at = 0;
    for (; bytes - at >= BYTES; at += BYTES)
        RUN(zip_once)(src + at, src + bytes + at, dst + 2 * at);
    if (at < bytes)
        RUN(zip_once)(src + bytes - BYTES, src + 2 * bytes - BYTES, dst + 2 * (bytes - BYTES));
}

static inline void RUN(unzip)(const char *src, char *dst, size_t bytes)
{
    size_t at = 0;
    for (; bytes - at >= BYTES; at += BYTES)
        RUN(unzip_once)(src + 2 * at, dst + at, dst + bytes + at);
    if (at < bytes)
        RUN(unzip_once)(src + 2 * (bytes - BYTES), dst + bytes - BYTES, dst + 2 * bytes - BYTES);
}

static POSENC_INLINE void RUN(store)(char *dst, RUN(vector) v, int stream)
{
#if BYTES == POSENC_VECTOR_BYTES
    if (stream) {
        STREAM((float *)(void *)dst, (STREAM_VECTOR)v);
        return;
    }
#endif
    (void)stream;
    *(RUN(anywhere) *)dst = v;
}

static POSENC_INLINE void RUN(zip_by)(const char *src, char *dst, size_t bytes, int stream)
{
    RUN(vector) a[256 / BYTES], b[256 / BYTES];
    const size_t vectors = bytes / BYTES;
#pragma GCC unroll 16
    for (size_t j = 0; j < vectors; j++)
        a[j] = *(const RUN(anywhere) *)(src + j * BYTES);
#pragma GCC unroll 16
    for (size_t j = 0; j < vectors; j++)
        b[j] = *(const RUN(anywhere) *)(src + bytes + j * BYTES);
#pragma GCC unroll 16
    for (size_t j = 0; j < vectors; j++, dst += 2 * BYTES) {
        RUN(store)(dst, __builtin_shufflevector(a[j], b[j], ZIP(0)), stream);
        RUN(store)(dst + BYTES, __builtin_shufflevector(a[j], b[j], ZIP(RUN_LANES / 2)), stream);
    }
}

static POSENC_INLINE void RUN(unzip_by)(const char *src, char *dst, size_t bytes, int stream)
{
    RUN(vector) a[256 / BYTES], b[256 / BYTES];
    const size_t vectors = bytes / BYTES;
#pragma GCC unroll 16
    for (size_t j = 0; j < vectors; j++) {
        a[j] = *(const RUN(anywhere) *)(src + 2 * j * BYTES);
        b[j] = *(const RUN(anywhere) *)(src + (2 * j + 1) * BYTES);
    }
#pragma GCC unroll 16
    for (size_t j = 0; j < vectors; j++)
        RUN(store)(dst + j * BYTES, __builtin_shufflevector(a[j], b[j], EACH(0)), stream);
#pragma GCC unroll 16
    for (size_t j = 0; j < vectors; j++)
        RUN(store)(dst + bytes + j * BYTES, __builtin_shufflevector(a[j], b[j], EACH(1)), stream);
}

static POSENC_INLINE void RUN(zip_whole)(const char *src, char *dst, size_t bytes)
{
    RUN(zip_by)(src, dst, bytes, 0);
}

static POSENC_INLINE void RUN(unzip_whole)(const char *src, char *dst, size_t bytes)
{
    RUN(unzip_by)(src, dst, bytes, 0);
}

#if BYTES == POSENC_VECTOR_BYTES
static POSENC_INLINE void RUN(zip_stream)(const char *src, char *dst, size_t bytes)
{
    RUN(zip_by)(src, dst, bytes, 1);
}

static POSENC_INLINE void RUN(unzip_stream)(const char *src, char *dst, size_t bytes)
{
    RUN(unzip_by)(src, dst, bytes, 1);
}
#endif

#undef RUN_PASTE_
#undef RUN_PASTE
#undef RUN
#undef RUN_LANES
#undef ELEMENT_
#undef ELEMENT
#undef ZIP_1
#undef ZIP_2
#undef ZIP_4
#undef ZIP_8
#undef ZIP_16
#undef EACH_2
#undef EACH_4
#undef EACH_8
#undef EACH_16
#undef EACH_32
#undef ZIP
#undef EACH
#undef BYTES
