/* SPDX-License-Identifier: MIT */
/* posenc rotate: an array rotated by its positions, or a rotation undone. */
#include "array.h"
#include "model.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { START = 1, POSITIONS, INVERSE, TRANSPOSE, DTYPE, IN_DTYPE };

static const struct tool_option options[] = {
    {START, "start", "S", "position of token 0 in every batch row; default 0"},
    {POSITIONS, "positions", "IDS.npy",
     "int32, int64 or float64: [token], [batch, token] or\n[axes, batch, token]"},
    {INVERSE, "inverse", NULL, "undo a rotation (the attention factor is divided out)"},
    {TRANSPOSE, "transpose", NULL, "the gradient (the attention factor is kept)"},
    {DTYPE, "dtype", "T", "of the output: f32, f16 or bf16; default as the input"},
    {IN_DTYPE, "in-dtype", "T", "what a uint16 input holds: bf16"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "rotate --model MODEL [OPTIONS] IN.npy OUT.npy",
    "Rotates IN.npy, [batch, token, head, channel] or [token, head, channel], by the\n"
    "positions of its tokens. Channels are the model's whole head or its rotary part\n"
    "alone. OUT.npy appears whole or not at all, and may be IN.npy.",
    options, model_options, "posenc rotate --model config.json --start 100 q.npy q_rotated.npy"};

struct request {
    struct model_choice choice;
    struct array_types types;
    int64_t start;
    const char *positions, *in, *out;
    int32_t direction;
    int has_start;
};

static int take_option(void *to, int id, const char *value)
{
    struct request *request = to;
    switch (id) {
    case START:
        request->has_start = 1;
        if (tool_integer(value, INT32_MIN, INT32_MAX, &request->start))
            return TOOL_OK;
        return tool_wrong_usage("--start is %s: must be an integer within 32 bits", value);
    case POSITIONS: request->positions = value; return TOOL_OK;
    case INVERSE:
    case TRANSPOSE:
        if (request->direction)
            return tool_wrong_usage("--inverse and --transpose may be given once and not together");
        request->direction = id == INVERSE ? POSENC_INVERSE : POSENC_TRANSPOSE;
        return TOOL_OK;
    case DTYPE: return array_take_dtype(&request->types.dtype, "dtype", value);
    case IN_DTYPE: return array_take_dtype(&request->types.in_dtype, "in-dtype", value);
    default: return model_take_option(&request->choice, id, value);
    }
}

static int parse(struct request *request, int argc, char **argv, int *code)
{
    if (!tool_take_options(&usage, argc, argv, take_option, request, code))
        return 0;
    *code = TOOL_USAGE;
    if (request->has_start && request->positions)
        tool_wrong_usage("--start and --positions exclude each other");
    else if (argc - optind != 2)
        tool_wrong_usage("needs two files, IN.npy and OUT.npy: got %d", argc - optind);
    else
        *code = TOOL_OK;
    request->in = argv[optind];
    request->out = *code ? NULL : argv[optind + 1];
    return *code == TOOL_OK;
}

/* Rotates `in` into memory of the output's dtype and writes that. */
static int rotate(const struct request *request, const posenc_plan *plan, const struct npy *array,
                  const posenc_tensor *in, const posenc_positions *positions)
{
    posenc_tensor out = *in;
    posenc_error error = {0, ""};
    if (request->types.dtype)
        out.dtype = request->types.dtype;
    int in_place = out.dtype == in->dtype;
    if (!in_place)
        out.data = malloc(array->count * tool_dtype_size(out.dtype) + 1);
    if (!out.data)
        return tool_fail(TOOL_SYSTEM, "%s: %s", request->out, strerror(ENOMEM));
    int code = posenc_rope(plan, request->direction, positions, in, in_place ? NULL : &out, NULL,
                           NULL, &error)
                   ? tool_fail_library(request->in, &error)
                   : array_write(request->out, array, &out);
    if (!in_place)
        free(out.data);
    return code;
}

static int rotate_file(const struct request *request, const struct model *model,
                       const struct model_set *set, const posenc_plan *plan)
{
    struct npy array, ids = {0};
    posenc_tensor in;
    posenc_positions positions;
    int code = array_read(&array, &in, request->in, &request->types);
    if (code)
        return code;
    posenc_positions_start(&positions, request->start);
    if (request->positions)
        code = array_read_positions(&ids, &positions, request->positions, in.shape[0], in.shape[1]);
    if (!code && in.shape[3] != set->params.head_dim && in.shape[3] != set->params.rotary_dim)
        code =
            tool_fail(TOOL_REFUSED, "%s: has %lld channels: must be %d (head) or %d (rotary part)",
                      request->in, (long long)in.shape[3], (int)set->params.head_dim,
                      (int)set->params.rotary_dim);
    if (!code)
        code = rotate(request, plan, &array, &in, &positions);
    if (!code)
        model_warn_notes(model);
    if (!code && array.count)
        model_warn_limit(model, set->max_position,
                         array_last_position(&positions, in.shape[0], in.shape[1]));
    npy_free(&ids);
    npy_free(&array);
    return code;
}

int tool_rotate(int argc, char **argv)
{
    struct request request = {.choice = {.layer = -1, .length = -1}};
    struct model model;
    struct model_set set;
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    code = model_choose(&model, &set, &request.choice);
    if (code)
        return code;
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};
    if (!set.rotated)
        code = tool_fail(TOOL_REFUSED, "%s: layer %lld is not rotated", model.name,
                         (long long)request.choice.layer);
    else if (posenc_plan_create(&plan, &set.params, &error))
        code = tool_fail_library(model.name, &error);
    else
        code = rotate_file(&request, &model, &set, plan);
    posenc_plan_free(plan);
    model_close(&model);
    return code;
}
