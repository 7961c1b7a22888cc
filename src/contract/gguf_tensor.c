/* SPDX-License-Identifier: MIT */
/* The data of the small tensors that change frequencies. */
#include "gguf.h"

#include "../float16.h"

#include <math.h>
#include <stdlib.h>

static int refuse(struct posenc_gguf_reader *from, const char *name, const char *rule,
                  int64_t number)
{
    posenc_error text;
    posenc_fail(&text, POSENC_OK, rule, number);
    from->reader->status = posenc_fail(from->reader->error, POSENC_ERROR_MODEL,
                                       "tensor %s: %s", name, text.text);
    return -1;
}

static double value_at(const struct posenc_gguf *gguf, const uint8_t *data, int64_t index,
                       int half)
{
    size_t size = half ? 2 : 4;
    uint64_t bits = posenc_gguf_bits(data + (size_t)index * size, size, gguf->swapped);
    return half ? posenc_f16_to_f32((uint16_t)bits) : posenc_float((uint32_t)bits);
}

static int convert(struct posenc_gguf_reader *from, const char *name, const uint8_t *data,
                   int64_t count, int half, double *values)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = value_at(&from->gguf, data, i, half);
        if (!(values[i] >= 0x1p-64) || isinf(values[i])) {
            return refuse(from, name, "value %d must be >= 2^-64 and finite", i);
        }
    }
    return 1;
}

int posenc_gguf_factors(struct posenc_gguf_reader *from, const char *name, int64_t count,
                        const double **values)
{
    const struct posenc_gguf_tensor *tensor = posenc_gguf_find_tensor(from, name);
    if (!tensor) {
        return 0;
    }
    int half = tensor->type == POSENC_GGUF_DATA_F16;
    if (!half && tensor->type != POSENC_GGUF_DATA_F32) {
        return refuse(from, name, "is of type %d: must be F32 (0) or F16 (1)", tensor->type);
    }
    if (tensor->dims != 1 || tensor->dim[0] != (uint64_t)count) {
        return refuse(from, name, "must have one dimension of %d, half the rotary width", count);
    }
    double *numbers = posenc_own(from->reader->contract, (size_t)count * sizeof *numbers);
    uint8_t *data = malloc((size_t)count * 4);
    int answer = -1;
    if (!numbers || !data) {
        from->reader->status = posenc_fail(from->reader->error, POSENC_ERROR_MEMORY,
                                           "no memory for the values of a tensor");
    } else if (posenc_file_read(from->gguf.file, tensor->offset, data,
                                (size_t)count * (half ? 2 : 4)) < 0) {
        refuse(from, name, "its %d values lie beyond the end of what was given", count);
    } else {
        answer = convert(from, name, data, count, half, numbers);
    }
    free(data);
    *values = numbers;
    return answer;
}
