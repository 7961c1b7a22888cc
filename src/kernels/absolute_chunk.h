/* SPDX-License-Identifier: MIT */
/*
 * The vector steps of absolute.h. Template over the lane count N (4, 8, then 16), included after
 * element.h; the dtypes, `vectors` and `write` are constants of the instantiation.
 */

/* `vectors` vectors from channel `at` on: all loads before the stores. */
static POSENC_INLINE void LANES(add_vectors)(const struct posenc_place *p, size_t at, int vectors,
                                             int from, int to, float scale)
{
    FLOATS v[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        v[j] = LANES(load)(p->x, at + j * N, from);
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        LANES(store)(p->y, at + j * N, to,
                     LANES(fma)(v[j], LANES(set1)(scale), LANES(load_f32)(p->row + at + j * N)));
}

/* The same for all copies: what the row adds is read once. */
static POSENC_INLINE void LANES(copy_vectors)(struct posenc_place p,
                                              const struct posenc_copies *copies, size_t at,
                                              int vectors, int from, int to, float scale,
                                              ptrdiff_t ahead)
{
    FLOATS row[4], v[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        row[j] = LANES(load_f32)(p.row + at + j * N);
    for (size_t left = copies->count; left; left--, p.x += copies->x, p.y += copies->y) {
        if (ahead)
            ask(p.y + at * posenc_size(to) + ahead, (size_t)vectors * N * posenc_size(to));
#pragma GCC unroll 4
        for (size_t j = 0; j < (size_t)vectors; j++)
            v[j] = LANES(load)(p.x, at + j * N, from);
#pragma GCC unroll 4
        for (size_t j = 0; j < (size_t)vectors; j++)
            LANES(store)(p.y, at + j * N, to, LANES(fma)(v[j], LANES(set1)(scale), row[j]));
    }
}

/* N pairs: 2 N channels from channel 2 `at` on, added or written alone. Even and odd channels of
 * bf16 need no shuffle. */
static POSENC_INLINE void LANES(pair_vectors)(const struct posenc_place *p, size_t at, int write,
                                              int from, int to, float scale)
{
    FLOATS even = LANES(load_f32)(p->row + at), odd = LANES(load_f32)(p->odd + at);
    if (to == POSENC_BF16 && (write || from == POSENC_BF16)) {
        if (!write) {
            BF16S both = LANES(load_even_odd)((const uint16_t *)(const void *)p->x + 2 * at);
            even = LANES(fma)(LANES(even_bf16)(both), LANES(set1)(scale), even);
            odd = LANES(fma)(LANES(odd_bf16)(both), LANES(set1)(scale), odd);
        }
        LANES(store_even_odd_bf16)((uint16_t *)(void *)p->y + 2 * at, even, odd);
        return;
    }
    FLOATS low = LANES(zip_lower)(even, odd), high = LANES(zip_upper)(even, odd);
    if (!write) {
        FLOATS a = LANES(load)(p->x, 2 * at, from), b = LANES(load)(p->x, 2 * at + N, from);
        low = LANES(fma)(a, LANES(set1)(scale), low);
        high = LANES(fma)(b, LANES(set1)(scale), high);
    }
    LANES(store)(p->y, 2 * at, to, low);
    LANES(store)(p->y, 2 * at + N, to, high);
}

#include "element_end.h"
