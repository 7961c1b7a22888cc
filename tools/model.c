/* SPDX-License-Identifier: MIT */
/* The MODEL argument: opening it and choosing one of its frequency sets. */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL = 900, ROPE, SET, LAYER, LENGTH, LIMIT };

const struct tool_option model_options[] = {
    {MODEL, "model", "MODEL", "a config.json, a folder with one, or - (stdin)"},
    {ROPE, "rope", "WIDTH[,KEY=VALUE..]",
     "instead of a model: rotate WIDTH channels;\n"
     "base=10000, layout=split_half|adjacent, head=, offset=,\n"
     "scaling=linear|llama3|yarn with factor=, original=,\n"
     "low=, high=, beta_fast=, beta_slow=, mscale=,\n"
     "mscale_all_dim=, truncate=0|1, attention_factor="},
    {SET, "set", "ID", "the frequency set ID, as 'posenc inspect' lists them"},
    {LAYER, "layer", "N", "the frequency set of layer N"},
    {LENGTH, "length", "N", "the frequency set for N tokens, if length decides"},
    {LIMIT, "limit", NULL, "refuse positions past the trained limit, not only warn"},
    {0, NULL, NULL, NULL}};

int model_take_option(struct model_choice *choice, int id, const char *value)
{
    switch (id) {
    case MODEL: choice->model = value; return TOOL_OK;
    case ROPE: choice->rope = value; return TOOL_OK;
    case SET: choice->set = value; return TOOL_OK;
    case LIMIT: choice->limit = 1; return TOOL_OK;
    case LAYER:
        if (tool_integer(value, 0, POSENC_CONTRACT_MAX_LAYERS, &choice->layer))
            return TOOL_OK;
        return tool_wrong_usage("--layer is %s: must be an integer from 0 on", value);
    case LENGTH:
        if (tool_integer(value, 1, INT64_C(1) << 31, &choice->length))
            return TOOL_OK;
        return tool_wrong_usage("--length is %s: must be an integer from 1 to 2147483648", value);
    default: return -1;
    }
}

/* Standard input up to the reader's own limit, and one byte more so that it can refuse. */
static int read_standard_input(char **text, size_t *length)
{
    size_t room = 0;
    *text = NULL;
    *length = 0;
    while (*length <= POSENC_CONTRACT_MAX_BYTES) {
        if (*length == room) {
            room = room ? room * 2 : 65536;
            char *more = realloc(*text, room);
            if (!more)
                break;
            *text = more;
        }
        size_t got = fread(*text + *length, 1, room - *length, stdin);
        *length += got;
        if (got == 0)
            break;
    }
    if (*text && !ferror(stdin))
        return TOOL_OK;
    free(*text);
    *text = NULL;
    return tool_fail(TOOL_SYSTEM, "standard input: %s", strerror(errno ? errno : EIO));
}

int model_open(struct model *model, const char *path)
{
    posenc_error error = {0, ""};
    memset(model, 0, sizeof *model);
    model->name = path;
    int32_t status;
    if (strcmp(path, "-") == 0) {
        char *text;
        size_t length;
        int code = read_standard_input(&text, &length);
        if (code)
            return code;
        model->name = "standard input";
        status = posenc_contract_parse(&model->contract, text, length, &error);
        free(text);
    } else {
        status = posenc_contract_open(&model->contract, path, &error);
    }
    if (status)
        return tool_fail_library(model->name, &error);
    model->facts.struct_size = sizeof model->facts;
    if (posenc_contract_get_facts(model->contract, &model->facts, &error)) {
        model_close(model);
        return tool_fail_library(path, &error);
    }
    return TOOL_OK;
}

void model_close(struct model *model)
{
    posenc_contract_free(model->contract);
    model->contract = NULL;
}

static const char *set_id(const struct model *model, int32_t index)
{
    posenc_contract_set set = {.struct_size = sizeof set};
    return posenc_contract_get_set(model->contract, index, &set, NULL) ? "?" : set.id;
}

