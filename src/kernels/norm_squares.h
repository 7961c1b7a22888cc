/* SPDX-License-Identifier: MIT */
/*
 * Sums of squares and their roots, by the widest vectors.
 *
 * Template, included by norm.h with the names of attention_vector.h. The 16 chains of a head are
 * PARTS vectors; four heads go together, so that one waits for none of its own sums.
 */
struct chains {
    vector part[PARTS];
};

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

/* Four heads whose channels begin with chain 0. */
static POSENC_INLINE void squares_quad(const struct posenc_squares_job *job, const char *src,
                                       float *part, int from)
{
    const char *b_src = src + job->head, *c_src = b_src + job->head, *d_src = c_src + job->head;
    struct chains a = load_chains(part), b = load_chains(part + CHAINS);
    struct chains c = load_chains(part + 2 * CHAINS), d = load_chains(part + 3 * CHAINS);
    size_t at = 0;
    for (; job->channels - at >= CHAINS; at += CHAINS) {
        a = add_squares(a, src, at, from);
        b = add_squares(b, b_src, at, from);
        c = add_squares(c, c_src, at, from);
        d = add_squares(d, d_src, at, from);
    }
    store_chains(part, a);
    store_chains(part + CHAINS, b);
    store_chains(part + 2 * CHAINS, c);
    store_chains(part + 3 * CHAINS, d);
    for (size_t chain = 0; at < job->channels; at++, chain++) {
        square_one(src, at, from, part, chain);
        square_one(b_src, at, from, part + CHAINS, chain);
        square_one(c_src, at, from, part + 2 * CHAINS, chain);
        square_one(d_src, at, from, part + 3 * CHAINS, chain);
    }
}

static POSENC_INLINE void squares(const struct posenc_squares_job *job, int from)
{
    const char *src = job->src;
    float *part = job->part;
    size_t left = job->heads;
    const size_t step = job->together ? 0 : CHAINS;
    if (step && job->first % CHAINS == 0)
        for (; left >= 4; left -= 4, src += 4 * job->head, part += 4 * CHAINS)
            squares_quad(job, src, part, from);
    for (; left; left--, src += job->head, part += step)
        squares_head(job, src, part, from);
}

/* One vector in which the tree goes on: 16 lanes are whole, of 8 and 4 the halves are added. */
static POSENC_INLINE vector half_tree(const float *part)
{
    struct chains x = load_chains(part);
#pragma GCC unroll 2
    for (int half = PARTS / 2; half > 0; half /= 2)
#pragma GCC unroll 2
        for (int i = 0; i < half; i++)
            x.part[i] = V(add_)(x.part[i], x.part[i + half]);
    return x.part[0];
}

void KERNEL(roots)(const float *part, size_t heads, float n, float eps, float scale, float *g)
{
    float sums[16];
    for (size_t h = 0; h < heads; h += 4) {
        const size_t last = heads - 1;
        const float *b = part + (h + 1 < last ? h + 1 : last) * CHAINS;
        const float *c = part + (h + 2 < last ? h + 2 : last) * CHAINS;
        const float *d = part + (h + 3 < last ? h + 3 : last) * CHAINS;
        store_f32_4(sums + h, V(sum_each_)(half_tree(part + h * CHAINS), half_tree(b),
                                           half_tree(c), half_tree(d)));
    }
    for (size_t h = 0; h < heads; h += 4) {
        f32x4 mean = add_4(div_4(load_f32_4(sums + h), set1_4(n)), set1_4(eps));
        f32x4 root = mul_4(div_4(set1_4(1.0f), sqrt_4(mean)), set1_4(scale));
        if (heads - h >= 4)
            store_f32_4(g + h, root);
        else {
            store_f32_4(sums + h, root);
            for (size_t i = h; i < heads; i++)
                g[i] = sums[i];
        }
    }
}
