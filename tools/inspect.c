/* SPDX-License-Identifier: MIT */
/* posenc inspect: what a model's files say about positions, for people and as JSON. */
#include "inspect.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { JSON = 1, LENGTHS, SET };

static const struct tool_option options[] = {
    {JSON, "json", NULL, "one JSON object instead of text"},
    {LENGTHS, "lengths", "N,N..", "the sets of a base that grows, at these running lengths"},
    {SET, "set", "ID", "only this frequency set"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "inspect [--json] [--lengths N,N..] [--set ID] MODEL",
    "Shows the position contract of a model: scheme, frequencies, layers, limits,\n"
    "what had to be assumed and what to watch. MODEL is a config.json, a GGUF file,\n"
    "a params.json, a genai_config.json, a folder with one, or - (stdin).",
    options, NULL, "posenc inspect --json config.json"};

/* One length of the list at `text`; `rest` receives what follows, NULL at the end. */
static int next_length(const char *text, const char **rest, int64_t *length)
{
    char one[24];
    size_t size = strcspn(text, ",");
    *rest = text[size] ? text + size + 1 : NULL;
    if (size >= sizeof one) {
        return 0;
    }
    memcpy(one, text, size);
    one[size] = '\0';
    return tool_integer(one, 1, INT64_C(1) << 31, length);
}

static int check_lengths(const char *text, int32_t *count)
{
    int64_t length;
    *count = 0;
    for (const char *rest = text; rest; ++*count) {
        if (!next_length(rest, &rest, &length) || *count >= 4096) {
            return tool_wrong_usage("--lengths is %s: each must be in 1..2147483648", text);
        }
    }
    return TOOL_OK;
}

static void close_sets(struct inspection *inspection)
{
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        posenc_plan_free(inspection->sets[i].plan);
        free(inspection->sets[i].inv_freq);
    }
    free(inspection->sets);
    free(inspection->slopes);
    inspection->sets = NULL;
}

/* `length` fixes the running length, -1 leaves what the contract says. */
static int open_set(const struct model *model, int32_t index, int64_t length,
                    struct inspected_set *set)
{
    posenc_error error = {0, ""};
    set->facts.struct_size = sizeof set->facts;
    set->seq_len = length;
    posenc_rope_params_init(&set->params);
    if (posenc_contract_get_set(model->contract, index, &set->facts, &error) ||
        posenc_contract_plan_params(model->contract, index, &set->params, &error)) {
        return tool_fail_library(model->name, &error);
    }
    if (length > 0) {
        const char *id = set->facts.id;
        int main_set = strcmp(id, "main") == 0;
        set->params.length = length;
        snprintf(set->id, sizeof set->id, "%s%sdynamic@%lld", main_set ? "" : id,
                 main_set ? "" : "-", (long long)length);
    } else {
        snprintf(set->id, sizeof set->id, "%s", set->facts.id);
    }
    if (posenc_plan_create(&set->plan, &set->params, &error)) {
        return tool_fail_library(model->name, &error);
    }
    size_t pairs = (size_t)posenc_plan_pairs(set->plan);
    set->inv_freq = malloc(pairs * sizeof *set->inv_freq);
    if (!set->inv_freq) {
        return tool_fail(TOOL_SYSTEM, "no memory for %zu frequencies", pairs);
    }
    if (posenc_plan_inv_freq(set->plan, set->inv_freq, pairs, &error)) {
        return tool_fail_library(model->name, &error);
    }
    return TOOL_OK;
}

/* A set of the contract and, where its base grows, one for each of the lengths. */
static int open_at_lengths(struct inspection *inspection, int32_t index, const char *lengths)
{
    struct inspected_set *first = &inspection->sets[inspection->num_sets++];
    int64_t length;
    int code = open_set(&inspection->model, index, -1, first);
    if (code || first->params.scaling != POSENC_SCALING_DYNAMIC_NTK) {
        return code;
    }
    for (const char *rest = lengths; rest && !code;) {
        next_length(rest, &rest, &length);
        code = open_set(&inspection->model, index, length,
                        &inspection->sets[inspection->num_sets++]);
    }
    return code;
}

