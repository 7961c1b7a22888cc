/* SPDX-License-Identifier: MIT */
/* What a plan tells about itself. */
#include "error.h"
#include "plan.h"

int32_t posenc_plan_inv_freq_at(const posenc_plan *plan, int64_t length, int32_t set,
                              double *inv_freq, size_t count, double *attention_factor,
                              posenc_error *error)
{
    (void)plan;
    (void)length;
    (void)set;
    (void)inv_freq;
    (void)count;
    (void)attention_factor;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_plan_length_range(const posenc_plan *plan, int64_t length, int64_t *first,
                              int64_t *next, posenc_error *error)
{
    (void)plan;
    (void)length;
    (void)first;
    (void)next;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

double posenc_plan_softmax_multiplier(const posenc_plan *plan)
{
    return plan ? 1.0 : 0.0;
}

int32_t posenc_plan_axes(const posenc_plan *plan)
{
    return plan ? 1 : 0;
}
