/* SPDX-License-Identifier: MIT */
/* posenc run: which frequency sets are in force at the running length of the step. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* LongRoPE's second set follows the first and has a greater length. */
static int is_second(const struct run_set *first, const struct run_set *second)
{
    return second->params.scaling == POSENC_SCALING_LONGROPE &&
           first->params.scaling == POSENC_SCALING_LONGROPE && first->params.length > 0 &&
           second->params.length == first->params.length + 1;
}

static int read_set(const struct run *run, int32_t index, struct run_set *set)
{
    posenc_error error = {0, ""};
    set->index = index;
    set->facts.struct_size = sizeof set->facts;
    posenc_rope_params_init(&set->params);
    if (posenc_contract_get_set(run->model.contract, index, &set->facts, &error) ||
        posenc_contract_plan_params(run->model.contract, index, &set->params, &error))
        return tool_fail_library(run->model.name, &error);
    return TOOL_OK;
}

/* Whether a set takes part: the one that --set names, else each that holds at the length. */
static int takes_part(const struct run *run, const struct run_set *set, int second)
{
    if (run->options.set)
        return strcmp(set->facts.id, run->options.set) == 0;
    if (set->params.scaling != POSENC_SCALING_LONGROPE || set->params.length < 1)
        return 1;
    return second == (run->length > set->facts.original_max_position);
}

int run_choose_sets(struct run *run)
{
    int32_t count = run->model.facts.num_sets;
    struct run_set before = {0};
    run->sets = calloc((size_t)count, sizeof *run->sets);
    if (!run->sets)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    for (int32_t i = 0; i < count; i++) {
        struct run_set set = {0};
        int code = read_set(run, i, &set);
        if (code)
            return code;
        if (takes_part(run, &set, i > 0 && is_second(&before, &set)))
            run->sets[run->num_sets++] = set;
        before = set;
    }
    if (run->num_sets > 0)
        return TOOL_OK;
    return model_no_such_set(&run->model, run->options.set);
}

int32_t run_set_of_layer(const struct run *run, int64_t layer)
{
    int32_t wanted = posenc_contract_layer_set(run->model.contract, layer);
    for (int32_t s = 0; wanted >= 0 && s < run->num_sets; s++) {
        const struct run_set *set = &run->sets[s];
        struct run_set first = {0};
        if (set->index == wanted)
            return s;
        if (set->index == wanted + 1 && read_set(run, wanted, &first) == TOOL_OK &&
            is_second(&first, set))
            return s;
    }
    return -1;
}
