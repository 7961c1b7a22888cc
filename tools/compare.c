/* SPDX-License-Identifier: MIT */
/* posenc compare: how far the rows of other systems' recipes are from exact ones. */
#include "json.h"
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON = 1, UPTO };

static const struct tool_option options[] = {
    {JSON, "json", NULL, "one JSON object instead of a table"},
    {UPTO, "upto", "N", "positions 0 to N; default the limit, 131071 at most"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "compare [--json] [--upto N] [OPTIONS] MODEL",
    "Makes the rows of every position up to N by each recipe and shows the largest\n"
    "difference from exact rows, over cosines and sines of all pairs, in ranges of\n"
    "positions that double. A recipe that does not know a model's scheme is listed\n"
    "as refused, with the reason.",
    options, model_options, "posenc compare --upto 1000000 config.json"};

enum { RECIPES = 3, RANGES = 34, PIECE = 256 };

static const struct {
    int32_t recipe;
    const char *name;
} recipes[RECIPES] = {{POSENC_RECIPE_HF_F32, "hf_f32"},
                      {POSENC_RECIPE_VLLM, "vllm"},
                      {POSENC_RECIPE_GGML, "ggml"}};

struct request {
    struct model_choice choice;
    int64_t upto; /* -1 not given */
    int json;
};

/* The largest difference of some positions, and where it is. */
struct worst {
    double difference;
    int64_t position;
    int32_t pair;
};

struct comparison {
    const char *id;
    int64_t upto;
    int32_t pairs;
    int ranges;
    posenc_plan *exact, *plan[RECIPES]; /* NULL where refused */
    posenc_error refused[RECIPES];
    struct worst worst[RECIPES][RANGES];
    float *rows, *other;
};

/* Range 0 is position 0, range n the positions from 2^(n-1) to 2^n - 1. */
static int64_t first_of(int range)
{
    return range ? INT64_C(1) << (range - 1) : 0;
}

static int64_t last_of(const struct comparison *c, int range)
{
    int64_t last = first_of(range + 1) - 1;
    return last < c->upto ? last : c->upto;
}

static int make_rows(const struct comparison *c, const posenc_plan *plan, int64_t start,
                     int64_t count, float *rows)
{
    posenc_positions positions;
    posenc_tensor tensor;
    posenc_error error = {0, ""};
    posenc_positions_start(&positions, start);
    posenc_tensor_contiguous(&tensor, rows, POSENC_F32, 1, count, 1, 2 * (int64_t)c->pairs);
    if (posenc_rows(plan, &positions, &tensor, &error))
        return tool_fail_library("rows", &error);
    return TOOL_OK;
}

static void note_worst(const struct comparison *c, struct worst *worst, int64_t start,
                       int64_t count)
{
    int64_t width = 2 * (int64_t)c->pairs;
    for (int64_t i = 0; i < count * width; i++) {
        double difference = fabs((double)c->other[i] - (double)c->rows[i]);
        if (difference > worst->difference)
            *worst = (struct worst){difference, start + i / width,
                                    (int32_t)(i % width % c->pairs)};
    }
}

static int compare_range(struct comparison *c, int range)
{
    char said[60];
    int code = TOOL_OK;
    for (int r = 0; r < RECIPES; r++)
        c->worst[r][range].position = first_of(range);
    for (int64_t p = first_of(range); p <= last_of(c, range) && !code; p += PIECE) {
        int64_t rest = last_of(c, range) - p + 1, count = rest < PIECE ? rest : PIECE;
        snprintf(said, sizeof said, "comparing: position %lld of %lld", (long long)p,
                 (long long)c->upto);
        tool_progress(said);
        code = make_rows(c, c->exact, p, count, c->rows);
        for (int r = 0; r < RECIPES && !code; r++) {
            if (!c->plan[r])
                continue;
            code = make_rows(c, c->plan[r], p, count, c->other);
            if (!code)
                note_worst(c, &c->worst[r][range], p, count);
        }
    }
    return code;
}

/* An exact plan must come out; a recipe may refuse. */
static int make_plans(struct comparison *c, const struct model *model,
                      const struct model_set *set)
{
    posenc_rope_params params = set->params;
    posenc_error error = {0, ""};
    params.recipe = POSENC_RECIPE_EXACT;
    params.row_dtype = 0;
    if (posenc_plan_create(&c->exact, &params, &error))
        return tool_fail_library(model->name, &error);
    c->pairs = posenc_plan_pairs(c->exact);
    for (int r = 0; r < RECIPES; r++) {
        params.recipe = recipes[r].recipe;
        if (posenc_plan_create(&c->plan[r], &params, &c->refused[r]) == POSENC_ERROR_MEMORY)
            return tool_fail_library(model->name, &c->refused[r]);
    }
    size_t values = (size_t)PIECE * 2 * (size_t)c->pairs;
    c->rows = calloc(2 * values, sizeof(float));
    c->other = c->rows ? c->rows + values : NULL;
    return c->rows ? TOOL_OK : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

static struct worst worst_of(const struct comparison *c, int recipe)
{
    struct worst worst = c->worst[recipe][0];
    for (int range = 1; range < c->ranges; range++)
        if (c->worst[recipe][range].difference > worst.difference)
            worst = c->worst[recipe][range];
    return worst;
}

static void print_worst(const struct worst *worst)
{
    printf("\"difference\": %.17g, \"position\": %lld, \"pair\": %d", worst->difference,
           (long long)worst->position, (int)worst->pair);
}

static void print_json(const struct comparison *c, const struct model *model)
{
    printf("{\"model\": ");
    json_string(model->name);
    printf(", \"set\": ");
    json_string(c->id);
    printf(", \"upto\": %lld, \"recipes\": [", (long long)c->upto);
    for (int r = 0; r < RECIPES; r++) {
        struct worst worst = worst_of(c, r);
        printf("%s\n {\"recipe\": \"%s\", \"refused\": ", r ? "," : "", recipes[r].name);
        json_string(c->plan[r] ? NULL : c->refused[r].text);
        printf(", \"worst\": ");
        if (c->plan[r]) {
            putchar('{');
            print_worst(&worst);
            printf("}, \"by_position\": [");
        } else {
            printf("null, \"by_position\": [");
        }
        for (int i = 0; c->plan[r] && i < c->ranges; i++) {
            printf("%s\n  {\"first\": %lld, \"last\": %lld, ", i ? "," : "",
                   (long long)first_of(i), (long long)last_of(c, i));
            print_worst(&c->worst[r][i]);
            putchar('}');
        }
        printf("]}");
    }
    printf("]}\n");
}

static void print_table(const struct comparison *c)
{
    printf("set %s, %d pairs: largest difference from exact rows\n\n%-23s", c->id, (int)c->pairs,
           "positions");
    for (int r = 0; r < RECIPES; r++)
        printf("  %10s", recipes[r].name);
    for (int i = 0; i < c->ranges; i++) {
        char text[48];
        int more = last_of(c, i) > first_of(i);
        snprintf(text, sizeof text, more ? "%lld..%lld" : "%lld", (long long)first_of(i),
                 (long long)last_of(c, i));
        printf("\n%-23s", text);
        for (int r = 0; r < RECIPES; r++) {
            if (c->plan[r])
                printf("  %10.2e", c->worst[r][i].difference);
            else
                printf("  %10s", "-");
        }
    }
    printf("\n\n");
    for (int r = 0; r < RECIPES; r++) {
        struct worst worst = worst_of(c, r);
        if (c->plan[r])
            printf("%-6s  %.3g at position %lld, pair %d\n", recipes[r].name, worst.difference,
                   (long long)worst.position, (int)worst.pair);
        else
            printf("%-6s  refused: %s\n", recipes[r].name, c->refused[r].text);
    }
}

static int compare(struct comparison *c, const struct request *request, const struct model *model,
                   const struct model_set *set)
{
    c->id = set->id;
    c->upto = request->upto;
    if (c->upto < 0)
        c->upto = set->max_position > 0 && set->max_position < 131072 ? set->max_position - 1
                                                                       : 131071;
    while (c->ranges < RANGES && first_of(c->ranges) <= c->upto)
        c->ranges++;
    if (!set->rotated)
        return tool_fail(TOOL_REFUSED, "%s: layer %lld is not rotated", model->name,
                         (long long)request->choice.layer);
    int code = make_plans(c, model, set);
    for (int range = 0; range < c->ranges && !code; range++)
        code = compare_range(c, range);
    tool_progress(NULL);
    if (!code && request->json)
        print_json(c, model);
    else if (!code)
        print_table(c);
    return code;
}

static int take_option(void *to, int id, const char *value)
{
    struct request *request = to;
    switch (id) {
    case JSON: request->json = 1; return TOOL_OK;
    case UPTO:
        if (tool_integer(value, 0, INT32_MAX, &request->upto))
            return TOOL_OK;
        return tool_wrong_usage("--upto is %s: must be an integer from 0 to 2147483647", value);
    default: return model_take_option(&request->choice, id, value);
    }
}

int tool_compare(int argc, char **argv)
{
    struct request request = {.choice = {.layer = -1, .length = -1}, .upto = -1};
    struct comparison c = {0};
    struct model model;
    struct model_set set;
    int code;
    if (!tool_take_options(&usage, argc, argv, take_option, &request, &code))
        return code;
    code = model_take_operand(&request.choice, argc, argv);
    if (!code)
        code = model_choose(&model, &set, &request.choice);
    if (code)
        return code;
    code = compare(&c, &request, &model, &set);
    for (int r = 0; r < RECIPES; r++)
        posenc_plan_free(c.plan[r]);
    posenc_plan_free(c.exact);
    free(c.rows);
    model_close(&model);
    return code;
}
