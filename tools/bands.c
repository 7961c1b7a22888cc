/* SPDX-License-Identifier: MIT */
/* posenc bands: a model's frequencies one by one, and what scaling made of them. */
#include "bands.h"

#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON = 1, TRAINED };

static const struct tool_option options[] = {
    {JSON, "json", NULL, "one JSON object instead of a table"},
    {TRAINED, "trained", "N", "count turns within N tokens, not the model's own length"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "bands [--json] [OPTIONS] MODEL",
    "For each pair: its frequency in radians a token, its wavelength in tokens, the\n"
    "turns it makes within the trained length, and what scaling did to it.",
    options, model_options, "posenc bands --rope 128 --trained 2048"};

struct request {
    struct model_choice choice;
    int64_t trained;
    int json;
};

static const double TURN = 6.283185307179586;

static double turns_of(const struct bands *b, int32_t i)
{
    return (double)b->trained * b->frequency[i] / TURN;
}

/* By how much a frequency was divided; 1 unscaled, infinite where it stands still. */
static double divisor_of(const struct bands *b, int32_t i)
{
    return b->unscaled ? b->unscaled[i] / b->frequency[i] : 1;
}

/* Frequencies are rounded once each, so their quotient may miss a factor by some units. */
static int is_about(double x, double y)
{
    return fabs(x - y) <= 1e-14 * fabs(y);
}

static const char *word_of(const struct bands *b, int32_t i)
{
    if (b->frequency[i] == 0)
        return "still";
    if (!b->unscaled)
        return "given";
    double divisor = divisor_of(b, i);
    if (is_about(divisor, 1))
        return "kept";
    int between = b->params.scaling == POSENC_SCALING_LLAMA3 ||
                  b->params.scaling == POSENC_SCALING_YARN;
    return between && !is_about(divisor, b->params.factor) ? "blended" : "divided";
}

static void print_json(const struct bands *b, const struct model *model)
{
    printf("{\"model\": ");
    json_string(model->name);
    printf(", \"set\": ");
    json_string(b->id);
    printf(", \"theta\": %.17g, \"rotary_dim\": %d, \"pairs\": %d, \"trained\": ", b->params.base,
           (int)b->params.rotary_dim, (int)b->pairs);
    json_real(b->trained > 0 ? (double)b->trained : NAN);
    printf(",\n \"bands\": [");
    for (int32_t i = 0; i < b->pairs; i++) {
        printf("%s\n  {\"pair\": %d, \"frequency\": ", i ? "," : "", (int)i);
        json_real(b->frequency[i]);
        printf(", \"wavelength\": ");
        json_real(TURN / b->frequency[i]);
        printf(", \"turns\": ");
        json_real(b->trained > 0 ? turns_of(b, i) : NAN);
        printf(", \"unscaled\": ");
        json_real(b->unscaled ? b->unscaled[i] : NAN);
        printf(", \"divisor\": ");
        json_real(b->unscaled ? divisor_of(b, i) : NAN);
        printf(", \"scaling\": \"%s\"", word_of(b, i));
        if (b->params.axis_of_pair)
            printf(", \"axis\": %d", (int)b->params.axis_of_pair[i]);
        putchar('}');
    }
    printf("]}\n");
}

static void print_band(const struct bands *b, int32_t i)
{
    const char *word = word_of(b, i);
    printf("%6d  %12.6g  ", (int)i, b->frequency[i]);
    if (b->frequency[i] != 0)
        printf("%12.6g  ", TURN / b->frequency[i]);
    else
        printf("%12s  ", "-");
    if (b->trained > 0)
        printf("%12.6g  %s", turns_of(b, i), word);
    else
        printf("%12s  %s", "-", word);
    if (strcmp(word, "divided") == 0 || strcmp(word, "blended") == 0)
        printf("%s by %.6g", *word == 'b' ? ": divided" : "", divisor_of(b, i));
    if (b->params.axis_of_pair)
        printf(", axis %d", (int)b->params.axis_of_pair[i]);
    putchar('\n');
}

/* Pairs that move, but not by a turn; unscaled they may have, when the model was trained. */
static void print_incomplete(const struct bands *b)
{
    int32_t slow = 0, before = 0, still = 0;
    for (int32_t i = 0; i < b->pairs; i++) {
        double length = (double)b->trained;
        int rests = b->frequency[i] == 0;
        still += rests;
        slow += !rests && length * b->frequency[i] < TURN;
        before += !rests && b->unscaled && length * b->unscaled[i] < TURN;
    }
    if (slow && b->trained > 0) {
        printf("\n%d pairs never complete a turn within %lld tokens", (int)slow,
               (long long)b->trained);
        if (b->unscaled && before != slow)
            printf("; by unscaled frequencies %d", (int)before);
        printf("\n");
    }
    if (still)
        printf("\n%d pairs stand still\n", (int)still);
}

static void print_table(const struct bands *b)
{
    printf("set %s: %d pairs, base %.9g", b->id, (int)b->pairs, b->params.base);
    if (b->trained > 0)
        printf(", %lld tokens", (long long)b->trained);
    printf("\n\n  pair     frequency    wavelength         turns  scaling\n");
    for (int32_t i = 0; i < b->pairs; i++)
        print_band(b, i);
    print_incomplete(b);
    if (b->trained < 1)
        printf("\nthe trained length is not known: --trained names one\n");
}

static int read_frequencies(const struct model *model, const posenc_rope_params *params,
                            double *frequency, int32_t pairs)
{
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};
    int code = TOOL_OK;
    if (posenc_plan_create(&plan, params, &error) ||
        posenc_plan_inv_freq(plan, frequency, (size_t)pairs, &error))
        code = tool_fail_library(model->name, &error);
    posenc_plan_free(plan);
    return code;
}

