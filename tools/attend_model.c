/* SPDX-License-Identifier: MIT */
/* posenc attend: what a model's contract adds to the options. */
#include "attend.h"
#include "scheme.h"

#include <math.h>
#include <posenc/builders.h>
#include <stdio.h>
#include <string.h>

/* Arrays without elements may claim any number of tokens. */
static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* The position of query 0; the sum stops at the ends of its type. */
static int64_t first_position(const struct attend_work *work)
{
    return add(work->request->start,
               work->tensor[ATTEND_K].shape[1] - work->tensor[ATTEND_Q].shape[1]);
}

static int64_t last_position(const struct attend_work *work)
{
    return add(work->request->start, work->tensor[ATTEND_K].shape[1] - 1);
}

/* A model without rotation has no frequency set to choose, but layers. */
static int choose_unrotated(struct attend_work *work)
{
    const struct model *model = &work->model;
    const struct model_choice *c = &work->request->choice;
    work->set.index = -1;
    work->set.id = "none";
    work->set.max_position = model->facts.max_position;
    if (c->set || c->length >= 0)
        return tool_fail(TOOL_REFUSED, "%s: --set and --length choose among rotary frequency sets: "
                                       "the model has none",
                         model->name);
    if (c->layer < 0)
        return TOOL_OK;
    int32_t set = posenc_contract_layer_set(model->contract, c->layer);
    if (set == POSENC_LAYER_INVALID)
        return tool_fail(TOOL_REFUSED, "%s: --layer is %lld: must be below %lld", model->name,
                         (long long)c->layer, (long long)model->facts.num_layers);
    if (set == POSENC_LAYER_NO_ATTENTION)
        return tool_fail(TOOL_REFUSED, "%s: layer %lld has no attention", model->name,
                         (long long)c->layer);
    return TOOL_OK;
}

static int choose(struct attend_work *work)
{
    const struct model_choice *c = &work->request->choice;
    if (c->rope)
        return model_choose(&work->model, &work->set, c);
    int code = model_open(&work->model, c->model);
    work->is_open = !code;
    if (code)
        return code;
    return work->model.facts.num_sets > 0 ? model_choose_set(&work->model, &work->set, c)
                                          : choose_unrotated(work);
}

/* What the file does not hold must come with the call: another result would be called the model's.
 */
static int check_learned(const struct attend_work *work)
{
    const struct model *model = &work->model;
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    posenc_contract_deberta deberta = {.struct_size = sizeof deberta};
    if (work->request->bias)
        return TOOL_OK;
    if (!posenc_contract_get_t5(model->contract, &t5, NULL))
        return tool_fail(TOOL_REFUSED,
                         "%s: adds a bias from a trained table: pass it with --bias ('posenc bias "
                         "--table' makes it)",
                         model->name);
    if (!posenc_contract_get_deberta(model->contract, &deberta, NULL))
        return tool_fail(TOOL_REFUSED,
                         "%s: adds terms of trained position embeddings: pass them, times the "
                         "scale, with --bias",
                         model->name);
    return TOOL_OK;
}

/* A plan enforces its own limit; this is for what is not rotated. */
static int check_limit(const struct attend_work *work)
{
    int64_t most = work->set.max_position;
    if (!work->request->choice.limit || work->set.rotated)
        return TOOL_OK;
    if (most < 1)
        return tool_fail(TOOL_REFUSED, "%s: --limit: the model states no trained limit",
                         work->model.name);
    if (!work->array[ATTEND_K].count || last_position(work) < most)
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED, "%s: position %lld passes the trained limit: must be below %lld",
                     work->model.name, (long long)last_position(work), (long long)most);
}

static void settle_scale(struct attend_work *work)
{
    const posenc_contract_facts *facts = &work->model.facts;
    if (work->params.scale != 0 || !(facts->softmax_scale > 0))
        return;
    work->params.scale = facts->softmax_scale;
    int64_t width = work->set.rotated ? work->set.params.head_dim : 0;
    /* Layers of another width than the model's usual one. */
    if (width > 0 && width != facts->head_dim && strcmp(facts->softmax_rule, "head_dim^-0.5") == 0)
        work->params.scale = 1 / sqrt((double)width);
}

