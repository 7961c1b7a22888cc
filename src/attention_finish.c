/* SPDX-License-Identifier: MIT */
/* The end of a row of attention: spans folded, sink, quotient, rotation back, lse. */
#include "attention_functions.h"
#include "attention_job.h"
#include "attention_kernels.h"
#include "attention_rotate.h"

void posenc_attention_clear(struct posenc_attention_sums *sums, int64_t values)
{
    sums->m = -FLT_MAX;
    sums->any = 0;
    memset(sums->l, 0, sizeof(sums->l));
    memset(sums->o, 0, (size_t)values * sizeof(float));
}

void posenc_attention_fold(struct posenc_attention_sums *total, float m, const float *l,
                           const float *o, int64_t values)
{
    float top = m > total->m ? m : total->m;
    float a = posenc_attention_weight(total->m, top), b = posenc_attention_weight(m, top);
    total->m = top;
    total->any = 1;
    for (int r = 0; r < POSENC_ATTENTION_CHAINS; r++)
        total->l[r] = posenc_fmaf(total->l[r], a, l[r] * b);
    for (int64_t c = 0; c < values; c++)
        total->o[c] = posenc_fmaf(total->o[c], a, o[c] * b);
}

/* One more score, in the denominator alone. */
static void add_sink(struct posenc_attention_sums *total, float sink, int64_t values)
{
    float top = sink > total->m ? sink : total->m;
    float a = posenc_attention_weight(total->m, top), g = posenc_attention_weight(sink, top);
    total->m = top;
    total->l[0] = posenc_fmaf(total->l[0], a, g);
    for (int r = 1; r < POSENC_ATTENTION_CHAINS; r++)
        total->l[r] = total->l[r] * a;
    for (int64_t c = 0; c < values; c++)
        total->o[c] = total->o[c] * a;
}

/* m + ln l in double, rounded once. */
static float log_sum(float m, float l)
{
    if (l == 0)
        return posenc_float(0xff800000u);
    if (!(l <= FLT_MAX))
        return posenc_canonical((float)((double)m + (double)l));
    return (float)((double)m + posenc_dd_log((double)l).hi);
}

static void put_row(const struct posenc_attention_job *job, int64_t batch, int64_t token,
                    int64_t head, const float *y)
{
    char *out = posenc_element(job->out, batch, token, head, 0);
    if (job->out->dtype == POSENC_F32)
        memcpy(out, y, (size_t)job->values * sizeof(float));
    else
        job->kernels->convert[POSENC_F32 - 1][job->out->dtype - 1](y, out, (size_t)job->values);
}

/* total / l, zeros if nothing was seen; every NaN is the canonical one. */
static void divide(const struct posenc_attention_job *job, int any, float l, float *y)
{
    const struct posenc_attention_kernels *kernels = job->kernels->attention_tiles;
    if (!any)
        memset(y, 0, (size_t)job->values * sizeof(float));
    else if (kernels)
        kernels->quotient(y, l, job->values, y);
    else
        for (int64_t c = 0; c < job->values; c++)
            y[c] = posenc_canonical(y[c] / l);
}

float posenc_attention_finish(const struct posenc_attention_job *job, int64_t batch, int64_t token,
                              int64_t head, struct posenc_attention_sums *total, float *spare)
{
    const posenc_attention_params *p = &job->params;
    float *y = total->o;
    if (p->sinks)
        add_sink(total, p->sinks[head], job->values);
    float l = posenc_halving_tree(total->l);
    divide(job, total->any, l, y);
    if (p->output_rows && total->any) {
        const float *row = (const float *)posenc_element(p->output_rows, batch, token, 0, 0);
        posenc_attention_turn_back(job->kernels, p->rope, y, job->values, row, spare);
        y = spare;
        for (int64_t c = 0; c < job->values; c++)
            y[c] = posenc_canonical(y[c]);
    }
    put_row(job, batch, token, head, y);
    if (p->lse)
        *(float *)posenc_element(p->lse, batch, token, head, 0) = log_sum(total->m, l);
    return l;
}

/* Channels of a row's state: the span's maximum (-inf: no key was visible), sixteen denominators,
 * values. */
static void join_row(const struct posenc_attention_job *job, int64_t batch, int64_t token,
                     int64_t head)
{
    float o[POSENC_ATTENTION_CHANNELS], spare[POSENC_ATTENTION_CHANNELS];
    struct posenc_attention_sums total = {.o = o};
    const float *state = (const float *)posenc_element(job->state, batch, token, head, 0);
    posenc_attention_clear(&total, job->values);
    for (int64_t s = 0; s < job->spans; s++) {
        const float *l = state + 1;
        if (state[0] >= -FLT_MAX)
            posenc_attention_fold(&total, state[0], l, l + POSENC_ATTENTION_CHAINS, job->values);
        state += job->values + POSENC_ATTENTION_CHAINS + 1;
    }
    posenc_attention_finish(job, batch, token, head, &total, spare);
}

void posenc_attention_join_job(const struct posenc_attention_job *job)
{
    const int64_t *shape = job->out->shape;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t i = 0; i < shape[1]; i++)
            for (int64_t h = 0; h < shape[2]; h++)
                join_row(job, b, i, h);
}
