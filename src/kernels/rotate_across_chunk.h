/* SPDX-License-Identifier: MIT */
/*
 * A few vectors of pairs for all heads of a token, from one layout into the other.
 *
 * Template over the lane count N, included by rotate_across.h after element.h. `vectors` (at most
 * 4), the layout and the dtypes are constants of the instantiation; `at` is the first pair.
 */
static POSENC_INLINE void LANES(across_vector)(const char *in, char *out, int layout, int from,
                                               int to, size_t partner, size_t at, FLOATS c,
                                               FLOATS s)
{
    FLOATS a, b;
    if (layout == POSENC_ADJACENT) {
        FLOATS lower = LANES(load)(in, 2 * at, from), upper = LANES(load)(in, 2 * at + N, from);
        a = LANES(even_of)(lower, upper);
        b = LANES(odd_of)(lower, upper);
    } else {
        a = LANES(load)(in, at, from);
        b = LANES(load)(in, at + partner, from);
    }
    FLOATS p = LANES(fnma)(b, s, LANES(mul)(a, c)), q = LANES(fma)(a, s, LANES(mul)(b, c));
    if (layout == POSENC_ADJACENT) {
        LANES(store)(out, at, to, p);
        LANES(store)(out, at + partner, to, q);
    } else {
        LANES(store)(out, 2 * at, to, LANES(zip_lower)(p, q));
        LANES(store)(out, 2 * at + N, to, LANES(zip_upper)(p, q));
    }
}

static POSENC_INLINE void LANES(across_chunk)(const struct posenc_rotate_side *side, int vectors,
                                              int layout, int from, int to, size_t partner,
                                              size_t at, const float *cos, const float *sin)
{
    FLOATS c[4], s[4];
    const char *in = side->src;
    char *out = side->dst;
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) {
        c[j] = LANES(load_f32)(cos + j * N);
        s[j] = LANES(load_f32)(sin + j * N);
    }
    for (size_t heads = side->heads; heads; heads--) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            LANES(across_vector)(in, out, layout, from, to, partner, at + (size_t)(j * N), c[j],
                                 s[j]);
        in += side->src_head;
        out += side->dst_head;
    }
}

#include "element_end.h"
