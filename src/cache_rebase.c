/* SPDX-License-Identifier: MIT */
/* Cached keys turned from the rows of one plan into those of another. */
#include "cache_turn.h"
#include "error.h"

#include <math.h>

/*
 * A key was multiplied by c0 + i s0 and is to be multiplied by c1 + i s1: hence the quotient. Rows
 * are those of float32, which rotated the key: so a recipe's own errors are undone too, and steps
 * from row to row add up to the step from the first to the last. Products of floats are exact in
 * double: of equal rows the quotient is exactly 1.
 */
static void divide(float c1, float s1, float c0, float s0, float *cos, float *sin)
{
    const double a = (double)c1, b = (double)s1, c = (double)c0, d = (double)s0;
    const double square = c * c + d * d;
    *cos = (float)((a * c + b * d) / square);
    *sin = (float)((b * c - a * d) / square);
}

/* Rows of `from` in the target, those of `to` divided by them in their place. */
static void fill_rows(const struct posenc_turn *turn, int64_t b, int64_t token, size_t tokens,
                      const struct posenc_rows_target *to, uint8_t *stays)
{
    float scratch[POSENC_TURN_CHANNELS];
    const size_t count = to->count, bytes = count * sizeof(float);
    const struct posenc_rows_span span[2] = {{turn->plan, turn->positions[0], b, token, tokens},
                                             {turn->to_plan, turn->positions[1], b, token, tokens}};
    struct posenc_rows_target next = *to;
    next.cos = scratch;
    next.sin = scratch + count;
    next.stride = (ptrdiff_t)(2 * count);
    posenc_rows_fill(&span[0], to);
    posenc_rows_fill(&span[1], &next);
    for (size_t t = 0; t < tokens; t++) {
        float *cos = (float *)to->cos + (ptrdiff_t)t * to->stride;
        float *sin = (float *)to->sin + (ptrdiff_t)t * to->stride;
        const float *new_cos = scratch + t * 2 * count, *new_sin = new_cos + count;
        stays[t] = !memcmp(cos, new_cos, bytes) && !memcmp(sin, new_sin, bytes);
        for (size_t i = 0; !stays[t] && i < count; i++)
            divide(new_cos[i], new_sin[i], cos[i], sin[i], &cos[i], &sin[i]);
    }
}

static int32_t check_same(const char *what, int32_t from, int32_t to, posenc_error *error)
{
    return from == to ? POSENC_OK
                      : posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                    "from has %s %d, to has %d: must be the same", what,
                                    (int64_t)from, (int64_t)to);
}

static int32_t check_plans(const posenc_plan *from, const posenc_plan *to, posenc_error *error)
{
    if (!to)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "to is NULL: must be given");
    int32_t status = check_same("head_dim", from->head_dim, to->head_dim, error);
    if (!status)
        status = check_same("rotary_dim", from->rotary_dim, to->rotary_dim, error);
    if (!status)
        status = check_same("rotary_offset", from->rotary_offset, to->rotary_offset, error);
    if (!status)
        status = check_same("stored layout", from->out_layout, to->out_layout, error);
    return status ? status : check_same("axes", from->axes, to->axes, error);
}

static int32_t check_positions(const struct posenc_turn *turn, posenc_positions *copy,
                               const posenc_positions *positions, const posenc_plan *plan,
                               const char *name, posenc_error *error)
{
    if (!positions)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", name);
    int32_t status = posenc_positions_check(copy, positions, plan, turn->sequences, turn->count,
                                            error);
    if (!status)
        status = posenc_turn_apart(turn, copy, error);
    return posenc_turn_named(status, name, error);
}

/* 1 if every row is far from 0 and from infinity: tables, decays and float16 may not be. */
static int has_plain_rows(const posenc_plan *plan)
{
    if (plan->rows_by == POSENC_ROWS_TABLE || plan->rows_by == POSENC_ROWS_XPOS ||
        plan->row_dtype == POSENC_F16)
        return 0;
    for (int32_t n = 0; n < plan->num_sets; n++)
        if (plan->sets[n].attention_factor < 0x1p-60 || plan->sets[n].attention_factor > 0x1p60)
            return 0;
    return 1;
}

static int32_t check_row(const struct posenc_rows_target *row, int64_t b, int64_t token,
                         posenc_error *error)
{
    const float *cos = row->cos, *sin = row->sin;
    for (size_t i = 0; i < row->count; i++)
        if (!isfinite(cos[i]) || !isfinite(sin[i]))
            return posenc_fail(error, POSENC_ERROR_POSITION,
                               "from and to: the rows of batch row %d, token %d, pair %d have no "
                               "finite quotient: the key cannot be turned back",
                               b, token, (int64_t)(row->first + i));
    return POSENC_OK;
}

/* Makes the rows once before any key is touched, where one of them might not be there. */
static int32_t check_rows(const struct posenc_turn *turn, posenc_error *error)
{
    float cos[POSENC_ROW_BLOCK], sin[POSENC_ROW_BLOCK];
    const size_t pairs = (size_t)turn->plan->pairs;
    struct posenc_rows_target row = {.cos = cos, .sin = sin, .dtype = POSENC_F32};
    int32_t status = POSENC_OK;
    uint8_t stays;
    if (has_plain_rows(turn->plan) && has_plain_rows(turn->to_plan))
        return POSENC_OK;
    for (int64_t b = 0; b < turn->sequences; b++)
        for (int64_t t = 0; t < turn->count; t++)
            for (size_t i = 0; !status && i < pairs; i += POSENC_ROW_BLOCK) {
                row.first = i;
                row.count = pairs - i < POSENC_ROW_BLOCK ? pairs - i : POSENC_ROW_BLOCK;
                fill_rows(turn, b, t, 1, &row, &stays);
                if (!stays)
                    status = check_row(&row, b, t, error);
            }
    return status;
}

int32_t posenc_cache_rebase(const posenc_plan *from, const posenc_positions *from_positions,
                            const posenc_plan *to, const posenc_positions *to_positions,
                            const posenc_cache *cache, int64_t sequence, int64_t first,
                            int64_t count, posenc_error *error)
{
    struct posenc_turn turn;
    posenc_positions copy[2];
    int32_t status = posenc_turn_check(&turn, from, "from", cache, sequence, first, count, error);
    if (!status)
        status = check_plans(from, to, error);
    if (status)
        return status;
    turn.to_plan = to;
    turn.positions[0] = &copy[0];
    turn.positions[1] = &copy[1];
    turn.rows = fill_rows;
    status = check_positions(&turn, &copy[0], from_positions, from, "from_positions", error);
    if (!status)
        status = check_positions(&turn, &copy[1], to_positions, to, "to_positions", error);
    if (!status)
        status = check_rows(&turn, error);
    if (!status)
        posenc_turn_keys(&turn);
    return status;
}
