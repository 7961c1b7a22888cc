/* SPDX-License-Identifier: MIT */
/*
 * A norm and its rotation in one: all channels of a head are pairs, whose row stays in registers.
 *
 * Template over the lane count N, included by norm.h after norm_chunk.h. `vectors` of a head (4 or
 * 8), the layout and the dtypes are constants of the instantiation.
 */

/*
 * Four heads at a time go through three steps: their sums of squares, their roots, their rotation.
 * A turn of the loop takes one step of each of three fours, so that none of its steps waits for
 * another: sums and roots take 60 and 45 cycles, which rotations fill.
 */
enum { POSENC_NORM_FOUR = 4, POSENC_NORM_STEPS = 3 };

/* The sums of the heads from `first` on; of the last one again where there are no more. */
static POSENC_INLINE f32x4 LANES(whole_sums)(const struct posenc_norm_job *job, size_t first,
                                             int channels, int from)
{
    const size_t last = job->heads - 1;
    struct chains sums[POSENC_NORM_FOUR];
#pragma GCC unroll 4
    for (size_t h = 0; h < POSENC_NORM_FOUR; h++) {
        size_t head = first + h < last ? first + h : last;
        const char *src = job->src + (ptrdiff_t)head * job->src_head;
        sums[h] = no_chains();
#pragma GCC unroll 8
        for (int at = 0; at < channels; at += CHAINS)
            sums[h] = add_squares(sums[h], src, (size_t)at, from);
    }
    return four_sums(sums[0], sums[1], sums[2], sums[3]);
}

/*
 * Lines of later heads, which will be written. Measured in place on calls of 8 MiB: nearer, the
 * squares come first; three times as far, a call takes a fifth longer.
 */
static POSENC_INLINE void LANES(whole_ahead)(const char *in, const char *out, int channels,
                                             int from, int to)
{
    enum { AHEAD = 5120 };
#pragma GCC unroll 8
    for (size_t i = 0; i < (size_t)channels * posenc_size(from); i += 64)
        prefetch_write(in + AHEAD + i);
    if (in != out)
#pragma GCC unroll 8
        for (size_t i = 0; i < (size_t)channels * posenc_size(to); i += 64)
            prefetch_write(out + AHEAD + i);
}

static POSENC_INLINE void LANES(whole_heads)(const struct posenc_norm_turn_job *job, int layout,
                                             int vectors, int from, int to)
{
    const struct posenc_norm_job *turn = &job->turn;
    const int split = layout == POSENC_SPLIT_HALF, channels = vectors * N;
    const size_t half = (size_t)channels / 2;
    const char *in = turn->src;
    char *out = turn->dst;
    float g[2][POSENC_NORM_FOUR];
    f32x4 sums = set1_4(1.0f); /* no root of 0, which would raise a flag */
    FLOATS c[8], s[8];
    if (split)
        LANES(norm_split_rows)(turn, vectors / 2, 0, c, s, c + 4, s + 4);
    else
        LANES(norm_adjacent_rows)(turn, vectors, 0, c, s);
    for (size_t step = 0, left = turn->heads; left; step++) {
        const size_t first = step * POSENC_NORM_FOUR;
        store_f32_4(g[step % 2], four_roots(sums, job->n, job->eps, job->scale));
        if (first < turn->heads)
            sums = LANES(whole_sums)(turn, first, channels, from);
        if (step < POSENC_NORM_STEPS - 1)
            continue;
        for (size_t h = 0; h < POSENC_NORM_FOUR && left; h++, left--) {
            FLOATS scale = LANES(set1)(g[1 - step % 2][h]);
            if (job->ahead)
                LANES(whole_ahead)(in, out, channels, from, to);
            if (split)
                LANES(norm_split_head)(in, in + half * posenc_size(from), out,
                                       out + half * posenc_size(to), vectors / 2, from, to, scale,
                                       c, s, c + 4, s + 4);
            else
                LANES(norm_adjacent_head)(in, out, vectors, from, to, scale, c, s);
            in += turn->src_head;
            out += turn->dst_head;
        }
    }
}
