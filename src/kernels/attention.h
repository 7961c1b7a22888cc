/* SPDX-License-Identifier: MIT */
/* Attention over the vector layer, with the bits of src/arch/scalar/attention.c. */

/*
 * Template. Before the inclusion:
 *   vec.h of the ISA    gives POSENC_LANES (4, 8 and 16 are tested) and the operations for it
 *   KERNEL(name)        the name of a kernel table of this ISA
 * It defines KERNEL(attention), which attention.h describes.
 *
 * A block of rows (query tokens x the heads that share a key head) goes through the keys tile by
 * tile: scores of all its rows, then their weights, then the values, so that a tile of K and then
 * of V stays in the first cache. Lanes are channels; keys and values are read as they lie.
 */
#include "../attention.h"

#define POSENC_INLINE inline __attribute__((always_inline))
#define POSENC_PASTE(a, b) a##b
#define POSENC_JOIN(a, b) POSENC_PASTE(a, b)
#define V(operation) POSENC_JOIN(operation, POSENC_LANES)
#define vector V(f32x)

enum {
    LANES = POSENC_LANES,
    CHAINS = POSENC_ATTENTION_CHAINS,
    PARTS = CHAINS / LANES, /* vectors that hold the chains of one score */
    TILE = POSENC_ATTENTION_TILE,
    MAX_ROWS = 32,
    WORKSPACE = 14336, /* floats on the stack: one row of the widest head fits */
};

/* One query row in progress: the sums of the open span (m, l, o), those of the finished ones. */
struct row {
    const float *q;
    float *out;
    int64_t visible;
    float m, total_m;
    float *w; /* [TILE] scores, then weights */
    float *l, *total_l, *o, *total_o;
};

struct quad {
    vector a, b, c, d;
};

static POSENC_INLINE struct quad add_quads(struct quad x, struct quad y)
{
    return (struct quad){V(add_)(x.a, y.a), V(add_)(x.b, y.b), V(add_)(x.c, y.c),
                         V(add_)(x.d, y.d)};
}

/*
 * The chains part*LANES, ... of q.k for four keys. Zeros pad the last channels: a chain can only
 * change from -0 to +0 by that, and no weight depends on the sign of a zero score.
 */
static POSENC_INLINE struct quad chains(const float *q, const float *const k[4],
                                    int64_t channels, int part)
{
    const float *ka = k[0], *kb = k[1], *kc = k[2], *kd = k[3];
    vector a = V(set1_)(0.0f), b = a, c = a, d = a;
    int64_t i = part * LANES;
    for (; i + LANES <= channels; i += CHAINS) {
        vector x = V(load_f32_)(q + i);
        a = V(fma_)(x, V(load_f32_)(ka + i), a);
        b = V(fma_)(x, V(load_f32_)(kb + i), b);
        c = V(fma_)(x, V(load_f32_)(kc + i), c);
        d = V(fma_)(x, V(load_f32_)(kd + i), d);
    }
    if (i < channels) {
        int64_t n = channels - i;
        vector x = V(load_first_)(q + i, n);
        a = V(fma_)(x, V(load_first_)(ka + i, n), a);
        b = V(fma_)(x, V(load_first_)(kb + i, n), b);
        c = V(fma_)(x, V(load_first_)(kc + i, n), c);
        d = V(fma_)(x, V(load_first_)(kd + i, n), d);
    }
    return (struct quad){a, b, c, d};
}

/* Scores of four keys. The first steps of the halving tree add whole vectors. */
static POSENC_INLINE f32x4 scores(const float *q, const float *const k[4], int64_t channels,
                              float scale)
{
    struct quad s = chains(q, k, channels, 0);
    if (PARTS == 2)
        s = add_quads(s, chains(q, k, channels, 1));
    if (PARTS == 4)
        s = add_quads(add_quads(s, chains(q, k, channels, 2)),
                      add_quads(chains(q, k, channels, 1), chains(q, k, channels, 3)));
    return mul_4(V(sum_each_)(s.a, s.b, s.c, s.d), set1_4(scale));
}

/* Fills w with the scores of `count` keys and, up to a multiple of 16, with -inf: their weight is
 * +0. Keys behind the row's own end are not even read. */
static void tile_scores(const struct posenc_attention_group *job, const struct row *row,
                        int64_t first, int64_t count)
{
    const float *k = job->k + first * job->k_token;
    for (int64_t j = 0; j < count; j += 4) {
        const float *key[4];
        for (int64_t i = 0; i < 4; i++)
            key[i] = k + (j + i < count ? j + i : count - 1) * job->k_token;
        store_f32_4(row->w + j, scores(row->q, key, job->channels, job->scale));
    }
    for (int64_t j = count; j % CHAINS; j++)
        row->w[j] = posenc_float(0xff800000u);
}

