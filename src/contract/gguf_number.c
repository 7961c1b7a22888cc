/* SPDX-License-Identifier: MIT */
/* Numbers of a GGUF file: either byte order, every type, and what a float32 was meant to be. */
#include "gguf.h"

#include <math.h>

size_t posenc_gguf_type_size(uint32_t type)
{
    static const uint8_t sizes[POSENC_GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < POSENC_GGUF_TYPES ? sizes[type] : 0;
}

uint64_t posenc_gguf_bits(const uint8_t *at, size_t size, int swapped)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | at[swapped ? i : size - 1 - i];
    }
    return bits;
}

static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Up to 9 digits and a power of ten up to 10^22 are exact doubles, so each candidate is the double
 * nearest to its decimal. Beyond, no key of a model has a value. */
double posenc_gguf_decimal(float value)
{
    double size = fabs((double)value);
    if (!(size >= 1e-12 && size < 1e15)) {
        return value;
    }
    int exponent = (int)floor(log10(size)); /* one too small or large only adds a digit */
    for (int digits = 1; digits <= 9; digits++) {
        int shift = digits - 1 - exponent;
        double scaled = shift >= 0 ? size * tens[shift] : size / tens[-shift];
        double whole = nearbyint(scaled);
        double candidate = shift >= 0 ? whole / tens[shift] : whole * tens[-shift];
        if ((float)candidate == (float)size) {
            return copysign(candidate, (double)value);
        }
    }
    return value;
}

double posenc_gguf_number(const struct posenc_gguf *gguf, const struct posenc_gguf_entry *entry,
                          uint64_t index)
{
    size_t size = posenc_gguf_type_size(entry->type);
    uint64_t bits = posenc_gguf_bits(entry->value + index * size, size, gguf->swapped);
    switch (entry->type) {
    case POSENC_GGUF_I8: return (int8_t)bits;
    case POSENC_GGUF_I16: return (int16_t)bits;
    case POSENC_GGUF_I32: return (int32_t)bits;
    case POSENC_GGUF_I64: return (double)(int64_t)bits;
    case POSENC_GGUF_F32: return posenc_gguf_decimal(posenc_float((uint32_t)bits));
    case POSENC_GGUF_F64: return posenc_double(bits);
    default: return (double)bits;
    }
}
