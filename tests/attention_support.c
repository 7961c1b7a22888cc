/* SPDX-License-Identifier: MIT */
/* Attention problems with random data, and their truth in long double with derived error bounds. */
#include "attention_support.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t random_between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(state) % (uint64_t)(high - low + 1));
}

float random_float(uint64_t *state)
{
    uint64_t bits = random_bits(state);
    int32_t sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (int32_t)(bits >> (21 * i) & 0x1fffff) - 0x100000;
    return (float)sum * 0x1p-20f * 1.25f;
}

int64_t tensor_count(const posenc_tensor *t)
{
    return t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
}

size_t tensor_bytes(const posenc_tensor *t)
{
    return (size_t)tensor_count(t) * sizeof(float);
}

static void make_view(posenc_tensor *t, int64_t batch, int64_t tokens, int64_t heads,
                      int64_t channels)
{
    size_t bytes = (size_t)(batch * tokens * heads * channels) * sizeof(float);
    void *data = malloc(bytes ? bytes : 1);
    assert_non_null(data);
    memset(data, FILL_BYTE, bytes);
    posenc_tensor_contiguous(t, data, POSENC_F32, batch, tokens, heads, channels);
}

void problem_init(struct problem *p, struct shape s, uint64_t seed)
{
    posenc_tensor *inputs[3] = {&p->q, &p->k, &p->v};
    p->shape = s;
    posenc_attention_params_init(&p->params);
    p->params.causal = s.causal;
    make_view(&p->q, s.batch, s.queries, s.q_heads, s.channels);
    make_view(&p->k, s.batch, s.keys, s.k_heads, s.channels);
    make_view(&p->v, s.batch, s.keys, s.k_heads, s.values);
    make_view(&p->out, s.batch, s.queries, s.q_heads, s.values);
    for (int i = 0; i < 3; i++)
        for (int64_t n = tensor_count(inputs[i]), j = 0; j < n; j++)
            ((float *)inputs[i]->data)[j] = random_float(&seed);
}

void problem_free(struct problem *p)
{
    free(p->q.data);
    free(p->k.data);
    free(p->v.data);
    free(p->out.data);
}

float *element(const posenc_tensor *t, int64_t b, int64_t token, int64_t head)
{
    return (float *)t->data + b * t->stride[0] + token * t->stride[1] + head * t->stride[2];
}

posenc_tensor tokens_of(const posenc_tensor *t, int64_t first, int64_t count)
{
    posenc_tensor part = *t;
    part.data = (float *)t->data + first * t->stride[1];
    part.shape[1] = count;
    return part;
}

void run(struct problem *p, int32_t isa)
{
    posenc_error error = {0};
    p->params.isa = isa;
    memset(p->out.data, FILL_BYTE, tensor_bytes(&p->out));
    if (posenc_attention(&p->params, &p->q, &p->k, &p->v, &p->out, &error) != POSENC_OK)
        fail_msg("%s", error.text);
}

/* Of one row: scores s with their error e, the sums over the keys that it sees. */
struct row_truth {
    long double *s, *e, largest, largest_error, total;
    int64_t keys;
};

static const long double u = 0x1p-24L;

static void true_scores(const struct problem *p, struct row_truth *r, int64_t b, int64_t i,
                        int64_t h)
{
    int64_t d = p->shape.channels;
    const float *q = element(&p->q, b, i, h);
    long double scale = p->params.scale != 0 ? p->params.scale : 1 / sqrtl((long double)d);
    r->largest = -INFINITY;
    r->largest_error = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        const float *k = element(&p->k, b, j, h / (p->shape.q_heads / p->shape.k_heads));
        long double sum = 0, size = 0;
        for (int64_t c = 0; c < d; c++) {
            sum += (long double)q[c] * k[c];
            size += fabsl((long double)q[c] * k[c]);
        }
        r->s[j] = scale * sum;
        r->e[j] = (long double)((d + 15) / 16 + 6) * u * fabsl(scale) * size +
                  (long double)d * 0x1p-150L * fabsl(scale) + 0x1p-150L;
        r->largest = fmaxl(r->largest, r->s[j]);
        r->largest_error = fmaxl(r->largest_error, r->e[j]);
    }
}

