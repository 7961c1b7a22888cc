/* SPDX-License-Identifier: MIT */
/* Q and K of one rotation: their checks, alone and against each other. */
#include "sides.h"

#include "error.h"
#include "plan.h"

/* F64 is for F64 alone. */
static int32_t check_dtypes(const posenc_tensor *a, const char *a_name, const posenc_tensor *b,
                            const char *b_name, posenc_error *error)
{
    if ((a->dtype == POSENC_F64) == (b->dtype == POSENC_F64))
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.dtype is %d and %s.dtype is %d: all tensors of a call are POSENC_F64 or "
                       "none",
                       a_name, (int64_t)a->dtype, b_name, (int64_t)b->dtype);
}

static int32_t check_output(struct posenc_side *s, const posenc_tensor *out, const char *name,
                            posenc_error *error)
{
    int32_t status = posenc_data_view_check(&s->out_view, out, name, error);
    if (!status)
        status = check_dtypes(out, name, s->in, s->in_view.name, error);
    for (int d = 0; d < 4 && !status; d++)
        if (out->shape[d] != s->in->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "%s.shape[%d] is %d: must be %d as in %s", name, (int64_t)d,
                               out->shape[d], s->in->shape[d], s->in_view.name);
    if (status || posenc_views_equal(s->in, out))
        return status;
    s->out = out;
    return posenc_disjoint_check(&s->out_view, &s->in_view, error);
}

static int32_t check_side(const posenc_plan *plan, struct posenc_side *s, const posenc_tensor *in,
                          const posenc_tensor *out, const char *in_name, const char *out_name,
                          posenc_error *error)
{
    s->in = s->out = in;
    if (!in) {
        if (out)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL but %s is given", in_name,
                               out_name);
        return POSENC_OK;
    }
    int32_t status = posenc_data_view_check(&s->in_view, in, in_name, error);
    if (status)
        return status;
    s->out_view = s->in_view;
    if (in->shape[3] != plan->head_dim && in->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.shape[3] is %d: must be the plan's head_dim (%d) or rotary_dim (%d)",
                           in_name, in->shape[3], (int64_t)plan->head_dim,
                           (int64_t)plan->rotary_dim);
    if (out && out != in)
        status = check_output(s, out, out_name, error);
    if (!status && s->out == in && plan->out_layout != plan->layout)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s is %s: must lie apart from %s where the plan's out_layout (%d) is "
                           "not its layout (%d)",
                           out_name, out ? "the same view" : "NULL", in_name,
                           (int64_t)plan->out_layout, (int64_t)plan->layout);
    return status ? status : posenc_writable_check(&s->out_view, error);
}

int32_t posenc_direction_check(const posenc_plan *plan, int32_t direction, posenc_error *error)
{
    if (direction < POSENC_FORWARD || direction > POSENC_TRANSPOSE)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "direction is %d: must be POSENC_FORWARD, _INVERSE or _TRANSPOSE",
                           (int64_t)direction);
    if (direction == POSENC_INVERSE && plan->params.xpos)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "direction is POSENC_INVERSE: must be POSENC_TRANSPOSE with rows of the "
                           "other side where the plan has xpos %d",
                           (int64_t)plan->params.xpos);
    const double a = plan->sets[0].attention_factor;
    const double b = plan->sets[plan->num_sets - 1].attention_factor;
    if (direction == POSENC_INVERSE && a != b)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "direction is POSENC_INVERSE: the plan's attention factor is %g or %g "
                           "by length: must be a plan of one length",
                           a, b);
    return POSENC_OK;
}

/* Q and K go through the same tokens, and what one writes the other must not read or write. */
static int32_t check_pair(const struct posenc_side side[2], posenc_error *error)
{
    const posenc_tensor *q = side[0].in, *k = side[1].in;
    if (!q || !k)
        return POSENC_OK;
    for (int d = 0; d < 2; d++)
        if (q->shape[d] != k->shape[d])
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "k.shape[%d] is %d: must be %d as in q", (int64_t)d, k->shape[d],
                               q->shape[d]);
    int32_t status = check_dtypes(k, "k", q, "q", error);
    if (!status)
        status = posenc_disjoint_check(&side[0].out_view, &side[1].out_view, error);
    if (!status && side[1].out != k)
        status = posenc_disjoint_check(&side[0].out_view, &side[1].in_view, error);
    if (!status && side[0].out != q)
        status = posenc_disjoint_check(&side[1].out_view, &side[0].in_view, error);
    return status;
}

int32_t posenc_sides_check(const posenc_plan *plan, int32_t direction,
                           const struct posenc_tensors *t, struct posenc_side side[2],
                           posenc_error *error)
{
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    if (!t->q && !t->k && !t->q_out && !t->k_out)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q is NULL and k is NULL: one must be given");
    int32_t status = posenc_direction_check(plan, direction, error);
    if (!status)
        status = check_side(plan, &side[0], t->q, t->q_out, "q", "q_out", error);
    if (!status)
        status = check_side(plan, &side[1], t->k, t->k_out, "k", "k_out", error);
    return status ? status : check_pair(side, error);
}
