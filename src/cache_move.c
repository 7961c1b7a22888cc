/* SPDX-License-Identifier: MIT */
/* Cached keys turned by differences of positions, the attention factor never applied again. */
#include "cache_turn.h"
#include "error.h"

/* 1 if a token's deltas are 0 on every axis: -0 and what counts as 0 included. */
static int is_still(const struct posenc_turn *turn, int64_t b, int64_t token)
{
    const posenc_positions *deltas = turn->positions[0];
    const int axes = deltas->axis_stride ? turn->plan->axes : 1;
    for (int axis = 0; axis < axes; axis++)
        if (posenc_real_position(deltas, axis, b, token) != 0)
            return 0;
    return 1;
}

static void fill_rows(const struct posenc_turn *turn, int64_t b, int64_t token, size_t tokens,
                      const struct posenc_rows_target *to, uint8_t *stays)
{
    size_t still = 0;
    for (size_t t = 0; t < tokens; t++)
        still += stays[t] = (uint8_t)is_still(turn, b, token + (int64_t)t);
    if (still == tokens)
        return;
    const struct posenc_rows_span span = {turn->plan, turn->positions[0], b, token, tokens};
    posenc_rows_delta(&span, to);
}

/* 1 if all tokens of a sequence read the same delta and set. */
static int is_one_row(const posenc_positions *deltas)
{
    return deltas->kind == POSENC_POSITIONS_IDS && deltas->stride[1] == 0 &&
           (!deltas->sets || deltas->set_stride[1] == 0);
}

int32_t posenc_cache_move(const posenc_plan *plan, const posenc_positions *deltas,
                          const posenc_cache *cache, int64_t sequence, int64_t first,
                          int64_t count, posenc_error *error)
{
    struct posenc_turn turn;
    posenc_positions copy;
    int32_t status = posenc_turn_check(&turn, plan, "plan", cache, sequence, first, count, error);
    if (status)
        return status;
    if (!deltas)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "deltas is NULL: must be given");
    if (plan->rows_by == POSENC_ROWS_TABLE)
        return posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                           "plan was made from tables: they have no row for a difference of "
                           "positions (posenc_cache_rebase takes both positions)");
    status = posenc_deltas_check(&copy, deltas, plan, turn.sequences, turn.count, error);
    if (!status)
        status = posenc_turn_apart(&turn, &copy, error);
    if (status)
        return posenc_turn_named(status, "deltas", error);
    if (copy.kind != POSENC_POSITIONS_IDS && turn.count > 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "deltas.kind is %d: would turn each key by one more than the last; one "
                           "delta for all is POSENC_POSITIONS_IDS with strides 0",
                           (int64_t)copy.kind);
    turn.positions[0] = &copy;
    turn.one_row = is_one_row(&copy);
    turn.rows = fill_rows;
    posenc_turn_keys(&turn);
    return POSENC_OK;
}
