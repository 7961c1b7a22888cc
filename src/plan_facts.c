/* SPDX-License-Identifier: MIT */
/* What a plan tells about itself. */
#include "error.h"
#include "plan.h"

int32_t posenc_plan_pairs(const posenc_plan *plan)
{
    return plan ? plan->pairs : 0;
}

double posenc_plan_attention_factor(const posenc_plan *plan)
{
    return plan ? plan->sets[0].attention_factor : 0;
}

int32_t posenc_plan_isa(const posenc_plan *plan)
{
    return plan ? plan->kernels->isa : 0;
}

int32_t posenc_plan_inv_freq(const posenc_plan *plan, double *inv_freq, size_t count,
                             posenc_error *error)
{
    if (!plan || !inv_freq)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           plan ? "inv_freq" : "plan");
    if (count != (size_t)plan->pairs)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "count is %d: must be r/2 (%d)",
                           count > INT64_MAX ? INT64_MAX : (int64_t)count, (int64_t)plan->pairs);
    if (plan->rows_by == POSENC_ROWS_TABLE)
        return posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                           "plan was made from tables: it has no frequencies");
    memcpy(inv_freq, plan->sets[0].inv_freq, count * sizeof(double));
    return POSENC_OK;
}

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
