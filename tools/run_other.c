/* SPDX-License-Identifier: MIT */
/* posenc run for models that are not rotated: what their work is, and doing it once. */
#include "run_other.h"

#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BIAS_BYTES = 64 << 20, DEFAULT_TOKENS = 512 };
const double work_scale = 0.5;

size_t work_bytes_of(const posenc_tensor *t)
{
    return (size_t)(t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3]) *
           tool_dtype_size(t->dtype);
}

int work_make_tensor(posenc_tensor *t, int32_t dtype, int64_t tokens, int64_t heads,
                     int64_t channels)
{
    void *data = NULL;
    posenc_tensor_contiguous(t, NULL, dtype, 1, tokens, heads, channels);
    double size = (double)tokens * (double)heads * (double)channels * 4;
    if (size > (double)(SIZE_MAX / 4) || posix_memalign(&data, 64, work_bytes_of(t)))
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    memset(data, 0, work_bytes_of(t));
    t->data = data;
    return TOOL_OK;
}

int32_t work_pass(const struct work *work, int isa, const posenc_tensor *out, posenc_error *error)
{
    posenc_positions positions;
    posenc_alibi_params alibi = work->alibi;
    posenc_t5_params t5 = work->t5;
    posenc_positions_start(&positions, work->start);
    alibi.isa = t5.isa = work->isa[isa];
    switch (work->kind) {
    case SCHEME_SINUSOID:
        return posenc_sinusoid_add(work->sinusoid[isa], &positions, work_scale, &work->x, out,
                                   error);
    case SCHEME_LEARNED:
        return posenc_learned_add(&work->table, work->offset, &positions, work_scale, &work->x,
                                  out, work->isa[isa], error);
    case SCHEME_ALIBI: return posenc_alibi_bias(&alibi, out ? out : &work->x, error);
    default: return posenc_t5_bias(&t5, &work->table, out ? out : &work->x, error);
    }
}

static struct work *next_work(struct other *other, const struct run_options *o,
                              enum scheme_kind kind, const char *op)
{
    struct work *w = &other->work[other->count++];
    w->kind = kind;
    w->op = op;
    w->start = o->start;
    w->tokens = o->tokens;
    w->dtype = o->dtype;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        if (posenc_isa_available(isa))
            w->isa[w->isas++] = isa;
    return w;
}

/* Embeddings of d channels: read, and written in place. */
static int make_embeddings(struct work *w, int64_t d)
{
    w->last = w->start + w->tokens - 1;
    int code = work_make_tensor(&w->x, w->dtype, w->tokens, 1, d);
    if (!code)
        run_fill(&w->x, 7);
    w->bytes = 2 * (double)work_bytes_of(&w->x);
    return code;
}

static int add_sinusoid(struct other *other, const struct model *model,
                        const struct run_options *o)
{
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    posenc_error error = {0, ""};
    if (posenc_contract_get_sinusoidal(model->contract, &waves, NULL))
        return TOOL_OK;
    struct work *w = next_work(other, o, SCHEME_SINUSOID, "sinusoid");
    snprintf(w->where, sizeof w->where, "%s, frequencies over %s, row = position + %lld%s%s",
             waves.kind, waves.freq_divisor, (long long)waves.row_offset,
             waves.applies_to ? ", in the " : "", waves.applies_to ? waves.applies_to : "");
    scheme_fill_sinusoid(&w->sinusoid_params, &waves);
    if (o->limit)
        w->sinusoid_params.max_position = model->facts.max_position;
    for (int i = 0; i < w->isas; i++) {
        w->sinusoid_params.isa = w->isa[i];
        if (posenc_sinusoid_create(&w->sinusoid[i], &w->sinusoid_params, &error))
            return tool_fail_library(model->name, &error);
    }
    return make_embeddings(w, waves.dim);
}

static int add_learned(struct other *other, const struct model *model, const struct run_options *o,
                       int tokens_given)
{
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    if (posenc_contract_get_learned(model->contract, &learned, NULL))
        return TOOL_OK;
    struct work *w = next_work(other, o, SCHEME_LEARNED, "learned");
    snprintf(w->where, sizeof w->where, "%lld rows, row = position + %lld%s%s",
             (long long)learned.table_rows, (long long)learned.position_offset,
             learned.applies_to ? ", in the " : "", learned.applies_to ? learned.applies_to : "");
    int64_t left = learned.usable_positions - o->start;
    if (!tokens_given && left > 0 && left < w->tokens)
        w->tokens = left;
    w->offset = learned.position_offset;
    int code = work_make_tensor(&w->table, w->dtype, learned.table_rows, 1, learned.dim);
    if (!code)
        run_fill(&w->table, 3);
    return code ? code : make_embeddings(w, learned.dim);
}

/* The last queries of the step before all its keys, as many as keep a pass short. */
static int make_bias(struct work *w, int64_t heads, int64_t *query_offset)
{
    int64_t keys = w->start + w->tokens;
    if (w->start < 0)
        return tool_fail(TOOL_REFUSED, "--start is %lld: a bias counts keys from 0",
                         (long long)w->start);
    double row = (double)heads * (double)keys * (double)tool_dtype_size(w->dtype);
    double most = MOST_BIAS_BYTES / row;
    if (most < (double)w->tokens)
        w->tokens = most < 1 ? 1 : (int64_t)most;
    *query_offset = keys - w->tokens;
    w->last = keys - 1;
    int code = work_make_tensor(&w->x, w->dtype, w->tokens, heads, keys);
    w->bytes = (double)work_bytes_of(&w->x);
    return code;
}

