/* SPDX-License-Identifier: MIT */
/*
 * One chunk of pairs for all heads of a token: its row stays in registers, heads run inside.
 *
 * Template over the lane count N (16, 8, 4), included by rotate.h after element.h. `vectors`, the
 * dtypes and `ahead` are constants of the instantiation; `at` is the first channel of the chunk.
 */

static POSENC_INLINE void LANES(split_head)(const char *a_in, const char *b_in, char *a_out,
                                            char *b_out, int vectors, int from, int to, int ahead,
                                            const FLOATS *c, const FLOATS *s)
{
    if (ahead) {
        posenc_ahead(a_in, a_out, (size_t)(vectors * N), from, to);
        posenc_ahead(b_in, b_out, (size_t)(vectors * N), from, to);
    }
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++) {
        FLOATS a = LANES(load)(a_in, j * N, from), b = LANES(load)(b_in, j * N, from);
        LANES(store)(a_out, j * N, to, LANES(fnma)(b, s[j], LANES(mul)(a, c[j])));
        LANES(store)(b_out, j * N, to, LANES(fma)(a, s[j], LANES(mul)(b, c[j])));
    }
}

static POSENC_INLINE void LANES(split_chunk)(const struct posenc_rotate_side *h, int sides, int vectors,
                                             int from, int to, int ahead, size_t partner, size_t at,
                                             const float *cos, const float *sin)
{
    FLOATS c[4], s[4];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) {
        c[j] = LANES(load_f32)(cos + at + j * N);
        s[j] = LANES(load_f32)(sin + at + j * N);
    }
    for (; sides; sides--, h++) {
        const char *a_in = h->src + at * posenc_size(from);
        const char *b_in = a_in + partner * posenc_size(from);
        char *a_out = h->dst + at * posenc_size(to), *b_out = a_out + partner * posenc_size(to);
        ptrdiff_t in = 0, out = 0;
        size_t heads = h->heads;
        if (heads & 1) {
            LANES(split_head)(a_in, b_in, a_out, b_out, vectors, from, to, ahead, c, s);
            in = h->src_head;
            out = h->dst_head;
        }
        for (heads /= 2; heads; heads--) {
            LANES(split_head)(a_in + in, b_in + in, a_out + out, b_out + out, vectors, from, to,
                              ahead, c, s);
            in += h->src_head;
            out += h->dst_head;
            LANES(split_head)(a_in + in, b_in + in, a_out + out, b_out + out, vectors, from, to,
                              ahead, c, s);
            in += h->src_head;
            out += h->dst_head;
        }
    }
}

/* x c + swap(x) (-s, s): per channel the same product and the same fma as split_half has. */
static POSENC_INLINE void LANES(adjacent_chunk)(const struct posenc_rotate_side *h, int sides,
                                                int vectors, int from, int to, int ahead, size_t at,
                                                const float *cos, const float *sin)
{
    FLOATS c[8], s[8];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        c[j] = LANES(load_twice)(cos + at / 2 + j * N / 2);
        s[j] = LANES(negate_even)(LANES(load_twice)(sin + at / 2 + j * N / 2));
    }
    for (; sides; sides--, h++) {
        const char *in = h->src + at * posenc_size(from);
        char *out = h->dst + at * posenc_size(to);
        for (size_t head = 0; head < h->heads; head++) {
            if (ahead)
                posenc_ahead(in, out, (size_t)(vectors * N), from, to);
#pragma GCC unroll 8
            for (size_t j = 0; j < (size_t)vectors; j++) {
                FLOATS x = LANES(once)(LANES(load)(in, j * N, from));
                FLOATS y = LANES(fma)(LANES(swap_neighbours)(x), s[j], LANES(mul)(x, c[j]));
                LANES(store)(out, j * N, to, y);
            }
            in += h->src_head;
            out += h->dst_head;
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
