/* SPDX-License-Identifier: MIT */
/* Learned tables before and after training: normal values, and which rows were used. */
#include <math.h>

#include "angle.h"
#include "array.h"
#include "error.h"
#include "learned.h"

/* Output `n` (from 1) of splitmix64, Steele, Lea and Flood 2014: any of them without the others. */
static uint64_t splitmix64(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + n * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/*
 * ln u for 2^-53 <= u <= 1: u = m 2^k with m in [sqrt 1/2, sqrt 2), z = (m - 1) / (m + 1), then
 * k ln 2 + 2 (z + z^3/3 + ... + z^23/23). z^2 <= 0.0295, so the rest is below 2^-63 of the sum; the
 * roundings leave some 2^-51. No libm: its logarithm differs from machine to machine.
 */
static double logarithm(double u)
{
    const uint64_t bits = posenc_bits64(u);
    int k = (int)(bits >> 52) - 1023;
    double m = posenc_double((bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3ff0000000000000));
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    const double z = (m - 1) / (m + 1), square = z * z;
    double sum = 0;
    for (int n = 23; n >= 1; n -= 2)
        sum = sum * square + 1.0 / n;
    return (double)k * 0x1.62e42fefa39efp-1 + 2 * z * sum;
}

/* Normal values 2n and 2n + 1, after Box and Muller 1958: the angle is a 64-bit part of a turn. */
static void normal_pair(uint64_t seed, uint64_t n, double value[2])
{
    const double u = (double)((splitmix64(seed, 2 * n + 1) >> 11) + 1) * 0x1p-53;
    const struct posenc_turns turn = {splitmix64(seed, 2 * n + 2), 0};
    const double radius = sqrt(-2 * logarithm(u));
    double sine, cosine;
    posenc_sincos(turn, &sine, &cosine);
    value[0] = radius * cosine;
    value[1] = radius * sine;
}

static int32_t check_real(const char *name, double value, int holds, const char *rule,
                          posenc_error *error)
{
    if (holds)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %g: must be %s", name, value, rule);
}

static int32_t check_deviation(double deviation, posenc_error *error)
{
    return check_real("deviation", deviation, deviation > 0 && deviation <= 0x1p64,
                      "> 0 and <= 2^64", error);
}

int32_t posenc_learned_init(const posenc_tensor *table, double deviation, uint64_t seed,
                            posenc_error *error)
{
    struct posenc_view view;
    int32_t status = posenc_table_check(&view, table, "table", error);
    if (!status)
        status = posenc_writable_check(&view, error);
    if (!status)
        status = check_deviation(deviation, error);
    if (status)
        return status;
    const int64_t rows = table->shape[1], channels = table->shape[3];
    double pair[2] = {0, 0};
    uint64_t at = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < channels; c++, at++) {
            if (at % 2 == 0)
                normal_pair(seed, at / 2, pair);
            posenc_table_put(table, r, c, (float)(deviation * pair[at % 2]));
        }
    return POSENC_OK;
}

/* Whether training has moved a row: NaN counts as moved. */
static int is_used(const posenc_tensor *table, int64_t row, double low, double high)
{
    double sum = 0;
    for (int64_t c = 0; c < table->shape[3]; c++) {
        const double x = (double)posenc_table_get(table, row, c);
        sum += x * x;
    }
    const double size = sqrt(sum / (double)table->shape[3]);
    return !(size >= low && size <= high);
}

int32_t posenc_learned_used(const posenc_tensor *table, double deviation, double low, double high,
                            uint8_t *used, int64_t *count, posenc_error *error)
{
    struct posenc_view view;
    struct posenc_array arrays[3];
    int32_t status = posenc_table_check(&view, table, "table", error);
    if (!status)
        status = check_deviation(deviation, error);
    if (!status)
        status = check_real("low", low, low >= 0 && low <= 0x1p64, "0..2^64", error);
    if (!status)
        status = check_real("high", high, high >= low && high <= 0x1p64, "low..2^64", error);
    if (status)
        return status;
    const int64_t rows = table->shape[1];
    arrays[2] = (struct posenc_array){"table", view.begin, view.end};
    status = posenc_array_check(&arrays[0], used, used ? (size_t)rows : 0, 1, "used", error);
    if (!status)
        status = posenc_array_check(&arrays[1], count, count ? 1 : 0, sizeof(*count), "count",
                                    error);
    if (!status)
        status = posenc_arrays_apart(arrays, 2, 3, error);
    if (status)
        return status;
    int64_t total = 0;
    for (int64_t r = 0; r < rows; r++) {
        const int moved = is_used(table, r, low * deviation, high * deviation);
        total += moved;
        if (used)
            used[r] = (uint8_t)moved;
    }
    if (count)
        *count = total;
    return POSENC_OK;
}