static int settle_alibi(struct attend_work *work)
{
    const struct model *model = &work->model;
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    int64_t heads = work->tensor[ATTEND_Q].shape[2];
    if (posenc_contract_get_alibi(model->contract, &alibi, NULL))
        return work->request->alibi
                   ? tool_fail(TOOL_REFUSED, "%s: --alibi: the model has no ALiBi", model->name)
                   : TOOL_OK;
    scheme_fill_alibi(&work->alibi, &alibi, &model->facts);
    if (alibi.scaled)
        work->alibi.scale = work->params.scale;
    work->params.alibi = &work->alibi;
    if (heads == work->alibi.heads)
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED, "%s: has %lld heads: the slopes of %s are for %lld",
                     work->request->path[ATTEND_Q], (long long)heads, model->name,
                     (long long)work->alibi.heads);
}

static int make_rows(struct attend_work *work, int file, posenc_tensor *rows, int64_t first)
{
    posenc_positions positions;
    posenc_error error = {0, ""};
    int code = attend_floats(rows, 1, work->tensor[file].shape[1], 1,
                             2 * (int64_t)posenc_plan_pairs(work->plan));
    posenc_positions_start(&positions, first);
    if (!code && posenc_rows(work->plan, &positions, rows, &error))
        code = tool_fail_library(work->request->path[file], &error);
    return code;
}

/* Where nothing has elements, nothing turns. */
static int settle_rotation(struct attend_work *work)
{
    posenc_error error = {0, ""};
    if (!work->set.rotated)
        return TOOL_OK;
    if (posenc_plan_create(&work->plan, &work->set.params, &error))
        return tool_fail_library(work->model.name, &error);
    int empty = work->tensor[ATTEND_K].shape[1] != 0 && !work->array[ATTEND_K].count;
    if (empty || !work->array[ATTEND_Q].count)
        return TOOL_OK;
    int code = make_rows(work, ATTEND_Q, &work->query_rows, first_position(work));
    if (!code)
        code = make_rows(work, ATTEND_K, &work->key_rows, work->request->start);
    work->params.rope = work->plan;
    work->params.query_rows = &work->query_rows;
    work->params.key_rows = &work->key_rows;
    return code;
}

static int has_query_scale(const struct attend_work *work)
{
    const char *layers = work->model.contract ? work->model.facts.query_scale_layers : NULL;
    return layers && (strcmp(layers, "all") == 0 || !work->set.rotated);
}

static int settle_query_scale(struct attend_work *work)
{
    const posenc_contract_facts *facts = &work->model.facts;
    posenc_positions positions;
    posenc_error error = {0, ""};
    if (!has_query_scale(work) || !work->array[ATTEND_Q].count)
        return TOOL_OK;
    int code = attend_floats(&work->temperature, 1, work->tensor[ATTEND_Q].shape[1], 1, 1);
    posenc_positions_start(&positions, first_position(work));
    if (!code && posenc_query_temperature(facts->query_scale_factor, facts->query_scale_floor,
                                          facts->query_scale_offset, &positions,
                                          &work->temperature, &error))
        code = tool_fail_library(work->request->path[ATTEND_Q], &error);
    work->params.temperature = &work->temperature;
    return code;
}

int attend_by_model(struct attend_work *work)
{
    const struct model_choice *c = &work->request->choice;
    if (!c->model && !c->rope)
        return TOOL_OK;
    int code = choose(work);
    if (!code && work->model.contract) {
        code = check_learned(work);
        settle_scale(work);
        if (!code)
            code = attend_reach_by_model(work);
        if (!code)
            code = settle_alibi(work);
        if (!work->request->softcap)
            work->params.softcap = work->model.facts.logit_softcap;
        if (!code)
            code = settle_query_scale(work);
    }
    if (!code)
        code = check_limit(work);
    return code ? code : settle_rotation(work);
}

