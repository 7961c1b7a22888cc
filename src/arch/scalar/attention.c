/* SPDX-License-Identifier: MIT */
/* Attention in plain C: the definition of every bit that the other kernels reproduce. */
#include "../../attention.h"

#include "../../fma.h"

enum { CHAINS = POSENC_ATTENTION_CHAINS, TILE = POSENC_ATTENTION_TILE };

/* Sums over some of the keys of a row, all relative to the maximum m. */
struct sums {
    float m;
    float l[CHAINS];
    float o[POSENC_ATTENTION_CHANNELS];
};

static void clear(struct sums *s, int64_t values)
{
    s->m = -FLT_MAX;
    memset(s->l, 0, sizeof(s->l));
    memset(s->o, 0, (size_t)values * sizeof(float));
}

static float score(const float *q, const float *k, int64_t channels, float scale)
{
    float part[CHAINS] = {0};
    for (int64_t c = 0; c < channels; c++)
        part[c % CHAINS] = posenc_fmaf(q[c], k[c], part[c % CHAINS]);
    return posenc_halving_tree(part) * scale;
}

static float exp2_or_zero(float x)
{
    if (x < POSENC_EXP2_LOWEST)
        return 0.0f;
    float shifted = x + POSENC_RINT_MAGIC, n = shifted - POSENC_RINT_MAGIC, f = x - n;
    float p = POSENC_EXP2_6;
    p = posenc_fmaf(p, f, POSENC_EXP2_5);
    p = posenc_fmaf(p, f, POSENC_EXP2_4);
    p = posenc_fmaf(p, f, POSENC_EXP2_3);
    p = posenc_fmaf(p, f, POSENC_EXP2_2);
    p = posenc_fmaf(p, f, POSENC_EXP2_1);
    p = posenc_fmaf(p, f, 1.0f);
    /* The lowest bits of `shifted` are n. Multiplied, not added to the exponent: p may be NaN. */
    return p * posenc_float((posenc_bits32(shifted) << 23) + 0x3f800000u);
}

static float weight(float score, float m)
{
    return exp2_or_zero((score - m) * POSENC_LOG2E);
}

/* Takes `count` keys of one tile, from its first key on, into the sums. */
static void add_tile(struct sums *s, const struct posenc_attention_group *job, const float *q,
                     int64_t first, int64_t count)
{
    float w[TILE], m = s->m, tile_l[CHAINS] = {0};
    const float *v = job->v + first * job->v_token;
    for (int64_t j = 0; j < count; j++) {
        w[j] = score(q, job->k + (first + j) * job->k_token, job->channels, job->scale);
        m = w[j] > m ? w[j] : m;
    }
    float a = weight(s->m, m);
    s->m = m;
    for (int64_t j = 0; j < count; j++) {
        w[j] = weight(w[j], m);
        tile_l[j % CHAINS] = tile_l[j % CHAINS] + w[j];
    }
    for (int r = 0; r < CHAINS; r++)
        s->l[r] = posenc_fmaf(s->l[r], a, tile_l[r]);
    for (int64_t c = 0; c < job->values; c++) {
        float chain = 0.0f;
        for (int64_t j = 0; j < count; j++)
            chain = posenc_fmaf(w[j], v[j * job->v_token + c], chain);
        s->o[c] = posenc_fmaf(s->o[c], a, chain);
    }
}

static void fold(struct sums *total, const struct sums *span, int64_t values)
{
    float m = span->m > total->m ? span->m : total->m;
    float a = weight(total->m, m), b = weight(span->m, m);
    total->m = m;
    for (int r = 0; r < CHAINS; r++)
        total->l[r] = posenc_fmaf(total->l[r], a, span->l[r] * b);
    for (int64_t c = 0; c < values; c++)
        total->o[c] = posenc_fmaf(total->o[c], a, span->o[c] * b);
}

static void attend_row(const struct posenc_attention_group *job, const float *q, float *out,
                       int64_t visible)
{
    struct sums span, total;
    clear(&total, job->values);
    for (int64_t begin = 0; begin < visible; begin += POSENC_ATTENTION_SPAN) {
        int64_t left = visible - begin;
        int64_t end = begin + (left < POSENC_ATTENTION_SPAN ? left : POSENC_ATTENTION_SPAN);
        clear(&span, job->values);
        for (int64_t j = begin; j < end; j += TILE)
            add_tile(&span, job, q, j, end - j < TILE ? end - j : TILE);
        fold(&total, &span, job->values);
    }
    float l = posenc_halving_tree(total.l);
    for (int64_t c = 0; c < job->values; c++) {
        float y = visible ? total.o[c] / l : 0.0f;
        out[c] = y == y ? y : posenc_float(POSENC_CANONICAL_NAN);
    }
}

void posenc_attention_scalar(const struct posenc_attention_group *job)
{
    for (int64_t i = 0; i < job->queries; i++)
        for (int64_t h = 0; h < job->heads; h++)
            attend_row(job, job->q + i * job->q_token + h * job->q_head,
                       job->out + i * job->out_token + h * job->out_head,
                       posenc_attention_visible(job, i));
}
