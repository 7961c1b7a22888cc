/* SPDX-License-Identifier: MIT */
/*
 * The even kernels of attention_kernels.h: one row, or four (attention_even_four.h), and a whole
 * tile of keys or values that lie equally apart.
 *
 * Template. Before the inclusion: vec.h of an ISA with vectors of eight lanes, and KERNEL(name),
 * the name of an attention kernel of this ISA. Wider vectors would be slower: CPUs that work on 512
 * bits in two halves widen F16 faster in 256, and with 32 registers a row's query stays in them.
 *
 * Lanes are channels. Sixteen of them are two vectors, the lower and the upper eight; of BF16 the
 * even and the odd ones, which widen by one operation each.
 */
#include "attention_vector.h"

#include "attention_fetch.h"
#include "attention_quad.h"

enum { PIECES = WIDTH / CHAINS };

struct both {
    f32x8 a, b;
};

static POSENC_INLINE struct both load_both(const char *row, int piece, int dtype)
{
    const uint16_t *p = (const uint16_t *)(const void *)row + piece * CHAINS;
    if (dtype == POSENC_F16)
        return (struct both){load_f16_8(p), load_f16_8(p + 8)};
    return (struct both){load_even_bf16_8(p), load_odd_bf16_8(p)};
}

static POSENC_INLINE struct both load_query(const float *q, int piece)
{
    return (struct both){once_8(load_f32_8(q + piece * CHAINS)),
                         once_8(load_f32_8(q + piece * CHAINS + 8))};
}

/* The query's channels as load_both has those of a key. */
static POSENC_INLINE struct both query_both(const float *q, int piece, int dtype)
{
    const struct both x = load_query(q, piece);
    if (dtype == POSENC_F16)
        return x;
    return (struct both){once_8(even_of_8(x.a, x.b)), once_8(odd_of_8(x.a, x.b))};
}

static POSENC_INLINE struct both fma_both(struct both x, struct both y, struct both s)
{
    return (struct both){fma_8(x.a, y.a, s.a), fma_8(x.b, y.b, s.b)};
}

/* Four keys' sums on their way through the halving tree, which adds a key's two vectors first, of
 * BF16 last. It grows among the next keys' products, so that none waits for it. */
struct tree {
    f32x8 part[4], two[2];
    f32x4 even;
};

static POSENC_INLINE void plant(struct tree *tree, const struct both s[4], int dtype)
{
    if (dtype == POSENC_F16) {
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            tree->part[r] = add_8(s[r].a, s[r].b);
        return;
    }
    tree->part[0] = fours_8(s[0].a, s[2].a);
    tree->part[1] = fours_8(s[1].a, s[3].a);
    tree->part[2] = fours_8(s[0].b, s[2].b);
    tree->part[3] = fours_8(s[1].b, s[3].b);
}

/* One of its four steps; the last one stores the sums. */
static POSENC_INLINE void grow(struct tree *tree, int step, float *sums, int dtype)
{
    const f32x8 *p = tree->part;
    if (step < 2)
        tree->two[step] = dtype == POSENC_F16 ? fours_8(p[step], p[step + 2])
                                              : twos_8(p[2 * step], p[2 * step + 1]);
    else if (dtype == POSENC_F16 && step == 2)
        tree->two[0] = twos_8(tree->two[0], tree->two[1]);
    else if (dtype == POSENC_F16)
        store_f32_4(sums, ones_8(tree->two[0]));
    else if (step == 2)
        tree->even = ones_8(tree->two[0]);
    else
        store_f32_4(sums, add_4(tree->even, ones_8(tree->two[1])));
}

/* Asks for a line of a row at `next`, and again for that of one at `before`. */
static POSENC_INLINE void ask_line(const char *next, const char *before, int asks, int line)
{
    if (asks)
        fetch_line(next + line * LINE);
    if (asks == TWICE)
        fetch_line(before + line * LINE);
}

static POSENC_INLINE void sums_of_one(int dtype, int asks, const float *query,
                                      const struct posenc_attention_even *keys, float *sums)
{
    const ptrdiff_t step = keys->step, next_step = keys->next_step;
    const char *key = keys->rows, *next = keys->next, *before = next;
    const struct both zero = {set1_8(0.0f), set1_8(0.0f)}, none[4] = {zero, zero, zero, zero};
    float *grown = sums; /* in the first turn a tree of nothing, which the second overwrites */
    struct both q[PIECES];
    struct tree tree;
#pragma GCC unroll 8
    for (int i = 0; i < PIECES; i++)
        q[i] = query_both(query, i, dtype);
    plant(&tree, none, dtype);
    for (int64_t j = 0; j < TILE; j += 4) {
        struct both s[4] = {zero, zero, zero, zero};
        if (asks == TWICE && j >= AGAIN)
            before = next - AGAIN * next_step;
#pragma GCC unroll 8
        for (int i = 0; i < PIECES; i++) { /* each asks for half of a row's lines */
            ask_line(next, before, asks, i % 2 * 2);
            ask_line(next, before, asks, i % 2 * 2 + 1);
            if (asks && i % 2) {
                next += next_step;
                before += next_step;
            }
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++)
                s[r] = fma_both(q[i], load_both(key + r * step, i, dtype), s[r]);
            if (i % 2)
                grow(&tree, i / 2, grown, dtype);
        }
        plant(&tree, s, dtype);
        grown = sums + j;
        key += 4 * step;
    }
