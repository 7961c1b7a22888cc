/* SPDX-License-Identifier: MIT */
/*
 * One chunk of pairs for all heads of a token: cosines and sines stay in registers, heads run inside.
 *
 * Template over the lane count N (16, 8, 4), included by rotate.h after element.h. `vectors`, the
 * dtypes and `ahead` are constants of the instantiation; `at` is the first channel of the chunk.
 */

static POSENC_INLINE void LANES(split_chunk)(const struct posenc_heads *h, int vectors, int from,
                                             int to, int ahead, size_t at, const float *cos,
                                             const float *sin)
{
    const char *src = h->src;
    char *dst = h->dst;
    FLOATS c[4], s[4];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) {
        c[j] = LANES(load_f32)(cos + at + j * N);
        s[j] = LANES(load_f32)(sin + at + j * N);
    }
    for (size_t head = 0; head < h->heads; head++, src += h->src_head, dst += h->dst_head) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            size_t p = at + (size_t)(j * N), q = p + h->partner;
            if (ahead) {
                posenc_ahead(src, dst, p, at, from, to);
                posenc_ahead(src, dst, q, at + h->partner, from, to);
            }
            FLOATS a = LANES(load)(src, p, from), b = LANES(load)(src, q, from);
            LANES(store)(dst, p, to, LANES(fnma)(b, s[j], LANES(mul)(a, c[j])));
            LANES(store)(dst, q, to, LANES(fma)(a, s[j], LANES(mul)(b, c[j])));
        }
    }
}

/* x c + swap(x) (-s, s): per channel the same product and the same fma as split_half has. */
static POSENC_INLINE void LANES(adjacent_chunk)(const struct posenc_heads *h, int vectors, int from,
                                                int to, int ahead, size_t at, const float *cos,
                                                const float *sin)
{
    const char *src = h->src;
    char *dst = h->dst;
    FLOATS c[8], s[8];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        c[j] = LANES(load_twice)(cos + at / 2 + j * N / 2);
        s[j] = LANES(negate_even)(LANES(load_twice)(sin + at / 2 + j * N / 2));
    }
    for (size_t head = 0; head < h->heads; head++, src += h->src_head, dst += h->dst_head) {
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++) {
            size_t p = at + (size_t)(j * N);
            if (ahead)
                posenc_ahead(src, dst, p, at, from, to);
            FLOATS x = LANES(load)(src, p, from);
            FLOATS y = LANES(fma)(LANES(swap_neighbours)(x), s[j], LANES(mul)(x, c[j]));
            LANES(store)(dst, p, to, y);
        }
    }
}

static POSENC_INLINE size_t LANES(convert_run)(const char *src, char *dst, size_t at, size_t count,
                                               int from, int to)
{
    for (; count - at >= N; at += N)
        LANES(store)(dst, at, to, LANES(load)(src, at, from));
    return at;
}

#undef FLOATS
#undef LANES
#undef POSENC_TYPE
#undef POSENC_TYPE_
#undef POSENC_PASTE
#undef POSENC_PASTE_
#undef N
