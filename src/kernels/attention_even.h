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

/* TURN: values of a head before those of the next where heads go in the order of memory. Keys take
 * turns of four. */
enum { PIECES = WIDTH / CHAINS, TURN = 8 };

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

static POSENC_INLINE struct both load_floats(const float *from, int piece)
{
    return (struct both){load_f32_8(from + piece * CHAINS), load_f32_8(from + piece * CHAINS + 8)};
}

static POSENC_INLINE void store_floats(float *to, int piece, struct both x)
{
    store_f32_8(to + piece * CHAINS, x.a);
    store_f32_8(to + piece * CHAINS + 8, x.b);
}

/* In registers from now on. */
static POSENC_INLINE struct both once_both(struct both x)
{
    return (struct both){once_8(x.a), once_8(x.b)};
}

/* The query's channels as load_both has those of a key. */
static POSENC_INLINE struct both query_both(const float *q, int piece, int dtype)
{
    const struct both x = load_floats(q, piece);
    if (dtype == POSENC_F16)
        return x;
    return (struct both){even_of_8(x.a, x.b), odd_of_8(x.a, x.b)};
}

/* Those that a key of BF16 meets, in memory. */
static POSENC_INLINE void mix_query(const float *q, float *mixed)
{
#pragma GCC unroll 8
    for (int i = 0; i < PIECES; i++)
        store_floats(mixed, i, query_both(q, i, POSENC_BF16));
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

/* How far ahead of a row the one lies that is fetched beside it, and the one that is asked for
 * again: one register serves four rows. Numbers, since they lead out of the keys. */
struct ahead {
    uintptr_t next, before;
};

/* Keys of each head that are fetched before their turn: whole turns, about 64 rows of all heads. */
static POSENC_INLINE int64_t keys_ahead(const struct posenc_attention_even *tile)
{
    return (TILE / tile->heads + TURN - 1) / TURN * TURN;
}

/* From the keys from j on, `keys` before their turn. */
static POSENC_INLINE struct ahead ahead_of(const struct posenc_attention_even *tile, int64_t j,
                                           int64_t keys)
{
    const uintptr_t step = (uintptr_t)tile->step;
    uintptr_t next = (uintptr_t)keys * step;
    if (j + keys >= TILE)
        next += (uintptr_t)tile->next - (uintptr_t)tile->rows - TILE * step;
    return (struct ahead){next, next};
}

static POSENC_INLINE void ask_ahead(const char *row, struct ahead ahead, int asks, int line)
{
    ask_line((const char *)((uintptr_t)row + ahead.next),
             (const char *)((uintptr_t)row + ahead.before), asks, line);
}

/* The sums of four keys, which the tree has then; those before it has stored at `grown`. */
static POSENC_INLINE void sum_quad(int dtype, int asks, const struct both *q,
                                   const char *const *key, struct ahead ahead, struct tree *tree,
                                   float *grown)
{
    const struct both zero = {set1_8(0.0f), set1_8(0.0f)};
    struct both s[4] = {zero, zero, zero, zero};
#pragma GCC unroll 8
    for (int i = 0; i < PIECES; i++) {
        ask_ahead(key[i / 2], ahead, asks, i % 2 * 2); /* half of a row's lines */
        ask_ahead(key[i / 2], ahead, asks, i % 2 * 2 + 1);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            s[r] = fma_both(q[i], load_both(key[r], i, dtype), s[r]);
        if (i % 2)
            grow(tree, i / 2, grown, dtype);
    }
    plant(tree, s, dtype);
}

static POSENC_INLINE void end_sums(struct tree *tree, float *grown, int dtype)
{
#pragma GCC unroll 4
    for (int n = 0; n < 4; n++)
        grow(tree, n, grown, dtype);
}

static POSENC_INLINE struct tree tree_of_nothing(int dtype)
{
    const struct both zero = {set1_8(0.0f), set1_8(0.0f)}, none[4] = {zero, zero, zero, zero};
    struct tree tree;
    plant(&tree, none, dtype);
    return tree;
}

static POSENC_INLINE void sums_of_one(int dtype, int asks, const float *query,
                                      const struct posenc_attention_even *keys, float *sums)
{
    const ptrdiff_t step = keys->step;
    const char *key[4] = {keys->rows, keys->rows + step, keys->rows + 2 * step,
                          keys->rows + 3 * step};
    struct tree tree = tree_of_nothing(dtype);
    float *grown = sums; /* of nothing: the second turn overwrites it */
    struct ahead ahead = ahead_of(keys, 0, TILE);
    struct both q[PIECES];
#pragma GCC unroll 8
    for (int i = 0; i < PIECES; i++)
        q[i] = once_both(query_both(query, i, dtype));
    for (int64_t j = 0; j < TILE; j += 4) {
        if (asks == TWICE && j >= AGAIN)
            ahead.before = ahead.next - AGAIN * (uintptr_t)step;
        sum_quad(dtype, asks, q, key, ahead, &tree, grown);
        grown = sums + j;
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            key[r] += 4 * step;
    }
    end_sums(&tree, grown, dtype);
}

static POSENC_INLINE void sums_in_order(int dtype, int asks, const float *const *query,
                                            const struct posenc_attention_even *keys, float *spare,
                                            float *sums)
{
    const ptrdiff_t step = keys->step;
    const int64_t before = keys_ahead(keys);
    struct tree tree = tree_of_nothing(dtype);
    float *grown = sums;
    for (int64_t h = 0; dtype == POSENC_BF16 && h < keys->heads; h++)
        mix_query(query[h], spare + h * WIDTH);
    for (int64_t j = 0; j < TILE; j += 4) {
        const struct ahead ahead = ahead_of(keys, j, before);
        const char *first = keys->rows + j * step;
        const char *key[4] = {first, first + step, first + 2 * step, first + 3 * step};
        for (int64_t h = 0; h < keys->heads; h++) {
            const float *own = dtype == POSENC_BF16 ? spare + h * WIDTH : query[h];
            struct both q[PIECES];
#pragma GCC unroll 8
            for (int i = 0; i < PIECES; i++)
                q[i] = load_floats(own, i);
            sum_quad(dtype, asks, q, key, ahead, &tree, grown);
            grown = sums + h * TILE + j;
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++)
                key[r] += keys->head;
        }
    }
    end_sums(&tree, grown, dtype);
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

/* A row: its weights, the factor of what it has, chains on their way, and totals. */
struct weighted {
    const float *w;
    float a, *chains, *o;
};

/* Of a tile's values `some` from j on. Chains that have not ended wait in memory. */
static POSENC_INLINE void total_some(int dtype, int asks, int first, int64_t j, int64_t some,
                                     struct weighted row, const char *value, ptrdiff_t step,
                                     struct ahead ahead)
{
    const int64_t end = j + some;
    const struct both zero = {set1_8(0.0f), set1_8(0.0f)};
    struct both s[AT_ONCE];
#pragma GCC unroll 8
    for (int i = 0; i < AT_ONCE; i++)
        s[i] = j == 0 ? zero : load_floats(row.chains, first + i);
    for (; j < end; j++, value += step) {
        const struct both weight = {set1_8(row.w[j]), set1_8(row.w[j])};
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++) {
            if (i % 2 == 0)
                ask_ahead(value, ahead, asks, (first + i) / 2);
            s[i] = fma_both(weight, load_both(value, first + i, dtype), s[i]);
        }
        if (asks == TWICE && j < AGAIN)
            ahead.before -= (uintptr_t)step;
    }
#pragma GCC unroll 8
    for (int i = 0; i < AT_ONCE; i++)
        if (end < TILE)
            store_floats(row.chains, first + i, s[i]);
        else
            add_both(row.o + (first + i) * CHAINS, set1_8(row.a), s[i], dtype);
}

