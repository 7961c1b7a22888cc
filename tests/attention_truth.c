/* SPDX-License-Identifier: MIT */
/* Attention with every option in long double, each number with the bound of its error. */
#include "attention_truth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/half.h"

static const long double u = 0x1p-24L;

int64_t truth_sequences(const struct attention_call *call)
{
    return call->params.sequences ? call->params.sequences : call->q.shape[0];
}

int64_t truth_queries(const struct attention_call *call, int64_t sequence)
{
    const posenc_attention_params *p = &call->params;
    return p->sequences ? p->query_starts[sequence + 1] - p->query_starts[sequence]
                        : call->q.shape[1];
}

static int64_t chunk_of(int64_t place, int64_t chunk)
{
    return place >= 0 ? place / chunk : -((-place + chunk - 1) / chunk);
}

/* Where the row stands and what it sees. */
static void place_row(struct row_truth *r, int64_t sequence, int64_t query)
{
    const posenc_attention_params *p = &r->call->params;
    int64_t queries = truth_queries(r->call, sequence), keys = r->call->k.shape[1];
    r->batch = p->sequences ? 0 : sequence;
    r->token = (p->sequences ? p->query_starts[sequence] : 0) + query;
    r->first_stored = p->sequences ? p->key_starts[sequence] : 0;
    if (p->sequences)
        keys = p->key_starts[sequence + 1] - r->first_stored;
    r->keys = p->key_counts ? p->key_counts[sequence] : keys;
    r->first_key = p->first_keys ? p->first_keys[sequence] : p->first_key;
    r->place = r->first_key + query;
    if (p->align == POSENC_ALIGN_BOTTOM_RIGHT)
        r->place += r->keys - queries;
    if (p->align == POSENC_ALIGN_OFFSET)
        r->place = query + (p->query_offsets ? p->query_offsets[sequence] : p->query_offset);
    r->begin = r->keys;
    r->end = r->visible = 0;
    for (int64_t j = 0; j < r->keys; j++) {
        int64_t ahead = r->first_key + j - r->place;
        r->hidden[j] = (p->causal && ahead > 0) ||
                       (p->window_right > 0 && ahead >= p->window_right) ||
                       (j >= p->keep &&
                        ((p->window_left > 0 && -ahead >= p->window_left) ||
                         (p->chunk && chunk_of(r->place + ahead, p->chunk) !=
                                          chunk_of(r->place, p->chunk))));
        if (!r->hidden[j]) {
            r->begin = j < r->begin ? j : r->begin;
            r->end = j + 1;
        }
    }
}

static void load_head(struct bounded *to, const posenc_tensor *t, int64_t b, int64_t token,
                      int64_t head)
{
    for (int64_t c = 0; c < t->shape[3]; c++)
        to[c] = (struct bounded){truth_element(t, b, token, head, c), 0};
}

long double truth_scale(const struct row_truth *r)
{
    const posenc_attention_params *p = &r->call->params;
    const posenc_attention_deberta *d = p->deberta;
    int terms = d ? (d->position_keys != NULL) + (d->position_queries != NULL) : 0;
    long double scale = p->scale != 0 ? p->scale
                                      : 1 / sqrtl((long double)(r->call->q.shape[3] * (1 + terms)));
    if (p->multiplier != 0)
        scale *= p->multiplier;
    if (p->temperature)
        scale *= truth_element(p->temperature, r->batch, r->token, r->head, 0);
    return scale;
}

/* tanh in float of a bounded number: 3.13 u of its own. */
static struct bounded tanh_of(struct bounded y)
{
    long double size = fabsl(y.x);
    struct bounded t = {tanhl(y.x), tanhl(size + y.e) - tanhl(size - y.e)};
    t.e = fminl(t.e, y.e) + 3.13L * u * fabsl(t.x) + 0x1p-149L;
    return t;
}

