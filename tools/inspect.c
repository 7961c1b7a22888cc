/* SPDX-License-Identifier: MIT */
/* posenc inspect: what a model's files say about positions, for people and as JSON. */
#include "inspect.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { JSON = 1, LENGTHS, SET };

static const struct tool_option options[] = {
    {JSON, "json", NULL, "one JSON object instead of text"},
    {LENGTHS, "lengths", "N,N..", "running lengths for sets that depend on the length"},
    {SET, "set", "ID", "only this frequency set"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "inspect [--json] [--lengths N,N..] [--set ID] MODEL",
    "Shows the position contract of a model: scheme, frequencies, layers, limits,\n"
    "what had to be assumed and what to watch. MODEL is a config.json, a folder with\n"
    "one, or - (stdin).",
    options, NULL, "posenc inspect --json config.json"};

/* No scheme that is supported yet depends on the length; the list is checked all the same. */
static int check_lengths(const char *text)
{
    char one[24];
    for (const char *rest = text; rest; rest = strchr(rest, ',') ? strchr(rest, ',') + 1 : NULL) {
        int64_t length;
        size_t size = strcspn(rest, ",");
        if (size >= sizeof one) {
            return tool_wrong_usage("--lengths is %s: each must be in 1..2147483648", text);
        }
        memcpy(one, rest, size);
        one[size] = '\0';
        if (!tool_integer(one, 1, INT64_C(1) << 31, &length)) {
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
    inspection->sets = NULL;
}

static int open_set(const struct model *model, int32_t index, struct inspected_set *set)
{
    posenc_error error = {0, ""};
    set->facts.struct_size = sizeof set->facts;
    posenc_rope_params_init(&set->params);
    if (posenc_contract_get_set(model->contract, index, &set->facts, &error) ||
        posenc_contract_plan_params(model->contract, index, &set->params, &error) ||
        posenc_plan_create(&set->plan, &set->params, &error)) {
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

/* All sets, or the one that --set names. */
static int open_sets(struct inspection *inspection, const char *only)
{
    const struct model *model = &inspection->model;
    inspection->sets = calloc((size_t)model->facts.num_sets + 1, sizeof *inspection->sets);
    if (!inspection->sets) {
        return tool_fail(TOOL_SYSTEM, "no memory for frequency sets");
    }
    for (int32_t i = 0; i < model->facts.num_sets; i++) {
        struct inspected_set *set = &inspection->sets[inspection->num_sets];
        inspection->num_sets++;
        int code = open_set(model, i, set);
        if (code) {
            return code;
        }
        if (only && strcmp(set->facts.id, only) != 0) {
            posenc_plan_free(set->plan);
            free(set->inv_freq);
            memset(set, 0, sizeof *set);
            inspection->num_sets--;
        }
    }
    if (only && inspection->num_sets == 0) {
        return tool_fail(TOOL_REFUSED, "%s: --set is %s: the model has no such frequency set",
                         model->name, only);
    }
    return TOOL_OK;
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
    return model->facts.num_sets > 1;
}

const char *inspect_layer_group(const struct model *model, int64_t layer)
{
    int32_t set = posenc_contract_layer_set(model->contract, layer);
    if (set == POSENC_LAYER_NO_ATTENTION) {
        return "no_attention";
    }
    if (model->facts.num_sets > 1) {
        posenc_contract_set facts = {.struct_size = sizeof facts};
        return set >= 0 && !posenc_contract_get_set(model->contract, set, &facts, NULL) ? facts.id
                                                                                        : "nope";
    }
    return posenc_contract_layer_type(model->contract, layer);
}

static int inspect(const char *path, const char *only, int json)
{
    struct inspection inspection = {0};
    int code = model_open(&inspection.model, path);
    if (code) {
        return code;
    }
    code = open_sets(&inspection, only);
    if (!code) {
        (json ? inspect_json : inspect_text)(&inspection);
    }
    close_sets(&inspection);
    model_close(&inspection.model);
    return code;
}

int tool_inspect(int argc, char **argv)
{
    const char *value = NULL, *only = NULL;
    int json = 0, code = TOOL_OK, id;
    while ((id = tool_next_option(&usage, argc, argv, &value, &code)) > 0) {
        if (id == JSON) {
            json = 1;
        } else if (id == SET) {
            only = value;
        } else if (check_lengths(value)) {
            return TOOL_USAGE;
        }
    }
    if (id == TOOL_OPTION_STOP) {
        return code;
    }
    if (argc - optind != 1) {
        return tool_wrong_usage("takes one MODEL, not %d", argc - optind);
    }
    return inspect(argv[optind], only, json);
}
