/* SPDX-License-Identifier: MIT */
/*
 * The sums of four rows of the usual width with a whole tile, for vectors of sixteen lanes.
 *
 * Template, included by attention_direct.h. Two keys at a time: the halving tree of the two before
 * them goes step by step among their products. Where it follows its own products, as in four_sums,
 * a CPU that holds fewer operations than four keys take waits for it. Such are the CPUs that ask
 * twice, whose kernels alone have this. BF16 gains nothing by it.
 */

/* The chains of four rows with two keys. */
struct pairs {
    vector s[4][2];
};

/* What the tree has made so far: of each row, of two rows, of all four; of the latter for two pairs
 * of keys. */
struct tree {
    vector eights[4], fours[2], twos[2];
};

/* One of its eight steps; the last one stores the sums of both pairs of keys. */
static POSENC_INLINE void grow(struct tree *tree, int step, const struct pairs *done, int second,
                               float *sums)
{
    if (step < 4)
        tree->eights[step] = eights_16(done->s[step][0], done->s[step][1]);
    else if (step < 6)
        tree->fours[step - 4] =
            fours_16(tree->eights[2 * step - 8], tree->eights[2 * step - 7]);
    else if (step == 6)
        tree->twos[second] = twos_16(tree->fours[0], tree->fours[1]);
    else if (second)
        store_sums_of_pairs_16(sums, TILE, tree->twos[0], tree->twos[1]);
}

/* done NULL: there are none before. */
static POSENC_INLINE struct pairs two_keys(int dtype, int asks, const float *const *q,
                                           const void *const *key, struct rows_ahead ahead,
                                           struct tree *tree, const struct pairs *done, int second,
                                           float *sums)
{
    const float *qa = q[0], *qb = q[1], *qc = q[2], *qd = q[3];
    const vector zero = V(set1_)(0.0f);
    struct pairs p = {{{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}}};
#pragma GCC unroll 8
    for (int v = 0; v < WIDTH / LANES; v++) {
        const int64_t c = v * LANES;
        const vector a = load_whole(key[0], c, dtype), b = load_whole(key[1], c, dtype);
        const vector row[4] = {V(load_f32_)(qa + c), V(load_f32_)(qb + c), V(load_f32_)(qc + c),
                               V(load_f32_)(qd + c)};
        if (asks) /* half of four keys' lines */
            fetch_lines(dtype, asks, ahead, WIDTH, lines_by(dtype, v) / 2,
                        lines_by(dtype, v + 1) / 2);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) {
            p.s[r][0] = V(fma_)(row[r], a, p.s[r][0]);
            p.s[r][1] = V(fma_)(row[r], b, p.s[r][1]);
        }
        if (done)
            grow(tree, v, done, second, sums);
    }
    return p;
}

static POSENC_INLINE int are_usual(int dtype, const struct posenc_attention_direct_sums *job)
{
    return (dtype == POSENC_F16 || dtype == POSENC_F32) && job->channels == WIDTH &&
           job->begin == 0 && job->end == TILE &&
           job->next.bytes == WIDTH * element_bytes(dtype);
}

static POSENC_INLINE struct rows_ahead ahead_of(const struct posenc_attention_direct_sums *job,
                                                int asks, int64_t j)
{
    if (!asks)
        return (struct rows_ahead){NULL, NULL, NULL};
    const int64_t near = j + NEAR_APART + 2 <= TILE ? j + NEAR_APART : j;
    return (struct rows_ahead){job->next.rows + j, job->next.rows + (j < AGAIN ? j : j - AGAIN),
                               job->key + near};
}

/* The rows from `first` on. */
static POSENC_INLINE void sum_four_rows(int dtype, int asks,
                                        const struct posenc_attention_direct_sums *job,
                                        int64_t first)
{
    const float *const *q = job->q + first;
    float *sums = job->sums + first * TILE;
    struct tree tree;
    struct pairs a = two_keys(dtype, asks, q, job->key, ahead_of(job, asks, 0), &tree, NULL, 0,
                              NULL);
    struct pairs b = two_keys(dtype, asks, q, job->key + 2, ahead_of(job, asks, 2), &tree, &a, 0,
                              NULL);
    for (int64_t j = 4; j < TILE; j += 4) {
        a = two_keys(dtype, asks, q, job->key + j, ahead_of(job, asks, j), &tree, &b, 1,
                     sums + j - 4);
        b = two_keys(dtype, asks, q, job->key + j + 2, ahead_of(job, asks, j + 2), &tree, &a, 0,
                     NULL);
    }
#pragma GCC unroll 8
    for (int step = 0; step < 8; step++)
        grow(&tree, step, &b, 1, sums + TILE - 4);
}
