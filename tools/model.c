/* SPDX-License-Identifier: MIT */
/* The MODEL argument: opening it and choosing one of its frequency sets. */
#include "model.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL = 900, ROPE, SET, LAYER, LENGTH, LIMIT };

const struct tool_option model_options[] = {
    {MODEL, "model", "MODEL", "a config.json, a GGUF file, a folder, or - (stdin)"},
    {ROPE, "rope", "WIDTH[,KEY=VALUE..]",
     "instead of a model: rotate WIDTH channels;\n"
     "base=10000, layout=split_half|adjacent, head=, offset=,\n"
     "scaling=linear|llama3|yarn|ntk|ntk_scaled|ntk_mixed|\n"
     "dynamic|proportional with factor=, original=, low=,\n"
     "high=, beta_fast=, beta_slow=, mscale=,\n"
     "mscale_all_dim=, truncate=0|1, attention_factor=,\n"
     "blend=linear|geometric, slope=, exponent=, rotating="},
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

int model_take_operand(struct model_choice *choice, int argc, char **argv)
{
    int given = choice->model || choice->rope;
    if (argc - optind > 1 || (given && argc > optind))
        return tool_wrong_usage("%s is one operand too many", argv[argc - 1]);
    if (!given && argc == optind)
        return tool_wrong_usage("needs one MODEL (or --rope)");
    if (!given)
        choice->model = argv[optind];
    return TOOL_OK;
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

/* "global, local": the ids for a refusal, those marked in `candidates` alone. */
static void list_ids(const struct model *model, uint32_t candidates, char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    for (int32_t i = 0; i < model->facts.num_sets && used < size; i++)
        if (candidates >> i & 1)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     set_id(model, i));
}

static posenc_rope_params set_params(const struct model *model, int32_t index)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    posenc_contract_plan_params(model->contract, index, &params, NULL);
    return params;
}

/* LongRoPE: which of its two sets a running length selects; other sets hold for every length. */
static int holds_at(const posenc_rope_params *params, int64_t length)
{
    if (params->scaling != POSENC_SCALING_LONGROPE || params->length < 1 || length < 1)
        return 1;
    double limit = params->original_max_position;
    return ((double)length <= limit) == ((double)params->length <= limit);
}

/* Where length decides, the two sets of a layer follow one another and differ in nothing else. */
static int is_of_layer(const struct model *model, int32_t index, int32_t first)
{
    if (index == first)
        return 1;
    posenc_rope_params a = set_params(model, index), b = set_params(model, first);
    return index == first + 1 && a.scaling == POSENC_SCALING_LONGROPE && a.length > b.length &&
           b.length > 0 && b.scaling == a.scaling;
}

int model_set_has_layer(const struct model *model, const struct model_set *set, int64_t layer)
{
    int32_t index = posenc_contract_layer_set(model->contract, layer);
    return set->index < 0 ? index == POSENC_LAYER_NOT_ROTATED
                          : index >= 0 && is_of_layer(model, set->index, index);
}

/* The set of a layer; -1 for one that is not rotated. */
static int set_of_layer(const struct model *model, int64_t layer, int32_t *index)
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

/* Of "dynamic@4096" or "global-dynamic@4096", as inspect lists a set that grows: its length, and
 * the id of the set itself. Any other id is left as it is. */
static int64_t split_length(const char *id, char *name, size_t size)
{
    static const char mark[] = "dynamic@";
    const char *at = strstr(id, mark);
    int64_t length = -1;
    snprintf(name, size, "%s", id);
    if (!at || !tool_integer(at + sizeof mark - 1, 1, INT64_C(1) << 31, &length))
        return -1;
    if (at == id)
        snprintf(name, size, "main");
    else if (at[-1] == '-' && (size_t)(at - id) < size)
        name[at - id - 1] = '\0';
    return length;
}

int model_no_such_set(const struct model *model, const char *id)
{
    char ids[256];
    list_ids(model, UINT32_MAX, ids, sizeof ids);
    if (!*ids)
        return tool_fail(TOOL_REFUSED, "%s: the model has no rotary frequency set", model->name);
    return tool_fail(TOOL_REFUSED, "%s: --set is %s: must be one of %s", model->name, id, ids);
}

/* Sets that agree with --set, --layer and --length, as bits. */
static int find_candidates(const struct model *model, const struct model_choice *choice,
                           const char *name, int32_t of_layer, uint32_t *candidates)
{
    char ids[256];
    uint32_t named = 0;
    *candidates = 0;
    for (int32_t i = 0; i < model->facts.num_sets; i++) {
        posenc_rope_params params = set_params(model, i);
        if (name && strcmp(set_id(model, i), name) != 0)
            continue;
        named |= 1u << i;
        if (of_layer < 0 || is_of_layer(model, i, of_layer))
            *candidates |= (uint32_t)holds_at(&params, choice->length) << i;
    }
    if (*candidates)
        return TOOL_OK;
    if (!named)
        return model_no_such_set(model, choice->set);
    list_ids(model, UINT32_MAX, ids, sizeof ids);
    if (of_layer >= 0 && choice->length < 1)
        return tool_fail(TOOL_REFUSED, "%s: --set is %s, but layer %lld uses %s", model->name,
                         choice->set, (long long)choice->layer, set_id(model, of_layer));
    return tool_fail(TOOL_REFUSED, "%s: --set is %s, but length %lld uses another", model->name,
                     choice->set ? choice->set : ids, (long long)choice->length);
}