static POSENC_INLINE vector weights(vector score, vector m)
{
    vector magic = V(set1_)(POSENC_RINT_MAGIC);
    vector x = V(mul_)(V(sub_)(score, m), V(set1_)(POSENC_LOG2E));
    vector shifted = V(add_)(x, magic), f = V(sub_)(x, V(sub_)(shifted, magic));
    vector p = V(set1_)(POSENC_EXP2_6);
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_5));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_4));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_3));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_2));
    p = V(fma_)(p, f, V(set1_)(POSENC_EXP2_1));
    p = V(fma_)(p, f, V(set1_)(1.0f));
    return V(zero_below_)(x, V(set1_)(POSENC_EXP2_LOWEST), V(mul_)(p, V(power_of_two_)(shifted)));
}

/* Turns scores into weights, updates m and l, and returns the factor of the earlier sums. */
static float tile_weights(struct row *row, int64_t count)
{
    vector old = V(set1_)(row->m), m = old;
    for (int64_t j = 0; j < count; j += LANES)
        m = V(max_)(V(load_f32_)(row->w + j), m);
    row->m = V(max_across_)(m);
    m = V(set1_)(row->m);
    vector a = weights(old, m);
    for (int r = 0; r < CHAINS; r += LANES) {
        vector sum = V(set1_)(0.0f);
        for (int64_t j = r; j < (count + CHAINS - 1) / CHAINS * CHAINS; j += CHAINS) {
            vector w = weights(V(load_f32_)(row->w + j), m);
            V(store_f32_)(row->w + j, w);
            sum = V(add_)(sum, w);
        }
        V(store_f32_)(row->l + r, V(fma_)(V(load_f32_)(row->l + r), a, sum));
    }
    return V(first_)(a);
}

static POSENC_INLINE void add_chain(float *o, vector a, vector chain)
{
    V(store_f32_)(o, V(fma_)(V(load_f32_)(o), a, chain));
}

/* o = o a + sum of w v for n = 8, 4, 2 or 1 vectors of channels: a constant where it is called. */
static POSENC_INLINE void add_values(int n, float *o, vector a, const float *w, const float *v,
                                 int64_t v_token, int64_t count)
{
    vector s0 = V(set1_)(0.0f), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (int64_t j = 0; j < count; j++) {
        const float *key = v + j * v_token;
        vector x = V(set1_)(w[j]);
        s0 = V(fma_)(x, V(load_f32_)(key), s0);
        if (n > 1)
            s1 = V(fma_)(x, V(load_f32_)(key + LANES), s1);
        if (n > 2) {
            s2 = V(fma_)(x, V(load_f32_)(key + 2 * LANES), s2);
            s3 = V(fma_)(x, V(load_f32_)(key + 3 * LANES), s3);
        }
        if (n > 4) {
            s4 = V(fma_)(x, V(load_f32_)(key + 4 * LANES), s4);
            s5 = V(fma_)(x, V(load_f32_)(key + 5 * LANES), s5);
            s6 = V(fma_)(x, V(load_f32_)(key + 6 * LANES), s6);
            s7 = V(fma_)(x, V(load_f32_)(key + 7 * LANES), s7);
        }
    }
    add_chain(o, a, s0);
    if (n > 1)
        add_chain(o + LANES, a, s1);
    if (n > 2) {
        add_chain(o + 2 * LANES, a, s2);
        add_chain(o + 3 * LANES, a, s3);
    }
    if (n > 4) {
        add_chain(o + 4 * LANES, a, s4);
        add_chain(o + 5 * LANES, a, s5);
        add_chain(o + 6 * LANES, a, s6);
        add_chain(o + 7 * LANES, a, s7);
    }
}

static void add_last_values(float *o, vector a, const float *w, const float *v, int64_t v_token,
                            int64_t count, int64_t channels)
{
    vector s = V(set1_)(0.0f);
    for (int64_t j = 0; j < count; j++)
        s = V(fma_)(V(set1_)(w[j]), V(load_first_)(v + j * v_token, channels), s);
    add_chain(o, a, s);
}

static void tile_values(const struct posenc_attention_group *job, const struct row *row, float a,
                        int64_t first, int64_t count)
{
    const float *v = job->v + first * job->v_token;
    int64_t c = 0, n = job->values, step = job->v_token;
    vector scale = V(set1_)(a);
    for (; n - c >= 8 * LANES; c += 8 * LANES)
        add_values(8, row->o + c, scale, row->w, v + c, step, count);
    for (; n - c >= 4 * LANES; c += 4 * LANES)
        add_values(4, row->o + c, scale, row->w, v + c, step, count);
    for (; n - c >= 2 * LANES; c += 2 * LANES)
        add_values(2, row->o + c, scale, row->w, v + c, step, count);
    for (; n - c >= LANES; c += LANES)
        add_values(1, row->o + c, scale, row->w, v + c, step, count);
    if (c < n)
        add_last_values(row->o + c, scale, row->w, v + c, step, count, n - c);
}

