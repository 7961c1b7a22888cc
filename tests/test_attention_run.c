/* SPDX-License-Identifier: MIT */
/* Attention against torch and transformers as they ran (run_attention.py), in float64. */
#include <posenc/posenc.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_truth.h"
#include "support/numbers.h"
#include "support/test.h"

static const char data_file[] = "attention_run.txt";

/* FIELDS of run_attention.py. */
struct settings {
    double b, tq, tk, hq, hk, d, e, causal, align, offset, left, right, head_map, scale, multiplier;
    double softcap, first_key, temperature, sinks, bias, bias_b, bias_tq, bias_hq, counts;
    double sequences, key_positions, alibi, alibi_scale, max_bias, t5, t5_buckets, t5_distance;
    double c2p, p2c, buckets, distance, rope, rope_offset, rope_channels, query_rows, key_rows;
    double rotate_from, output_rows, common, same, lse, weights, slack;
};

enum { CASES = 67, FIELDS = sizeof(struct settings) / sizeof(double), MOST = 2048, ARRAY = 64 };
enum { QUERIES, KEYS, VALUES, TABLE, POSITION_KEYS, POSITION_QUERIES }; /* kinds of values */

struct example {
    struct settings set;
    struct attention_call call;
    posenc_alibi_params alibi;
    posenc_t5_params t5;
    posenc_attention_deberta deberta;
    posenc_rope_params rope;
    posenc_plan *plan;
    posenc_tensor temperature, bias, table, position_keys, position_queries, query_rows, key_rows;
    posenc_tensor output_rows, lse, weights;
    int64_t counts[ARRAY], query_starts[ARRAY], key_starts[ARRAY], positions[ARRAY], rows[ARRAY];
    float q_data[MOST], k_data[MOST], v_data[MOST], out_data[MOST], temperature_data[MOST];
    float bias_data[MOST], table_data[MOST], position_key_data[MOST], position_query_data[MOST];
    float query_row_data[MOST], key_row_data[MOST], output_row_data[MOST], lse_data[MOST];
    float weight_data[MOST], sinks[ARRAY];
    double out_run[MOST], lse_run[MOST], weights_run[MOST];
};

static float value_of(uint32_t kind, int64_t i)
{
    uint32_t x = ((uint32_t)i + 100003 * kind + 1) * 2654435761u;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return ((float)((x ^ x >> 16) & 4095) - 2048) / 1024;
}

static void tensor(posenc_tensor *t, float *data, double batch, double tokens, double heads,
                   double channels)
{
    posenc_tensor_contiguous(t, data, POSENC_F32, (int64_t)batch, (int64_t)tokens, (int64_t)heads,
                             (int64_t)channels);
    assert_true(batch * tokens * heads * channels <= MOST);
}

static void values(posenc_tensor *t, uint32_t kind, float *data, double batch, double tokens,
                   double heads, double channels)
{
    tensor(t, data, batch, tokens, heads, channels);
    for (int64_t i = 0; i < (int64_t)(batch * tokens * heads * channels); i++)
        data[i] = value_of(kind, i);
}

static void integers(const char *id, const char *name, int64_t *to)
{
    double numbers[ARRAY];
    size_t count = test_numbers(data_file, id, name, numbers, ARRAY);
    for (size_t i = 0; i < count; i++)
        to[i] = (int64_t)numbers[i];
}

static void floats(const char *id, const char *name, posenc_tensor *t, float *data, double batch,
                   double tokens, double heads, double channels)
{
    static double numbers[MOST];
    size_t count = test_numbers(data_file, id, name, numbers, MOST);
    tensor(t, data, batch, tokens, heads, channels);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)numbers[i];
}

