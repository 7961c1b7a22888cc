/* SPDX-License-Identifier: MIT */
/* float16 and bfloat16 through frexp and ldexp on double, where every step is exact. */
#include "half.h"

#include "test.h"

#include <math.h>

struct format { int mantissa, exponent_bits; }; /* mantissa: stored bits */

static struct format format_of(int32_t dtype)
{
    switch (dtype) {
    case POSENC_F16: return (struct format){10, 5};
    case POSENC_BF16: return (struct format){7, 8};
    default: return (struct format){23, 8};
    }
}

/* Exponent of the smallest normal number 2^e. */
static int lowest(struct format format)
{
    return 2 - (1 << (format.exponent_bits - 1));
}

double test_widen(uint16_t bits, int32_t dtype)
{
    struct format format = format_of(dtype);
    int mantissa = bits & ((1 << format.mantissa) - 1);
    int exponent = (bits >> format.mantissa) & ((1 << format.exponent_bits) - 1);
    double value;

    if (exponent == (1 << format.exponent_bits) - 1) {
        value = mantissa ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(mantissa, lowest(format) - format.mantissa);
    } else {
        value = ldexp(mantissa + (1 << format.mantissa),
                      exponent - 1 + lowest(format) - format.mantissa);
    }
    return bits >> 15 ? -value : value;
}

/* Exponent of the last place of `value` in the type. */
static int last_place(double value, struct format format)
{
    int exponent = lowest(format);

    if (value != 0) {
        frexp(value, &exponent);
        exponent -= 1;
    }
    if (exponent < lowest(format)) exponent = lowest(format);
    return exponent - format.mantissa;
}

uint16_t test_narrow(double value, int32_t dtype)
{
    struct format format = format_of(dtype);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)(((1 << format.exponent_bits) - 1) << format.mantissa);
    int place;
    double units;

    if (isnan(value)) return (uint16_t)(sign | infinity | 1 << (format.mantissa - 1));
    if (isinf(value)) return sign | infinity;
    place = last_place(value, format);
    units = nearbyint(ldexp(fabs(value), -place));
    /* units counts last places: 2^mantissa or more is a normal number, and a carry moves up into
     * the exponent field by itself. */
    units += ldexp(place - (lowest(format) - format.mantissa), format.mantissa);
    return sign | (units >= infinity ? infinity : (uint16_t)units);
}

size_t test_size(int32_t dtype)
{
    return dtype == POSENC_F32 ? 4 : dtype == POSENC_I8 ? 1 : 2;
}

double test_load(const void *data, int32_t dtype, int64_t i)
{
    float x;
    uint16_t bits;

    if (dtype == POSENC_F32) {
        memcpy(&x, (const char *)data + 4 * i, 4);
        return (double)x;
    }
    memcpy(&bits, (const char *)data + 2 * i, 2);
    return test_widen(bits, dtype);
}

void test_store(void *data, int32_t dtype, int64_t i, double value)
{
    float x = (float)value;
    uint16_t bits;

    if (dtype == POSENC_F32) {
        memcpy((char *)data + 4 * i, &x, 4);
        return;
    }
    bits = test_narrow(value, dtype);
    memcpy((char *)data + 2 * i, &bits, 2);
}

double test_half_ulp(double value, int32_t dtype)
{
    return ldexp(0.5, last_place(value, format_of(dtype)));
}

int test_same_element(const void *a, const void *b, int32_t dtype, int64_t i)
{
    size_t size = test_size(dtype);
    int64_t offset = i * (int64_t)size;

    if (memcmp((const char *)a + offset, (const char *)b + offset, size) == 0) return 1;
    return isnan(test_load(a, dtype, i)) && isnan(test_load(b, dtype, i));
}
