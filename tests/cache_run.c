/* SPDX-License-Identifier: MIT */
/* See cache_run.h. */
#include "cache_run.h"

#include "support/numbers.h"
#include "support/test.h"

#include <math.h>

static const char data_file[] = "cache_run.txt";

float cache_value(uint32_t kind, int64_t i)
{
    uint32_t x = ((uint32_t)i + 100003 * kind + 1) * 2654435761u;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return ((float)((x ^ x >> 16) & 4095) - 2048) / 1024;
}

void cache_run_load(struct cache_run *run, const char *id, const char *what, int positions)
{
    memset(run, 0, sizeof(*run));
    assert_int_equal(test_numbers(data_file, id, what, (double *)&run->set, CACHE_FIELDS),
                     CACHE_FIELDS);
    if (run->set.scaling == POSENC_SCALING_LONGROPE) {
        test_numbers(data_file, id, "short", run->short_factors, CACHE_RUN_PAIRS);
        test_numbers(data_file, id, "long", run->long_factors, CACHE_RUN_PAIRS);
    }
    double places[CACHE_RUN_TOKENS];
    for (int i = 0; i < CACHE_RUN_TOKENS; i++)
        places[i] = i;
    if (positions)
        test_numbers(data_file, id, "positions", places, CACHE_RUN_TOKENS);
    for (int i = 0; i < CACHE_RUN_TOKENS; i++)
        run->positions[i] = (int64_t)places[i];
}

static void tensor(posenc_tensor *t, float *data, double batch, double tokens, double heads,
                   double channels)
{
    posenc_tensor_contiguous(t, data, POSENC_F32, (int64_t)batch, (int64_t)tokens, (int64_t)heads,
                             (int64_t)channels);
    assert_true(batch * tokens * heads * channels <= CACHE_RUN_MOST);
}

static int32_t make_plan(struct cache_run *run, int32_t recipe)
{
    const struct cache_settings *s = &run->set;
    posenc_rope_params *p = &run->rope;
    posenc_rope_params_init(p);
    p->layout = (int32_t)s->layout;
    p->out_layout = (int32_t)s->out_layout;
    p->head_dim = (int32_t)s->d;
    p->rotary_dim = (int32_t)s->rotary_dim;
    p->rotary_offset = (int32_t)s->rotary_offset;
    p->base = s->base;
    p->scaling = (int32_t)s->scaling;
    p->factor = s->factor;
    p->attention_factor = s->attention_factor;
    p->original_max_position = s->original;
    p->mscale = s->mscale;
    p->mscale_all_dim = s->mscale_all_dim;
    p->truncate = (int32_t)s->truncate;
    p->low_freq_factor = s->low;
    p->high_freq_factor = s->high;
    p->recipe = recipe;
    p->short_factors = s->scaling == POSENC_SCALING_LONGROPE ? run->short_factors : NULL;
    p->long_factors = s->scaling == POSENC_SCALING_LONGROPE ? run->long_factors : NULL;
    return posenc_plan_create(&run->plan, p, NULL);
}

static int32_t make_rows(struct cache_run *run)
{
    posenc_positions positions;
    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I64;
    positions.ids = run->positions;
    positions.stride[1] = 1;
    positions.length = (int64_t)run->set.length;
    tensor(&run->rows, run->row_data, 1, run->set.t, 1, run->set.rotary_dim);
    return posenc_rows(run->plan, &positions, &run->rows, NULL);
}

/* The channel that is turned together with channel c, or c. */
static int64_t partner(const struct cache_settings *s, int64_t c)
{
    int64_t width = (int64_t)s->rotary_dim, i = c - (int64_t)s->rotary_offset;
    if (s->layout == 0 || i < 0 || i >= width)
        return c;
    if (s->layout == POSENC_ADJACENT)
        return c + 1 - 2 * (i % 2);
    return i < width / 2 ? c + width / 2 : c - width / 2;
}

/* Where channel c of the input stands in the result. */
static int64_t landing(const struct cache_settings *s, int64_t c)
{
    int64_t width = (int64_t)s->rotary_dim, i = c - (int64_t)s->rotary_offset;
    if (s->out_layout == 0 || s->out_layout == s->layout || i < 0 || i >= width)
        return c;
    if (s->layout == POSENC_ADJACENT)
        i = i / 2 + i % 2 * (width / 2);
    else
        i = 2 * (i % (width / 2)) + i / (width / 2);
    return i + (int64_t)s->rotary_offset;
}

static double factor_of(const struct cache_run *run, int64_t head, int64_t c)
{
    const struct cache_settings *s = &run->set;
    if (s->weight == 0)
        return 1;
    double w = run->weight_data[(s->weight_heads > 1 ? head : 0) * (int64_t)s->d + c];
    return fabs(s->plus_one > 0 ? 1 + w : w);
}

