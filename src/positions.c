/* SPDX-License-Identifier: MIT */
/* Reading and checking the positions of a step. */
#include "positions.h"

#include "error.h"
#include "plan.h"
#include "structs.h"

void posenc_positions_start(posenc_positions *positions, int64_t start)
{
    *positions = (posenc_positions){
        .struct_size = sizeof(*positions),
        .kind = POSENC_POSITIONS_START,
        .start = start,
    };
}

static int32_t check_axes(posenc_positions *p, const posenc_plan *plan, posenc_error *error)
{
    if (p->axes != 0 && p->axes != 1 && (p->axes < 0 || p->axes != plan->axes))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.axes is %d: must be 0, 1 or the plan's number (%d)",
                           (int64_t)p->axes, (int64_t)plan->axes);
    if (p->axes > 1 && p->kind != POSENC_POSITIONS_IDS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.axes is %d with kind %d: several axes need "
                           "POSENC_POSITIONS_IDS",
                           (int64_t)p->axes, (int64_t)p->kind);
    if (p->axes <= 1)
        p->axis_stride = 0;
    return POSENC_OK;
}

static int32_t check_form(posenc_positions *p, const posenc_plan *plan, posenc_error *error)
{
    if (p->kind < POSENC_POSITIONS_START || p->kind > POSENC_POSITIONS_IDS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.kind is %d: must be POSENC_POSITIONS_START, _STARTS or _IDS",
                           (int64_t)p->kind);
    if (p->reserved || p->reserved2)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.reserved is %d, reserved2 %d: must be 0",
                           (int64_t)p->reserved, (int64_t)p->reserved2);
    return check_axes(p, plan, error);
}

/* 1 if `count` steps of `stride` elements of `size` bytes fit the address space, together with two
 * more such reaches. */
static int reach_fits(int64_t count, int64_t stride, int64_t size)
{
    int64_t reach;
    return !__builtin_mul_overflow(count - 1, stride, &reach) &&
           !__builtin_mul_overflow(reach, 4 * size, &reach);
}

static int32_t check_memory(const void *data, const char *name, int64_t size, posenc_error *error)
{
    if (!data)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "positions.%s is NULL: must be given",
                           name);
    if ((uintptr_t)data % (uintptr_t)size)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.%s is not aligned to its elements of %d bytes", name, size);
    return POSENC_OK;
}

/* Only rows that are exact know what lies between two positions. */
static int32_t check_dtype(const posenc_positions *p, const posenc_plan *plan, posenc_error *error)
{
    if (p->dtype == POSENC_I32 || p->dtype == POSENC_I64)
        return POSENC_OK;
    if (p->dtype != POSENC_F64 || p->kind != POSENC_POSITIONS_IDS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.dtype is %d: must be POSENC_I32 or POSENC_I64, or POSENC_F64 "
                           "with POSENC_POSITIONS_IDS",
                           (int64_t)p->dtype);
    if (plan->rows_by != POSENC_ROWS_EXACT && plan->rows_by != POSENC_ROWS_XPOS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.dtype is POSENC_F64: the plan's %s integers",
                           plan->rows_by == POSENC_ROWS_TABLE ? "tables are read by"
                                                              : "recipe takes");
    return POSENC_OK;
}

static int32_t check_ids(const posenc_positions *p, const posenc_plan *plan, int64_t batch,
                         int64_t tokens, posenc_error *error)
{
    int32_t status = check_dtype(p, plan, error);
    int64_t size = p->dtype == POSENC_I32 ? 4 : 8;
    if (!status)
        status = check_memory(p->ids, "ids", size, error);
    if (status)
        return status;
    if (!reach_fits(batch, p->stride[0], size) ||
        (p->kind == POSENC_POSITIONS_IDS && !reach_fits(tokens, p->stride[1], size)))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.stride [%d, %d] does not fit the address space", p->stride[0],
                           p->stride[1]);
    if (!reach_fits(p->axes, p->axis_stride, size))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.axis_stride %d does not fit the address space",
                           p->axis_stride);
    return POSENC_OK;
}

