/* SPDX-License-Identifier: MIT */
/* The arithmetic of an append in plain loops, and the same in long double. */
#include "append_model.h"

#include <math.h>
#include <string.h>

/* The pair of channel c within the window, and whether c is its second. Returns -1 outside. */
static int32_t pair_of(const struct model_token *t, int64_t c, int32_t layout, int *second)
{
    int64_t at = c - t->window;

    if (at < 0 || at >= 2 * t->pairs) return -1;
    *second = layout == POSENC_ADJACENT ? (int)(at % 2) : at >= t->pairs;
    return (int32_t)(layout == POSENC_ADJACENT ? at / 2 : at % t->pairs);
}

/* The channel of pair i. */
static int64_t channel_of(const struct model_token *t, int32_t i, int32_t layout, int second)
{
    if (layout == POSENC_ADJACENT) return t->window + 2 * i + second;
    return t->window + i + (second ? t->pairs : 0);
}

/* The sum of squares of one head more, into 16 chains. */
static void add_chains(const float *x, int64_t n, float part[16])
{
    for (int64_t c = 0; c < n; c++) part[c % 16] = fmaf(x[c], x[c], part[c % 16]);
}

static float tree(const float part[16])
{
    float sum[16];

    memcpy(sum, part, sizeof sum);
    for (int half = 8; half > 0; half /= 2) {
        for (int r = 0; r < half; r++) sum[r] = sum[r] + sum[r + half];
    }
    return sum[0];
}

static void factors(const struct model_token *t, const float *x, float *g)
{
    float scale = t->scale == 0 ? 1.0f : (float)t->scale, part[16] = {0};
    int together = t->norm == POSENC_NORM_PROJECTION;
    float n = (float)(together ? t->heads * t->channels : t->channels);

    for (int64_t h = 0; h < t->heads; h++) {
        if (!together) memset(part, 0, sizeof part);
        add_chains(x + h * t->channels, t->channels, part);
        g[h] = 1.0f / sqrtf(tree(part) / n + (float)t->eps) * scale;
    }
    for (int64_t h = 0; together && h < t->heads; h++) g[h] = g[t->heads - 1];
    for (int64_t h = 0; t->norm == POSENC_NORM_NONE && h < t->heads; h++) g[h] = scale;
}

/* R(x g) of one head, the weight folded into the row or NULL. */
static void turn(const struct model_token *t, const float *x, float g, const float *w, float *y)
{
    for (int64_t c = 0; c < t->channels; c++) {
        int second = 0;
        int32_t i = pair_of(t, c, t->out_layout, &second);

        if (i < 0) {
            y[c] = w ? x[c] * g * w[c] : x[c] * g;
            continue;
        }
        int64_t p = channel_of(t, i, t->layout, 0), q = channel_of(t, i, t->layout, 1);
        float cosine = t->row[i], sine = t->row[t->pairs + i], up = x[p] * g, uq = x[q] * g;

        if (second) y[c] = fmaf(up, w ? sine * w[p] : sine, uq * (w ? cosine * w[q] : cosine));
        else y[c] = fmaf(-uq, w ? sine * w[q] : sine, up * (w ? cosine * w[p] : cosine));
    }
}

void model_bits(const struct model_token *t, float *y)
{
    static float turned[MODEL_HEADS * MODEL_CHANNELS];
    float g[MODEL_HEADS];
    int64_t n = t->channels;

    if (!t->norm_after) factors(t, t->x, g);
    for (int64_t h = 0; h < t->heads; h++) {
        const float *w = t->weight ? t->weight + h * n : NULL;

        if (t->norm_after) turn(t, t->x + h * n, 1.0f, NULL, turned + h * n);
        else turn(t, t->x + h * n, g[h], w, y + h * n);
    }
    if (!t->norm_after) return;
    factors(t, turned, g);
    for (int64_t i = 0; i < t->heads * n; i++) {
        y[i] = turned[i] * g[i / n];
        if (t->weight) y[i] = y[i] * t->weight[i];
    }
}

/* R(x) of one head in long double, with the sizes of what is added. */
static void true_turn(const struct model_token *t, const float *x, const float *w, long double *y,
                      long double *size)
{
    for (int64_t c = 0; c < t->channels; c++) {
        int second = 0;
        int32_t i = pair_of(t, c, t->out_layout, &second);

        if (i < 0) {
            y[c] = (long double)x[c] * (w ? w[c] : 1);
            size[c] = fabsl(y[c]);
            continue;
        }
        int64_t p = channel_of(t, i, t->layout, 0), q = channel_of(t, i, t->layout, 1);
        long double a = (long double)x[p] * (w ? w[p] : 1), b = (long double)x[q] * (w ? w[q] : 1);
        long double cosine = t->row[i], sine = t->row[t->pairs + i];

        y[c] = second ? a * sine + b * cosine : a * cosine - b * sine;
        size[c] = second ? fabsl(a * sine) + fabsl(b * cosine)
                         : fabsl(a * cosine) + fabsl(b * sine);
    }
}

/*
 * With u = 2^-24: a chain of n/16 fma and the tree leave (n/16 + 4) u of the sum of squares, the
 * quotient, eps and the sum 3 u more; of that the root keeps half, and the root, its inverse, the
 * scale and its product have u each: G = ((n/16 + 7) / 2 + 4) u of g. x g, the folded factor (a
 * product), the product with it and the sum: 4 u more of the size of what is added; where the norm
 * comes after, two roundings of R(x) instead of the factor, which also disturb the sum of squares
 * by 4 u sum |y| size, and two products. 1 % for terms of second order.
 */
void model_truth(const struct model_token *t, long double *y, long double *bound)
{
    static long double size[MODEL_HEADS * MODEL_CHANNELS], plain[MODEL_HEADS * MODEL_CHANNELS];
    const long double u = 0x1p-24L, scale = t->scale == 0 ? 1 : (long double)t->scale;
    int together = t->norm == POSENC_NORM_PROJECTION;
    int64_t n = t->channels, all = n * t->heads, count = together ? all : n;
    long double g[MODEL_HEADS], error[MODEL_HEADS];

    for (int64_t h = 0; h < t->heads; h++) {
        true_turn(t, t->x + h * n, NULL, plain + h * n, size + h * n);
    }
    for (int64_t h = 0; h < t->heads; h++) {
        long double ss = 0, disturbed = 0;

        for (int64_t i = together ? 0 : h * n; i < (together ? all : (h + 1) * n); i++) {
            long double x = t->norm_after ? plain[i] : (long double)t->x[i];
            ss += x * x;
            disturbed += t->norm_after ? fabsl(x) * size[i] : 0;
        }
        g[h] = t->norm ? scale / sqrtl(ss / (long double)count + (long double)t->eps) : scale;
        error[h] = t->norm ? ((long double)count / 16 + 8 + 7) / 2 + 4 : 1;
        if (t->norm_after && ss > 0) error[h] += 2 * disturbed / ss;
    }
    for (int64_t h = 0; h < t->heads; h++) {
        const float *w = t->weight ? t->weight + h * n : NULL;

        if (!t->norm_after) true_turn(t, t->x + h * n, w, plain + h * n, size + h * n);
        for (int64_t c = 0; c < n; c++) {
            int64_t i = h * n + c;
            long double factor = t->norm_after && w ? g[h] * w[c] : g[h];

            y[i] = plain[i] * factor;
            bound[i] = 1.01L * (error[h] + 4) * u * size[i] * fabsl(factor) + 0x1p-148L;
        }
    }
}
