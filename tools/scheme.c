/* SPDX-License-Identifier: MIT */
/* The scheme that a subcommand works on: a model's own, or one given directly. */
#include "scheme.h"

#include <stdio.h>
#include <string.h>

const struct scheme_choice scheme_no_choice = {.model = {.layer = -1, .length = -1}};

const char scheme_sinusoid_argument[] = "WIDTH[,KEY=VALUE..]";
const char scheme_sinusoid_help[] =
    "instead of a model: WIDTH channels of sines and cosines;\n"
    "form=interleaved|halves|halves_vaswani|timestep|ggml,\n"
    "base=10000, shift=, scale=1, offset=0, cosine_first=0|1,\n"
    "odd=zero|sine";
const char scheme_alibi_argument[] = "HEADS[,max=8]";
const char scheme_alibi_help[] = "instead of a model: ALiBi";
const char scheme_t5_argument[] = "BUCKETS,MAX[,causal]";
const char scheme_t5_help[] = "instead of a model: relative buckets of T5";
const char scheme_part_help[] = "of a model with both: encoder or decoder";

int scheme_take_part(struct scheme_choice *choice, const char *value)
{
    choice->part = strcmp(value, "encoder") == 0   ? SCHEME_ENCODER
                   : strcmp(value, "decoder") == 0 ? SCHEME_DECODER
                                                   : SCHEME_ANY_PART;
    if (choice->part)
        return TOOL_OK;
    return tool_wrong_usage("--part is %s: must be encoder or decoder", value);
}

int scheme_is_named(const struct scheme_choice *choice)
{
    return choice->model.model || choice->model.rope || choice->sinusoid || choice->alibi ||
           choice->t5;
}

static int direct(struct scheme *scheme, const struct scheme_choice *choice)
{
    const struct model_choice *m = &choice->model;
    int named = (m->model != NULL) + (m->rope != NULL) + (choice->sinusoid != NULL) +
                (choice->alibi != NULL) + (choice->t5 != NULL);
    if (named > 1)
        return tool_wrong_usage("a model, --rope, --sinusoid, --alibi and --t5 exclude each other");
    if (m->set || m->layer >= 0 || m->limit || m->length >= 0 || choice->part)
        return tool_wrong_usage("--set, --layer, --length, --limit and --part need --model");
    scheme->max_position = -1;
    scheme->heads = -1;
    if (choice->sinusoid) {
        scheme->kind = SCHEME_SINUSOID;
        scheme->model.name = "--sinusoid";
        return scheme_parse_sinusoid(&scheme->sinusoid, choice->sinusoid);
    }
    if (choice->alibi) {
        scheme->kind = SCHEME_ALIBI;
        scheme->model.name = "--alibi";
        int code = scheme_parse_alibi(&scheme->alibi, choice->alibi);
        scheme->heads = scheme->alibi.heads;
        return code;
    }
    scheme->kind = SCHEME_T5;
    scheme->model.name = "--t5";
    return scheme_parse_t5(&scheme->t5, choice->t5);
}

/* The kinds that a model has. */
static int kinds_of(const struct model *model)
{
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    int kinds = model->facts.num_sets > 0 ? SCHEME_ROPE : SCHEME_NONE;
    if (!posenc_contract_get_sinusoidal(model->contract, &waves, NULL))
        kinds |= SCHEME_SINUSOID;
    if (!posenc_contract_get_alibi(model->contract, &alibi, NULL))
        kinds |= SCHEME_ALIBI;
    if (!posenc_contract_get_t5(model->contract, &t5, NULL))
        kinds |= SCHEME_T5;
    if (!posenc_contract_get_learned(model->contract, &learned, NULL))
        kinds |= SCHEME_LEARNED;
    return kinds;
}

void scheme_fill_sinusoid(posenc_sinusoid_params *params, const posenc_contract_sinusoidal *waves)
{
    posenc_sinusoid_params_init(params);
    scheme_set_form(params, waves->kind);
    params->shift = strcmp(waves->freq_divisor, "half-1") == 0 ? 1 : 0;
    params->dim = waves->dim;
    params->position_offset = waves->row_offset;
}