/* Positions first .. first + count - 1 of batch row b, token t. */
static int32_t check_run(int64_t first, int64_t count, int64_t b, int64_t t,
                         const struct posenc_range *range, posenc_error *error)
{
    int64_t last;
    if (__builtin_add_overflow(first, count - 1, &last))
        last = INT64_MAX;
    if (first >= range->low && last <= range->high)
        return POSENC_OK;
    if (first < range->low || first > range->high)
        return posenc_fail(error, POSENC_ERROR_POSITION,
                           "position %d of batch row %d, token %d: must be %d..%d (%s)", first, b,
                           t, range->low, range->high, range->why);
    return posenc_fail(error, POSENC_ERROR_POSITION,
                       "positions %d..%d of batch row %d: must be %d..%d (%s)", first, last, b,
                       range->low, range->high, range->why);
}

/* NaN fails the comparison. */
static int32_t check_real(double position, int64_t b, int64_t t, const struct posenc_range *range,
                          posenc_error *error)
{
    if (position >= (double)range->low && position < (double)range->high + 1)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_POSITION,
                       "position %g of batch row %d, token %d: must be >= %d and < %d (%s)",
                       position, b, t, range->low, range->high + 1, range->why);
}

static int32_t check_each_id(const posenc_positions *p, int64_t batch, int64_t tokens,
                             const struct posenc_range *range, posenc_error *error)
{
    const int real = posenc_positions_are_real(p);
    int32_t status = POSENC_OK;
    for (int axis = 0; axis < (p->axis_stride ? p->axes : 1); axis++)
        for (int64_t b = 0; b < (p->stride[0] ? batch : 1); b++)
            for (int64_t t = 0; t < tokens; t++) {
                if (real)
                    status = check_real(posenc_real_position(p, axis, b, t), b, t, range, error);
                else
                    status = check_run(posenc_position(p, axis, b, t), 1, b, t, range, error);
                if (status)
                    return status;
            }
    return status;
}

static int32_t check_each_position(const posenc_positions *p, const posenc_plan *plan,
                                   const struct posenc_range *range, int64_t batch, int64_t tokens,
                                   posenc_error *error)
{
    if (p->kind == POSENC_POSITIONS_START)
        return check_run(p->start, tokens, 0, 0, range, error);
    int32_t status = check_ids(p, plan, batch, tokens, error);
    if (status || p->kind == POSENC_POSITIONS_IDS)
        return status ? status : check_each_id(p, batch, tokens, range, error);
    for (int64_t b = 0; !status && b < batch; b++)
        status = check_run(posenc_id(p, b * p->stride[0]), tokens, b, 0, range, error);
    return status;
}

static int32_t check_lengths(posenc_positions *p, const posenc_plan *plan, int64_t batch,
                             posenc_error *error)
{
    if (!plan->depends_on_length) {
        p->length = 0;
        p->lengths = NULL;
        return POSENC_OK;
    }
    if (!p->lengths) {
        if (p->length > 0)
            return POSENC_OK;
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.length is %d: must be > 0, the plan's frequencies depend on "
                           "the running length",
                           p->length);
    }
    int32_t status = check_memory(p->lengths, "lengths", (int64_t)sizeof(int64_t), error);
    for (int64_t b = 0; !status && b < batch; b++)
        if (p->lengths[b] <= 0)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "positions.lengths[%d] is %d: must be > 0, the plan's frequencies "
                               "depend on the running length",
                               b, p->lengths[b]);
    return status;
}

