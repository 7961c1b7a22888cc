/* SPDX-License-Identifier: MIT */
/*
 * One chunk of pairs for all heads of a token: its row stays in registers, heads run inside.
 *
 * Template over the lane count N (4, 8, then 16), included by rotate.h after element.h. `vectors`,
 * the dtypes and `ahead` are constants of the instantiation; `at` is the first channel of the
 * chunk.
 */

/* bf16 to bf16 with two vectors at hand goes by even and odd channels, which needs no shuffle. */
static POSENC_INLINE int LANES(by_even_odd)(int vectors, int from, int to)
{
    return vectors % 2 == 0 && from == POSENC_BF16 && to == POSENC_BF16;
}

/*
 * Both halves of a head are loaded in the order of addresses before anything is stored, where there
 * are registers for it. Beyond the caches lines want to be asked for in order: taken pair by pair,
 * f16 was a fifth slower there. In the first cache it makes no difference.
 */
static POSENC_INLINE void LANES(split_head_bf16)(const char *a_in, const char *b_in, char *a_out,
                                                 char *b_out, int vectors, const FLOATS *c,
                                                 const FLOATS *s)
{
    BF16S a[2], b[2];
#pragma GCC unroll 2
    for (size_t j = 0; j < (size_t)vectors; j += 2)
        a[j / 2] = LANES(load_even_odd)((const uint16_t *)(const void *)a_in + j * N);
#pragma GCC unroll 2
    for (size_t j = 0; j < (size_t)vectors; j += 2)
        b[j / 2] = LANES(load_even_odd)((const uint16_t *)(const void *)b_in + j * N);
#pragma GCC unroll 2
    for (size_t j = 0; j < (size_t)vectors; j += 2) {
        FLOATS a0 = LANES(even_bf16)(a[j / 2]), a1 = LANES(odd_bf16)(a[j / 2]);
        FLOATS b0 = LANES(even_bf16)(b[j / 2]), b1 = LANES(odd_bf16)(b[j / 2]);
        LANES(store_even_odd_bf16)((uint16_t *)(void *)a_out + j * N,
                                   LANES(fnma)(b0, s[j], LANES(mul)(a0, c[j])),
                                   LANES(fnma)(b1, s[j + 1], LANES(mul)(a1, c[j + 1])));
    }
#pragma GCC unroll 2
    for (size_t j = 0; j < (size_t)vectors; j += 2) {
        FLOATS a0 = LANES(even_bf16)(a[j / 2]), a1 = LANES(odd_bf16)(a[j / 2]);
        FLOATS b0 = LANES(even_bf16)(b[j / 2]), b1 = LANES(odd_bf16)(b[j / 2]);
        LANES(store_even_odd_bf16)((uint16_t *)(void *)b_out + j * N,
                                   LANES(fma)(a0, s[j], LANES(mul)(b0, c[j])),
                                   LANES(fma)(a1, s[j + 1], LANES(mul)(b1, c[j + 1])));
    }
}

/*
 * A chunk that ends in half a vector makes the second half of its f32 heads begin in the middle of
 * a line. There vectors are loaded and stored as two halves: 6 % faster at width 80.
 */
static POSENC_INLINE FLOATS LANES(load_second)(const char *p, size_t at, int half, int from)
{
#if N == 16
    if (half && from == POSENC_F32)
        return load_f32_halves_16((const float *)(const void *)p + at);
#endif
    (void)half;
    return LANES(load)(p, at, from);
}

static POSENC_INLINE void LANES(store_second)(char *p, size_t at, int half, int to, FLOATS v)
{
#if N == 16
    if (half && to == POSENC_F32) {
        store_f32_halves_16((float *)(void *)p + at, v);
        return;
    }
#endif
    (void)half;
    LANES(store)(p, at, to, v);
}

