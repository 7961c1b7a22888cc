/* SPDX-License-Identifier: MIT */
/* What the parts of posenc attend share: the request and the arrays of one run. */
#ifndef POSENC_TOOL_ATTEND_H
#define POSENC_TOOL_ATTEND_H

#include "array.h"
#include "model.h"

#include <posenc/attention.h>

enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_OUT, ATTEND_FILES };

struct attend_request {
    struct model_choice choice;
    struct array_types types;
    const char *path[ATTEND_FILES];
    const char *sinks, *bias;
    double scale, softcap; /* 0: not given */
    int64_t window;        /* 0: not given */
    int64_t start, weights;
    int causal, alibi, has_start, has_weights;
};

struct attend_work {
    const struct attend_request *request;
    struct npy array[ATTEND_FILES], sinks_array, bias_array;
    posenc_tensor tensor[ATTEND_FILES], bias, weights;
    float *sinks;
    posenc_attention_params params;
    posenc_alibi_params alibi;
    /* What a model adds. */
    struct model model;
    struct model_set set;
    posenc_plan *plan;
    posenc_tensor query_rows, key_rows, temperature;
    int is_open;
};

/* attend_inputs.c: reads the arrays that the request names. Each of these functions returns TOOL_OK
 * or an exit code after saying why. */
int attend_read(struct attend_work *work);

/* attend_model.c: opens the model that the request names, if any, and lets it fill what the options
 * leave open. */
int attend_by_model(struct attend_work *work);

/* attend_reach.c: the window, or chunks, of the layers that the request chose. */
int attend_reach_by_model(struct attend_work *work);

/* attend_model.c: says what the model contributed, and warns. After everything else succeeded. */
void attend_echo(const struct attend_work *work);

/* attend_run.c: computes the result, and the weights if they are asked for. */
int attend_run(struct attend_work *work);

/* An array of float32 that work's tensor will own; one without memory is a failure. */
int attend_floats(posenc_tensor *tensor, int64_t batch, int64_t tokens, int64_t heads,
                  int64_t channels);

#endif
