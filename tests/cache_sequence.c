/* SPDX-License-Identifier: MIT */
/* See cache_sequence.h. */
#include "cache_sequence.h"

#include "support/numbers.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

struct sequence seq;

static void view(posenc_tensor *t, void *data, int64_t tokens, int64_t heads)
{
    posenc_tensor_contiguous(t, data, POSENC_F32, 1, tokens, heads, D);
}

posenc_tensor sequence_part(const posenc_tensor *t, int64_t first, int64_t count)
{
    posenc_tensor p = *t;
    p.data = (float *)p.data + first * p.stride[1];
    p.shape[1] = count;
    return p;
}

void sequence_append(const struct cache_run *run, const posenc_tensor *to)
{
    posenc_error error = {0, ""};
    posenc_cache plain;
    posenc_cache_plain(&plain, to);
    test_ok(posenc_cache_append(&run->params, &run->src, &plain, &error), &error);
}

void sequence_load(const char *id, int32_t recipe, size_t count)
{
    char name[64];
    snprintf(name, sizeof(name), "%s/q", id);
    cache_run_load(&seq.q, name, "side", 0);
    snprintf(name, sizeof(name), "%s/k", id);
    cache_run_load(&seq.k, name, "side", 0);
    assert_int_equal(cache_run_make(&seq.q, recipe), POSENC_OK);
    assert_int_equal(cache_run_make(&seq.k, recipe), POSENC_OK);
    assert_int_equal(test_numbers("cache_run.txt", id, "out", seq.expected, OUT), count);
    view(&seq.q_view, seq.q_turned, (int64_t)seq.q.set.t, HQ);
    view(&seq.k_view, seq.k_turned, (int64_t)seq.k.set.t, HK);
    view(&seq.v_view, seq.v, (int64_t)seq.k.set.t, HK);
    view(&seq.out_view, seq.out, (int64_t)seq.q.set.t, HQ);
    for (int i = 0; i < KEYS; i++)
        seq.v[i] = cache_value(CACHE_V, i);
}

void sequence_free(void)
{
    cache_run_free(&seq.q);
    cache_run_free(&seq.k);
}

/* How far a score may be off because q and k are: the sum over channels of both errors. */
static double score_error(const double *q_bound, const double *k_bound, const float *q,
                          const float *k, double scale)
{
    double sum = 0;
    for (int c = 0; c < D; c++)
        sum += (fabs((double)q[c]) + q_bound[c]) * k_bound[c] + q_bound[c] * fabs((double)k[c]);
    return sum * scale;
}

double sequence_ratio(const struct attention_call *call, int64_t query, int64_t token,
                      const float *out, const double *k_bound)
{
    const float *q = call->q.data, *k = call->k.data, *v = call->v.data;
    double worst = 0, scale = call->params.scale > 0 ? call->params.scale : 1 / sqrt(D);
    for (int64_t h = 0; h < HQ; h++) {
        struct row_truth row;
        double off = 0, largest = 0;
        row_truth_init(&row, call, 0, query, h);
        for (int64_t j = row.begin; j < row.end; j++) {
            int64_t at = (j * HK + h / 2) * D;
            off = fmax(off, score_error(seq.q.bound + (token * HQ + h) * D, k_bound + at,
                                        q + (query * HQ + h) * D, k + at, scale));
            for (int c = 0; c < D; c++)
                largest = fmax(largest, fabs((double)v[at + c]));
        }
        for (int64_t c = 0; c < D; c++) {
            double run = seq.expected[(token * HQ + h) * D + c];
            double error = fabs((double)out[h * D + c] - run);
            double bound = (double)row.value[c].e + expm1(2 * off) * largest + 1e-9 * fabs(run);
            worst = fmax(worst, isnan(error) ? (double)INFINITY : error / (bound + 1e-12));
        }
        row_truth_free(&row);
    }
    return worst;
}
