/* SPDX-License-Identifier: MIT */
/* Buckets whose bounds grow by a constant factor: the distant ones of T5 and DeBERTa. */
#include "log_scale.h"

#include "powers.h"

/*
 * The least integer that is >= x_k (past: > x_k), from its double-double x. The root is within
 * 2^-103 and each of the fewer than 2k products that make the power adds 2^-102, so that x is
 * within (k + 64) 2^-98 of x_k, relative, with a factor of 3 to spare. Where an integer lies that
 * near, integers decide.
 */
static uint32_t bound(const struct posenc_log_scale *scale, posenc_dd x, int64_t k)
{
    double doubt = x.hi * (double)(k + 64) * 0x1p-98;
    if (x.hi > 0x1p31 + 1)
        return POSENC_LOG_NEVER;
    int64_t near = (int64_t)(x.hi + 0.5);
    double rest = (x.hi - (double)near) + x.lo;
    if (rest > doubt)
        return (uint32_t)(near + 1);
    if (rest < -doubt)
        return (uint32_t)near;
    int order = posenc_power_order(near, scale->first, scale->last, scale->steps, k);
    return (uint32_t)(near + (order < 0 || (order == 0 && scale->past)));
}

static posenc_dd power(const struct posenc_log_scale *scale, int64_t k)
{
    return posenc_dd_power(scale->root, (int32_t)k);
}

static posenc_dd times_first(const struct posenc_log_scale *scale, posenc_dd x)
{
    return posenc_dd_mul(x, posenc_dd_from((double)scale->first));
}

void posenc_log_scale_init(struct posenc_log_scale *scale, int64_t first, int64_t last,
                           int64_t steps, int64_t most, int32_t past)
{
    posenc_dd inverse = posenc_dd_div(posenc_dd_from((double)first), posenc_dd_from((double)last));
    scale->root = posenc_dd_inverse_root(inverse, (int32_t)steps);
    scale->first = first;
    scale->last = last;
    scale->steps = steps;
    scale->most = most;
    scale->past = past;
    scale->stride = 1;
    while (most / scale->stride >= POSENC_LOG_ENTRIES)
        scale->stride *= 2;
    scale->count = (int32_t)(most / scale->stride) + 1;
    posenc_dd x = posenc_dd_from(1.0), step = power(scale, scale->stride);
    for (int32_t i = 0; i < scale->count; i++) {
        scale->from[i] = bound(scale, times_first(scale, x), i * scale->stride);
        if (scale->from[i] != POSENC_LOG_NEVER)
            x = posenc_dd_mul(x, step);
    }
}

uint32_t posenc_log_scale_from(const struct posenc_log_scale *scale, int64_t k)
{
    if (k % scale->stride == 0)
        return scale->from[k / scale->stride];
    if (scale->from[k / scale->stride] == POSENC_LOG_NEVER)
        return POSENC_LOG_NEVER;
    return bound(scale, times_first(scale, power(scale, k)), k);
}

int64_t posenc_log_scale_reached(const struct posenc_log_scale *scale, uint32_t distance)
{
    int64_t low = -1, high = scale->count; /* entry `low` is reached, entry `high` is not */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (scale->from[middle] <= distance)
            low = middle;
        else
            high = middle;
    }
    if (low < 0 || scale->stride == 1)
        return low;
    low *= scale->stride;
    high *= scale->stride;
    high = high <= scale->most ? high : scale->most + 1;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (posenc_log_scale_from(scale, middle) <= distance)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double posenc_log_scale_end(int64_t first, int64_t last, int64_t steps, uint32_t distance)
{
    posenc_dd start = posenc_dd_log((double)first);
    double span = posenc_dd_sub(posenc_dd_log((double)last), start).hi;
    double reach = posenc_dd_sub(posenc_dd_log((double)distance), start).hi;
    double turns = reach / span * (double)steps * (1 + 0x1p-40);
    return turns < 0x1p40 ? (double)(int64_t)turns + 2 : turns;
}
