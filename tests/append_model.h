/* SPDX-License-Identifier: MIT */
/* The arithmetic of an append, operation by operation from the text of cache.h, and its truth. */
#ifndef APPEND_MODEL_H
#define APPEND_MODEL_H

#include <posenc/posenc.h>

enum { MODEL_HEADS = 20, MODEL_CHANNELS = 1100 };

/* One token: heads of floats, its row [r/2 cosines | r/2 sines], and what is done to them. */
struct model_token {
    int64_t heads, channels;
    int32_t layout, out_layout, pairs, window; /* pairs 0: no rotation */
    int32_t norm, norm_after;
    double eps, scale;
    const float *x;      /* [heads][channels] */
    const float *row;
    const float *weight; /* [heads][channels], 1 + weight where that is asked for; NULL: none */
};

/* Every bit of y[heads][channels], before it is rounded to the stored type. */
void model_bits(const struct model_token *t, float *y);

/* The truth, and a bound for |y - truth|, rounding to the stored type not included. */
void model_truth(const struct model_token *t, long double *y, long double *bound);

#endif
