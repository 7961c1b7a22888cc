/* SPDX-License-Identifier: MIT */
/* Reading and checking the positions of a step. */
#include "positions.h"

#include "error.h"
#include "structs.h"

void posenc_positions_start(posenc_positions *positions, int64_t start)
{
    *positions = (posenc_positions){
        .struct_size = sizeof(*positions),
        .kind = POSENC_POSITIONS_START,
        .start = start,
    };
}

static int32_t check_form(const posenc_positions *p, posenc_error *error)
{
    posenc_positions read;
    int32_t status = posenc_struct_read(&read, sizeof(read), sizeof(read), p, "positions", error);
    if (status)
        return status;
    if (p->kind < POSENC_POSITIONS_START || p->kind > POSENC_POSITIONS_IDS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.kind is %d: must be POSENC_POSITIONS_START, _STARTS or _IDS",
                           (int64_t)p->kind);
    if (p->reserved)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "positions.reserved is %d: must be 0",
                           (int64_t)p->reserved);
    return POSENC_OK;
}

static int32_t check_ids(const posenc_positions *p, int64_t batch, int64_t tokens,
                         posenc_error *error)
{
    int64_t size = p->dtype == POSENC_I64 ? 8 : 4, b, t, sum;
    if (p->dtype != POSENC_I32 && p->dtype != POSENC_I64)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.dtype is %d: must be POSENC_I32 or POSENC_I64",
                           (int64_t)p->dtype);
    if (!p->ids)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "positions.ids is NULL: must be given");
    if ((uintptr_t)p->ids % (uintptr_t)size)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.ids is not aligned to its elements of %d bytes", size);
    if (__builtin_mul_overflow(batch - 1, p->stride[0], &b) ||
        __builtin_mul_overflow(tokens - 1, p->kind == POSENC_POSITIONS_IDS ? p->stride[1] : 0,
                               &t) ||
        __builtin_add_overflow(b, t, &sum) || __builtin_mul_overflow(sum, size, &sum) ||
        __builtin_mul_overflow(b, size, &b) || __builtin_mul_overflow(t, size, &t))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "positions.stride [%d, %d] does not fit the address space", p->stride[0],
                           p->stride[1]);
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

int32_t posenc_positions_check(const posenc_positions *p, int64_t batch, int64_t tokens,
                               const struct posenc_range *range, posenc_error *error)
{
    int32_t status = check_form(p, error);
    if (status || batch == 0 || tokens == 0)
        return status;
    if (p->kind == POSENC_POSITIONS_START)
        return check_run(p->start, tokens, 0, 0, range, error);
    status = check_ids(p, batch, tokens, error);
    if (p->kind == POSENC_POSITIONS_STARTS)
        for (int64_t b = 0; !status && b < batch; b++)
            status = check_run(posenc_id(p, b * p->stride[0]), tokens, b, 0, range, error);
    else
        for (int64_t b = 0; !status && b < (p->stride[0] ? batch : 1); b++)
            for (int64_t t = 0; !status && t < tokens; t++)
                status = check_run(posenc_position(p, b, t), 1, b, t, range, error);
    return status;
}

int32_t posenc_positions_apart(const posenc_positions *p, int64_t batch, int64_t tokens,
                               const struct posenc_view *out, posenc_error *error)
{
    if (p->kind == POSENC_POSITIONS_START || batch == 0 || tokens == 0)
        return POSENC_OK;
    /* The ids as a view: an id of 64 bits is a head of two channels. */
    int64_t words = p->dtype == POSENC_I64 ? 2 : 1;
    int64_t last = p->kind == POSENC_POSITIONS_IDS ? tokens : 1;
    posenc_tensor ids = {
        .data = (void *)(uintptr_t)p->ids,
        .dtype = POSENC_F32,
        .shape = {batch, last, 1, words},
        .stride = {batch > 1 ? p->stride[0] * words : 0, last > 1 ? p->stride[1] * words : 0, 0, 1},
    };
    struct posenc_view view;
    int32_t status = posenc_view_check(&view, &ids, "positions.ids", error);
    return status ? status : posenc_disjoint_check(out, &view, error);
}
