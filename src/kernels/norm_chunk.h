/* SPDX-License-Identifier: MIT */
/*
 * A few vectors of every head of a norm: rotated by folded rows that stay in registers, or scaled.
 *
 * Template over the lane count N, included by norm.h after element.h. `vectors` (at most 4) and the
 * dtypes are constants of the instantiation; `at` is the first pair or channel.
 */
static POSENC_INLINE void LANES(norm_split_head)(const char *a_in, const char *b_in, char *a_out,
                                                 char *b_out, int vectors, int from, int to,
                                                 FLOATS g, const FLOATS *ca, const FLOATS *sa,
                                                 const FLOATS *cb, const FLOATS *sb)
{
    FLOATS a[4], b[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        a[j] = LANES(mul)(LANES(load)(a_in, j * N, from), g);
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        b[j] = LANES(mul)(LANES(load)(b_in, j * N, from), g);
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        LANES(store)(a_out, j * N, to, LANES(fnma)(b[j], sa[j], LANES(mul)(a[j], ca[j])));
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++)
        LANES(store)(b_out, j * N, to, LANES(fma)(a[j], sb[j], LANES(mul)(b[j], cb[j])));
}

static POSENC_INLINE void LANES(norm_split_rows)(const struct posenc_norm_job *job, int vectors,
                                                 size_t at, FLOATS *ca, FLOATS *sa, FLOATS *cb,
                                                 FLOATS *sb)
{
#pragma GCC unroll 4
    for (size_t j = 0; j < (size_t)vectors; j++) {
        ca[j] = LANES(load_f32)(job->c + at + j * N);
        sa[j] = LANES(load_f32)(job->s + at + j * N);
        cb[j] = LANES(load_f32)(job->c + job->count + at + j * N);
        sb[j] = LANES(load_f32)(job->s + job->count + at + j * N);
    }
}

static POSENC_INLINE void LANES(norm_split)(const struct posenc_norm_job *job, int vectors,
                                            int from, int to, size_t at)
{
    FLOATS ca[4], sa[4], cb[4], sb[4];
    LANES(norm_split_rows)(job, vectors, at, ca, sa, cb, sb);
    const char *in = job->src + at * posenc_size(from);
    char *out = job->dst + at * posenc_size(to);
    const size_t in_b = job->partner * posenc_size(from);
    const size_t out_b = job->dst_partner * posenc_size(to);
    for (size_t h = 0; h < job->heads; h++) {
        LANES(norm_split_head)(in, in + in_b, out, out + out_b, vectors, from, to,
                               LANES(set1)(job->g[h]), ca, sa, cb, sb);
        in += job->src_head;
        out += job->dst_head;
    }
}

static POSENC_INLINE void LANES(norm_adjacent_rows)(const struct posenc_norm_job *job,
                                                    int vectors, size_t at, FLOATS *c, FLOATS *s)
{
#pragma GCC unroll 8
    for (size_t j = 0; j < (size_t)vectors; j++) {
        c[j] = LANES(load_f32)(job->c + at + j * N);
        s[j] = LANES(load_f32)(job->s + at + j * N);
    }
}

static POSENC_INLINE void LANES(norm_adjacent_head)(const char *in, char *out, int vectors,
                                                    int from, int to, FLOATS g, const FLOATS *c,
                                                    const FLOATS *s)
{
#pragma GCC unroll 8
    for (size_t j = 0; j < (size_t)vectors; j++) {
        FLOATS u = LANES(mul)(LANES(load)(in, j * N, from), g);
        FLOATS y = LANES(fma)(LANES(swap_neighbours)(u), s[j], LANES(mul)(u, c[j]));
        LANES(store)(out, j * N, to, y);
    }
}

static POSENC_INLINE void LANES(norm_adjacent)(const struct posenc_norm_job *job, int vectors,
                                               int from, int to, size_t at)
{
    FLOATS c[8], s[8];
    LANES(norm_adjacent_rows)(job, vectors, at, c, s);
    const char *in = job->src + at * posenc_size(from);
    char *out = job->dst + at * posenc_size(to);
    for (size_t h = 0; h < job->heads; h++) {
        LANES(norm_adjacent_head)(in, out, vectors, from, to, LANES(set1)(job->g[h]), c, s);
        in += job->src_head;
        out += job->dst_head;
    }
}

/* The weight is loaded again for each head, from the first cache. */
static POSENC_INLINE size_t LANES(norm_scale)(const char *in, char *out, const float *w, float g,
                                              size_t at, size_t count, int from, int to)
{
    FLOATS scale = LANES(set1)(g);
    for (; count - at >= N; at += N) {
        FLOATS u = LANES(mul)(LANES(load)(in, at, from), scale);
        LANES(store)(out, at, to, w ? LANES(mul)(u, LANES(load_f32)(w + at)) : u);
    }
    return at;
}

static POSENC_INLINE void LANES(fold_split)(const float *cos, const float *sin, const float *p,
                                            const float *q, size_t at, size_t pairs, float *c,
                                            float *s)
{
    FLOATS x = LANES(load_f32)(cos + at), y = LANES(load_f32)(sin + at);
    FLOATS first = p ? LANES(load_f32)(p + at) : x, second = p ? LANES(load_f32)(q + at) : x;
    LANES(store_f32)(c + at, p ? LANES(mul)(x, first) : x);
    LANES(store_f32)(c + pairs + at, p ? LANES(mul)(x, second) : x);
    LANES(store_f32)(s + at, p ? LANES(mul)(y, second) : y);
    LANES(store_f32)(s + pairs + at, p ? LANES(mul)(y, first) : y);
}

/* `at` is a channel. */
static POSENC_INLINE void LANES(fold_adjacent)(const float *cos, const float *sin, const float *w,
                                               size_t at, float *c, float *s)
{
    FLOATS x = LANES(load_twice)(cos + at / 2), y = LANES(load_twice)(sin + at / 2);
    if (w) {
        FLOATS weight = LANES(load_f32)(w + at);
        x = LANES(mul)(x, weight);
        y = LANES(mul)(y, LANES(swap_neighbours)(weight));
    }
    LANES(store_f32)(c + at, x);
    LANES(store_f32)(s + at, LANES(negate_even)(y));
}
