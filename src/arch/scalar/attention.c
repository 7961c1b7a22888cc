/* SPDX-License-Identifier: MIT */
/* Attention in plain C: the definition of every bit that the other kernels reproduce. */
#include "../../attention_bias.h"
#include "../../attention_functions.h"
#include "../../attention_rotate.h"
#include "../../quantise.h"
#include "element.h"

enum {
    CHAINS = POSENC_ATTENTION_CHAINS,
    TILE = POSENC_ATTENTION_TILE,
    SPAN = POSENC_ATTENTION_SPAN,
};

/* A row under way. All memory of a call is here: less than 64 KiB. */
struct row {
    const struct posenc_attention_job *job;
    struct posenc_attention_sequence sequence;
    struct posenc_attention_bias bias;
    int64_t query, token, head, key_head;
    int64_t place;                  /* logical, of the query */
    struct posenc_attention_range seen;
    int has_bias, is_capped;
    float before, after;            /* what q.k is multiplied by: before tanh if any, and after */
    const float *q;                 /* [channels] */
    float score[SPAN];              /* of the keys of one span */
    unsigned char visible[SPAN];
    float q_wide[POSENC_ATTENTION_CHANNELS];
    float spare[POSENC_ATTENTION_CHANNELS]; /* a key, then the values of a span, then a result */
    float total[POSENC_ATTENTION_CHANNELS];
};

/* A head as floats: where it lies, or widened, and rotated if there is a row. */
static const float *as_floats(const posenc_plan *plan, const posenc_tensor *t,
                              const struct posenc_cache_map *map, struct posenc_attention_head head,
                              const float *row, float *wide)
{
    if (row)
        posenc_attention_rotate(&posenc_kernels_scalar, plan, t, map, head, row, wide);
    else if (t->dtype == POSENC_F32)
        return head.row;
    else
        posenc_attention_widen_head(&posenc_kernels_scalar, t, map, head, wide);
    return wide;
}

static const float *row_of(const posenc_tensor *rows, int64_t batch, int64_t token)
{
    return (const float *)posenc_element(rows, batch, token, 0, 0);
}

static const float *key_of(struct row *r, int64_t j)
{
    const struct posenc_attention_job *job = r->job;
    const posenc_attention_params *p = &job->params;
    const struct posenc_attention_sequence *s = &r->sequence;
    return as_floats(p->rope, job->k, job->k_map,
                     posenc_attention_head_of(job->k, job->k_map, s, j, r->key_head),
                     posenc_attention_key_row(job, s, j), r->spare);
}

/* The sixteen chains of a product of heads, of which y has any dtype. */
static float sum_of(const float *x, const void *y, int32_t dtype, int64_t channels)
{
    float part[CHAINS] = {0};
    for (int64_t c = 0; c < channels; c++)
        part[c % CHAINS] = posenc_fmaf(x[c], get(y, c, dtype), part[c % CHAINS]);
    return posenc_halving_tree(part);
}

static float deberta_term(const struct row *r, const float *key, int64_t j)
{
    const struct posenc_attention_job *job = r->job;
    const posenc_tensor *keys = job->deberta.position_keys;
    const posenc_tensor *queries = job->deberta.position_queries;
    int64_t at = posenc_attention_deberta_row(&r->bias, r->place, j), n = job->channels;
    float c = posenc_attention_scale(job, r->sequence.batch, r->token, r->head), a = 0, b = 0;
    if (keys)
        a = sum_of(r->q, posenc_element(keys, 0, at, r->head, 0), keys->dtype, n);
    if (queries)
        b = sum_of(key, posenc_element(queries, 0, at, r->head, 0), queries->dtype, n);
    if (keys && queries)
        return (a + b) * c;
    return keys ? a * c : b * c;
}