/* All sets, or those of the id that --set names. */
static int open_sets(struct inspection *inspection, const char *only, const char *lengths,
                     int32_t count)
{
    const struct model *model = &inspection->model;
    size_t room = (size_t)model->facts.num_sets * (1 + (size_t)count) + 1;
    inspection->sets = calloc(room, sizeof *inspection->sets);
    if (!inspection->sets) {
        return tool_fail(TOOL_SYSTEM, "no memory for frequency sets");
    }
    for (int32_t i = 0; i < model->facts.num_sets; i++) {
        posenc_contract_set facts = {.struct_size = sizeof facts};
        if (only && (posenc_contract_get_set(model->contract, i, &facts, NULL) ||
                     strcmp(facts.id, only) != 0)) {
            continue;
        }
        int code = open_at_lengths(inspection, i, lengths);
        if (code) {
            return code;
        }
    }
    if (only && inspection->num_sets == 0) {
        return model_no_such_set(model, only);
    }
    return TOOL_OK;
}

/* --lengths asks for sets of a base that grows; a model may have none. */
static void warn_lengths(const struct inspection *inspection)
{
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        if (inspection->sets[i].seq_len > 0) {
            return;
        }
    }
    tool_warn("%s: --lengths has no effect: no base of the model grows with the length",
              inspection->model.name);
}

const char *inspect_scheme(int32_t scheme)
{
    switch (scheme) {
    case POSENC_SCHEME_ROPE: return "rope";
    case POSENC_SCHEME_ALIBI: return "alibi";
    case POSENC_SCHEME_T5: return "t5_relative_bias";
    case POSENC_SCHEME_DEBERTA: return "deberta";
    case POSENC_SCHEME_LEARNED: return "learned";
    case POSENC_SCHEME_SINUSOIDAL: return "sinusoidal";
    default: return "none";
    }
}

int inspect_is_second(const posenc_contract_set *set, const posenc_rope_params *params)
{
    return params->scaling == POSENC_SCALING_LONGROPE &&
           params->length > set->original_max_position;
}

/* Sets that can be in force at one length. */
static int32_t sets_at_once(const struct model *model)
{
    int32_t count = 0;
    for (int32_t i = 0; i < model->facts.num_sets; i++) {
        posenc_contract_set set = {.struct_size = sizeof set};
        posenc_rope_params params;
        posenc_rope_params_init(&params);
        if (!posenc_contract_get_set(model->contract, i, &set, NULL) &&
            !posenc_contract_plan_params(model->contract, i, &params, NULL)) {
            count += !inspect_is_second(&set, &params);
        }
    }
    return count;
}

/* Where all layers attend alike by one set, naming them would say nothing. */
int inspect_layers_differ(const struct model *model)
{
    const char *first = NULL;
    for (int64_t i = 0; i < model->facts.num_layers; i++) {
        const char *type = posenc_contract_layer_type(model->contract, i);
        if (strcmp(type, "linear") == 0) {
            continue;
        }
        if (first && strcmp(first, type) != 0) {
            return 1;
        }
        first = type;
    }
    return sets_at_once(model) > 1;
}

const char *inspect_layer_group(const struct model *model, int64_t layer)
{
    int32_t set = posenc_contract_layer_set(model->contract, layer);
    if (set == POSENC_LAYER_NO_ATTENTION) {
        return "no_attention";
    }
    if (sets_at_once(model) > 1) {
        posenc_contract_set facts = {.struct_size = sizeof facts};
        return set >= 0 && !posenc_contract_get_set(model->contract, set, &facts, NULL) ? facts.id
                                                                                        : "nope";
    }
    return posenc_contract_layer_type(model->contract, layer);
}

static int inspect(const char *path, const char *only, const char *lengths, int32_t count,
                   int json)
{
    struct inspection inspection = {0};
    int code = model_open(&inspection.model, path);
    if (code) {
        return code;
    }
    code = open_sets(&inspection, only, lengths, count);
    if (!code) {
        code = inspect_slopes(&inspection);
    }
    if (!code) {
        (json ? inspect_json : inspect_text)(&inspection);
        if (lengths) {
            warn_lengths(&inspection);
        }
    }
    close_sets(&inspection);
    model_close(&inspection.model);
    return code;
}

int tool_inspect(int argc, char **argv)
{
    const char *value = NULL, *only = NULL, *lengths = NULL;
    int json = 0, code = TOOL_OK, id;
    int32_t count = 0;
    while ((id = tool_next_option(&usage, argc, argv, &value, &code)) > 0) {
        if (id == JSON) {
            json = 1;
        } else if (id == SET) {
            only = value;
        } else if (check_lengths(value, &count)) {
            return TOOL_USAGE;
        } else {
            lengths = value;
        }
    }
    if (id == TOOL_OPTION_STOP) {
        return code;
    }
    if (argc - optind != 1) {
        return tool_wrong_usage("takes one MODEL, not %d", argc - optind);
    }
    return inspect(argv[optind], only, lengths, count, json);
}