static POSENC_INLINE void LANES(split_head_in_order)(const char *a_in, const char *b_in,
                                                     char *a_out, char *b_out, int vectors,
                                                     int half, int from, int to,
                                                     const FLOATS *c, const FLOATS *s)
{
    FLOATS a[4], b[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        a[j] = LANES(once)(LANES(load)(a_in, j * N, from));
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        b[j] = LANES(once)(LANES(load_second)(b_in, j * N, half, from));
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        LANES(store)(a_out, j * N, to, LANES(fnma)(b[j], s[j], LANES(mul)(a[j], c[j])));
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        LANES(store_second)(b_out, j * N, half, to,
                            LANES(fma)(a[j], s[j], LANES(mul)(b[j], c[j])));
}

static POSENC_INLINE void LANES(split_head)(const char *a_in, const char *b_in, char *a_out,
                                            char *b_out, int vectors, int half, int from, int to,
                                            int ahead, const FLOATS *c, const FLOATS *s)
{
    if (ahead) {
        posenc_ahead(a_in, a_out, (size_t)(vectors * N), from, to, ahead);
        posenc_ahead(b_in, b_out, (size_t)(vectors * N), from, to, ahead);
    }
    if (LANES(by_even_odd)(vectors, from, to)) {
        LANES(split_head_bf16)(a_in, b_in, a_out, b_out, vectors, c, s);
        return;
    }
    if (POSENC_REGISTERS >= 32) {
        LANES(split_head_in_order)(a_in, b_in, a_out, b_out, vectors, half, from, to, c, s);
        return;
    }
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++) {
        FLOATS a = LANES(load)(a_in, j * N, from), b = LANES(load)(b_in, j * N, from);
        LANES(store)(a_out, j * N, to, LANES(fnma)(b, s[j], LANES(mul)(a, c[j])));
        LANES(store)(b_out, j * N, to, LANES(fma)(a, s[j], LANES(mul)(b, c[j])));
    }
}

/* The factors of a chunk, in the order in which its channels will be loaded. */
static POSENC_INLINE void LANES(split_factors)(const float *p, int vectors, int from, int to,
                                               FLOATS *factors)
{
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++)
        factors[j] = LANES(load_f32)(p + j * N);
    if (!LANES(by_even_odd)(vectors, from, to))
        return;
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j += 2) {
        FLOATS first = factors[j], second = factors[j + 1];
        factors[j] = LANES(even_of)(first, second);
        factors[j + 1] = LANES(odd_of)(first, second);
    }
}

/* The factors of a chunk: of its vectors and, if it ends in half a vector, of that. */
struct LANES(posenc_factors) {
    FLOATS c[4], s[4];
#if N == 16
    f32x8 half_c, half_s;
#endif
};

static POSENC_INLINE void LANES(split_chunk_head)(const char *a_in, const char *b_in, char *a_out,
                                                  char *b_out, int vectors, int half, int from,
                                                  int to, int ahead,
                                                  const struct LANES(posenc_factors) *f)
{
    LANES(split_head)(a_in, b_in, a_out, b_out, vectors, half, from, to, ahead, f->c, f->s);
#if N == 16
    if (half) {
        const size_t in = (size_t)(vectors * N) * posenc_size(from);
        const size_t out = (size_t)(vectors * N) * posenc_size(to);
        split_head_8(a_in + in, b_in + in, a_out + out, b_out + out, 1, 0, from, to, ahead,
                     &f->half_c, &f->half_s);
    }
#else
    (void)half;
#endif
}

static POSENC_INLINE void LANES(split_chunk)(const struct posenc_rotate_side *h, int sides,
                                             int vectors, int half, int from, int to, int ahead,
                                             size_t partner, size_t at, const float *cos,
                                             const float *sin)
{
    struct LANES(posenc_factors) f;
    LANES(split_factors)(cos + at, vectors, from, to, f.c);
    LANES(split_factors)(sin + at, vectors, from, to, f.s);
#if N == 16
    if (half) {
        f.half_c = load_f32_8(cos + at + vectors * N);
        f.half_s = load_f32_8(sin + at + vectors * N);
    }
#endif
    for (; sides; sides--, h++) {
        const char *a_in = h->src + at * posenc_size(from);
        const char *b_in = a_in + partner * posenc_size(from);
        char *a_out = h->dst + at * posenc_size(to), *b_out = a_out + partner * posenc_size(to);
        const ptrdiff_t in_step = h->src_head, out_step = h->dst_head;
        ptrdiff_t in = 0, out = 0;
        for (size_t heads = h->heads; heads; heads--, in += in_step, out += out_step)
            LANES(split_chunk_head)(a_in + in, b_in + in, a_out + out, b_out + out, vectors, half,
                                    from, to, ahead, &f);
    }
}

/* Here even and odd channels are the pairs themselves. */
static POSENC_INLINE void LANES(adjacent_head_bf16)(const char *in, char *out, int vectors,
                                                    const FLOATS *c, const FLOATS *s)
{
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j += 2) {
        BF16S x = LANES(load_even_odd)((const uint16_t *)(const void *)in + j * N);
        FLOATS a = LANES(even_bf16)(x), b = LANES(odd_bf16)(x);
        LANES(store_even_odd_bf16)((uint16_t *)(void *)out + j * N,
                                   LANES(fnma)(b, s[j], LANES(mul)(a, c[j])),
                                   LANES(fma)(a, s[j], LANES(mul)(b, c[j])));
    }
}

