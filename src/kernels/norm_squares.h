/* SPDX-License-Identifier: MIT */
/*
 * Sums of squares and their roots, by the widest vectors.
 *
 * Template, included by norm.h with the names of attention_vector.h. The 16 chains of a head are
 * PARTS vectors; some heads go together, so that one waits for none of its own sums.
 */
/* Heads at a time: two FMAs of latency 4 a cycle want 8 chains, for which there are registers. */
enum { AT_ONCE = PARTS == 1 ? 8 : 4 };

struct chains {
    vector part[PARTS];
};

static POSENC_INLINE struct chains no_chains(void)
{
    struct chains x;
#pragma GCC unroll 4
    for (int i = 0; i < PARTS; i++)
        x.part[i] = V(set1_)(0.0f);
    return x;
}

static POSENC_INLINE struct chains load_chains(const float *p)
{
    struct chains x;
#pragma GCC unroll 4
    for (int i = 0; i < PARTS; i++)
        x.part[i] = V(load_f32_)(p + i * LANES);
    return x;
}

static POSENC_INLINE void store_chains(float *p, struct chains x)
{
#pragma GCC unroll 4
    for (int i = 0; i < PARTS; i++)
        V(store_f32_)(p + i * LANES, x.part[i]);
}

/* The sums after 16 more channels. */
static POSENC_INLINE struct chains add_squares(struct chains sums, const char *src, size_t at,
                                               int from)
{
#pragma GCC unroll 4
    for (int i = 0; i < PARTS; i++) {
        vector x = load_whole(src, (int64_t)at + i * LANES, from);
        sums.part[i] = V(fma_)(x, x, sums.part[i]);
    }
    return sums;
}

static POSENC_INLINE void square_one(const char *src, size_t at, int from, float *part,
                                     size_t chain)
{
    float x = posenc_load(src, at, from);
    part[chain] = posenc_fmaf(x, x, part[chain]);
}

/* The channels of a head up to the first that chain 0 takes; then whole rounds; then the rest. */
static POSENC_INLINE void squares_head(const struct posenc_squares_job *job, const char *src,
                                       float *part, int from)
{
    size_t at = 0, chain = job->first % CHAINS;
    for (; chain % CHAINS && at < job->channels; at++)
        square_one(src, at, from, part, chain++);
    struct chains sums = load_chains(part);
    for (; job->channels - at >= CHAINS; at += CHAINS)
        sums = add_squares(sums, src, at, from);
    store_chains(part, sums);
    for (chain = 0; at < job->channels; at++)
        square_one(src, at, from, part, chain++);
}

/*
 * Heads whose channels begin with chain 0. Each adds to a chain of its own, so that their sums wait
 * for one another no longer than their number of additions takes.
 */
static POSENC_INLINE void squares_several(const struct posenc_squares_job *job, const char *src,
                                          float *part, int from)
{
    struct chains sums[AT_ONCE];
#pragma GCC unroll 8
    for (size_t h = 0; h < AT_ONCE; h++)
        sums[h] = job->afresh ? no_chains() : load_chains(part + h * CHAINS);
    size_t at = 0;
    for (; job->channels - at >= CHAINS; at += CHAINS)
#pragma GCC unroll 8
        for (ptrdiff_t h = 0; h < AT_ONCE; h++)
            sums[h] = add_squares(sums[h], src + h * job->head, at, from);
#pragma GCC unroll 8
    for (size_t h = 0; h < AT_ONCE; h++)
        store_chains(part + h * CHAINS, sums[h]);
    for (size_t chain = 0; at < job->channels; at++, chain++)
        for (ptrdiff_t h = 0; h < AT_ONCE; h++)
            square_one(src + h * job->head, at, from, part + h * CHAINS, chain);
}

static POSENC_INLINE void squares(const struct posenc_squares_job *job, int from)
{
    const char *src = job->src;
    float *part = job->part;
    size_t left = job->heads;
    const size_t step = job->together ? 0 : CHAINS;
    if (step && job->first % CHAINS == 0)
        for (; left >= AT_ONCE; left -= AT_ONCE, src += AT_ONCE * job->head)
            squares_several(job, src, part + (job->heads - left) * CHAINS, from);
    part += (job->heads - left) * step;
    if (job->afresh)
        memset(part, 0, (step ? left : 1) * CHAINS * sizeof(float));
    for (; left; left--, src += job->head, part += step)
        squares_head(job, src, part, from);
}

/* One vector in which the tree goes on: 16 lanes are whole, of 8 and 4 the halves are added. */
static POSENC_INLINE vector half_tree(struct chains x)
{
#pragma GCC unroll 2
    for (int half = PARTS / 2; half > 0; half /= 2)
#pragma GCC unroll 2
        for (int i = 0; i < half; i++)
            x.part[i] = V(add_)(x.part[i], x.part[i + half]);
    return x.part[0];
}

static POSENC_INLINE f32x4 four_sums(struct chains a, struct chains b, struct chains c,
                                     struct chains d)
{
    return V(sum_each_)(half_tree(a), half_tree(b), half_tree(c), half_tree(d));
}

static POSENC_INLINE f32x4 four_roots(f32x4 sums, float n, float eps, float scale)
{
    f32x4 mean = add_4(div_4(sums, set1_4(n)), set1_4(eps));
    return mul_4(div_4(set1_4(1.0f), sqrt_4(mean)), set1_4(scale));
}

void KERNEL(roots)(const float *part, size_t heads, float n, float eps, float scale, float *g)
{
    const size_t last = heads - 1;
    for (size_t h = 0; h < heads; h += 4) {
        f32x4 sums = four_sums(load_chains(part + h * CHAINS),
                               load_chains(part + (h + 1 < last ? h + 1 : last) * CHAINS),
                               load_chains(part + (h + 2 < last ? h + 2 : last) * CHAINS),
                               load_chains(part + (h + 3 < last ? h + 3 : last) * CHAINS));
        f32x4 roots = four_roots(sums, n, eps, scale);
        float some[4];
        if (heads - h >= 4) {
            store_f32_4(g + h, roots);
            continue;
        }
        store_f32_4(some, roots);
        for (size_t i = h; i < heads; i++)
            g[i] = some[i - h];
    }
}