static int32_t check_sets(posenc_positions *p, const posenc_plan *plan, int64_t batch,
                          int64_t tokens, posenc_error *error)
{
    const int32_t sets = plan->depends_on_length ? 1 : plan->num_sets;
    if (!p->sets)
        return POSENC_OK;
    int32_t status = check_memory(p->sets, "sets", (int64_t)sizeof(int32_t), error);
    if (status)
        return status;
    if (!reach_fits(batch, p->set_stride[0], 4) || !reach_fits(tokens, p->set_stride[1], 4))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.set_stride [%d, %d] does not fit the address space",
                           p->set_stride[0], p->set_stride[1]);
    for (int64_t b = 0; b < (p->set_stride[0] ? batch : 1); b++)
        for (int64_t t = 0; t < tokens; t++)
            if (posenc_set(p, b, t) < 0 || posenc_set(p, b, t) >= sets)
                return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                   "positions.sets of batch row %d, token %d is %d: must be 0..%d, "
                                   "the plan's factors",
                                   b, t, (int64_t)posenc_set(p, b, t), (int64_t)sets - 1);
    if (sets == 1)
        p->sets = NULL;
    return POSENC_OK;
}

static int32_t check_positions(posenc_positions *copy, const posenc_positions *positions,
                               const posenc_plan *plan, const struct posenc_range *range,
                               int64_t batch, int64_t tokens, posenc_error *error)
{
    memset(copy, 0, sizeof(*copy));
    int32_t status = posenc_struct_read(copy, sizeof(*copy), offsetof(posenc_positions, axes),
                                        positions, "positions", error);
    if (!status)
        status = check_form(copy, plan, error);
    if (status || batch == 0 || tokens == 0)
        return status;
    status = check_each_position(copy, plan, range, batch, tokens, error);
    if (!status)
        status = check_lengths(copy, plan, batch, error);
    return status ? status : check_sets(copy, plan, batch, tokens, error);
}

int32_t posenc_positions_check(posenc_positions *copy, const posenc_positions *positions,
                               const posenc_plan *plan, int64_t batch, int64_t tokens,
                               posenc_error *error)
{
    return check_positions(copy, positions, plan, &plan->range, batch, tokens, error);
}

int32_t posenc_deltas_check(posenc_positions *copy, const posenc_positions *deltas,
                            const posenc_plan *plan, int64_t batch, int64_t tokens,
                            posenc_error *error)
{
    const struct posenc_range range = {INT32_MIN, INT32_MAX, "32-bit deltas"};
    return check_positions(copy, deltas, plan, &range, batch, tokens, error);
}

/* Memory that is read, as a view: an element of 64 bits is a channel of two words. */
static int32_t check_apart(const char *name, const void *data, int64_t words,
                           const int64_t shape[3], const int64_t stride[3],
                           const struct posenc_view *out, posenc_error *error)
{
    posenc_tensor read = {
        .data = (void *)(uintptr_t)data,
        .dtype = POSENC_F32,
        .shape = {shape[0], shape[1], shape[2], words},
        .stride = {0, 0, 0, 1},
    };
    for (int d = 0; d < 3; d++)
        read.stride[d] = shape[d] > 1 ? stride[d] * words : 0;
    struct posenc_view view;
    int32_t status = posenc_view_check(&view, &read, name, error);
    return status ? status : posenc_disjoint_check(out, &view, error);
}

int32_t posenc_positions_apart(const posenc_positions *p, int64_t batch, int64_t tokens,
                               const struct posenc_view *out, posenc_error *error)
{
    int32_t status = POSENC_OK;
    if (batch == 0 || tokens == 0)
        return status;
    if (p->kind != POSENC_POSITIONS_START) {
        const int64_t last = p->kind == POSENC_POSITIONS_IDS ? tokens : 1;
        status = check_apart("positions.ids", p->ids, p->dtype == POSENC_I32 ? 1 : 2,
                             (int64_t[]){batch, last, p->axes > 1 ? p->axes : 1},
                             (int64_t[]){p->stride[0], p->stride[1], p->axis_stride}, out, error);
    }
    if (!status && p->lengths)
        status = check_apart("positions.lengths", p->lengths, 2, (int64_t[]){batch, 1, 1},
                             (int64_t[]){1, 0, 0}, out, error);
    if (!status && p->sets)
        status = check_apart("positions.sets", p->sets, 1, (int64_t[]){batch, tokens, 1},
                             (int64_t[]){p->set_stride[0], p->set_stride[1], 0}, out, error);
    return status;
}
