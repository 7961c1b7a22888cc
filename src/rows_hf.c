/* SPDX-License-Identifier: MIT */
/* Rows as transformers and vLLM compute them in float32, operation by operation. */
#include "angle.h"
#include "float16.h"
#include "frequencies.h"
#include "plan.h"
#include "rows.h"

enum { CHUNK = 256 }; /* pairs whose frequencies fit the stack */

static float round_to(float x, int32_t dtype)
{
    if (dtype == POSENC_F16)
        return posenc_f16_to_f32(posenc_f32_to_f16(x));
    return dtype == POSENC_BF16 ? posenc_bf16_to_f32(posenc_f32_to_bf16(x)) : x;
}

/* The angle is a float here and not a count of turns, so its own turns are taken. */
static void fill_pair(float position, float inv_freq, float factor, int32_t dtype, float *cos,
                      float *sin)
{
    float s, c;
    posenc_sincos_f32((position < 0 ? -position : position) * inv_freq, &s, &c);
    *cos = round_to(c * factor, dtype);
    *sin = round_to((position < 0 ? -s : s) * factor, dtype);
}

/* Pairs [first, first + count) of one token, by frequencies inv_freq[0..count-1]. */
static void fill_token(const struct posenc_rows_span *span, const struct posenc_frequency_set *set,
                       const float *inv_freq, int64_t t, const struct posenc_rows_target *to)
{
    const posenc_plan *plan = span->plan;
    const int32_t *axis = plan->axis_of_pair ? plan->axis_of_pair + to->first : NULL;
    const float factor = (float)set->attention_factor;
    float position[4], *cos = to->cos, *sin = to->sin;
    for (int a = 0; a < plan->axes; a++)
        position[a] = (float)posenc_position(span->positions, a, span->batch, span->token + t) /
                      set->position_divisor;
    cos += t * to->stride;
    sin += t * to->stride;
    for (size_t i = 0; i < to->count; i++)
        fill_pair(position[axis ? axis[i] : 0], inv_freq[i], factor, plan->row_dtype, &cos[i],
                  &sin[i]);
}

static void fill_chunk(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    const posenc_plan *plan = span->plan;
    float own[CHUNK];
    if (posenc_rows_set(span, 0) < 0)
        posenc_frequencies_f32(&plan->params, posenc_length(span->positions, span->batch), 0,
                               (int32_t)to->first, (int32_t)to->count, own);
    for (size_t t = 0; t < span->tokens; t++) {
        const int32_t n = posenc_rows_set(span, t);
        const struct posenc_frequency_set *set = &plan->sets[n < 0 ? 0 : n];
        fill_token(span, set, n < 0 ? own : set->inv_freq_f32 + to->first, (int64_t)t, to);
    }
}

void posenc_rows_hf_f32(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    struct posenc_rows_target chunk = *to;
    for (size_t i = 0; i < to->count; i += CHUNK) {
        size_t left = to->count - i;
        chunk.cos = (float *)to->cos + i;
        chunk.sin = (float *)to->sin + i;
        chunk.first = to->first + i;
        chunk.count = left < CHUNK ? left : CHUNK;
        fill_chunk(span, &chunk);
    }
}
