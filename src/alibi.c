/* SPDX-License-Identifier: MIT */
/* ALiBi slopes. */
#include "array.h"
#include "dd.h"
#include "error.h"

enum { MAX_HEADS = 65536, MAX_BIAS = 64 };

/* 2^(-max_bias m / 2^log), nearest. The product of two doubles is exact as a pair; m < 2^17. */
static double slope(double max_bias, int64_t m, int32_t log, posenc_dd ln_2)
{
    posenc_dd exponent = posenc_dd_product(-max_bias, (double)m);
    double scale = posenc_dd_power_of_two(-log);
    exponent.hi *= scale;
    exponent.lo *= scale;
    return posenc_dd_exp(posenc_dd_mul(exponent, ln_2)).hi;
}

int32_t posenc_alibi_slopes(double *slopes, int64_t first, int64_t count, int64_t heads,
                            double max_bias, posenc_error *error)
{
    struct posenc_array array;
    int32_t log = 0;
    if (heads < 1 || heads > MAX_HEADS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "heads is %d: must be 1..%d", heads,
                           (int64_t)MAX_HEADS);
    if (first < 0 || first > heads)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "first is %d: must be 0..heads (%d)",
                           first, heads);
    if (count < 0 || count > heads - first)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "count is %d: must be 0..heads - first (%d)", count, heads - first);
    if (!(max_bias > 0 && max_bias <= MAX_BIAS))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "max_bias is %g: must be > 0 and <= %d",
                           max_bias, (int64_t)MAX_BIAS);
    int32_t status =
        posenc_array_check(&array, slopes, (size_t)count, sizeof(*slopes), "slopes", error);
    if (status)
        return status;
    while (heads >> (log + 1))
        log++;
    const posenc_dd ln_2 = posenc_dd_log(2.0);
    for (int64_t k = first; k < first + count; k++) {
        int64_t rest = k - (INT64_C(1) << log);
        slopes[k - first] = rest < 0 ? slope(max_bias, k + 1, log, ln_2)
                                     : slope(max_bias, 2 * rest + 1, log + 1, ln_2);
    }
    return POSENC_OK;
}