static void score_key(struct row_truth *r, int64_t j)
{
    const posenc_attention_params *p = &r->call->params;
    const int64_t channels = r->call->q.shape[3], token = r->first_stored + j;
    const int biased = p->bias || p->alibi || p->t5 || p->deberta;
    load_head(r->key, &r->call->k, r->batch, token, r->key_head);
    if (j >= p->rotate_from)
        truth_rotate(r->call, p->key_rows, r->batch, token, 0, r->key, channels);
    struct bounded b = truth_bias(r, j), x;
    if (isinf(b.x) && b.x < 0) {
        r->hidden[j] = 1;
        return;
    }
    long double scale = truth_scale(r);
    x = truth_product(r->query, r->key, channels);
    if (p->softcap > 0) { /* the scale and the product are rounded, then softcap and its product */
        long double by = scale / p->softcap;
        x = (struct bounded){x.x * by, fabsl(by) * x.e + 2 * u * fabsl(x.x * by) + 0x1p-149L};
        x = tanh_of(x);
        scale = p->softcap;
    }
    x.e = fabsl(scale) * x.e + (biased ? 1 : 2) * u * fabsl(scale * x.x) +
          0x1p-150L * (1 + fabsl(x.x));
    x.x *= scale;
    if (biased) {
        x.x += b.x;
        x.e += b.e + u * (fabsl(x.x) + x.e);
    }
    r->score[j] = x;
    r->visible++;
}

/* Tiles of a span and spans that a row goes through, at most. */
static long double tiles_of(const struct row_truth *r)
{
    return fminl((long double)((r->end - r->begin + 63) / 64 + 1), 16);
}

static long double spans_of(const struct row_truth *r)
{
    return (long double)((r->end - r->begin + 1023) / 1024 + 1);
}

/* exp(score - largest) with the bound of its relative error; what is lost below 2^-126 aside. */
static struct bounded weight_of(const struct row_truth *r, struct bounded s, struct bounded largest)
{
    long double reach = largest.x - s.x + s.e + largest.e;
    long double powers = tiles_of(r) + spans_of(r) + 3;
    return (struct bounded){expl(s.x - largest.x),
                            expm1l(s.e + 2.25L * u * reach + 1.5L * u * powers)};
}

static void sum_values(struct row_truth *r, long double total, struct bounded sink)
{
    const int64_t values = r->call->v.shape[3];
    long double n = (long double)r->visible, tiles = tiles_of(r), spans = spans_of(r);
    long double value_steps = fminl(n, 64) + tiles + spans + 3, sum_steps = tiles + spans + 11;
    for (int64_t c = 0; c < values; c++) {
        long double sum = 0, size = 0, spread = 0, largest = 0;
        for (int64_t j = r->begin; j < r->end; j++)
            if (!r->hidden[j])
                sum += r->score[j].x / total *
                       truth_element(&r->call->v, r->batch, r->first_stored + j, r->key_head, c);
        for (int64_t j = r->begin; j < r->end; j++) {
            if (r->hidden[j])
                continue;
            long double w = r->score[j].x / total;
            long double v = fabsl(
                truth_element(&r->call->v, r->batch, r->first_stored + j, r->key_head, c));
            size += w * v;
            spread += w * r->score[j].e * (v + fabsl(sum));
            largest = fmaxl(largest, v);
        }
        spread += sink.x / total * sink.e * fabsl(sum);
        r->value[c].x = sum;
        r->value[c].e = (spread + value_steps * u * size + (sum_steps + 1) * u * fabsl(sum)) *
                            (1 + r->spread) / (1 - r->spread) * 1.001L +
                        2 * (n + 1) * 0x1p-126L / total * (largest + fabsl(sum)) +
                        (n + 200) * 0x1p-149L;
    }
}

static void sum_row(struct row_truth *r)
{
    const float *sinks = r->call->params.sinks;
    struct bounded largest = {-INFINITY, 0}, sink = {sinks ? sinks[r->head] : -INFINITY, 0};
    long double total = 0, sum_steps = tiles_of(r) + spans_of(r) + 11;
    for (int64_t j = r->begin; j < r->end; j++)
        if (!r->hidden[j]) {
            largest.x = fmaxl(largest.x, r->score[j].x);
            largest.e = fmaxl(largest.e, r->score[j].e);
        }
    largest.x = fmaxl(largest.x, sink.x);
    sink = sinks ? weight_of(r, sink, largest) : (struct bounded){0, 0};
    total = sink.x;
    r->spread = sink.x * sink.e;
    for (int64_t j = r->begin; j < r->end; j++)
        if (!r->hidden[j]) {
            r->score[j] = weight_of(r, r->score[j], largest);
            total += r->score[j].x;
            r->spread += r->score[j].x * r->score[j].e;
        }
    r->spread /= total;
    sum_values(r, total, sink);
    long double relative = (r->spread + sum_steps * u) / (1 - r->spread) +
                           (long double)(r->visible + 1) * 0x1p-126L / total;
    r->lse.x = largest.x + logl(total);
    r->lse.e = relative * 1.001L + u * fabsl(r->lse.x) + 0x1p-149L;
    for (int64_t j = r->begin; j < r->end; j++) {
        struct bounded w = r->score[j];
        r->score[j].x = w.x / total;
        r->score[j].e = w.x / total * (w.e + relative + 2 * u) * 1.001L + 0x1p-126L / total;
    }
}

