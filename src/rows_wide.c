/* SPDX-License-Identifier: MIT */
/* Rows in double-double: those of doubles, and those with the decay of xPos. A plain loop. */
#include "angle_dd.h"
#include "frequencies.h"
#include "plan.h"
#include "rows.h"

/* ln z(i) with z = (2i + 0.4 r) / (1.4 r) = (10 i + 2 r) / 7 r, over B, for one side. */
void posenc_xpos_prepare(const posenc_rope_params *params, posenc_dd *log_decay)
{
    const posenc_dd side = posenc_dd_from(params->xpos);
    for (int32_t i = 0; i < params->rotary_dim / 2; i++) {
        posenc_dd log = posenc_dd_sub(posenc_dd_log(10.0 * i + 2.0 * params->rotary_dim),
                                      posenc_dd_log(7.0 * params->rotary_dim));
        log_decay[i] = posenc_dd_div(posenc_dd_mul(log, side),
                                     posenc_dd_from(params->xpos_scale_base));
    }
}

/*
 * e^x for |x| <= 600, faster than posenc_dd_exp: with x = k ln 2 + 64 r, |r| < 2^-7.5, Taylor's
 * series of e^r ends before r^9, and only its first terms need double-doubles: r^3 times the rest
 * is below 2^-25.
 */
static posenc_dd exponential(posenc_dd x)
{
    const double k = (x.hi / posenc_dd_ln_2.hi + 0x1.8p52) - 0x1.8p52;
    const posenc_dd one = posenc_dd_from(1);
    posenc_dd r = posenc_dd_sub(x, posenc_dd_mul(posenc_dd_ln_2, posenc_dd_from(k)));
    r = (posenc_dd){r.hi / 64, r.lo / 64};
    double rest = 1.0 / 40320;
    for (int n = 7; n >= 3; n--) {
        static const double factorial[8] = {1, 1, 2, 6, 24, 120, 720, 5040};
        rest = rest * r.hi + 1 / factorial[n];
    }
    posenc_dd sum = posenc_dd_mul(r, posenc_dd_from(rest));
    sum = posenc_dd_mul(r, posenc_dd_add(posenc_dd_from(0.5), sum));
    sum = posenc_dd_add(one, posenc_dd_mul(r, posenc_dd_add(one, sum)));
    for (int i = 0; i < 6; i++)
        sum = posenc_dd_mul(sum, sum);
    const double scale = posenc_dd_power_of_two((int32_t)k);
    return (posenc_dd){sum.hi * scale, sum.lo * scale};
}

/* The decay is cut where its logarithm leaves +-600: beyond, floats have long overflowed or become
 * 0, and doubles are near their ends. */
static posenc_dd decay_of(const posenc_plan *plan, size_t pair, double position, int delta)
{
    const double center = delta ? 0 : (double)plan->params.xpos_center;
    posenc_dd distance = posenc_dd_sum(position, -center);
    posenc_dd x = posenc_dd_mul(distance, plan->log_decay[pair]);
    if (x.hi > 600 || x.hi < -600)
        x = posenc_dd_from(x.hi > 0 ? 600 : -600);
    return exponential(x);
}

static void store(const struct posenc_rows_target *to, ptrdiff_t at, double cos, double sin)
{
    if (to->dtype == POSENC_F64) {
        ((double *)to->cos)[at] = cos;
        ((double *)to->sin)[at] = sin;
    } else {
        ((float *)to->cos)[at] = (float)cos;
        ((float *)to->sin)[at] = (float)sin;
    }
}

/* Cosine and sine of p w, times the factor and the decay; the high parts are rounded once. */
static void fill_pair(const posenc_plan *plan, size_t pair, double position, double inv_freq,
                      double factor, int delta, double *cos, double *sin)
{
    posenc_dd s, c, scale = posenc_dd_from(factor);
    const double size = position < 0 ? -position : position;
    posenc_sincos_dd(posenc_turns_of_product(size, inv_freq), &s, &c);
    if (plan->rows_by == POSENC_ROWS_XPOS)
        scale = posenc_dd_mul(scale, decay_of(plan, pair, position, delta));
    *cos = posenc_dd_mul(c, scale).hi;
    *sin = posenc_dd_mul(s, scale).hi;
    if (position < 0)
        *sin = -*sin;
}

/* Pairs [first, first + count), at most 16 so that frequencies of their own fit the stack. */
static void fill_block(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    const posenc_plan *plan = span->plan;
    const posenc_positions *positions = span->positions;
    double own[POSENC_ROW_BLOCK];
    if (posenc_rows_set(span, 0) < 0)
        posenc_frequencies(&plan->params, posenc_length(positions, span->batch), 0,
                           (int32_t)to->first, (int32_t)to->count, own);
    for (size_t t = 0; t < span->tokens; t++) {
        const int32_t n = posenc_rows_set(span, t);
        const struct posenc_frequency_set *set = &plan->sets[n < 0 ? 0 : n];
        const double *inv_freq = n < 0 ? own : set->inv_freq + to->first;
        for (size_t i = 0; i < to->count; i++) {
            const int axis = plan->axis_of_pair ? plan->axis_of_pair[to->first + i] : 0;
            double p = posenc_real_position(positions, axis, span->batch,
                                            span->token + (int64_t)t);
            double c, s;
            fill_pair(plan, to->first + i, p, inv_freq[i], to->delta ? 1 : set->attention_factor,
                      to->delta, &c, &s);
            store(to, (ptrdiff_t)t * to->stride + (ptrdiff_t)i, c, s);
        }
    }
}

void posenc_rows_wide(const struct posenc_rows_span *span, const struct posenc_rows_target *to)
{
    const int64_t size = posenc_dtype_size(to->dtype);
    struct posenc_rows_target block = *to;
    for (size_t i = 0; i < to->count; i += POSENC_ROW_BLOCK) {
        size_t left = to->count - i;
        block.cos = (char *)to->cos + (int64_t)i * size;
        block.sin = (char *)to->sin + (int64_t)i * size;
        block.first = to->first + i;
        block.count = left < POSENC_ROW_BLOCK ? left : POSENC_ROW_BLOCK;
        fill_block(span, &block);
    }
}
