/* SPDX-License-Identifier: MIT */
/* The rules that the parameters of a sinusoid keep. */
#include "error.h"
#include "sinusoid.h"

/* One number of a sinusoid has to lie between two others. NaN does not. */
static int32_t check_real(const char *name, double value, int inside, const char *rule,
                          posenc_error *error)
{
    if (inside)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %g: must be %s", name, value, rule);
}

static int32_t check_whole(const char *name, int64_t value, int64_t low, int64_t high,
                           const char *rule, posenc_error *error)
{
    if (value >= low && value <= high)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %s", name, value, rule);
}

static int32_t check_form(const posenc_sinusoid_params *p, posenc_error *error)
{
    int32_t status = check_whole("dim", p->dim, 1, 65536, "1..65536", error);
    if (!status)
        status = check_whole("arrangement", p->arrangement, POSENC_SINUSOID_INTERLEAVED,
                             POSENC_SINUSOID_HALVES,
                             "POSENC_SINUSOID_INTERLEAVED or POSENC_SINUSOID_HALVES", error);
    if (!status)
        status = check_whole("cosine_first", p->cosine_first, 0, 1, "0 or 1", error);
    if (!status)
        status = check_whole("odd", p->odd, POSENC_ODD_REFUSED, POSENC_ODD_SINE,
                             "POSENC_ODD_REFUSED, _ZERO or _SINE", error);
    if (!status)
        status = check_whole("exponent_by_width", p->exponent_by_width, 0, 1, "0 or 1", error);
    return status;
}

static int32_t check_numbers(const posenc_sinusoid_params *p, posenc_error *error)
{
    int32_t status = check_real("base", p->base, p->base > 1 && p->base < 0x1p76,
                                "> 1 and < 2^76", error);
    if (!status)
        status = check_real("shift", p->shift, p->shift > -0x1p64 && p->shift < 0x1p64,
                            "finite, within -2^64..2^64", error);
    if (!status)
        status = check_real("scale", p->scale, p->scale >= 0x1p-64 && p->scale <= 0x1p64,
                            "2^-64..2^64", error);
    if (!status)
        status = check_whole("position_offset", p->position_offset, INT32_MIN, INT32_MAX,
                             "-2^31..2^31 - 1", error);
    if (!status)
        status = check_whole("padding_row", p->padding_row, -1, INT32_MAX,
                             "-1 (none) or 0..2^31 - 1", error);
    if (!status)
        status = check_whole("max_position", p->max_position, 0, INT64_MAX, ">= 0", error);
    return status;
}

/* The width of one axis, whose name is `name`. */
static int32_t check_width(const posenc_sinusoid_params *p, const char *name, int32_t dim,
                           posenc_error *error)
{
    if (dim % 2 && p->odd == POSENC_ODD_REFUSED)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s is %d: must be even, or odd must say what the last channel holds",
                           name, (int64_t)dim);
    if (posenc_sinusoid_pairs(p, dim) < 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s is %d: must hold a frequency, with odd POSENC_ODD_ZERO >= 2", name,
                           (int64_t)dim);
    const double numerator = posenc_sinusoid_numerator(p, dim);
    if (!(numerator - p->shift > 0))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "shift is %g: must be < %g, what %s %d gives, or the denominator of the "
                           "exponent is not positive",
                           p->shift, numerator, name, (int64_t)dim);
    return POSENC_OK;
}

static int32_t check_axes(const posenc_sinusoid_params *p, posenc_error *error)
{
    static const char *const name[POSENC_SINUSOID_AXES] = {"axis_dim[0]", "axis_dim[1]",
                                                           "axis_dim[2]", "axis_dim[3]"};
    int64_t sum = 0;
    int32_t status = check_whole("axes", p->axes, 0, POSENC_SINUSOID_AXES, "0..4", error);
    if (!status && p->axes <= 1)
        return check_width(p, "dim", p->dim, error);
    for (int32_t a = 0; !status && a < p->axes; a++) {
        status = check_whole(name[a], p->axis_dim[a], 1, p->dim, "1..dim", error);
        if (!status)
            status = check_width(p, name[a], p->axis_dim[a], error);
        sum += p->axis_dim[a];
    }
    if (!status && sum != p->dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "axis_dim: the %d widths add up to %d: must be dim (%d)",
                           (int64_t)p->axes, sum, (int64_t)p->dim);
    return status;
}

int32_t posenc_sinusoid_params_check(const posenc_sinusoid_params *params, posenc_error *error)
{
    int32_t status = check_form(params, error);
    if (!status)
        status = check_numbers(params, error);
    return status ? status : check_axes(params, error);
}