/* The score of a key; 0 is returned, and nothing of the key counts, if a bias of -inf hides it. */
static int score_key(struct row *r, int64_t j, float *score)
{
    const float hides = posenc_float(0xff800000u);
    const posenc_attention_params *p = &r->job->params;
    float b = 0;
    if (p->bias) {
        b = posenc_attention_bias_value(r->job, &r->sequence, r->query, r->head, j);
        if (b == hides)
            return 0;
    }
    const float *key = key_of(r, j);
    if (p->alibi || p->t5 || p->deberta) {
        float term = p->deberta ? deberta_term(r, key, j)
                                : posenc_attention_term(&r->bias, &r->sequence, r->place, j);
        b = p->bias ? term + b : term;
    }
    if (r->has_bias && b == hides)
        return 0;
    float x = sum_of(r->q, key, POSENC_F32, r->job->channels);
    if (r->is_capped)
        x = posenc_attention_tanh(x * r->before);
    *score = r->has_bias ? posenc_fmaf(x, r->after, b) : x * r->after;
    return 1;
}

/* Scores the seen keys of the span from `first` on; the range of those keys. */
static struct posenc_attention_range score_span(struct row *r, int64_t first)
{
    const struct posenc_attention_range part = posenc_attention_clip(r->seen, first, first + SPAN);
    for (int64_t j = part.begin; j < part.end; j++)
        r->visible[j % SPAN] =
            (unsigned char)((j < part.gap || j >= part.resume) &&
                            score_key(r, j, &r->score[j % SPAN]));
    return part;
}

static float value_of(const struct posenc_attention_job *job, struct posenc_attention_head head,
                      int64_t c)
{
    const struct posenc_cache_map *map = job->v_map;
    if (job->v->dtype != POSENC_I8)
        return get(head.row, c, job->v->dtype);
    int64_t group = map->channels / map->groups;
    return (float)((const int8_t *)head.row)[c] *
           posenc_i8_scale(head.scales, (size_t)(c / group), map->cache.scales.dtype);
}

/* Takes the visible ones of the keys [begin, end) of one tile into the sums. */
static void add_tile(struct row *r, struct posenc_attention_sums *s, int64_t begin, int64_t end)
{
    const struct posenc_attention_job *job = r->job;
    struct posenc_attention_head value[TILE];
    float w[TILE], m = s->m, tile_l[CHAINS] = {0};
    int count = 0;
    for (int64_t j = begin; j < end; j++)
        if (r->visible[j % SPAN])
            m = r->score[j % SPAN] > m ? r->score[j % SPAN] : m;
    for (int64_t j = begin; j < end; j++) {
        if (!r->visible[j % SPAN])
            continue;
        value[count] =
            posenc_attention_head_of(job->v, job->v_map, &r->sequence, j, r->key_head);
        w[count] = posenc_attention_weight(r->score[j % SPAN], m);
        tile_l[j % CHAINS] = tile_l[j % CHAINS] + w[count++];
    }
    if (!count)
        return;
    float a = posenc_attention_weight(s->m, m);
    s->m = m;
    s->any = 1;
    for (int i = 0; i < CHAINS; i++)
        s->l[i] = posenc_fmaf(s->l[i], a, tile_l[i]);
    for (int64_t c = 0; c < job->values; c++) {
        float chain = 0.0f;
        for (int i = 0; i < count; i++)
            chain = posenc_fmaf(w[i], value_of(job, value[i], c), chain);
        s->o[c] = posenc_fmaf(s->o[c], a, chain);
    }
}

/* Sums the span from key `first` on from fresh, with the values in r->spare. */
static struct posenc_attention_sums sum_span(struct row *r, int64_t first)
{
    struct posenc_attention_sums s = {.o = r->spare};
    struct posenc_attention_range part = score_span(r, first);
    posenc_attention_clear(&s, r->job->values);
    for (int64_t begin = part.begin; begin < part.end;) {
        int64_t end = begin - begin % TILE + TILE;
        end = end < part.end ? end : part.end;
        add_tile(r, &s, begin, end);
        begin = end;
    }
    return s;
}

