/* SPDX-License-Identifier: MIT */
/* posenc attend: attention over arrays, with the options of engines or by a model's contract. */
#include "attend.h"

#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAUSAL = 1, WINDOW, SCALE, SOFTCAP, SINKS, ALIBI, BIAS, WEIGHTS, START, DTYPE, IN_DTYPE };

static const struct tool_option options[] = {
    {CAUSAL, "causal", NULL, "query i of Tq stands at key Tk-Tq+i, sees keys up to it"},
    {WINDOW, "window", "W", "sees the W keys up to it, itself included: 0 <= q-k < W"},
    {SCALE, "scale", "X", "of q.k; default 1/sqrt(channels), or the model's"},
    {SOFTCAP, "softcap", "C", "scores become C tanh(score/C), before any bias"},
    {SINKS, "sinks", "F.npy", "[heads]: one more score each in the denominator"},
    {ALIBI, "alibi", NULL, "adds -slope (q-k), future keys 0, by the usual slopes\n"
                           "for the heads of Q; with a model its own ALiBi"},
    {BIAS, "bias", "F.npy", "[batch, head, query, key], [head, query, key] or\n"
                            "[query, key], added to the scores; 1 stands for all but\n"
                            "keys, -inf hides a key"},
    {WEIGHTS, "weights", "ROW", "also prints the softmax of query ROW (-1 is the last):\n"
                                "a line for each batch row and head, keys across"},
    {START, "start", "S", "with a model: the position of key 0; default 0"},
    {DTYPE, "dtype", "T", "of the output: f32, f16 or bf16; default that of Q"},
    {IN_DTYPE, "in-dtype", "T", "what uint16 inputs hold: bf16"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "attend [OPTIONS] Q.npy K.npy V.npy OUT.npy",
    "softmax(scale q.k + bias) v over arrays [batch, token, head, channel] or [token,\n"
    "head, channel], computed in float32. Query heads are a multiple of key heads and\n"
    "share them in order. With --model q and k are rotated first, and the model's\n"
    "scale, window, cap, ALiBi and query scale apply where no option says otherwise\n"
    "(told on standard error); with --rope they are rotated. Every query sees every\n"
    "key unless --causal, --window or the model's own window says otherwise: give\n"
    "--causal for a decoder.",
    options, model_options,
    "posenc attend --causal --window 4096 --weights -1 q.npy k.npy v.npy out.npy"};

/* Within the range of float32, 0 excluded. */
static int take_real(const char *name, const char *value, double least, double *to)
{
    if (tool_real(value, to) && *to != 0 && *to >= least && fabs(*to) <= FLT_MAX)
        return TOOL_OK;
    return tool_wrong_usage("--%s is %s: must be a finite number %s and within float32", name,
                            value, least > 0 ? "above 0" : "other than 0");
}

static int take_integer(const char *name, const char *value, int64_t least, int64_t most,
                        const char *rule, int64_t *to)
{
    if (tool_integer(value, least, most, to))
        return TOOL_OK;
    return tool_wrong_usage("--%s is %s: must be %s", name, value, rule);
}

static int take_option(void *to, int id, const char *value)
{
    struct attend_request *r = to;
    switch (id) {
    case CAUSAL: r->causal = 1; return TOOL_OK;
    case WINDOW:
        return take_integer("window", value, 1, INT64_C(1) << 53, "an integer from 1 on",
                            &r->window);
    case SCALE: return take_real("scale", value, -FLT_MAX, &r->scale);
    case SOFTCAP: return take_real("softcap", value, FLT_MIN, &r->softcap);
    case SINKS: r->sinks = value; return TOOL_OK;
    case ALIBI: r->alibi = 1; return TOOL_OK;
    case BIAS: r->bias = value; return TOOL_OK;
    case WEIGHTS:
        r->has_weights = 1;
        return take_integer("weights", value, INT64_MIN, INT64_MAX, "an integer", &r->weights);
    case START:
        r->has_start = 1;
        return take_integer("start", value, INT32_MIN, INT32_MAX, "an integer within 32 bits",
                            &r->start);
    case DTYPE: return array_take_dtype(&r->types.dtype, "dtype", value);
    case IN_DTYPE: return array_take_dtype(&r->types.in_dtype, "in-dtype", value);
    default: return model_take_option(&r->choice, id, value);
    }
}

static int parse(struct attend_request *request, int argc, char **argv, int *code)
{
    if (!tool_take_options(&usage, argc, argv, take_option, request, code))
        return 0;
    const struct model_choice *c = &request->choice;
    int needs = request->has_start || c->set || c->layer >= 0 || c->length >= 0 || c->limit;
    *code = TOOL_USAGE;
    if (needs && !c->model && !c->rope)
        tool_wrong_usage("--start, --set, --layer, --length and --limit need --model");
    else if (c->model && c->rope)
        tool_wrong_usage("--model and --rope exclude each other");
    else if (argc - optind != ATTEND_FILES)
        tool_wrong_usage("needs four files, Q, K, V and OUT: got %d", argc - optind);
    else
        *code = TOOL_OK;
    for (int f = 0; f < ATTEND_FILES && !*code; f++)
        request->path[f] = argv[optind + f];
    return *code == TOOL_OK;
}

/* What options say, before a model. */
static void fill_params(struct attend_work *work)
{
    const struct attend_request *r = work->request;
    posenc_attention_params_init(&work->params);
    work->params.causal = r->causal || r->window;
    work->params.window_left = r->window;
    work->params.scale = r->scale;
    work->params.softcap = r->softcap;
    work->params.sinks = work->sinks;
    work->params.bias = r->bias ? &work->bias : NULL;
    if (r->alibi) {
        posenc_alibi_params_init(&work->alibi);
        work->alibi.form = POSENC_ALIBI_DISTANCE;
        work->alibi.heads = work->tensor[ATTEND_Q].shape[2];
        work->params.alibi = &work->alibi;
    }
}

static void print_weights(const posenc_tensor *weights)
{
    const float *w = weights->data;
    int64_t keys = weights->shape[3];
    for (int64_t row = 0; row < weights->shape[0] * weights->shape[2]; row++) {
        for (int64_t j = 0; j < keys; j++)
            printf(j ? " %.9g" : "%.9g", (double)w[row * keys + j]);
        putchar('\n');
    }
}

static void release(struct attend_work *work)
{
    for (int f = 0; f < ATTEND_FILES; f++)
        npy_free(&work->array[f]);
    npy_free(&work->sinks_array);
    npy_free(&work->bias_array);
    posenc_plan_free(work->plan);
    if (work->is_open)
        model_close(&work->model);
    free(work->sinks);
    free(work->weights.data);
    free(work->query_rows.data);
    free(work->key_rows.data);
    free(work->temperature.data);
}

int tool_attend(int argc, char **argv)
{
    struct attend_request request = {.choice = {.layer = -1, .length = -1}};
    struct attend_work work = {.request = &request};
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    code = attend_read(&work);
    if (!code) {
        fill_params(&work);
        code = attend_by_model(&work);
    }
    if (!code)
        code = attend_run(&work);
    if (!code)
        code = array_write(request.path[ATTEND_OUT], &work.array[ATTEND_OUT],
                           &work.tensor[ATTEND_OUT]);
    if (!code && request.has_weights)
        print_weights(&work.weights);
    if (!code)
        attend_echo(&work);
    release(&work);
    return code;
}
