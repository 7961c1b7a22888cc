/* SPDX-License-Identifier: MIT */
/* posenc attend: which keys the chosen layers of a model see. */
#include "attend.h"

#include <stdio.h>
#include <string.h>

/* Whether a window and chunks count: for one layer, or for all of no special type. */
struct reach {
    int window, chunk;
};

static int is_of_type(const struct attend_work *work, int64_t layer, const char *type)
{
    return strcmp(posenc_contract_layer_type(work->model.contract, layer), type) == 0;
}

/* A window or chunks are for the layers of their type; where no layer has it, for all, or for all
 * that are rotated. */
static struct reach usual_reach(const struct attend_work *work)
{
    const posenc_contract_facts *facts = &work->model.facts;
    struct reach usual = {facts->sliding_window > 0, facts->attention_chunk > 0};
    usual.window &= !work->request->window;
    usual.chunk &= work->set.rotated;
    for (int64_t i = 0; i < facts->num_layers; i++) {
        usual.window &= !is_of_type(work, i, "sliding");
        usual.chunk &= !is_of_type(work, i, "chunked");
    }
    return usual;
}

static struct reach reach_of(const struct attend_work *work, const struct reach *usual,
                             int64_t layer)
{
    const posenc_contract_facts *facts = &work->model.facts;
    struct reach r = *usual;
    if (is_of_type(work, layer, "sliding"))
        r.window = facts->sliding_window > 0 && !work->request->window;
    if (is_of_type(work, layer, "chunked"))
        r.chunk = facts->attention_chunk > 0;
    return r;
}

static int is_chosen(const struct attend_work *work, int64_t layer)
{
    int64_t only = work->request->choice.layer;
    if (only >= 0)
        return layer == only;
    return !is_of_type(work, layer, "linear") &&
           model_set_has_layer(&work->model, &work->set, layer);
}

/* "0, 2, 4, ..": the chosen layers of one reach. */
static void list_layers(const struct attend_work *work, const struct reach *usual,
                        const struct reach *like, char *text, size_t size)
{
    size_t used = 0;
    int count = 0;
    *text = 0;
    for (int64_t i = 0; i < work->model.facts.num_layers && count < 5 && used < size; i++) {
        struct reach r = reach_of(work, usual, i);
        if (!is_chosen(work, i) || r.window != like->window || r.chunk != like->chunk)
            continue;
        used += count < 4 ? (size_t)snprintf(text + used, size - used, "%s%lld",
                                             count ? ", " : "", (long long)i)
                          : (size_t)snprintf(text + used, size - used, ", ..");
        count++;
    }
}

static int refuse_choice(const struct attend_work *work, const struct reach *usual,
                         const struct reach *a, const struct reach *b)
{
    char first[128], second[128];
    list_layers(work, usual, a, first, sizeof first);
    list_layers(work, usual, b, second, sizeof second);
    return tool_fail(TOOL_REFUSED,
                     "%s: layers %s of set %s see other keys than layers %s: choose with --layer%s",
                     work->model.name, first, work->set.id, second,
                     a->chunk != b->chunk ? "" : " or --window");
}

int attend_reach_by_model(struct attend_work *work)
{
    const posenc_contract_facts *facts = &work->model.facts;
    const struct reach usual = usual_reach(work);
    struct reach reach = {0, 0};
    int found = 0;
    for (int64_t i = 0; i < facts->num_layers; i++) {
        if (!is_chosen(work, i))
            continue;
        struct reach r = reach_of(work, &usual, i);
        if (found && (r.window != reach.window || r.chunk != reach.chunk))
            return refuse_choice(work, &usual, &reach, &r);
        reach = r;
        found = 1;
    }
    if (reach.window && facts->window_sides == 2) {
        work->params.window_left = work->params.window_right = facts->sliding_window / 2 + 1;
    } else if (reach.window) {
        work->params.window_left = facts->sliding_window;
        work->params.causal = 1;
    }
    if (reach.chunk) {
        /* Chunks count positions: logical indices that differ from them by whole chunks do too. */
        int64_t n = facts->attention_chunk;
        work->params.chunk = n;
        work->params.first_key = (work->request->start % n + n) % n;
        work->params.causal = 1;
    }
    return TOOL_OK;
}