static void make_inputs(struct example *e)
{
    const struct settings *s = &e->set;
    struct attention_call *call = &e->call;
    values(&call->q, QUERIES, e->q_data, s->b, s->tq, s->hq, s->d);
    values(&call->k, KEYS, e->k_data, s->b, s->tk, s->hk, s->d);
    values(&call->v, VALUES, e->v_data, s->b, s->tk, s->hk, s->e);
    tensor(&call->out, e->out_data, s->b, s->tq, s->hq, s->e);
    if (s->same > 0)
        call->v = call->k;
    if (s->common > 0) /* channels that all key heads share */
        for (int64_t i = 0; i < (int64_t)(s->b * s->tk * s->hk * s->d); i++) {
            int64_t c = i % (int64_t)s->d, token = i / (int64_t)(s->d * s->hk);
            if (c >= (int64_t)s->common)
                e->k_data[i] = e->k_data[token * (int64_t)(s->d * s->hk) + c];
        }
}

static void make_plain_params(struct example *e)
{
    const struct settings *s = &e->set;
    posenc_attention_params *p = &e->call.params;
    posenc_attention_params_init(p);
    p->causal = (int32_t)s->causal;
    p->align = (int32_t)s->align;
    p->query_offset = (int64_t)s->offset;
    p->window_left = (int64_t)s->left + 1; /* stored as the keys besides the own; -1: all */
    p->window_right = (int64_t)s->right + 1;
    p->head_map = (int32_t)s->head_map;
    p->scale = s->scale;
    p->multiplier = s->multiplier;
    p->softcap = s->softcap;
    p->first_key = (int64_t)s->first_key;
}

static void make_arrays(struct example *e, const char *id)
{
    const struct settings *s = &e->set;
    posenc_attention_params *p = &e->call.params;
    posenc_tensor sinks;
    if (s->temperature > 0) {
        floats(id, "temperature", &e->temperature, e->temperature_data, s->b, s->tq, 1, 1);
        p->temperature = &e->temperature;
    }
    if (s->sinks > 0) {
        floats(id, "sinks", &sinks, e->sinks, 1, 1, 1, s->hq);
        p->sinks = e->sinks;
    }
    if (s->bias > 0) {
        floats(id, "bias", &e->bias, e->bias_data, s->bias_b, s->bias_tq, s->bias_hq, s->tk);
        p->bias = &e->bias;
    }
    if (s->counts > 0) {
        integers(id, "counts", e->counts);
        p->key_counts = e->counts;
    }
    if (s->sequences > 0) {
        integers(id, "query_starts", e->query_starts);
        integers(id, "key_starts", e->key_starts);
        p->sequences = (int64_t)s->sequences;
        p->query_starts = e->query_starts;
        p->key_starts = e->key_starts;
    }
}

static void make_terms(struct example *e, const char *id)
{
    const struct settings *s = &e->set;
    posenc_attention_params *p = &e->call.params;
    const double span = s->buckets > 0 ? s->buckets : s->distance;
    if (s->alibi > 0) {
        posenc_alibi_params_init(&e->alibi);
        e->alibi.form = (int32_t)s->alibi;
        e->alibi.heads = (int64_t)s->hq;
        e->alibi.scale = s->alibi_scale;
        e->alibi.max_bias = s->max_bias;
        if (s->key_positions > 0) {
            integers(id, "key_positions", e->positions);
            e->alibi.key_positions = e->positions;
        }
        p->alibi = &e->alibi;
    }
    if (s->t5 > 0) {
        posenc_t5_params_init(&e->t5);
        e->t5.bidirectional = s->t5 < 2;
        e->t5.num_buckets = (int32_t)s->t5_buckets;
        e->t5.max_distance = (int64_t)s->t5_distance;
        values(&e->table, TABLE, e->table_data, 1, s->t5_buckets, 1, s->hq);
        p->t5 = &e->t5;
        p->t5_table = &e->table;
    }
    if (s->c2p > 0 || s->p2c > 0) {
        values(&e->position_keys, POSITION_KEYS, e->position_key_data, 1, 2 * span, s->hq, s->d);
        values(&e->position_queries, POSITION_QUERIES, e->position_query_data, 1, 2 * span, s->hq,
               s->d);
        e->deberta = (posenc_attention_deberta){
            .struct_size = sizeof(e->deberta), .buckets = (int32_t)s->buckets,
            .max_distance = (int64_t)s->distance,
            .position_keys = s->c2p > 0 ? &e->position_keys : NULL,
            .position_queries = s->p2c > 0 ? &e->position_queries : NULL};
        p->deberta = &e->deberta;
    }
}

