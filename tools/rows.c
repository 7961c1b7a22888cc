/* SPDX-License-Identifier: MIT */
/* posenc rows: cosine and sine rows of a model, as text, CSV or an array. */
#include "rows.h"

#include "array.h"
#include "scheme.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1, START, POSITIONS, FORMAT, OUT, DTYPE, RECIPE, PLAIN, SINUSOID };

static const struct tool_option options[] = {
    {COUNT, "count", "N", "rows of N positions"},
    {START, "start", "S", "with --count: the first position; default 0"},
    {POSITIONS, "positions", "IDS.npy",
     "int32, int64 or float64: [token], [batch, token] or\n[axes, batch, token]"},
    {FORMAT, "format", "F", "text, csv or npy; default by the name of -o, or text"},
    {OUT, "o", "FILE", "where to; default standard output"},
    {DTYPE, "dtype", "T", "f32 (default) or f64"},
    {RECIPE, "recipe", "R", "exact (default), hf_f32, vllm or ggml"},
    {PLAIN, "no-attention-factor", NULL, "leave the attention factor out"},
    {SINUSOID, "sinusoid", scheme_sinusoid_argument, scheme_sinusoid_help},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "rows --model MODEL (--count N | --positions IDS.npy) [OPTIONS]",
    "Cosines, then sines, of every pair at each position: [token, 2 x pairs], or\n"
    "[batch, token, 2 x pairs] where the positions have a batch dimension. The\n"
    "attention factor is included. Of a sinusoid the channels as it adds them.",
    options, model_options, "posenc rows --model config.json --count 4096 -o rows.npy"};

struct request {
    struct scheme_choice choice;
    int64_t count, start;
    const char *positions, *out;
    enum rows_format format;
    int32_t dtype, recipe;
    int has_start, plain;
};

/* The index of `value` among words ended by NULL, or -1. */
static int find_word(const char *const *words, const char *value)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], value) == 0)
            return i;
    return -1;
}

static int take_word(int id, const char *value, struct request *request)
{
    static const char *const formats[] = {"text", "csv", "npy", NULL};
    static const char *const dtypes[] = {"f32", "f64", NULL};
    static const char *const recipes[] = {"exact", "hf_f32", "vllm", "ggml", NULL};
    int word;
    switch (id) {
    case FORMAT:
        word = find_word(formats, value);
        request->format = word == 0 ? ROWS_TEXT : word == 1 ? ROWS_CSV : ROWS_NPY;
        return word < 0 ? tool_wrong_usage("--format is %s: must be text, csv or npy", value) : 0;
    case DTYPE:
        word = find_word(dtypes, value);
        request->dtype = word == 1 ? POSENC_F64 : POSENC_F32;
        return word < 0 ? tool_wrong_usage("--dtype is %s: must be f32 or f64", value) : 0;
    default:
        word = find_word(recipes, value);
        request->recipe = word; /* in the order of POSENC_RECIPE_* */
        return word < 0 ? tool_wrong_usage("--recipe is %s: must be exact, hf_f32, vllm or ggml",
                                           value)
                        : 0;
    }
}

static int take_option(void *to, int id, const char *value)
{
    struct request *request = to;
    switch (id) {
    case COUNT:
        if (tool_integer(value, 0, INT64_C(1) << 32, &request->count))
            return TOOL_OK;
        return tool_wrong_usage("--count is %s: must be an integer from 0 to 4294967296", value);
    case START:
        request->has_start = 1;
        if (tool_integer(value, INT32_MIN, INT32_MAX, &request->start))
            return TOOL_OK;
        return tool_wrong_usage("--start is %s: must be an integer within 32 bits", value);
    case POSITIONS: request->positions = value; return TOOL_OK;
    case OUT: request->out = value; return TOOL_OK;
    case PLAIN: request->plain = 1; return TOOL_OK;
    case FORMAT:
    case DTYPE:
    case RECIPE: return take_word(id, value, request);
    case SINUSOID: request->choice.sinusoid = value; return TOOL_OK;
    default: return model_take_option(&request->choice.model, id, value);
    }
}

static int ends_with(const char *text, const char *end)
{
    size_t all = strlen(text), size = strlen(end);
    return all >= size && strcmp(text + all - size, end) == 0;
}

static void settle_format(struct request *request)
{
    if (!request->format && request->out)
        request->format = ends_with(request->out, ".npy")   ? ROWS_NPY
                          : ends_with(request->out, ".csv") ? ROWS_CSV
                                                            : ROWS_TEXT;
    if (!request->format)
        request->format = ROWS_TEXT;
}