/*
 * In units of u = 2^-24, relative to (|a| + |b|) A g w of the pair. A norm: n / 16 products in each
 * chain and 4 levels of the tree, the mean and eps 3, half of all that for the root, which has 1 of
 * its own, the quotient 1, x g 1. The scale 2. Then 1 + w, c w, product, fma: 4. Rows: half an ulp
 * here, up to one and a rounding of the factor's product there: 3. A norm behind the rotation sums
 * squares of numbers that are off by 6 (|a| + |b|) <= 9 of the pair's length.
 */
static double roundings(const struct cache_settings *s)
{
    double n = s->norm == POSENC_NORM_PROJECTION ? s->d * s->h : s->d;
    double norm = s->norm > 0 ? (ceil(n / 16) + 4 + 3) / 2 + 3 : 0;
    return norm + (s->scale != 0 ? 2 : 0) + 4 + 3 + (s->after > 0 ? 9 : 0);
}

static void make_bounds(struct cache_run *run)
{
    const struct cache_settings *s = &run->set;
    const int64_t heads = (int64_t)s->h, channels = (int64_t)s->d;
    const int64_t tokens = (int64_t)(s->b * s->t);
    const int whole = s->norm == POSENC_NORM_PROJECTION;
    double attention = 1;
    for (int64_t i = 0; i < (int64_t)(s->t * s->rotary_dim) && s->layout > 0; i++)
        attention = fmax(attention, fabs((double)run->row_data[i]));
    for (int64_t at = 0; at < tokens * heads; at++) {
        const float *x = run->src_data + at * channels;
        const float *from = whole ? run->src_data + at / heads * heads * channels : x;
        int64_t n = whole ? heads * channels : channels;
        double sum = 0, scale = s->scale == 0 ? 1 : fabs(s->scale);
        for (int64_t i = 0; i < n; i++)
            sum += (double)from[i] * (double)from[i];
        if (s->norm > 0)
            scale /= sqrt(sum / (double)n + s->eps);
        for (int64_t c = 0; c < channels; c++) {
            int64_t q = partner(s, c), to = landing(s, c);
            double w = factor_of(run, at % heads, c), wq = factor_of(run, at % heads, q);
            double size = fabs((double)x[c]) * w + (q == c ? 0 : fabs((double)x[q]) * wq);
            if (s->after > 0)
                size = (fabs((double)x[c]) + fabs((double)x[q])) * factor_of(run, at % heads, to);
            run->bound[at * channels + to] = roundings(s) * 0x1p-24 * attention * scale * size;
        }
    }
}

int32_t cache_run_make(struct cache_run *run, int32_t recipe)
{
    const struct cache_settings *s = &run->set;
    posenc_append_params *p = &run->params;
    tensor(&run->src, run->src_data, s->b, s->t, s->h, s->d);
    for (int64_t i = 0; i < (int64_t)(s->b * s->t * s->h * s->d); i++)
        run->src_data[i] = cache_value((uint32_t)s->source, i);
    posenc_append_params_init(p);
    p->norm = (int32_t)s->norm;
    p->norm_after = (int32_t)s->after;
    p->eps = s->eps;
    p->scale = s->scale;
    p->weight_plus_one = (int32_t)s->plus_one;
    run->plan = NULL;
    if (s->weight > 0) {
        tensor(&run->weight, run->weight_data, 1, 1, s->weight_heads, s->d);
        for (int64_t i = 0; i < (int64_t)(s->weight_heads * s->d); i++)
            run->weight_data[i] =
                cache_value(s->source == CACHE_Q ? CACHE_Q_WEIGHT : CACHE_K_WEIGHT, i);
        p->weight = &run->weight;
    }
    if (s->layout > 0) {
        int32_t status = make_plan(run, recipe);
        status = status == POSENC_OK ? make_rows(run) : status;
        if (status != POSENC_OK)
            return status;
        p->rope = run->plan;
        p->rows = &run->rows;
    }
    make_bounds(run);
    return POSENC_OK;
}

void cache_run_free(struct cache_run *run)
{
    posenc_plan_free(run->plan);
    run->plan = NULL;
}

posenc_tensor cache_run_tokens(const struct cache_run *run, int64_t first, int64_t count,
                               posenc_append_params *params, posenc_tensor *rows)
{
    posenc_tensor part = run->src;
    part.data = (float *)part.data + first * part.stride[1];
    part.shape[1] = count;
    *params = run->params;
    params->start = first;
    if (run->params.rows) {
        *rows = run->rows;
        rows->data = (float *)rows->data + first * rows->stride[1];
        rows->shape[1] = count;
        params->rows = rows;
    }
    return part;
}