void row_truth_init(struct row_truth *r, const struct attention_call *call, int64_t sequence,
                    int64_t query, int64_t head)
{
    const posenc_attention_params *p = &call->params;
    const int64_t channels = call->q.shape[3], values = call->v.shape[3];
    const size_t keys = (size_t)call->k.shape[1];
    const int64_t heads = call->q.shape[2], key_heads = call->k.shape[2];
    *r = (struct row_truth){.call = call, .head = head, .lse = {-INFINITY, 0}};
    r->key_head = p->head_map == POSENC_HEADS_GROUPED ? head / (heads / key_heads)
                                                      : head % key_heads;
    r->score = calloc(keys + (size_t)(values + 2 * channels), sizeof(*r->score));
    r->hidden = malloc(keys + 1);
    assert_non_null(r->score);
    assert_non_null(r->hidden);
    r->value = r->score + keys;
    r->query = r->value + values;
    r->key = r->query + channels;
    place_row(r, sequence, query);
    load_head(r->query, &call->q, r->batch, r->token, head);
    truth_rotate(call, p->query_rows, r->batch, r->token, 0, r->query, channels);
    for (int64_t j = r->begin; j < r->end; j++)
        if (!r->hidden[j])
            score_key(r, j);
    if (r->visible)
        sum_row(r);
    else if (p->sinks)
        r->lse.x = p->sinks[head];
    if (r->visible)
        truth_rotate(call, p->output_rows, r->batch, r->token, 1, r->value, values);
}

void row_truth_free(struct row_truth *r)
{
    free(r->score);
    free(r->hidden);
}

static long double ratio_of(long double result, struct bounded truth, int32_t dtype)
{
    long double error = fabsl(result - truth.x), bound = truth.e;
    if (result == truth.x)
        return 0;
    if (dtype != POSENC_F32)
        bound += test_half_ulp((double)(fabsl(truth.x) + truth.e), dtype);
    return isnan(error) || bound == 0 ? INFINITY : error / bound;
}

/* What the row has in out, lse and weights. */
static long double worst_of_row(const struct row_truth *r)
{
    const posenc_attention_params *p = &r->call->params;
    long double worst = 0;
    for (int64_t c = 0; c < r->call->v.shape[3]; c++)
        worst = fmaxl(worst, ratio_of(truth_element(&r->call->out, r->batch, r->token, r->head, c),
                                      r->value[c], r->call->out.dtype));
    if (p->lse)
        worst = fmaxl(worst, ratio_of(truth_element(p->lse, r->batch, r->token, r->head, 0), r->lse,
                                      POSENC_F32));
    for (int64_t n = 0; p->weights && n < p->weights->shape[1]; n++)
        for (int64_t j = 0; p->weight_rows[n] == r->token && j < p->weights->shape[3]; j++) {
            int seen = j >= r->begin && j < r->end && !r->hidden[j];
            struct bounded none = {0, 0};
            worst = fmaxl(worst, ratio_of(truth_element(p->weights, r->batch, n, r->head, j),
                                          seen ? r->score[j] : none, POSENC_F32));
        }
    return worst;
}

long double truth_worst(const struct attention_call *call)
{
    long double worst = 0;
    for (int64_t s = 0; s < truth_sequences(call); s++)
        for (int64_t i = 0; i < truth_queries(call, s); i++)
            for (int64_t h = 0; h < call->q.shape[2]; h++) {
                struct row_truth row;
                row_truth_init(&row, call, s, i, h);
                worst = fmaxl(worst, worst_of_row(&row));
                row_truth_free(&row);
            }
    return worst;
}
