/* SPDX-License-Identifier: MIT */
/* What a plan tells about itself. */
#include "error.h"
#include "frequencies.h"
#include "plan.h"

int32_t posenc_plan_set(const struct posenc_plan *plan, int64_t length, int32_t factor)
{
    if (!plan->depends_on_length)
        return factor;
    if (length <= posenc_trained_length(&plan->params))
        return 0;
    return plan->num_sets > 1 ? 1 : -1;
}

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

double posenc_plan_softmax_multiplier(const posenc_plan *plan)
{
    return plan ? posenc_softmax_multiplier(&plan->params) : 0.0;
}

int32_t posenc_plan_axes(const posenc_plan *plan)
{
    return plan ? plan->axes : 0;
}

static int32_t check_length(const posenc_plan *plan, int64_t length, posenc_error *error)
{
    if (!plan->depends_on_length || length > 0)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "length is %d: must be > 0, frequencies depend on it", length);
}

/* A length beyond L0 where the frequencies grow with each: they are in no set. */
static void frequencies_of_length(const posenc_plan *plan, int64_t length, double *inv_freq)
{
    float values[POSENC_ROW_BLOCK];
    if (plan->rows_by != POSENC_ROWS_HF_F32) {
        posenc_frequencies(&plan->params, length, 0, 0, plan->pairs, inv_freq);
        return;
    }
    for (int32_t first = 0; first < plan->pairs; first += POSENC_ROW_BLOCK) {
        int32_t rest = plan->pairs - first;
        int32_t count = rest < POSENC_ROW_BLOCK ? rest : POSENC_ROW_BLOCK;
        posenc_frequencies_f32(&plan->params, length, 0, first, count, values);
        for (int32_t i = 0; i < count; i++)
            inv_freq[first + i] = values[i];
    }
}

static int32_t check_inv_freq(const posenc_plan *plan, const double *inv_freq, size_t count,
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
    return POSENC_OK;
}

int32_t posenc_plan_inv_freq(const posenc_plan *plan, double *inv_freq, size_t count,
                             posenc_error *error)
{
    return posenc_plan_inv_freq_at(plan, 1, 0, inv_freq, count, NULL, error);
}

int32_t posenc_plan_inv_freq_at(const posenc_plan *plan, int64_t length, int32_t set,
                                double *inv_freq, size_t count, double *attention_factor,
                                posenc_error *error)
{
    int32_t status = check_inv_freq(plan, inv_freq, count, error);
    if (!status)
        status = check_length(plan, length, error);
    if (status)
        return status;
    int32_t sets = plan->params.factors ? plan->num_sets : 1;
    if (set < 0 || set >= sets)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "set is %d: must be 0..%d", (int64_t)set,
                           (int64_t)(sets - 1));
    int32_t found = posenc_plan_set(plan, length, set);
    if (found >= 0)
        memcpy(inv_freq, plan->sets[found].inv_freq, count * sizeof(double));
    else
        frequencies_of_length(plan, length, inv_freq);
    if (attention_factor)
        *attention_factor = plan->sets[found < 0 ? 0 : found].attention_factor;
    return POSENC_OK;
}

int32_t posenc_plan_length_range(const posenc_plan *plan, int64_t length, int64_t *first,
                                 int64_t *next, posenc_error *error)
{
    if (!plan || !first || !next)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           !plan ? "plan" : !first ? "first" : "next");
    int32_t status = check_length(plan, length, error);
    if (status)
        return status;
    int64_t trained = plan->depends_on_length ? posenc_trained_length(&plan->params) : INT64_MAX;
    if (trained == INT64_MAX || length <= trained) {
        *first = 1;
        *next = trained == INT64_MAX ? INT64_MAX : trained + 1;
        return POSENC_OK;
    }
    int one = plan->params.scaling == POSENC_SCALING_LONGROPE;
    *first = one ? trained + 1 : length;
    *next = one || length == INT64_MAX ? INT64_MAX : length + 1;
    return POSENC_OK;
}
