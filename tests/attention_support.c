/* SPDX-License-Identifier: MIT */
/* Attention problems with random data, and their truth. */
#include "attention_support.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_truth.h"

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

static struct attention_call call_of(const struct problem *p)
{
    return (struct attention_call){p->params, NULL, p->q, p->k, p->v, p->out};
}

void true_row(const struct problem *p, int64_t b, int64_t i, int64_t h, long double *truth,
              long double *bound)
{
    struct attention_call call = call_of(p);
    struct row_truth row;
    row_truth_init(&row, &call, b, i, h);
    for (int64_t c = 0; c < p->shape.values; c++) {
        truth[c] = row.value[c].x;
        bound[c] = row.value[c].e;
    }
    row_truth_free(&row);
}

long double worst_ratio(const struct problem *p)
{
    struct attention_call call = call_of(p);
    return truth_worst(&call);
}

uint64_t hash_bytes(const void *data, size_t size, uint64_t hash)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}
