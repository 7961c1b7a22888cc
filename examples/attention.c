/* SPDX-License-Identifier: MIT */
/*
 * How an engine checks its attention: a prefill, then the same tokens one at a time over an f16
 * cache that keeps what the sliding window reaches. Both have the same bits.
 *
 *     cc attention.c $(pkg-config --cflags --libs posenc) -o attention && ./attention
 */
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 300, HEADS = 8, KEY_HEADS = 2, WIDTH = 64, WINDOW = 100, CACHE = 128 };

static float q[TOKENS][HEADS][WIDTH], whole[TOKENS][HEADS][WIDTH], step[HEADS][WIDTH];
static uint16_t k[TOKENS][KEY_HEADS][WIDTH], v[TOKENS][KEY_HEADS][WIDTH]; /* f16 */

/* Stands in for what projections and rotation would have written; f16 in [1, 2). */
static void fill(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof q / sizeof(float); i++)
        (&q[0][0][0])[i] = (float)((state = state * 1664525 + 1013904223) >> 8) / 0x1p23f - 1;
    for (size_t i = 0; i < sizeof k / sizeof(uint16_t); i++) {
        (&k[0][0][0])[i] = (uint16_t)(0x3c00 + ((state = state * 1664525 + 1013904223) >> 22));
        (&v[0][0][0])[i] = (uint16_t)(0x3c00 + ((state = state * 1664525 + 1013904223) >> 22));
    }
}

/* Queries [first, first + count) over the stored keys [first_key, first + count). */
static int32_t attend(posenc_attention_params *params, int64_t first, int64_t count,
                      int64_t first_key, float *out, posenc_error *error)
{
    const int64_t keys = first + count - first_key;
    posenc_tensor q_view, k_view, v_view, out_view;
    posenc_tensor_contiguous(&q_view, q[first], POSENC_F32, 1, count, HEADS, WIDTH);
    posenc_tensor_contiguous(&k_view, k[first_key], POSENC_F16, 1, keys, KEY_HEADS, WIDTH);
    posenc_tensor_contiguous(&v_view, v[first_key], POSENC_F16, 1, keys, KEY_HEADS, WIDTH);
    posenc_tensor_contiguous(&out_view, out, POSENC_F32, 1, count, HEADS, WIDTH);
    params->first_key = first_key; /* so many keys before the stored ones were dropped */
    return posenc_attention(params, &q_view, &k_view, &v_view, &out_view, error);
}

/* The prompt may have memory for large blocks, which never changes the bits. */
static int32_t prefill(posenc_attention_params *params, posenc_error *error)
{
    size_t bytes = 0;
    int32_t status = posenc_attention_workspace(TOKENS, HEADS, KEY_HEADS, WIDTH, WIDTH, &bytes,
                                                error);
    if (status)
        return status;
    params->workspace = malloc(bytes);
    params->workspace_size = params->workspace ? bytes : 0;
    status = attend(params, 0, TOKENS, 0, &whole[0][0][0], error);
    free(params->workspace);
    params->workspace = NULL;
    params->workspace_size = 0;
    return status;
}

int main(void)
{
    posenc_attention_params params;
    posenc_error error;
    int same = 0;
    fill();
    posenc_attention_params_init(&params); /* zeros are not the defaults */
    params.causal = 1;
    params.window_left = WINDOW;
    int32_t status = prefill(&params, &error);
    for (int64_t t = 0; t < TOKENS && !status; t++) {
        status = attend(&params, t, 1, t < CACHE ? 0 : t + 1 - CACHE, &step[0][0], &error);
        same += memcmp(step, whole[t], sizeof step) == 0;
    }
    if (status) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%d of %d decoded tokens have the bits of the prefill; the last begins with %.4f\n",
           same, TOKENS, (double)step[0][0]);
    return 0;
}