static void echo_reach(const struct attend_work *work)
{
    const posenc_attention_params *p = &work->params;
    const char *by = work->request->window ? " (--window)" : "";
    fprintf(stderr, ", %scausal", p->causal ? "" : "not ");
    if (p->chunk)
        fprintf(stderr, ", chunks of %lld", (long long)p->chunk);
    else if (!p->causal && !p->window_right)
        fprintf(stderr, " (a decoder needs --causal)");
    if (p->window_right)
        fprintf(stderr, ", window of %lld on both sides", (long long)p->window_left - 1);
    else if (p->window_left)
        fprintf(stderr, ", window %lld%s", (long long)p->window_left, by);
    else
        fprintf(stderr, ", no window");
}

static void echo_scores(const struct attend_work *work)
{
    const posenc_attention_params *p = &work->params;
    const struct attend_request *r = work->request;
    if (p->softcap > 0)
        fprintf(stderr, ", cap %.9g%s", p->softcap, r->softcap > 0 ? " (--softcap)" : "");
    else
        fprintf(stderr, ", no cap");
    if (p->alibi)
        fprintf(stderr, ", ALiBi of %lld heads", (long long)p->alibi->heads);
    if (p->bias)
        fprintf(stderr, ", bias (--bias)");
    if (!p->alibi && !p->bias)
        fprintf(stderr, ", no bias");
    if (p->sinks)
        fprintf(stderr, ", sinks (--sinks)");
    if (has_query_scale(work))
        fprintf(stderr, ", query scale %s", work->model.facts.query_scale_rule);
}

/* 1 if sinks that were not given belong to layers that may be meant. */
static int lacks_sinks(const struct attend_work *work)
{
    const char *layers = work->model.contract ? work->model.facts.sink_layers : NULL;
    if (!layers || work->request->sinks)
        return 0;
    if (strcmp(layers, "all") == 0 || work->request->window)
        return 1;
    return (strcmp(layers, "sliding") == 0) == (work->params.window_left > 0);
}

/* Arrays of [head, token, channel] show where they claim more heads than there are. */
static void warn_heads(const struct attend_work *work)
{
    const struct model *model = &work->model;
    posenc_contract_set set = {.struct_size = sizeof set};
    int64_t most[] = {model->facts.num_heads, model->facts.num_kv_heads};
    if (model->contract && work->set.index >= 0 &&
        !posenc_contract_get_set(model->contract, work->set.index, &set, NULL)) {
        most[0] = set.num_heads;
        most[1] = set.num_kv_heads;
    }
    for (int f = ATTEND_Q; f <= ATTEND_K; f++) {
        int64_t heads = work->tensor[f].shape[2];
        if (most[f] > 0 && heads > most[f])
            tool_warn("%s: has %lld heads where the model has %lld: axes must be [batch, token, "
                      "head, channel]",
                      work->request->path[f], (long long)heads, (long long)most[f]);
    }
}

void attend_echo(const struct attend_work *work)
{
    const struct model *model = &work->model;
    const struct attend_request *r = work->request;
    if (!r->choice.model && !r->choice.rope)
        return;
    fprintf(stderr, "posenc attend: %s: ", model->name);
    if (work->set.rotated)
        fprintf(stderr, "set %s", work->set.id);
    else
        fprintf(stderr, "no rotation");
    fprintf(stderr, ", key 0 at position %lld, ", (long long)r->start);
    if (r->scale != 0)
        fprintf(stderr, "scale %.9g (--scale)", r->scale);
    else if (work->params.scale != 0)
        fprintf(stderr, "scale %.9g (%s)", work->params.scale, model->facts.softmax_rule);
    else
        fprintf(stderr, "scale 1/sqrt(channels)");
    echo_reach(work);
    echo_scores(work);
    fputc('\n', stderr);
    model_warn_notes(model);
    warn_heads(work);
    if (lacks_sinks(work))
        tool_warn("%s: each head has a learned sink, which the file does not hold: without --sinks "
                  "this is not the model's result",
                  model->name);
    if (work->array[ATTEND_K].count)
        model_warn_limit(model, work->set.max_position, last_position(work));
}