static void make_rotation(struct example *e, const char *id)
{
    const struct settings *s = &e->set;
    posenc_attention_params *p = &e->call.params;
    e->plan = NULL;
    if (s->rope == 0)
        return;
    e->rope = test_params((int32_t)s->rope, (int32_t)s->d, (int32_t)s->rope_channels);
    e->rope.rotary_offset = (int32_t)s->rope_offset;
    e->plan = test_plan(&e->rope);
    e->call.rope = &e->rope;
    p->rope = e->plan;
    p->rotate_from = (int64_t)s->rotate_from;
    if (s->query_rows > 0) {
        floats(id, "query_rows", &e->query_rows, e->query_row_data, 1, s->tq, 1, s->rope_channels);
        p->query_rows = &e->query_rows;
    }
    if (s->key_rows > 0) {
        floats(id, "key_rows", &e->key_rows, e->key_row_data, 1, s->tk, 1, s->rope_channels);
        p->key_rows = &e->key_rows;
    }
    if (s->output_rows > 0) {
        floats(id, "output_rows", &e->output_rows, e->output_row_data, 1, s->tq, 1,
               s->rope_channels);
        p->output_rows = &e->output_rows;
    }
}

static void make_results(struct example *e, const char *id)
{
    const struct settings *s = &e->set;
    posenc_attention_params *p = &e->call.params;
    test_numbers(data_file, id, "out", e->out_run, MOST);
    if (s->lse > 0) {
        test_numbers(data_file, id, "lse_run", e->lse_run, MOST);
        tensor(&e->lse, e->lse_data, s->b, s->tq, s->hq, 1);
        p->lse = &e->lse;
    }
    if (s->weights > 0) {
        test_numbers(data_file, id, "weights_run", e->weights_run, MOST);
        tensor(&e->weights, e->weight_data, s->b, s->tq, s->hq, s->tk);
        for (int64_t i = 0; i < (int64_t)s->tq; i++)
            e->rows[i] = i;
        p->weights = &e->weights;
        p->weight_rows = e->rows;
    }
}

static int32_t attend(struct example *e, const char *id, posenc_error *error)
{
    memset(&e->call, 0, sizeof(e->call));
    make_inputs(e);
    make_plain_params(e);
    make_arrays(e, id);
    make_terms(e, id);
    make_rotation(e, id);
    make_results(e, id);
    return posenc_attention(&e->call.params, &e->call.q, &e->call.k, &e->call.v, &e->call.out,
                            error);
}

/* Numbers of the file have ten digits; `slack` is what the public code's own rounding needs. */
static double ratio_of(double got, double run, long double bound, double slack)
{
    if (got == run)
        return 0;
    double error = fabs(got - run);
    return isnan(error) ? (double)INFINITY
                        : error / ((double)bound + 1e-9 * fabs(run) + 4 * slack + 1e-12);
}

/* The largest difference from what ran, by the bound of the error in float32. */
static double worst_of_row(const struct example *e, const struct row_truth *row)
{
    const struct settings *s = &e->set;
    const int64_t heads = (int64_t)s->hq, values_width = (int64_t)s->e, keys = (int64_t)s->tk;
    const int64_t at = (row->batch * (int64_t)s->tq + row->token) * heads + row->head;
    double worst = 0;
    for (int64_t c = 0; c < values_width; c++) {
        double run = e->out_run[at * values_width + c];
        run = isnan(run) ? 0 : run; /* a row that sees no key */
        worst = fmax(worst, ratio_of(e->out_data[at * values_width + c], run, row->value[c].e,
                                     s->slack));
    }
    if (s->lse > 0)
        worst = fmax(worst, ratio_of(e->lse_data[at], e->lse_run[at], row->lse.e, s->slack));
    for (int64_t j = 0; j < keys && s->weights > 0; j++) {
        int seen = j >= row->begin && j < row->end && !row->hidden[j];
        worst = fmax(worst, ratio_of(e->weight_data[at * keys + j], e->weights_run[at * keys + j],
                                     seen ? row->score[j].e : 0, s->slack));
    }
    return worst;
}