static void store_state(struct row *r, int64_t span)
{
    const struct posenc_attention_job *job = r->job;
    const struct posenc_attention_sums s = sum_span(r, span * SPAN);
    int64_t at = (span - job->first_span) * (job->values + CHAINS + 1);
    float *state = (float *)posenc_element(job->state, r->sequence.batch, r->token, r->head, at);
    state[0] = s.any ? s.m : posenc_float(0xff800000u);
    memcpy(state + 1, s.l, sizeof(s.l));
    memcpy(state + 1 + CHAINS, s.o, (size_t)job->values * sizeof(float));
}

/* The softmax of a row that has been summed, into row n of the weights. */
static void put_weights(struct row *r, const struct posenc_attention_sums *total, float l,
                        int64_t n)
{
    const posenc_tensor *t = r->job->params.weights;
    float *w = (float *)posenc_element(t, r->sequence.batch, n, r->head, 0);
    memset(w, 0, (size_t)t->shape[3] * sizeof(float));
    for (int64_t first = r->seen.begin - r->seen.begin % SPAN; first < r->seen.end;
         first = posenc_attention_after(r->seen, first, SPAN)) {
        const struct posenc_attention_range part = score_span(r, first);
        for (int64_t j = part.begin; j < part.end; j++)
            if (r->visible[j % SPAN])
                w[posenc_attention_index(r->job, &r->sequence, j)] = posenc_canonical(
                    posenc_attention_weight(r->score[j % SPAN], total->m) / l);
    }
}

static void attend_row(struct row *r)
{
    const struct posenc_attention_job *job = r->job;
    const posenc_attention_params *p = &job->params;
    struct posenc_attention_sums total = {.o = r->total};
    posenc_attention_clear(&total, job->values);
    for (int64_t first = r->seen.begin - r->seen.begin % SPAN; first < r->seen.end;
         first = posenc_attention_after(r->seen, first, SPAN)) {
        const struct posenc_attention_sums s = sum_span(r, first);
        if (s.any)
            posenc_attention_fold(&total, s.m, s.l, s.o, job->values);
    }
    float l =
        posenc_attention_finish(job, r->sequence.batch, r->token, r->head, &total, r->spare);
    for (int64_t n = 0; p->weights && n < p->weights->shape[1]; n++)
        if (p->weight_rows[n] == r->token)
            put_weights(r, &total, l, n);
}

static void begin_row(struct row *r, int64_t query)
{
    const struct posenc_attention_job *job = r->job;
    const posenc_attention_params *p = &job->params;
    int64_t b = r->sequence.batch;
    r->query = query;
    r->token = r->sequence.first_query + query;
    r->place = r->sequence.place + query;
    r->seen = posenc_attention_seen(job, &r->sequence, query, 1);
    const struct posenc_attention_head q = {posenc_element(job->q, b, r->token, r->head, 0), NULL};
    r->q = as_floats(p->rope, job->q, NULL, q,
                     p->query_rows ? row_of(p->query_rows, b, r->token) : NULL, r->q_wide);
    r->after = posenc_attention_scale(job, b, r->token, r->head);
    if (r->is_capped) {
        r->before = posenc_attention_capped_scale(job, b, r->token, r->head);
        r->after = (float)p->softcap;
    }
}

void posenc_attention_scalar_job(const struct posenc_attention_job *job)
{
    struct row r;
    r.job = job;
    r.has_bias = posenc_attention_has_bias(job);
    r.is_capped = job->params.softcap > 0;
    posenc_attention_bias_init(&r.bias, job);
    for (int64_t n = 0; n < job->sequences; n++) {
        r.sequence = posenc_attention_sequence_of(job, n);
        for (r.head = 0; r.head < job->heads; r.head++) {
            r.key_head = posenc_attention_key_head(job, r.head);
            posenc_attention_bias_head(&r.bias, r.head);
            for (int64_t i = 0; i < r.sequence.queries; i++) {
                begin_row(&r, i);
                for (int64_t s = 0; job->state && s < job->spans; s++)
                    store_state(&r, job->first_span + s);
                if (!job->state)
                    attend_row(&r);
            }
        }
    }
}
