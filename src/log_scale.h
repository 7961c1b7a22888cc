/* SPDX-License-Identifier: MIT */
/* Buckets whose bounds grow by a constant factor: the distant ones of T5 and DeBERTa. */
#ifndef POSENC_LOG_SCALE_H
#define POSENC_LOG_SCALE_H

#include "dd.h"

enum { POSENC_LOG_ENTRIES = 1024 };

/* The bound that no distance reaches. */
#define POSENC_LOG_NEVER UINT32_MAX

/*
 * The scale x_k = first (last/first)^(k/steps), k = 0, 1, ..., most, against integer distances of
 * at most 2^31: which k a distance has reached, exactly. Made for one call, on its stack; where
 * there are more bounds than entries, every stride-th is kept and the others are computed anew.
 */
struct posenc_log_scale {
    posenc_dd root; /* (last/first)^(1/steps) */
    int64_t first, last, steps, most;
    int64_t stride;
    int32_t past; /* 0: x_k itself has reached k, 1: only what lies past it */
    int32_t count;
    uint32_t from[POSENC_LOG_ENTRIES];
};

/* Given 0 < first < last <= 2^53, 0 < steps <= 32768, 0 <= most < 2^31. */
void posenc_log_scale_init(struct posenc_log_scale *scale, int64_t first, int64_t last,
                           int64_t steps, int64_t most, int32_t past);

/* The least distance that has reached k, for 0 <= k <= most. */
uint32_t posenc_log_scale_from(const struct posenc_log_scale *scale, int64_t k);

/* The largest k <= most that a distance >= first has reached; -1: none. */
int64_t posenc_log_scale_reached(const struct posenc_log_scale *scale, uint32_t distance);

/* A k that the distance does not reach, one or two above the last that it does. In doubles: it may
 * be very large where last is next to first. */
double posenc_log_scale_end(int64_t first, int64_t last, int64_t steps, uint32_t distance);

#endif
