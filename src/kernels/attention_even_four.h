/* SPDX-License-Identifier: MIT */
/*
 * The even kernels for four rows.
 *
 * Template, included by attention_even.h for vectors of sixteen lanes. Sums take two keys at a time
 * in vectors of eight: each vector of a query is loaded once for both. Totals take vectors of
 * sixteen all the same: with eight a tile goes by in four passes, and lines come faster in two.
 * Lines to fetch are addresses of their own: numbers as in struct ahead are slower here.
 */

/* As struct tree, of four rows and two keys. */
struct trees {
    f32x8 part[4], two[2];
};

static POSENC_INLINE void plant_four(struct trees *trees, struct both s[4][2], int dtype)
{
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        if (dtype == POSENC_F16)
            trees->part[r] = fours_8(add_8(s[r][0].a, s[r][0].b), add_8(s[r][1].a, s[r][1].b));
#pragma GCC unroll 2
    for (int r = 0; r < 4; r += 2)
        if (dtype == POSENC_BF16) {
            trees->part[r / 2] = twos_8(fours_8(s[r][0].a, s[r][1].a),
                                        fours_8(s[r + 1][0].a, s[r + 1][1].a));
            trees->part[r / 2 + 2] = twos_8(fours_8(s[r][0].b, s[r][1].b),
                                            fours_8(s[r + 1][0].b, s[r + 1][1].b));
        }
}

static POSENC_INLINE void grow_four(struct trees *trees, int step, float *sums, int dtype)
{
    const f32x8 *p = trees->part;
    f32x8 *two = trees->two;
    if (step < 2)
        two[step] = dtype == POSENC_F16 ? twos_8(p[2 * step], p[2 * step + 1])
                                        : eight_ones_8(p[2 * step], p[2 * step + 1]);
    else if (step == 2)
        two[0] = dtype == POSENC_F16 ? eight_ones_8(two[0], two[1]) : add_8(two[0], two[1]);
    else
        store_two_each_8(sums, TILE, two[0]);
}

static POSENC_INLINE void sums_of_four(int dtype, int asks, const float *const *query,
                                       const struct posenc_attention_even *keys, float *sums)
{
    const ptrdiff_t step = keys->step;
    const float *q[4] = {query[0], query[1], query[2], query[3]};
    _Alignas(32) float mixed[4][WIDTH];
    const char *key = keys->rows;
    const struct both zero = {set1_8(0.0f), set1_8(0.0f)};
    struct both none[4][2] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
    float *grown = sums; /* as in sums_of_one */
    const char *next = keys->next, *before = next;
    struct trees trees;
    for (int r = 0; dtype == POSENC_BF16 && r < 4; r++) {
        mix_query(query[r], mixed[r]);
        q[r] = mixed[r];
    }
    plant_four(&trees, none, dtype);
    for (int64_t j = 0; j < TILE; j += 2) {
        struct both s[4][2] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
        if (asks == TWICE && j >= AGAIN)
            before = next - AGAIN * step;
#pragma GCC unroll 8
        for (int i = 0; i < PIECES; i++) {
            const struct both a = load_both(key, i, dtype), b = load_both(key + step, i, dtype);
            ask_line(next, before, asks, i % 4);
            if (asks && i % 4 == 3) {
                next += step;
                before += step;
            }
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++) {
                const struct both x = once_both(load_floats(q[r], i));
                s[r][0] = fma_both(x, a, s[r][0]);
                s[r][1] = fma_both(x, b, s[r][1]);
            }
            if (i % 2)
                grow_four(&trees, i / 2, grown, dtype);
        }
        plant_four(&trees, s, dtype);
        grown = sums + j;
        key += 2 * step;
    }
#pragma GCC unroll 4
    for (int n = 0; n < 4; n++)
        grow_four(&trees, n, grown, dtype);
}

/* Four vectors of channels from c on. */
static POSENC_INLINE void totals_of_four(int dtype, int asks, int64_t c, const float *w,
                                         const float *a,
                                         const struct posenc_attention_even *values, float *o)
{
    const int line = (int)(c * element_bytes(dtype) / LINE);
    const char *next = values->next, *before = next;
    struct stored value = {values->rows, NULL, 0};
    struct quad s[4] = {zero_quad(), zero_quad(), zero_quad(), zero_quad()};
    for (int64_t j = 0; j < TILE; j++) {
        const struct quad v = load_quad(value, c, dtype);
        ask_line(next, before, asks, line);
        s[0] = fma_quad(V(set1_)(w[j]), v, s[0]);
        s[1] = fma_quad(V(set1_)(w[TILE + j]), v, s[1]);
        ask_line(next, before, asks, line + 1);
        s[2] = fma_quad(V(set1_)(w[2 * TILE + j]), v, s[2]);
        s[3] = fma_quad(V(set1_)(w[3 * TILE + j]), v, s[3]);
        value.row = (const char *)value.row + values->step;
        if (asks && j >= AGAIN)
            before += values->step;
        if (asks)
            next += values->step;
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        add_chains(o + r * WIDTH + c, a[r], s[r], dtype);
}