static double worst_of(const struct example *e)
{
    double worst = 0;
    for (int64_t n = 0; n < truth_sequences(&e->call); n++)
        for (int64_t i = 0; i < truth_queries(&e->call, n); i++)
            for (int64_t h = 0; h < (int64_t)e->set.hq; h++) {
                struct row_truth row;
                row_truth_init(&row, &e->call, n, i, h);
                worst = fmax(worst, worst_of_row(e, &row));
                row_truth_free(&row);
            }
    return worst;
}

static struct settings load(const char *id)
{
    struct settings s;
    assert_int_equal(test_numbers(data_file, id, "settings", (double *)&s, FIELDS), FIELDS);
    return s;
}

static int is_met(struct example *e, const char *id)
{
    posenc_error error = {0, ""};
    int32_t status = attend(e, id, &error);
    int met = status == POSENC_OK && worst_of(e) <= 1;
    posenc_plan_free(e->plan);
    return met;
}

static void public_code_is_met(void **state)
{
    static struct example e;
    size_t n = 0;
    char id[64];
    (void)state;
    for (; test_number_id(data_file, "settings", n, id, sizeof(id)); n++) {
        posenc_error error = {0, ""};
        e.set = load(id);
        test_ok(attend(&e, id, &error), &error);
        double worst = worst_of(&e);
        if (!(worst <= 1))
            fail_msg("%s: %g times the bound", id, worst);
        posenc_plan_free(e.plan);
    }
    assert_int_equal(n, CASES);
}

/* A setting, what it is where the option is not used, and whether it counts something. */
struct option {
    const char *name;
    size_t offset;
    double unused;
    int is_count;
};

#define OPTION(name, unused, is_count) {#name, offsetof(struct settings, name), unused, is_count}

static const struct option options[] = {
    OPTION(causal, 0, 0),      OPTION(align, 0, 0),         OPTION(offset, 0, 1),
    OPTION(left, -1, 1),       OPTION(right, -1, 1),        OPTION(head_map, 0, 0),
    OPTION(scale, 0, 0),       OPTION(multiplier, 0, 0),    OPTION(softcap, 0, 0),
    OPTION(first_key, 0, 1),   OPTION(temperature, 0, 0),   OPTION(sinks, 0, 0),
    OPTION(bias, 0, 0),        OPTION(counts, 0, 0),        OPTION(sequences, 0, 0),
    OPTION(alibi, 0, 0),       OPTION(key_positions, 0, 0), OPTION(alibi_scale, 1, 0),
    OPTION(max_bias, 8, 0),    OPTION(t5, 0, 0),            OPTION(t5_distance, 0, 1),
    OPTION(c2p, 0, 0),         OPTION(p2c, 0, 0),           OPTION(distance, 0, 1),
    OPTION(rope, 0, 0),        OPTION(rope_offset, 0, 0),   OPTION(query_rows, 0, 0),
    OPTION(key_rows, 0, 0),    OPTION(rotate_from, 0, 1),   OPTION(output_rows, 0, 0),
    OPTION(common, 0, 0),      OPTION(same, 0, 0),
};

static void expect_difference(struct example *e, const char *id, const struct option *option,
                              double value)
{
    e->set = load(id);
    memcpy((char *)&e->set + option->offset, &value, sizeof(value));
    if (is_met(e, id))
        fail_msg("%s: also met with %s %g", id, option->name, value);
}

/* Every option that a case uses counts in it: without it, or one off, its numbers are not met. */
static void every_option_counts(void **state)
{
    static struct example e;
    char id[64];
    (void)state;
    for (size_t n = 0; test_number_id(data_file, "settings", n, id, sizeof(id)); n++)
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
            const struct settings s = load(id);
            double value;
            memcpy(&value, (const char *)&s + options[i].offset, sizeof(value));
            if (value == options[i].unused)
                continue;
            expect_difference(&e, id, &options[i], options[i].unused);
            if (options[i].is_count) {
                expect_difference(&e, id, &options[i], value - 1);
                expect_difference(&e, id, &options[i], value + 1);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(public_code_is_met),
                                       cmocka_unit_test(every_option_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