void scheme_fill_alibi(posenc_alibi_params *params, const posenc_contract_alibi *alibi,
                       const posenc_contract_facts *facts)
{
    posenc_alibi_params_init(params);
    params->form = strchr(alibi->bias, '|') ? POSENC_ALIBI_ABS : POSENC_ALIBI_DISTANCE;
    params->max_bias = alibi->max_bias;
    params->heads = facts->num_heads;
    if (alibi->scaled)
        params->scale = facts->softmax_scale;
}

static void fill_sinusoid(struct scheme *scheme, int limit)
{
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    posenc_contract_get_sinusoidal(scheme->model.contract, &waves, NULL);
    scheme_fill_sinusoid(&scheme->sinusoid, &waves);
    if (limit)
        scheme->sinusoid.max_position = scheme->max_position;
}

static void fill_alibi(struct scheme *scheme)
{
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    posenc_contract_get_alibi(scheme->model.contract, &alibi, NULL);
    scheme_fill_alibi(&scheme->alibi, &alibi, &scheme->model.facts);
}

static int fill_t5(struct scheme *scheme, enum scheme_part part)
{
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    posenc_contract_get_t5(scheme->model.contract, &t5, NULL);
    if (!part && t5.encoder && t5.decoder)
        return tool_fail(TOOL_REFUSED,
                         "%s: has buckets in encoder and decoder: choose with --part",
                         scheme->model.name);
    if ((part == SCHEME_ENCODER && !t5.encoder) || (part == SCHEME_DECODER && !t5.decoder))
        return tool_fail(TOOL_REFUSED, "%s: --part: has buckets only in the %s",
                         scheme->model.name, t5.encoder ? "encoder" : "decoder");
    posenc_t5_params_init(&scheme->t5);
    scheme->t5.num_buckets = t5.num_buckets;
    scheme->t5.max_distance = t5.max_distance;
    scheme->t5.bidirectional = part == SCHEME_ENCODER || (!part && t5.encoder);
    return TOOL_OK;
}

static int from_model(struct scheme *scheme, const struct scheme_choice *choice, int kinds)
{
    int has = kinds_of(&scheme->model) & kinds;
    if (!has)
        return tool_fail(TOOL_REFUSED, "%s: %s", scheme->model.name,
                         kinds & SCHEME_ROPE ? "the model has neither rotation nor another scheme "
                                               "that this subcommand knows"
                                             : "the model has no bias by relative position");
    scheme->kind = (enum scheme_kind)(has & -has);
    scheme->max_position = scheme->model.facts.max_position;
    scheme->heads = scheme->model.facts.num_heads;
    const struct model_choice *m = &choice->model;
    if (scheme->kind != SCHEME_ROPE && m->limit && scheme->max_position < 1)
        return tool_fail(TOOL_REFUSED, "%s: --limit: the model states no trained limit",
                         scheme->model.name);
    if (scheme->kind != SCHEME_ROPE && (m->set || m->layer >= 0 || m->length >= 0))
        return tool_fail(TOOL_REFUSED, "%s: --set, --layer and --length choose among rotary "
                                       "frequency sets: the model has none",
                         scheme->model.name);
    if (scheme->kind == SCHEME_SINUSOID)
        fill_sinusoid(scheme, m->limit);
    else if (scheme->kind == SCHEME_ALIBI)
        fill_alibi(scheme);
    else if (scheme->kind == SCHEME_T5)
        return fill_t5(scheme, choice->part);
    return TOOL_OK;
}

int scheme_choose(struct scheme *scheme, const struct scheme_choice *choice, int kinds)
{
    memset(scheme, 0, sizeof *scheme);
    if (choice->sinusoid || choice->alibi || choice->t5)
        return direct(scheme, choice);
    if (choice->model.rope) {
        scheme->kind = SCHEME_ROPE;
        scheme->max_position = scheme->heads = -1;
        return model_choose(&scheme->model, &scheme->set, &choice->model);
    }
    if (!choice->model.model)
        return tool_wrong_usage("a model is missing");
    int code = model_open(&scheme->model, choice->model.model);
    if (code)
        return code;
    code = from_model(scheme, choice, kinds);
    if (!code && scheme->kind == SCHEME_ROPE)
        code = model_choose_set(&scheme->model, &scheme->set, &choice->model);
    if (code)
        scheme_close(scheme);
    return code;
}

void scheme_close(struct scheme *scheme)
{
    model_close(&scheme->model);
}
