/* SPDX-License-Identifier: MIT */
/* posenc run: rotation and causal attention of a small sample on every ISA, and against the truth.
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Attention costs the square of its tokens: the last ones of the step and a few heads must do. */
enum { QUERIES = 32, KEYS = 128, KEY_HEADS = 2, GROUP = 4, TRUE_QUERIES = 4 };

struct sample {
    posenc_tensor q, k, v;             /* as filled */
    posenc_tensor rq, rk, scalar, out; /* rotated; the results of scalar and of another ISA */
    posenc_attention_params params;
};

static int make(posenc_tensor *t, int64_t tokens, int64_t heads, int64_t channels, uint32_t seed)
{
    void *data = malloc((size_t)(tokens * heads * channels) * sizeof(float));
    posenc_tensor_contiguous(t, data, POSENC_F32, 1, tokens, heads, channels);
    if (!data)
        return 0;
    run_fill(t, seed);
    return 1;
}

static int make_sample(struct sample *s, const struct run *run, const struct run_set *set)
{
    const posenc_contract_facts *facts = &run->model.facts;
    int64_t d = set->facts.head_dim, all = set->facts.num_kv_heads;
    int64_t keys = run->options.tokens < KEYS ? run->options.tokens : KEYS;
    int64_t queries = keys < QUERIES ? keys : QUERIES;
    int64_t heads = all < KEY_HEADS ? all : KEY_HEADS;
    int64_t q_heads = set->facts.num_heads;
    int64_t group = all > 0 && q_heads % all == 0 ? q_heads / all : 1;
    if (group > GROUP)
        group = GROUP;
    posenc_attention_params_init(&s->params);
    s->params.causal = 1;
    s->params.scale = facts->softmax_scale > 0 ? facts->softmax_scale : 1 / sqrt((double)d);
    s->params.softcap = facts->logit_softcap;
    int64_t qh = heads * group;
    return make(&s->q, queries, qh, d, 1001) & make(&s->k, keys, heads, d, 1002) &
           make(&s->v, keys, heads, d, 1003) & make(&s->rq, queries, qh, d, 1004) &
           make(&s->rk, keys, heads, d, 1005) & make(&s->scalar, queries, qh, d, 1006) &
           make(&s->out, queries, qh, d, 1007);
}

/* Rotates the sample to its place at the end of the step and attends, all on ISA `i`. */
static int attend(struct sample *s, const struct run *run, const struct run_set *set, int i)
{
    posenc_error error = {0, ""};
    int64_t end = run->options.start + run->options.tokens;
    posenc_positions at_q, at_k;
    posenc_positions_start(&at_q, end - s->q.shape[1]);
    posenc_positions_start(&at_k, end - s->k.shape[1]);
    s->params.isa = run->isa[i];
    const posenc_tensor *to = i ? &s->out : &s->scalar;
    if (posenc_rope(set->plan[i], POSENC_FORWARD, &at_q, &s->q, &s->rq, NULL, NULL, &error) ||
        posenc_rope(set->plan[i], POSENC_FORWARD, &at_k, NULL, NULL, &s->k, &s->rk, &error) ||
        posenc_attention(&s->params, &s->rq, &s->rk, &s->v, to, &error))
        return tool_fail_library(run->model.name, &error);
    return TOOL_OK;
}

static long double dot(const float *a, const float *b, int64_t count)
{
    long double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += (long double)a[c] * b[c];
    return sum;
}

static long double capped(long double score, double cap)
{
    return cap > 0 ? (long double)cap * tanhl(score / (long double)cap) : score;
}

/* Notes the errors of one query row against softmax in long double. */
static void note_row(struct run_check *check, const struct sample *s, int64_t query, int64_t head,
                     double bound)
{
    int64_t d = s->rq.shape[3], heads = s->k.shape[2], kv = head / (s->q.shape[2] / heads);
    int64_t visible = s->k.shape[1] - s->q.shape[1] + query + 1;
    int64_t at = (query * s->q.shape[2] + head) * d;
    const float *q = (const float *)s->rq.data + at, *out = (const float *)s->scalar.data + at;
    const float *k = (const float *)s->rk.data + kv * d, *v = (const float *)s->v.data + kv * d;
    long double weight[KEYS], most = -HUGE_VALL, sum = 0;
    for (int64_t j = 0; j < visible; j++) {
        weight[j] = capped(dot(q, k + j * heads * d, d) * (long double)(float)s->params.scale,
                           s->params.softcap);
        most = fmaxl(most, weight[j]);
    }
    for (int64_t j = 0; j < visible; j++)
        sum += weight[j] = expl(weight[j] - most);
    for (int64_t c = 0; c < d; c++) {
        long double truth = 0;
        for (int64_t j = 0; j < visible; j++)
            truth += weight[j] * v[j * heads * d + c];
        run_note_error(&check->attention_error, &check->attention_bound,
                       (double)fabsl(out[c] - truth / sum) * 0x1p24, bound);
    }
}

/*
 * What float32 may cost, generously, in units of 2^-24 with |v| < 1. With |q|,|k| < sqrt(2) A a
 * score is below 2 D scale A^2; its D/16 + 6 roundings, and the two of its exponent, change weights
 * by twice that and the quotient by twice again; the sums over keys add a little. A cap adds the
 * few roundings of its own to a score that it never makes larger.
 */
static double error_bound(const struct sample *s, double factor)
{
    double d = (double)s->q.shape[3], keys = (double)s->k.shape[1];
    double score = 2 * d * fabs(s->params.scale) * fmax(1, factor * factor);
    double cap = s->params.softcap > 0 ? 32 * fmin(score, s->params.softcap) : 0;
    return 4 * (d / 16 + 6) * score + 4 * score + cap + 40 + keys / 4;
}

int run_check_attention(struct run *run, const struct run_set *set)
{
    struct sample s = {0};
    int code = make_sample(&s, run, set) ? TOOL_OK : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    size_t bytes = (size_t)(s.q.shape[1] * s.q.shape[2] * s.q.shape[3]) * sizeof(float);
    for (int i = 0; i < run->isas && !code; i++) {
        code = attend(&s, run, set, i);
        if (!code && i && memcmp(s.out.data, s.scalar.data, bytes) != 0)
            run->check.isa_attention[i] = 0;
    }
    int64_t step = s.q.shape[1] > TRUE_QUERIES ? s.q.shape[1] / TRUE_QUERIES : 1;
    for (int64_t query = s.q.shape[1] - 1; query >= 0 && !code; query -= step)
        for (int64_t head = 0; head < s.q.shape[2]; head++)
            note_row(&run->check, &s, query, head, error_bound(&s, set->attention_factor));
    posenc_tensor *all[] = {&s.q, &s.k, &s.v, &s.rq, &s.rk, &s.scalar, &s.out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]->data);
    return code;
}