#pragma GCC unroll 4
    for (int n = 0; n < 4; n++)
        grow(&tree, n, grown, dtype);
}

static POSENC_INLINE void add_both(float *o, f32x8 scale, struct both s, int dtype)
{
    if (dtype == POSENC_BF16)
        s = (struct both){zip_lower_8(s.a, s.b), zip_upper_8(s.a, s.b)};
    store_f32_8(o, fma_8(load_f32_8(o), scale, s.a));
    store_f32_8(o + 8, fma_8(load_f32_8(o + 8), scale, s.b));
}

/* Pieces of channels from `first` on, as many as the registers hold chains for. */
enum { AT_ONCE = POSENC_REGISTERS >= 32 ? PIECES : PIECES / 2 };

static POSENC_INLINE void totals_of_one(int dtype, int asks, int first, const float *w, float a,
                                        const struct posenc_attention_even *values, float *o)
{
    const ptrdiff_t step = values->step, next_step = values->next_step;
    const char *value = values->rows, *next = values->next, *before = next;
    struct both s[AT_ONCE];
#pragma GCC unroll 8
    for (int i = 0; i < AT_ONCE; i++)
        s[i] = (struct both){set1_8(0.0f), set1_8(0.0f)};
    for (int64_t j = 0; j < TILE; j++) {
        const struct both weight = {set1_8(w[j]), set1_8(w[j])};
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++) {
            const int line = (first + i) / 2;
            if (i % 2 == 0)
                ask_line(next, before, asks, line);
            s[i] = fma_both(weight, load_both(value, first + i, dtype), s[i]);
        }
        if (asks && j >= AGAIN)
            before += next_step;
        if (asks)
            next += next_step;
        value += step;
    }
#pragma GCC unroll 8
    for (int i = 0; i < AT_ONCE; i++)
        add_both(o + (first + i) * CHAINS, set1_8(a), s[i], dtype);
}

#if POSENC_LANES == 16
#include "attention_even_four.h"
#endif

static POSENC_INLINE void even_sums(int dtype, int asks, int64_t rows, const float *const *q,
                                    const struct posenc_attention_even *keys, float *sums)
{
#if POSENC_LANES == 16
    if (rows == 4) {
        sums_of_four(dtype, asks, q, keys, sums);
        return;
    }
#endif
    (void)rows;
    sums_of_one(dtype, asks, q[0], keys, sums);
}

static POSENC_INLINE void even_totals(int dtype, int asks, int64_t rows, const float *w,
                                      const float *a, const struct posenc_attention_even *values,
                                      float *o)
{
#if POSENC_LANES == 16
    if (rows == 4) {
        for (int c = 0; c < WIDTH; c += 4 * LANES)
            totals_of_four(dtype, asks, c, w, a, values, o);
        return;
    }
#endif
    (void)rows;
    for (int first = 0; first < PIECES; first += AT_ONCE)
        totals_of_one(dtype, asks, first, w, a[0], values, o);
}

#define EVEN(dtype, asks)                                                                          \
    static __attribute__((noinline)) void sums_##dtype##_##asks(                                   \
        int64_t rows, const float *const *q, const struct posenc_attention_even *keys,             \
        float *sums)                                                                               \
    {                                                                                              \
        even_sums(POSENC_##dtype, asks, rows, q, keys, sums);                                      \
    }                                                                                              \
    static __attribute__((noinline)) void totals_##dtype##_##asks(                                 \
        int64_t rows, const float *w, const float *a, const struct posenc_attention_even *values,  \
        float *o)                                                                                  \
    {                                                                                              \
        even_totals(POSENC_##dtype, asks, rows, w, a, values, o);                                  \
    }
#define ANY(dtype)                                                                                 \
    EVEN(dtype, NEVER)                                                                             \
    EVEN(dtype, ONCE)                                                                              \
    EVEN(dtype, TWICE)                                                                             \
    static void sums_##dtype(int64_t rows, const float *const *q,                                  \
                             const struct posenc_attention_even *keys, float *sums)                \
    {                                                                                              \
        (!keys->next ? sums_##dtype##_NEVER : keys->again ? sums_##dtype##_TWICE                   \
                                                          : sums_##dtype##_ONCE)(rows, q, keys,    \
                                                                                 sums);            \
    }                                                                                              \
    static void totals_##dtype(int64_t rows, const float *w, const float *a,                       \
                               const struct posenc_attention_even *values, float *o)               \
    {                                                                                              \
        (!values->next ? totals_##dtype##_NEVER : values->again ? totals_##dtype##_TWICE           \
                                                : totals_##dtype##_ONCE)(rows, w, a, values, o);   \
    }

ANY(F16)
ANY(BF16)

const struct posenc_attention_even_kernels KERNEL(even) = {
    .sums = {NULL, sums_F16, sums_BF16, NULL},
    .totals = {NULL, totals_F16, totals_BF16, NULL},
    .most = POSENC_LANES == 16 ? 4 : 1,
};

#undef EVEN
#undef ANY
#include "attention_vector_end.h"