/* total = total a + span b; the span starts afresh. */
static void fold_sums(float *total, float *span, int64_t count, vector a, vector b)
{
    for (int64_t i = 0; i < count; i += LANES) {
        vector x = V(mul_)(V(load_f32_)(span + i), b);
        V(store_f32_)(total + i, V(fma_)(V(load_f32_)(total + i), a, x));
        V(store_f32_)(span + i, V(set1_)(0.0f));
    }
}

static void fold_span(struct row *row, int64_t values)
{
    float m = row->m > row->total_m ? row->m : row->total_m;
    vector a = weights(V(set1_)(row->total_m), V(set1_)(m));
    vector b = weights(V(set1_)(row->m), V(set1_)(m));
    fold_sums(row->total_l, row->l, CHAINS, a, b);
    fold_sums(row->total_o, row->o, values, a, b);
    row->total_m = m;
    row->m = -FLT_MAX;
}

static void finish_row(const struct row *row, int64_t values)
{
    if (row->visible > 0) {
        vector l = V(set1_)(posenc_halving_tree(row->total_l));
        for (int64_t c = 0; c < values; c += LANES) {
            vector y = V(div_)(V(load_f32_)(row->total_o + c), l);
            V(store_f32_)(row->o + c, V(canonical_nan_)(y));
        }
    }
    memcpy(row->out, row->o, (size_t)values * sizeof(float));
}

static void attend_tile(const struct posenc_attention_group *job, struct row *rows,
                        int64_t row_count, int64_t first)
{
    int64_t count[MAX_ROWS];
    float a[MAX_ROWS];
    for (int64_t r = 0; r < row_count; r++) {
        int64_t left = rows[r].visible - first;
        count[r] = left < 0 ? 0 : left > TILE ? TILE : left;
        tile_scores(job, &rows[r], first, count[r]);
    }
    for (int64_t r = 0; r < row_count; r++)
        if (count[r] > 0)
            a[r] = tile_weights(&rows[r], count[r]);
    for (int64_t r = 0; r < row_count; r++) {
        int64_t end = first + count[r];
        if (count[r] == 0)
            continue;
        tile_values(job, &rows[r], a[r], first, count[r]);
        if (end == rows[r].visible || end % POSENC_ATTENTION_SPAN == 0)
            fold_span(&rows[r], job->values);
    }
}

/* Sets up the rows from row `first` on (heads vary fastest); returns how many keys they see. */
static int64_t begin_rows(const struct posenc_attention_group *job, struct row *rows,
                          int64_t row_count, int64_t first, float *workspace, int64_t padded)
{
    int64_t visible = 0;
    memset(workspace, 0, (size_t)(row_count * (2 * padded + 2 * CHAINS + TILE)) * sizeof(float));
    for (int64_t r = 0; r < row_count; r++) {
        int64_t i = (first + r) / job->heads, h = (first + r) % job->heads;
        struct row *row = &rows[r];
        row->q = job->q + i * job->q_token + h * job->q_head;
        row->out = job->out + i * job->out_token + h * job->out_head;
        row->visible = posenc_attention_visible(job, i);
        row->m = row->total_m = -FLT_MAX;
        row->w = workspace;
        row->l = row->w + TILE;
        row->total_l = row->l + CHAINS;
        row->o = row->total_l + CHAINS;
        row->total_o = row->o + padded;
        workspace = row->total_o + padded;
        visible = row->visible > visible ? row->visible : visible;
    }
    return visible;
}

void KERNEL(attention)(const struct posenc_attention_group *job)
{
    _Alignas(64) float workspace[WORKSPACE];
    struct row rows[MAX_ROWS];
    int64_t padded = (job->values + CHAINS - 1) / CHAINS * CHAINS;
    int64_t fit = WORKSPACE / (2 * padded + 2 * CHAINS + TILE), total = job->queries * job->heads;
    int64_t block = fit < MAX_ROWS ? fit : MAX_ROWS;
    for (int64_t first = 0; first < total; first += block) {
        int64_t count = total - first < block ? total - first : block;
        int64_t visible = begin_rows(job, rows, count, first, workspace, padded);
        for (int64_t j = 0; j < visible; j += TILE)
            attend_tile(job, rows, count, j);
        for (int64_t r = 0; r < count; r++)
            finish_row(&rows[r], job->values);
    }
}

#undef POSENC_PASTE
#undef POSENC_JOIN
#undef V
#undef vector