/* The formula alone, without what was done to it. */
static posenc_rope_params without_scaling(const posenc_rope_params *scaled)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    params.layout = scaled->layout;
    params.head_dim = scaled->head_dim;
    params.rotary_dim = scaled->rotary_dim;
    params.rotary_offset = scaled->rotary_offset;
    params.base = scaled->base;
    return params;
}

/* What a model was trained on: what its file tells apart, else where its scaling began, else the
 * declared limit. */
static int64_t trained_length(const struct model *model, const posenc_rope_params *params)
{
    if (model->contract && model->facts.trained_position > 0)
        return model->facts.trained_position;
    if (params->scaling && params->original_max_position >= 1 &&
        params->original_max_position < 0x1p62)
        return (int64_t)params->original_max_position;
    return model->contract ? model->facts.max_position : -1;
}

int bands_read(struct bands *b, const struct model *model, const struct model_set *set,
               int64_t trained)
{
    *b = (struct bands){.id = set->id, .params = set->params, .pairs = set->params.rotary_dim / 2};
    if (!set->rotated)
        return tool_fail(TOOL_REFUSED, "%s: the layer is not rotated", model->name);
    b->trained = trained > 0 ? trained : trained_length(model, &set->params);
    b->frequency = b->memory = calloc(2 * (size_t)b->pairs + 1, sizeof(double));
    if (!b->memory)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    posenc_rope_params plain = without_scaling(&set->params);
    int code = read_frequencies(model, &set->params, b->frequency, b->pairs);
    int32_t source = set->params.frequency_source;
    if (source == POSENC_FREQUENCIES_FORMULA || source == POSENC_FREQUENCIES_DIVISORS)
        b->unscaled = b->memory + b->pairs;
    if (!code && b->unscaled)
        code = read_frequencies(model, &plain, b->unscaled, b->pairs);
    if (code)
        bands_free(b);
    return code;
}

void bands_free(struct bands *b)
{
    free(b->memory);
    b->memory = NULL;
}

static int bands(const struct request *request, const struct model *model,
                 const struct model_set *set)
{
    struct bands b;
    int code = bands_read(&b, model, set, request->trained);
    if (code)
        return code;
    if (request->json)
        print_json(&b, model);
    else
        print_table(&b);
    bands_free(&b);
    return TOOL_OK;
}

static int take_option(void *to, int id, const char *value)
{
    struct request *request = to;
    switch (id) {
    case JSON: request->json = 1; return TOOL_OK;
    case TRAINED:
        if (tool_integer(value, 1, INT64_C(1) << 53, &request->trained))
            return TOOL_OK;
        return tool_wrong_usage("--trained is %s: must be an integer from 1 on", value);
    default: return model_take_option(&request->choice, id, value);
    }
}

int tool_bands(int argc, char **argv)
{
    struct request request = {.choice = {.layer = -1, .length = -1}};
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
    code = bands(&request, &model, &set);
    model_close(&model);
    return code;
}
