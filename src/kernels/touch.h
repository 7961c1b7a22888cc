/* SPDX-License-Identifier: MIT */
/*
 * One touch kernel, for inclusion. Parameters: TOUCH_KERNEL, its name; TOUCH_WIDTH, bytes of a
 * vector. Vectors of the compiler's own, so that one text serves every instruction set.
 */
#include "../../tools/touch.h"

#include <string.h>

typedef float real_vector __attribute__((vector_size(TOUCH_WIDTH), aligned(4), may_alias));
typedef uint32_t word_vector __attribute__((vector_size(TOUCH_WIDTH), aligned(2), may_alias));

enum { UNROLL = 4 * TOUCH_WIDTH };

static void multiply_run(char *data, size_t bytes, float one)
{
    char *end = data + bytes;
    for (; (size_t)(end - data) >= UNROLL; data += UNROLL) {
        real_vector *v = (real_vector *)data;
        v[0] = v[0] * one;
        v[1] = v[1] * one;
        v[2] = v[2] * one;
        v[3] = v[3] * one;
    }
    for (; (size_t)(end - data) >= TOUCH_WIDTH; data += TOUCH_WIDTH)
        *(real_vector *)data = *(real_vector *)data * one;
    for (; end - data >= 4; data += 4) {
        float x;
        memcpy(&x, data, 4);
        x *= one;
        memcpy(data, &x, 4);
    }
}

static void mask_run(char *data, size_t bytes, uint32_t zero)
{
    char *end = data + bytes;
    for (; (size_t)(end - data) >= UNROLL; data += UNROLL) {
        word_vector *v = (word_vector *)data;
        v[0] = v[0] ^ zero;
        v[1] = v[1] ^ zero;
        v[2] = v[2] ^ zero;
        v[3] = v[3] ^ zero;
    }
    for (; (size_t)(end - data) >= TOUCH_WIDTH; data += TOUCH_WIDTH)
        *(word_vector *)data = *(word_vector *)data ^ zero;
    for (; end - data >= 2; data += 2) {
        uint16_t x;
        memcpy(&x, data, 2);
        x = (uint16_t)(x ^ zero);
        memcpy(data, &x, 2);
    }
}

void TOUCH_KERNEL(const struct touch_job *job)
{
    char *data = job->data;
    float one = touch_one;
    uint32_t zero = touch_zero;
    for (size_t r = 0; r < job->runs; r++, data += job->stride) {
        if (job->multiply)
            multiply_run(data, job->bytes, one);
        else
            mask_run(data, job->bytes, zero);
    }
}

#undef TOUCH_KERNEL
#undef TOUCH_WIDTH