/* One row of each head, `some` values of a head before those of the next. */
static POSENC_INLINE void totals_of_one(int dtype, int asks, int64_t some, const float *w,
                                        const float *a, const struct posenc_attention_even *values,
                                        float *spare, float *o)
{
    const int64_t heads = some == TILE ? 1 : values->heads;
    const int64_t before = some == TILE ? TILE : keys_ahead(values);
    for (int64_t j = 0; j < TILE; j += some) {
        const struct ahead ahead = ahead_of(values, j, before);
        const char *value = values->rows + j * values->step;
        for (int64_t h = 0; h < heads; h++, value += values->head) {
            float *chains = some == TILE ? NULL : spare + h * WIDTH;
            const struct weighted row = {w + h * TILE, a[h], chains, o + h * WIDTH};
            for (int first = 0; first < PIECES; first += AT_ONCE)
                total_some(dtype, asks, first, j, some, row, value, values->step, ahead);
        }
    }
}

#if POSENC_LANES == 16
#include "attention_even_four.h"
#endif

static POSENC_INLINE void even_sums(int dtype, int asks, int64_t rows, const float *const *q,
                                    const struct posenc_attention_even *keys, float *spare,
                                    float *sums)
{
#if POSENC_LANES == 16
    if (rows == 4) {
        sums_of_four(dtype, asks, q, keys, sums);
        return;
    }
#endif
    (void)rows;
    if (asks == TWICE || keys->heads == 1)
        sums_of_one(dtype, asks, q[0], keys, sums);
    else
        sums_in_order(dtype, asks, q, keys, spare, sums);
}