/* x c + swap(x) (-s, s): per channel the same product and the same fma as split_half has. */
static POSENC_INLINE void LANES(adjacent_head)(const char *in, char *out, int vectors, int from,
                                               int to, int ahead, const FLOATS *c, const FLOATS *s)
{
    if (ahead)
        posenc_ahead(in, out, (size_t)(vectors * N), from, to, ahead);
    if (LANES(by_even_odd)(vectors, from, to)) {
        LANES(adjacent_head_bf16)(in, out, vectors, c, s);
        return;
    }
#pragma GCC unroll 8
    for (size_t j = 0; j < (size_t)vectors; j++) {
        FLOATS x = LANES(once)(LANES(load)(in, j * N, from));
        FLOATS y = LANES(fma)(LANES(swap_neighbours)(x), s[j], LANES(mul)(x, c[j]));
        LANES(store)(out, j * N, to, y);
    }
}

static POSENC_INLINE void LANES(adjacent_chunk)(const struct posenc_rotate_side *h, int sides,
                                                int vectors, int from, int to, int ahead, size_t at,
                                                const float *cos, const float *sin)
{
    FLOATS c[8], s[8];
    cos += at / 2;
    sin += at / 2;
    if (LANES(by_even_odd)(vectors, from, to)) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j += 2) {
            c[j] = LANES(load_f32)(cos + j * N / 2);
            s[j] = LANES(load_f32)(sin + j * N / 2);
        }
    } else {
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++) {
            c[j] = LANES(load_twice)(cos + j * N / 2);
            s[j] = LANES(negate_even)(LANES(load_twice)(sin + j * N / 2));
        }
    }
    for (; sides; sides--, h++) {
        const char *in = h->src + at * posenc_size(from);
        char *out = h->dst + at * posenc_size(to);
        const ptrdiff_t in_step = h->src_head, out_step = h->dst_head;
        for (size_t heads = h->heads; heads; heads--) {
            LANES(adjacent_head)(in, out, vectors, from, to, ahead, c, s);
            in += in_step;
            out += out_step;
        }
    }
}

#if POSENC_REGISTERS < 32 && N == POSENC_LANES
/*
 * Where registers hold no whole row, adjacent factors are laid out in memory once per token, and a
 * few heads at a time take them from there, a quarter of a head after the other. That needs help to
 * keep pace with the second cache, so it always reads ahead: 9 % gained there, 8 % lost in the
 * first.
 */
enum { POSENC_WIDE = 128 };

static POSENC_INLINE void LANES(adjacent_group)(const char *in, char *out, ptrdiff_t in_step,
                                                ptrdiff_t out_step, size_t heads, int from, int to,
                                                int ahead, const float *cos, const float *sin)
{
    FLOATS c[4], s[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        c[j] = LANES(load_f32)(cos + j * N);
        s[j] = LANES(load_f32)(sin + j * N);
    }
    if (heads & 1) {
        LANES(adjacent_head)(in, out, 4, from, to, ahead, c, s);
        in += in_step;
        out += out_step;
    }
    for (heads /= 2; heads; heads--) {
        LANES(adjacent_head)(in, out, 4, from, to, ahead, c, s);
        LANES(adjacent_head)(in + in_step, out + out_step, 4, from, to, ahead, c, s);
        in += 2 * in_step;
        out += 2 * out_step;
    }
}

static POSENC_INLINE void LANES(adjacent_wide)(const struct posenc_rotate_side *h, int sides,
                                               size_t channels, int from, int to, int ahead,
                                               size_t at, const float *cos, const float *sin)
{
    float c[POSENC_WIDE], s[POSENC_WIDE];
    for (size_t j = 0; j < channels; j += N) {
        LANES(store_f32)(c + j, LANES(load_twice)(cos + (at + j) / 2));
        LANES(store_f32)(s + j, LANES(negate_even)(LANES(load_twice)(sin + (at + j) / 2)));
    }
    for (; sides; sides--, h++) {
        const ptrdiff_t in_step = h->src_head, out_step = h->dst_head;
        const char *in = h->src + at * posenc_size(from);
        char *out = h->dst + at * posenc_size(to);
        for (size_t left = h->heads; left;) {
            const size_t group = left < POSENC_GROUP ? left : POSENC_GROUP;
            for (size_t j = 0; j < channels; j += 4 * N)
                LANES(adjacent_group)
                (in + j * posenc_size(from), out + j * posenc_size(to), in_step, out_step, group,
                 from, to, ahead ? ahead : POSENC_AHEAD_NEAR, c + j, s + j);
            in += (ptrdiff_t)group * in_step;
            out += (ptrdiff_t)group * out_step;
            left -= group;
        }
    }
}
#endif

static POSENC_INLINE size_t LANES(convert_run)(const char *src, char *dst, size_t at, size_t count,
                                               int from, int to)
{
    for (; count - at >= N; at += N)
        LANES(store)(dst, at, to, LANES(load)(src, at, from));
    return at;
}

#include "element_end.h"
