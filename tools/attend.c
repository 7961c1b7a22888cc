/* SPDX-License-Identifier: MIT */
/* posenc attend: attention over arrays, by a model's rotation and scale if one is named. */
#include "array.h"
#include "float16.h"
#include "model.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAUSAL = 1, SCALE, START, DTYPE, IN_DTYPE, NOT_YET };

static const struct tool_option options[] = {
    {CAUSAL, "causal", NULL, "query i of Tq stands at key Tk-Tq+i, sees keys up to it"},
    {SCALE, "scale", "X", "of q.k; default 1/sqrt(channels), or the model's"},
    {START, "start", "S", "with a model: the position of key 0; default 0"},
    {DTYPE, "dtype", "T", "of the output: f32, f16 or bf16; default that of Q"},
    {IN_DTYPE, "in-dtype", "T", "what uint16 inputs hold: bf16"},
    {NOT_YET, "window", "W", NULL},
    {NOT_YET, "softcap", "C", NULL},
    {NOT_YET, "sinks", "F", NULL},
    {NOT_YET, "alibi", NULL, NULL},
    {NOT_YET, "bias", "F", NULL},
    {NOT_YET, "weights", "ROW", NULL},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "attend [OPTIONS] Q.npy K.npy V.npy OUT.npy",
    "softmax(scale q.k) v over arrays [batch, token, head, channel] or [token, head,\n"
    "channel], computed in float32. Query heads are a multiple of key heads and\n"
    "share them in order. With --model (or --rope) q and k are rotated first and\n"
    "the model's scale applies. A model's sliding window and soft cap are not\n"
    "offered yet: a window that would hide a key is refused.",
    options, model_options, "posenc attend --causal --model config.json q.npy k.npy v.npy out.npy"};

enum { Q, K, V, OUT, FILES };

struct request {
    struct model_choice choice;
    struct array_types types;
    const char *path[FILES];
    posenc_attention_params params;
    int64_t start;
    int has_start;
};

static int take_option(void *to, int id, const char *value)
{
    struct request *request = to;
    switch (id) {
    case CAUSAL: request->params.causal = 1; return TOOL_OK;
    case SCALE:
        if (tool_real(value, &request->params.scale) && request->params.scale != 0)
            return TOOL_OK;
        return tool_wrong_usage("--scale is %s: must be a finite number other than 0", value);
    case START:
        request->has_start = 1;
        if (tool_integer(value, INT32_MIN, INT32_MAX, &request->start))
            return TOOL_OK;
        return tool_wrong_usage("--start is %s: must be an integer within 32 bits", value);
    case DTYPE: return array_take_dtype(&request->types.dtype, "dtype", value);
    case IN_DTYPE: return array_take_dtype(&request->types.in_dtype, "in-dtype", value);
    default: return model_take_option(&request->choice, id, value);
    }
}

static int has_model(const struct request *request)
{
    return request->choice.model || request->choice.rope;
}

static int parse(struct request *request, int argc, char **argv, int *code)
{
    if (!tool_take_options(&usage, argc, argv, take_option, request, code))
        return 0;
    const struct model_choice *c = &request->choice;
    int needs = request->has_start || c->set || c->layer >= 0 || c->length >= 0 || c->limit;
    *code = TOOL_USAGE;
    if (needs && !has_model(request))
        tool_wrong_usage("--start, --set, --layer, --length and --limit need --model");
    else if (argc - optind != FILES)
        tool_wrong_usage("needs four files, Q, K, V and OUT: got %d", argc - optind);
    else
        *code = TOOL_OK;
    for (int f = 0; f < FILES && !*code; f++)
        request->path[f] = argv[optind + f];
    return *code == TOOL_OK;
}

/* Replaces 16-bit data by their exact float32 values. */
static int widen(struct npy *array, posenc_tensor *tensor, const char *path)
{
    if (tensor->dtype == POSENC_F32)
        return TOOL_OK;
    const uint16_t *from = array->data;
    float *to = array->count <= SIZE_MAX / 4 - 1 ? malloc(array->count * 4 + 4) : NULL;
    if (!to)
        return tool_fail(TOOL_SYSTEM, "%s: %s", path, strerror(ENOMEM));
    for (size_t i = 0; i < array->count; i++)
        to[i] =
            tensor->dtype == POSENC_F16 ? posenc_f16_to_f32(from[i]) : posenc_bf16_to_f32(from[i]);
    free(array->data);
    array->data = tensor->data = to;
    tensor->dtype = POSENC_F32;
    return TOOL_OK;
}

/* Rounds float32 data in place. */
static void narrow(posenc_tensor *tensor, size_t count, int32_t dtype)
{
    unsigned char *bytes = tensor->data;
    for (size_t i = 0; i < count && dtype != POSENC_F32; i++) {
        float x;
        memcpy(&x, bytes + 4 * i, 4);
        uint16_t h = dtype == POSENC_F16 ? posenc_f32_to_f16(x) : posenc_f32_to_bf16(x);
        memcpy(bytes + 2 * i, &h, 2);
    }
    tensor->dtype = dtype;
}

/* The arrays of one run. */
struct work {
    struct npy array[FILES];
    posenc_tensor tensor[FILES];
    int32_t dtype; /* of the output */
};