/* -1 in *index for a layer that is not rotated; `length` is that of the choice, or -1. */
static int pick(const struct model *model, const struct model_choice *choice, int32_t *index,
                int64_t *length)
{
    char ids[256], name[64];
    uint32_t candidates;
    int32_t of_layer = -1;
    *length = choice->length;
    if (model->facts.num_sets < 1)
        return tool_fail(TOOL_REFUSED, "%s: the model has no rotary frequency set", model->name);
    int code = choice->layer >= 0 ? set_of_layer(model, choice->layer, &of_layer) : TOOL_OK;
    if (code)
        return code;
    *index = -1;
    if (choice->layer >= 0 && of_layer < 0) {
        if (choice->set)
            return tool_fail(TOOL_REFUSED, "%s: --set is %s, but layer %lld uses no rotation",
                             model->name, choice->set, (long long)choice->layer);
        return TOOL_OK;
    }
    int64_t in_name = choice->set ? split_length(choice->set, name, sizeof name) : -1;
    if (in_name > 0 && *length > 0 && *length != in_name)
        return tool_fail(TOOL_REFUSED, "%s: --set is %s, but --length is %lld", model->name,
                         choice->set, (long long)*length);
    *length = in_name > 0 ? in_name : *length;
    code = find_candidates(model, choice, choice->set ? name : NULL, of_layer, &candidates);
    if (code)
        return code;
    for (*index = 0; !(candidates >> *index & 1);)
        ++*index;
    if (candidates == 1u << *index)
        return TOOL_OK;
    list_ids(model, candidates, ids, sizeof ids);
    return tool_fail(TOOL_REFUSED,
                     "%s: has the frequency sets %s: choose with --set, --layer or --length",
                     model->name, ids);
}

/* A base that grows needs the length; its set alone, if named, is that of short lengths, as inspect
 * lists it. A set of the two of LongRoPE has its length fixed. */
static int settle_length(const struct model *model, struct model_set *set, int64_t length,
                         int named)
{
    if (set->params.scaling != POSENC_SCALING_DYNAMIC_NTK)
        return TOOL_OK;
    if (length < 1 && !model->contract)
        return tool_wrong_usage("--rope: frequencies that change with the running length need "
                                "--length");
    if (length < 1 && !named)
        return tool_fail(TOOL_REFUSED,
                         "%s: the frequencies of set %s change with the running length past %.17g: "
                         "choose with --length (or --set %s for those up to it)",
                         model->name, set->id, set->params.original_max_position, set->id);
    set->params.length = length < 1 ? 1 : length;
    return TOOL_OK;
}

static int choose_direct(struct model *model, struct model_set *set,
                         const struct model_choice *choice)
{
    if (choice->model)
        return tool_wrong_usage("--model and --rope exclude each other");
    if (choice->set || choice->layer >= 0 || choice->limit)
        return tool_wrong_usage("--set, --layer and --limit need --model");
    model->name = "--rope";
    set->index = -1;
    set->id = "--rope";
    set->max_position = -1;
    set->rotated = 1;
    int code = model_parse_rope(&set->params, choice->rope);
    return code ? code : settle_length(model, set, choice->length, 0);
}

int model_choose_set(struct model *model, struct model_set *set, const struct model_choice *choice)
{
    memset(set, 0, sizeof *set);
    int32_t index = 0;
    int64_t length = -1;
    int code = pick(model, choice, &index, &length);
    set->max_position = model->facts.max_position;
    set->rotated = index >= 0;
    set->index = code ? -1 : index;
    set->id = !code && index >= 0 ? set_id(model, index) : "none";
    posenc_error error = {0, ""};
    posenc_rope_params_init(&set->params);
    if (!code && index >= 0 &&
        posenc_contract_plan_params(model->contract, index, &set->params, &error))
        code = tool_fail_library(model->name, &error);
    if (!code && index >= 0)
        code = settle_length(model, set, length, choice->set != NULL);
    if (!code && choice->limit && set->max_position < 1)
        code =
            tool_fail(TOOL_REFUSED, "%s: --limit: the model states no trained limit", model->name);
    if (!code && choice->limit)
        set->params.max_position = set->max_position;
    return code;
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
    code = model_choose_set(model, set, choice);
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