static POSENC_INLINE void even_totals(int dtype, int asks, int64_t rows, const float *w,
                                      const float *a, const struct posenc_attention_even *values,
                                      float *spare, float *o)
{
#if POSENC_LANES == 16
    if (rows == 4) {
        for (int c = 0; c < WIDTH; c += 4 * LANES)
            totals_of_four(dtype, asks, c, w, a, values, o);
        return;
    }
#endif
    (void)rows;
    if (asks == TWICE || values->heads == 1)
        totals_of_one(dtype, asks, TILE, w, a, values, spare, o);
    else
        totals_of_one(dtype, asks, TURN, w, a, values, spare, o);
}

#define EVEN(dtype, asks)                                                                          \
    static __attribute__((noinline)) void sums_##dtype##_##asks(                                   \
        int64_t rows, const float *const *q, const struct posenc_attention_even *keys,             \
        float *spare, float *sums)                                                                 \
    {                                                                                              \
        even_sums(POSENC_##dtype, asks, rows, q, keys, spare, sums);                               \
    }                                                                                              \
    static __attribute__((noinline)) void totals_##dtype##_##asks(                                 \
        int64_t rows, const float *w, const float *a, const struct posenc_attention_even *values,  \
        float *spare, float *o)                                                                    \
    {                                                                                              \
        even_totals(POSENC_##dtype, asks, rows, w, a, values, spare, o);                           \
    }
#define ANY(dtype)                                                                                 \
    EVEN(dtype, NEVER)                                                                             \
    EVEN(dtype, ONCE)                                                                              \
    EVEN(dtype, TWICE)                                                                             \
    static void sums_##dtype(int64_t rows, const float *const *q,                                  \
                             const struct posenc_attention_even *keys, float *spare, float *sums)  \
    {                                                                                              \
        posenc_attention_even_sums *call = !keys->next   ? sums_##dtype##_NEVER                    \
                                           : keys->again ? sums_##dtype##_TWICE                    \
                                                         : sums_##dtype##_ONCE;                    \
        call(rows, q, keys, spare, sums);                                                          \
    }                                                                                              \
    static void totals_##dtype(int64_t rows, const float *w, const float *a,                       \
                               const struct posenc_attention_even *values, float *spare, float *o) \
    {                                                                                              \
        posenc_attention_even_totals *call = !values->next   ? totals_##dtype##_NEVER              \
                                             : values->again ? totals_##dtype##_TWICE              \
                                                             : totals_##dtype##_ONCE;              \
        call(rows, w, a, values, spare, o);                                                        \
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