static int add_alibi(struct other *other, const struct model *model, const struct run_options *o)
{
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    if (posenc_contract_get_alibi(model->contract, &alibi, NULL))
        return TOOL_OK;
    struct work *w = next_work(other, o, SCHEME_ALIBI, "alibi");
    scheme_fill_alibi(&w->alibi, &alibi, &model->facts);
    snprintf(w->where, sizeof w->where, "%s, computed as %s, slopes down to 2^-%.9g%s", alibi.bias,
             w->alibi.form == POSENC_ALIBI_ABS ? "-slope |query - key|" : "-slope (query - key)",
             alibi.max_bias, alibi.scaled ? ", times the softmax scale" : "");
    return make_bias(w, w->alibi.heads, &w->alibi.query_offset);
}

static int add_t5(struct other *other, const struct model *model, const struct run_options *o,
                  int bidirectional)
{
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    if (posenc_contract_get_t5(model->contract, &t5, NULL) ||
        !(bidirectional ? t5.encoder : t5.decoder))
        return TOOL_OK;
    struct work *w = next_work(other, o, SCHEME_T5, "t5");
    posenc_t5_params_init(&w->t5);
    w->t5.num_buckets = t5.num_buckets;
    w->t5.max_distance = t5.max_distance;
    w->t5.bidirectional = bidirectional;
    snprintf(w->where, sizeof w->where, "%d buckets up to distance %lld, %s", t5.num_buckets,
             (long long)t5.max_distance,
             bidirectional ? "both sides, in the encoder" : "causal, in the decoder");
    int code = work_make_tensor(&w->table, w->dtype, t5.num_buckets, 1, model->facts.num_heads);
    if (!code)
        run_fill(&w->table, 5);
    return code ? code : make_bias(w, model->facts.num_heads, &w->t5.query_offset);
}

static int set_up(struct other *other, const struct model *model, const struct run_options *given)
{
    struct run_options o = *given;
    if (given->layers || given->set)
        return tool_fail(TOOL_REFUSED, "%s: --layers and --set are for rotations: the model has "
                                       "none",
                         model->name);
    if (o.limit && model->facts.max_position < 1)
        return tool_fail(TOOL_REFUSED, "%s: --limit: the model states no trained limit",
                         model->name);
    if (!given->tokens)
        o.tokens = DEFAULT_TOKENS;
    if (o.limit && o.start + o.tokens > model->facts.max_position)
        return tool_fail(TOOL_REFUSED, "%s: --limit: position %lld passes %lld", model->name,
                         (long long)(o.start + o.tokens - 1),
                         (long long)model->facts.max_position);
    int code = add_sinusoid(other, model, &o);
    if (!code)
        code = add_learned(other, model, &o, given->tokens > 0);
    if (!code)
        code = add_alibi(other, model, &o);
    for (int both = 1; both >= 0 && !code; both--)
        code = add_t5(other, model, &o, both);
    if (!code && other->count == 0)
        code = tool_fail(TOOL_REFUSED, "%s: the model has no positions that this command works on",
                         model->name);
    return code;
}

static void tear_down(struct other *other)
{
    for (int n = 0; n < other->count; n++) {
        struct work *w = &other->work[n];
        for (int i = 0; i < MEASURE_ISAS; i++)
            posenc_sinusoid_free(w->sinusoid[i]);
        free(w->table.data);
        free(w->x.data);
    }
}

/* The limit of what is written only: the C library's own way to fill memory. */
static void fill_bytes(const struct touch_job *job)
{
    memset(job->data, 0x3c, job->bytes);
}

static void pass(const void *data, int isa, touch_kernel *touch)
{
    const struct work *w = data;
    struct touch_job job = {.data = w->x.data, .bytes = work_bytes_of(&w->x), .runs = 1,
                            .multiply = w->dtype == POSENC_F32};
    if (touch)
        touch(&job);
    else
        work_pass(w, isa, NULL, NULL);
}

static int measure_work(struct work *w)
{
    struct measure_work m = {.data = w, .pass = pass, .isas = w->isas, .isa = w->isa};
    int writes = w->kind == SCHEME_ALIBI || w->kind == SCHEME_T5;
    m.touches = writes ? 1 : touch_kernels(m.touch, m.touch_name);
    if (writes) {
        m.touch[0] = fill_bytes;
        m.touch_name[0] = "memset";
    }
    return measure(&m, &w->measured);
}

int run_other(const struct model *model, const struct run_options *options)
{
    struct other other = {.name = model->name};
    int passed = 1;
    tool_progress("setting up");
    int code = set_up(&other, model, options);
    for (int n = 0; n < other.count && !code; n++) {
        code = work_check(&other.work[n], model->name);
        passed = passed && work_passed(&other.work[n]);
    }
    for (int n = 0; n < other.count && !code; n++)
        code = measure_work(&other.work[n]);
    tool_progress(NULL);
    if (!code) {
        (options->json ? other_print_json : other_print)(&other, model, options);
        fflush(stdout);
        model_warn_limit(model, model->facts.max_position, other.work[0].last);
    }
    if (!code && !passed)
        code = tool_fail(TOOL_REFUSED, "%s: a self-check failed", model->name);
    tear_down(&other);
    return code;
}
