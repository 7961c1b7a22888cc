/* SPDX-License-Identifier: MIT */
/* What goes into the scores of attention's truth: rotated heads, products, biases. */
#include "attention_truth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/half.h"

static const long double u = 0x1p-24L;

long double truth_element(const posenc_tensor *t, int64_t b, int64_t token, int64_t head,
                          int64_t channel)
{
    const int64_t index[3] = {b, token, head};
    int64_t at = channel;
    for (int d = 0; d < 3; d++)
        at += t->shape[d] == 1 ? 0 : index[d] * t->stride[d];
    return test_load(t->data, t->dtype, at);
}

/* Two products, one of them fused: 2 u of both and 2^-149. INVERSE rounds its row once more. */
static struct bounded turned(struct bounded a, long double c, struct bounded b, long double s,
                             int backwards)
{
    struct bounded y = {a.x * c + b.x * s, 0};
    y.e = (2 + backwards) * u * (fabsl(a.x * c) + fabsl(b.x * s)) + fabsl(c) * a.e +
          fabsl(s) * b.e + 0x1p-148L;
    return y;
}

void truth_rotate(const struct attention_call *call, const posenc_tensor *rows, int64_t batch,
                  int64_t token, int backwards, struct bounded *head, int64_t channels)
{
    const posenc_rope_params *r = call->rope;
    if (!rows)
        return;
    int64_t pairs = r->rotary_dim / 2, window = channels == r->rotary_dim ? 0 : r->rotary_offset;
    int adjacent = r->layout == POSENC_ADJACENT;
    long double factor = posenc_plan_attention_factor(call->params.rope);
    for (int64_t i = 0; i < pairs; i++) {
        struct bounded *p = head + window + (adjacent ? 2 * i : i);
        struct bounded *q = p + (adjacent ? 1 : pairs), a = *p, b = *q;
        long double c = truth_element(rows, batch, token, 0, i);
        long double s = truth_element(rows, batch, token, 0, pairs + i);
        if (backwards) {
            c /= factor * factor;
            s /= -factor * factor;
        }
        *p = turned(a, c, b, -s, backwards);
        *q = turned(a, s, b, c, backwards);
    }
}

struct bounded truth_product(const struct bounded *a, const struct bounded *b, int64_t channels)
{
    struct bounded sum = {0, 0};
    long double size = 0;
    for (int64_t c = 0; c < channels; c++) {
        sum.x += a[c].x * b[c].x;
        size += (fabsl(a[c].x) + a[c].e) * (fabsl(b[c].x) + b[c].e);
        sum.e += fabsl(a[c].x) * b[c].e + fabsl(b[c].x) * a[c].e + a[c].e * b[c].e;
    }
    sum.e += (long double)((channels + 15) / 16 + 4) * u * size + (long double)channels * 0x1p-150L;
    return sum;
}

static long double slope_of(const posenc_alibi_params *p, int64_t head)
{
    int64_t n = 1, k = p->first_head + head;
    if (p->slopes)
        return p->slopes[head];
    while (2 * n <= p->heads)
        n *= 2;
    if (k < n)
        return powl(2, -(long double)p->max_bias * (long double)(k + 1) / (long double)n);
    return powl(2, -(long double)p->max_bias / 2 * (long double)(2 * (k - n) + 1) / (long double)n);
}

static long double bf16(long double x)
{
    return test_widen(test_narrow((double)x, POSENC_BF16), POSENC_BF16);
}

static struct bounded alibi(const struct row_truth *row, int64_t j)
{
    const posenc_alibi_params *p = row->call->params.alibi;
    long double slope = slope_of(p, row->head);
    int64_t key = row->first_key + j, distance;
    int64_t position = key;
    if (p->key_positions)
        position = p->key_positions[row->batch * row->call->k.shape[1] + j];
    switch (p->form) {
    case POSENC_ALIBI_DISTANCE: distance = key < row->place ? key - row->place : 0; break;
    case POSENC_ALIBI_ABS: distance = -llabs(row->place - key); break;
    case POSENC_ALIBI_LAST: distance = position - (row->first_key + row->keys - 1); break;
    default: distance = position; break;
    }
    if (p->form == POSENC_ALIBI_FALCON) {
        float product = (float)bf16(bf16((float)slope) * bf16((float)distance));
        return (struct bounded){product * (float)p->scale, 0};
    }
    long double b = slope * (long double)p->scale * (long double)distance;
    return (struct bounded){b, 1.02L * u * fabsl(b) + 0x1p-149L};
}

static struct bounded t5(const struct row_truth *row, int64_t j)
{
    const posenc_attention_params *p = &row->call->params;
    int32_t relative = (int32_t)(row->first_key + j - row->place), bucket;
    assert_int_equal(posenc_t5_buckets(p->t5, &relative, 1, &bucket, NULL), POSENC_OK);
    return (struct bounded){truth_element(p->t5_table, 0, bucket, 0, row->head), 0};
}

/* transformers: both terms take clamp(bucket(query - key) + span). */
static struct bounded deberta(const struct row_truth *row, int64_t j)
{
    const posenc_attention_deberta *d = row->call->params.deberta;
    int64_t span = d->buckets ? d->buckets : d->max_distance, channels = row->call->q.shape[3];
    int32_t relative = (int32_t)(row->place - row->first_key - j), bucket;
    struct bounded *position = malloc((size_t)channels * sizeof(*position));
    const posenc_tensor *view[2] = {d->position_keys, d->position_queries};
    const struct bounded *other[2] = {row->query, row->key};
    struct bounded sum = {0, 0};
    long double c = truth_scale(row);
    assert_non_null(position);
    assert_int_equal(posenc_deberta_buckets(d->buckets, d->max_distance, &relative, 1, &bucket,
                                            NULL),
                     POSENC_OK);
    int64_t at = bucket + span < 0 ? 0 : bucket + span;
    at = at < 2 * span ? at : 2 * span - 1;
    for (int n = 0; n < 2; n++) {
        if (!view[n])
            continue;
        for (int64_t i = 0; i < channels; i++)
            position[i] = (struct bounded){truth_element(view[n], 0, at, row->head, i), 0};
        struct bounded product = truth_product(other[n], position, channels);
        sum.x += product.x;
        sum.e += product.e;
    }
    free(position);
    /* The sum, the scale and the product are rounded. */
    return (struct bounded){sum.x * c, fabsl(c) * sum.e + 3 * u * fabsl(sum.x * c) + 0x1p-149L};
}

struct bounded truth_bias(const struct row_truth *row, int64_t j)
{
    const posenc_attention_params *p = &row->call->params;
    struct bounded b = {0, 0}, tensor = {0, 0};
    if (p->bias) {
        tensor.x = truth_element(p->bias, row->batch, row->token, row->head, j);
        if (isinf(tensor.x) && tensor.x < 0)
            return tensor;
    }
    if (p->alibi)
        b = alibi(row, j);
    else if (p->t5)
        b = t5(row, j);
    else if (p->deberta)
        b = deberta(row, j);
    if (p->bias && (p->alibi || p->t5 || p->deberta))
        b.e += u * (fabsl(b.x + tensor.x) + b.e);
    b.x += tensor.x;
    return b;
}
