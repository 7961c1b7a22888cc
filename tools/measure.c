/* SPDX-License-Identifier: MIT */
/* Measuring: every competitor and its limits, one sample of each in turn, round after round. */
#include "measure.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Shared machines drift by more than the differences to be seen, so each round compares its own
 * samples and the median is taken over these ratios. */
enum { COMPETITORS = MEASURE_ISAS + MEASURE_TOUCHES, LEAST_ROUNDS = 5 };
static const double least_sample = 2e-3, budget = 2.5; /* seconds */

struct competitor {
    int isa;             /* index in work->isa, or -1: */
    touch_kernel *touch; /* this */
    int64_t repeats;
    double seconds[MEASURE_MAX_ROUNDS];
};

double measure_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one pass, averaged over the competitor's repeats. */
static double sample(const struct measure_work *work, const struct competitor *c)
{
    double start = measure_now();
    for (int64_t r = 0; r < c->repeats; r++)
        work->pass(work->data, c->isa, c->touch);
    return (measure_now() - start) / (double)c->repeats;
}

/* Warms up, and finds how many passes make a sample that the clock can tell. Returns its seconds.
 */
static double calibrate(const struct measure_work *work, struct competitor *c)
{
    c->repeats = 1;
    double seconds = sample(work, c);
    while (seconds * (double)c->repeats < least_sample) {
        c->repeats *= 2;
        seconds = sample(work, c);
    }
    return seconds * (double)c->repeats;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile of `count` values, which get sorted. */
static double quantile(double *values, int count, double q)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    double at = q * (count - 1);
    int below = (int)at;
    double above = below + 1 < count ? values[below + 1] : values[below];
    return values[below] + (at - below) * (above - values[below]);
}

static void summarise(struct measure_result *result, const struct competitor *c,
                      const double *limit, int rounds)
{
    double values[MEASURE_MAX_ROUNDS];
    memcpy(values, c->seconds, sizeof values);
    result->seconds = quantile(values, rounds, 0.5);
    for (int r = 0; r < rounds; r++)
        values[r] = limit[r] / c->seconds[r];
    result->ratio = quantile(values, rounds, 0.5);
    result->spread = quantile(values, rounds, 0.75) - quantile(values, rounds, 0.25);
}

static int measure_rounds(const struct measure_work *work, struct competitor *c, int count)
{
    double round = 0;
    for (int i = 0; i < count; i++) {
        tool_progress("measuring: warming up");
        round += calibrate(work, &c[i]);
    }
    int rounds = (int)(budget / round);
    if (rounds < LEAST_ROUNDS)
        rounds = LEAST_ROUNDS;
    if (rounds > MEASURE_MAX_ROUNDS)
        rounds = MEASURE_MAX_ROUNDS;
    for (int r = 0; r < rounds; r++) {
        char text[60];
        snprintf(text, sizeof text, "measuring: round %d of %d", r + 1, rounds);
        tool_progress(text);
        for (int i = 0; i < count; i++)
            c[i].seconds[r] = sample(work, &c[i]);
    }
    return rounds;
}

int measure(const struct measure_work *work, struct measurement *found)
{
    struct competitor *c = calloc(COMPETITORS, sizeof *c);
    if (!c)
        return tool_fail(TOOL_SYSTEM, "no memory for the measurement");
    int count = 0;
    for (int t = 0; t < work->touches; t++) {
        c[count].isa = -1;
        c[count++].touch = work->touch[t];
    }
    for (int i = work->isas - 1; i >= 0; i--)
        c[count++].isa = i;
    *found = (struct measurement){.touches = work->touches};
    found->rounds = measure_rounds(work, c, count);

    /* The limit is the touch kernel that is the fastest by its median; a minimum in each round
     * would be one of noise. */
    for (int t = 0; t < work->touches; t++) {
        found->touch[t].name = work->touch_name[t];
        summarise(&found->touch[t], &c[t], c[t].seconds, found->rounds);
        if (found->touch[t].seconds < found->touch[found->limit].seconds)
            found->limit = t;
    }
    const double *limit = c[found->limit].seconds;
    for (int n = work->touches; n < count; n++) {
        found->result[c[n].isa].name = posenc_isa_name(work->isa[c[n].isa]);
        summarise(&found->result[c[n].isa], &c[n], limit, found->rounds);
    }
    free(c);
    return TOOL_OK;
}
