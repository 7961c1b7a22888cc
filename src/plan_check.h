/* SPDX-License-Identifier: MIT */
/* Checks of a plan's parameters that several files share. */
#ifndef POSENC_PLAN_CHECK_H
#define POSENC_PLAN_CHECK_H

#include "common.h"
#include "error.h"

/* Comparisons are written so that NaN fails them. */
static inline int32_t need(int holds, const char *name, double value, const char *rule,
                           posenc_error *error)
{
    if (holds)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %g: must be %s", name, value, rule);
}

static inline int finite_in(double x, double low, double high)
{
    return x >= low && x <= high;
}

/* Factors that no model comes near, so that no product of a few can overflow or underflow. */
static inline int in_factor_range(double x)
{
    return finite_in(x, 0x1p-64, 0x1p64);
}

static inline int32_t check_enum(int32_t value, int32_t first, int32_t last, const char *name,
                                 const char *rule, posenc_error *error)
{
    if (value >= first && value <= last)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %s", name, (int64_t)value,
                       rule);
}

/* The scaling and the fields that it reads; widths are checked already. */
int32_t posenc_scaling_check(const posenc_rope_params *params, posenc_error *error);

/* What the system that a recipe is named after has, given valid parameters. */
int32_t posenc_recipe_check(const posenc_rope_params *params, posenc_error *error);

#endif