static int read_inputs(struct work *work, const struct request *request)
{
    for (int f = Q; f <= V; f++) {
        int code = array_read(&work->array[f], &work->tensor[f], request->path[f], &request->types);
        if (f == Q)
            work->dtype = request->types.dtype ? request->types.dtype : work->tensor[Q].dtype;
        if (!code)
            code = widen(&work->array[f], &work->tensor[f], request->path[f]);
        if (code)
            return code;
    }
    return TOOL_OK;
}

static int attend(struct work *work, const struct request *request)
{
    const posenc_tensor *q = &work->tensor[Q], *v = &work->tensor[V];
    posenc_tensor *out = &work->tensor[OUT];
    struct npy *array = &work->array[OUT];
    posenc_error error = {0, ""};
    if (!q->shape[3])
        return tool_fail(TOOL_REFUSED, "%s: has 0 channels: must be 1 or more", request->path[Q]);
    *array = work->array[Q];
    array->shape[array->rank - 1] = v->shape[3];
    /* The file holds all elements of q, so their number fits, and that of its rows. */
    int64_t rows = (int64_t)array->count / q->shape[3], count;
    int fits = !__builtin_mul_overflow(rows, v->shape[3], &count) && (uint64_t)count < SIZE_MAX / 8;
    array->count = fits ? (size_t)count : 0;
    array->data = fits ? malloc(array->count * 4 + 4) : NULL;
    if (!array->data)
        return tool_fail(TOOL_SYSTEM, "%s: %s", request->path[OUT], strerror(ENOMEM));
    posenc_tensor_contiguous(out, array->data, POSENC_F32, q->shape[0], q->shape[1], q->shape[2],
                             v->shape[3]);
    if (posenc_attention(&request->params, q, &work->tensor[K], v, out, &error)) {
        char files[256];
        snprintf(files, sizeof files, "%s, %s, %s", request->path[Q], request->path[K],
                 request->path[V]);
        return tool_fail_library(files, &error);
    }
    narrow(out, array->count, work->dtype);
    return array_write(request->path[OUT], array, out);
}

/* Arrays without elements may claim any number of tokens. */
static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* Key 0 stands at --start; the queries are the last of the keys' tokens. */
static int rotate(struct work *work, const struct request *request, const posenc_plan *plan)
{
    int64_t late = work->tensor[K].shape[1] - work->tensor[Q].shape[1];
    for (int f = Q; f <= K; f++) {
        posenc_positions positions;
        posenc_error error = {0, ""};
        posenc_positions_start(&positions, add(request->start, f == Q ? late : 0));
        if (posenc_rope(plan, POSENC_FORWARD, &positions, &work->tensor[f], NULL, NULL, NULL,
                        &error))
            return tool_fail_library(request->path[f], &error);
    }
    return TOOL_OK;
}

/* What the model asks for and attend does not have: leaving it out would be another result. */
static int check_cap(const struct model *model)
{
    double cap = model->contract ? model->facts.logit_softcap : 0;
    if (!(cap > 0))
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED, "%s: the model caps scores at %.9g: caps are not offered yet",
                     model->name, cap);
}

static int check_window(const struct model *model, const struct model_set *set, const int64_t keys)
{
    int64_t window = model->contract ? model->facts.sliding_window : -1;
    if (window < 1 || keys <= window || strcmp(set->id, "global") == 0)
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED,
                     "%s: sliding_window is %lld and there are %lld keys: windows are "
                     "not offered yet",
                     model->name, (long long)window, (long long)keys);
}

/* Says what the model contributed. */
static void echo(const struct request *request, const struct model *model,
                 const struct model_set *set, const char *rule)
{
    fprintf(stderr, "posenc attend: %s: set %s, key 0 at position %lld, ", model->name, set->id,
            (long long)request->start);
    if (request->params.scale != 0)
        fprintf(stderr, "scale %.9g (%s), ", request->params.scale, rule);
    else
        fprintf(stderr, "scale 1/sqrt(channels), ");
    fprintf(stderr, "%scausal, no window, cap or bias\n", request->params.causal ? "" : "not ");
}

static int attend_with_model(struct work *work, struct request *request)
{
    struct model model;
    struct model_set set;
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};
    const char *rule = "--scale";
    int code = model_choose(&model, &set, &request->choice);
    if (code)
        return code;
    int64_t keys = work->tensor[K].shape[1];
    code = check_window(&model, &set, keys);
    if (!code)
        code = check_cap(&model);
    if (!code && set.rotated && posenc_plan_create(&plan, &set.params, &error))
        code = tool_fail_library(model.name, &error);
    if (!code && plan)
        code = rotate(work, request, plan);
    if (request->params.scale == 0 && model.contract && model.facts.softmax_scale > 0) {
        request->params.scale = model.facts.softmax_scale;
        rule = model.facts.softmax_rule;
    }
    if (!code)
        code = attend(work, request);
    if (!code)
        echo(request, &model, &set, rule);
    if (!code)
        model_warn_notes(&model);
    if (!code && work->array[K].count)
        model_warn_limit(&model, set.max_position, add(request->start, keys - 1));
    posenc_plan_free(plan);
    model_close(&model);
    return code;
}

int tool_attend(int argc, char **argv)
{
    struct request request = {.choice = {.layer = -1, .length = -1}};
    struct work work = {0};
    int code;
    posenc_attention_params_init(&request.params);
    if (!parse(&request, argc, argv, &code))
        return code;
    code = read_inputs(&work, &request);
    if (!code)
        code = has_model(&request) ? attend_with_model(&work, &request) : attend(&work, &request);
    for (int f = 0; f < FILES; f++)
        npy_free(&work.array[f]);
    return code;
}