/* "global, local": the ids for a refusal. */
static void list_ids(const struct model *model, char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    for (int32_t i = 0; i < model->facts.num_sets && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", set_id(model, i));
}

static int pick_by_id(const struct model *model, const char *id, int32_t *index)
{
    char ids[256];
    for (*index = 0; *index < model->facts.num_sets; ++*index)
        if (strcmp(set_id(model, *index), id) == 0)
            return TOOL_OK;
    list_ids(model, ids, sizeof ids);
    return tool_fail(TOOL_REFUSED, "%s: --set is %s: must be one of %s", model->name, id, ids);
}

/* -1 in *index for a layer that is not rotated. */
static int pick_by_layer(const struct model *model, int64_t layer, int32_t *index)
{
    *index = posenc_contract_layer_set(model->contract, layer);
    if (*index >= 0 || *index == POSENC_LAYER_NOT_ROTATED)
        return TOOL_OK;
    if (*index == POSENC_LAYER_NO_ATTENTION)
        return tool_fail(TOOL_REFUSED, "%s: layer %lld has no attention", model->name,
                         (long long)layer);
    return tool_fail(TOOL_REFUSED, "%s: --layer is %lld: must be below %lld", model->name,
                     (long long)layer, (long long)model->facts.num_layers);
}

static int pick(const struct model *model, const struct model_choice *choice, int32_t *index)
{
    if (model->facts.num_sets < 1)
        return tool_fail(TOOL_REFUSED, "%s: the model has no rotary frequency set", model->name);
    if (choice->set) {
        int32_t by_layer = -1;
        int code = pick_by_id(model, choice->set, index);
        if (!code && choice->layer >= 0)
            code = pick_by_layer(model, choice->layer, &by_layer);
        if (!code && choice->layer >= 0 && by_layer != *index)
            return tool_fail(TOOL_REFUSED, "%s: --set is %s, but layer %lld uses %s", model->name,
                             choice->set, (long long)choice->layer,
                             by_layer < 0 ? "no rotation" : set_id(model, by_layer));
        return code;
    }
    if (choice->layer >= 0)
        return pick_by_layer(model, choice->layer, index);
    *index = 0;
    if (model->facts.num_sets == 1)
        return TOOL_OK;
    char ids[256];
    list_ids(model, ids, sizeof ids);
    return tool_fail(TOOL_REFUSED, "%s: has the frequency sets %s: choose with --set or --layer",
                     model->name, ids);
}

static int choose_direct(struct model *model, struct model_set *set,
                         const struct model_choice *choice)
{
    if (choice->model)
        return tool_wrong_usage("--model and --rope exclude each other");
    if (choice->set || choice->layer >= 0 || choice->length >= 0 || choice->limit)
        return tool_wrong_usage("--set, --layer, --length and --limit need --model");
    model->name = "--rope";
    set->id = "--rope";
    set->max_position = -1;
    set->rotated = 1;
    return model_parse_rope(&set->params, choice->rope);
}

int model_choose(struct model *model, struct model_set *set, const struct model_choice *choice)
{
    memset(model, 0, sizeof *model);
    memset(set, 0, sizeof *set);
    if (choice->rope)
        return choose_direct(model, set, choice);
    if (!choice->model)
        return tool_wrong_usage("--model or --rope is missing");
    int code = model_open(model, choice->model);
    if (code)
        return code;
    int32_t index = 0;
    code = pick(model, choice, &index);
    set->max_position = model->facts.max_position;
    set->rotated = index >= 0;
    set->id = index >= 0 ? set_id(model, index) : "none";
    posenc_error error = {0, ""};
    posenc_rope_params_init(&set->params);
    if (!code && index >= 0 &&
        posenc_contract_plan_params(model->contract, index, &set->params, &error))
        code = tool_fail_library(model->name, &error);
    if (!code && choice->limit && set->max_position < 1)
        code =
            tool_fail(TOOL_REFUSED, "%s: --limit: the model states no trained limit", model->name);
    if (!code && choice->limit)
        set->params.max_position = set->max_position;
    if (code)
        model_close(model);
    return code;
}

void model_warn_notes(const struct model *model)
{
    posenc_contract_note note = {.struct_size = sizeof note};
    for (int32_t i = 0; model->contract && i < model->facts.num_warnings; i++)
        if (!posenc_contract_get_warning(model->contract, i, &note, NULL))
            tool_warn("%s: %s: %s", model->name, note.key, note.text);
}

void model_warn_limit(const struct model *model, int64_t max_position, int64_t last)
{
    if (max_position < 1 || last < max_position)
        return;
    const char *key = model->facts.max_position_key;
    tool_warn("%s: position %lld passes the trained limit, %s = %lld", model->name, (long long)last,
              key ? key : "max_position", (long long)max_position);
}