/* Turns s into true weights and e into bounds of their relative errors: docs/accuracy.md. */
static void true_weights(struct row_truth *r)
{
    long double tiles = (long double)((r->keys + 63) / 64);
    long double spans = (long double)((r->keys + 1023) / 1024);
    long double powers = fminl(tiles, 16) + spans + 2;
    r->total = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        long double distance = r->largest - r->s[j];
        long double reach = distance + r->e[j] + r->largest_error;
        r->e[j] = expm1l(r->e[j] + 2.25L * u * reach + 1.5L * u * powers);
        r->s[j] = expl(-distance);
        r->total += r->s[j];
    }
}

static void true_values(const struct problem *p, const struct row_truth *r, int64_t b, int64_t h,
                        long double *truth, long double *bound)
{
    long double n = (long double)r->keys, tiles = fminl((n + 63) / 64, 16), spans = n / 1024 + 1;
    long double value_steps = fminl(n, 64) + tiles + spans + 2, sum_steps = tiles + spans + 10;
    int64_t head = h / (p->shape.q_heads / p->shape.k_heads);
    for (int64_t c = 0; c < p->shape.values; c++) {
        long double sum = 0, size = 0, spread = 0, widest = 0, largest_v = 0;
        for (int64_t j = 0; j < r->keys; j++)
            sum += r->s[j] / r->total * element(&p->v, b, j, head)[c];
        for (int64_t j = 0; j < r->keys; j++) {
            long double w = r->s[j] / r->total;
            long double v = fabsl((long double)element(&p->v, b, j, head)[c]);
            size += w * v;
            spread += w * r->e[j] * (v + fabsl(sum));
            widest += w * r->e[j];
            largest_v = fmaxl(largest_v, v);
        }
        truth[c] = sum;
        bound[c] = (spread + value_steps * u * size + (sum_steps + 1) * u * fabsl(sum)) *
                       (1 + widest) / (1 - widest) * 1.001L +
                   2 * n * 0x1p-126L * (largest_v + fabsl(sum)) + (n + 200) * 0x1p-149L;
    }
}

void true_row(const struct problem *p, int64_t b, int64_t i, int64_t h, long double *truth,
              long double *bound)
{
    struct row_truth r = {.keys = p->shape.keys};
    if (p->shape.causal && p->shape.keys - p->shape.queries + i + 1 < r.keys)
        r.keys = p->shape.keys - p->shape.queries + i + 1;
    if (r.keys <= 0) {
        for (int64_t c = 0; c < p->shape.values; c++)
            truth[c] = bound[c] = 0;
        return;
    }
    r.s = malloc((size_t)r.keys * 2 * sizeof(long double));
    assert_non_null(r.s);
    r.e = r.s + r.keys;
    true_scores(p, &r, b, i, h);
    true_weights(&r);
    true_values(p, &r, b, h, truth, bound);
    free(r.s);
}

long double worst_ratio(const struct problem *p)
{
    static long double truth[4096], bound[4096];
    long double worst = 0;
    for (int64_t b = 0; b < p->shape.batch; b++)
        for (int64_t i = 0; i < p->shape.queries; i++)
            for (int64_t h = 0; h < p->shape.q_heads; h++) {
                true_row(p, b, i, h, truth, bound);
                for (int64_t c = 0; c < p->shape.values; c++) {
                    long double error = fabsl(element(&p->out, b, i, h)[c] - truth[c]);
                    long double ratio = error == 0 ? 0 : error / bound[c];
                    if (isnan(ratio))
                        return INFINITY;
                    worst = ratio > worst ? ratio : worst;
                }
            }
    return worst;
}

uint64_t hash_bytes(const void *data, size_t size, uint64_t hash)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}