static int parse(struct request *request, int argc, char **argv, int *code)
{
    if (!tool_take_options(&usage, argc, argv, take_option, request, code))
        return 0;
    settle_format(request);
    *code = TOOL_USAGE;
    if (argc > optind)
        tool_wrong_usage("%s is one operand too many", argv[optind]);
    else if ((request->count >= 0) == (request->positions != NULL))
        tool_wrong_usage("needs one of --count and --positions");
    else if (request->has_start && request->positions)
        tool_wrong_usage("--start and --positions exclude each other");
    else if (request->format == ROWS_NPY && !request->out && isatty(STDOUT_FILENO))
        tool_wrong_usage("--format npy is not for a terminal: name a file with -o");
    else if (!scheme_is_named(&request->choice))
        tool_wrong_usage("--model or --rope (or --sinusoid) is missing");
    else
        *code = TOOL_OK;
    return *code == TOOL_OK;
}

static int make_plan(const struct request *request, const struct scheme *scheme, posenc_plan **plan)
{
    posenc_error error = {0, ""};
    posenc_rope_params params = scheme->set.params;
    if (!scheme->set.rotated)
        return tool_fail(TOOL_REFUSED, "%s: layer %lld is not rotated", scheme->model.name,
                         (long long)request->choice.model.layer);
    params.recipe = request->recipe;
    if (request->plain) {
        params.attention_factor = 1;
        params.short_attention = params.long_attention = 0;
    }
    if (posenc_plan_create(plan, &params, &error))
        return tool_fail_library(scheme->model.name, &error);
    return TOOL_OK;
}

static int make_sinusoid(const struct request *request, const struct scheme *scheme,
                         posenc_sinusoid **sinusoid)
{
    posenc_error error = {0, ""};
    if (request->recipe || request->plain)
        return tool_fail(TOOL_REFUSED, "%s: --recipe and --no-attention-factor are for rotations",
                         scheme->model.name);
    if (posenc_sinusoid_create(sinusoid, &scheme->sinusoid, &error))
        return tool_fail_library(scheme->model.name, &error);
    return TOOL_OK;
}

static int write_rows(const struct request *request, const struct scheme *scheme,
                      struct rows_job *job)
{
    struct tool_output output;
    int code = rows_check(job);
    if (!code && request->out)
        code = tool_output_open(&output, request->out);
    else
        tool_output_standard(&output);
    if (code)
        return code;
    code = rows_write(job, request->format, &output);
    if (!code && request->out)
        code = tool_output_close(&output);
    if (code)
        return code;
    model_warn_notes(&scheme->model);
    model_warn_limit(&scheme->model, scheme->max_position,
                     array_last_position(&job->positions, job->batch, job->tokens));
    return TOOL_OK;
}

static int rows(const struct request *request, const struct scheme *scheme)
{
    struct rows_job job = {.batch = 1, .tokens = request->count, .dtype = request->dtype};
    struct npy ids = {0};
    posenc_plan *plan = NULL;
    posenc_sinusoid *sinusoid = NULL;
    int code = scheme->kind == SCHEME_ROPE ? make_plan(request, scheme, &plan)
                                           : make_sinusoid(request, scheme, &sinusoid);
    posenc_positions_start(&job.positions, request->start);
    job.plan = plan;
    job.sinusoid = sinusoid;
    job.width = plan ? 2 * posenc_plan_pairs(plan) : scheme->sinusoid.dim;
    job.subject = request->positions ? request->positions : scheme->model.name;
    if (!code && request->positions)
        code = array_read_ids(&ids, &job.positions, request->positions, &job.batch, &job.tokens);
    job.has_batch = ids.rank > 1;
    if (!code)
        code = write_rows(request, scheme, &job);
    npy_free(&ids);
    posenc_plan_free(plan);
    posenc_sinusoid_free(sinusoid);
    return code;
}

int tool_rows(int argc, char **argv)
{
    struct request request = {.choice = scheme_no_choice, .count = -1, .dtype = POSENC_F32};
    struct scheme scheme;
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    code = scheme_choose(&scheme, &request.choice, SCHEME_ROPE | SCHEME_SINUSOID);
    if (code)
        return code;
    code = rows(&request, &scheme);
    scheme_close(&scheme);
    return code;
}
