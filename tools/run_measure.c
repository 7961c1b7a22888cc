/* SPDX-License-Identifier: MIT */
/* posenc run, third step: every ISA and the limit, one sample of each in turn, round after round.
 */
#include "run.h"
#include "touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Shared machines drift by more than the differences to be seen, so each round compares its own
 * samples and the median is taken over these ratios. */
enum { COMPETITORS = RUN_ISAS + RUN_TOUCHES, LEAST_ROUNDS = 5 };
static const double least_sample = 2e-3, budget = 2.5; /* seconds */

struct competitor {
    int isa;             /* index in run->isa, or -1: */
    touch_kernel *touch; /* this */
    int64_t repeats;
    double seconds[RUN_MAX_ROUNDS];
};

static void touch_tensor(touch_kernel *touch, const posenc_tensor *t, const struct run_set *set)
{
    size_t size = tool_dtype_size(t->dtype), channels = (size_t)t->shape[3];
    size_t rotary = (size_t)set->facts.rotary_dim, runs = (size_t)(t->shape[1] * t->shape[2]);
    int whole = rotary == channels;
    size_t offset = whole ? 0 : (size_t)set->facts.rotary_offset;
    struct touch_job job = {
        .data = (char *)t->data + offset * size,
        .bytes = (whole ? runs * channels : rotary) * size,
        .runs = whole ? 1 : runs,
        .stride = (ptrdiff_t)(channels * size),
        .multiply = t->dtype == POSENC_F32,
    };
    touch(&job);
}

/* All layers once. What the set-up and the check accepted cannot be refused here. */
static void pass(const struct run *run, const struct competitor *c)
{
    for (int64_t l = 0; l < run->num_layers; l++) {
        const struct run_layer *layer = &run->layers[l];
        if (layer->set < 0)
            continue;
        const struct run_set *set = &run->sets[layer->set];
        if (c->touch) {
            touch_tensor(c->touch, &layer->q, set);
            touch_tensor(c->touch, &layer->k, set);
        } else {
            posenc_rotate(set->plan[c->isa], POSENC_FORWARD, &set->timed_rows, &layer->q, NULL,
                          &layer->k, NULL, NULL);
        }
    }
}

/* Time that this thread has computed: what others do with the processor meanwhile is not ours. */
static double thread_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one pass, averaged over the competitor's repeats. */
static double sample(const struct run *run, const struct competitor *c)
{
    double start = thread_now();
    for (int64_t r = 0; r < c->repeats; r++)
        pass(run, c);
    return (thread_now() - start) / (double)c->repeats;
}

/* Warms up, and finds how many passes make a sample that the clock can tell. Returns its seconds.
 */
static double calibrate(const struct run *run, struct competitor *c)
{
    c->repeats = 1;
    double seconds = sample(run, c);
    while (seconds * (double)c->repeats < least_sample) {
        c->repeats *= 2;
        seconds = sample(run, c);
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

static void summarise(struct run_result *result, const struct competitor *c, const double *limit,
                      int rounds)
{
    double values[RUN_MAX_ROUNDS];
    memcpy(values, c->seconds, sizeof values);
    result->seconds = quantile(values, rounds, 0.5);
    for (int r = 0; r < rounds; r++)
        values[r] = limit[r] / c->seconds[r];
    result->ratio = quantile(values, rounds, 0.5);
    result->spread = quantile(values, rounds, 0.75) - quantile(values, rounds, 0.25);
}

static int measure_rounds(struct run *run, struct competitor *c, int count)
{
    double round = 0;
    for (int i = 0; i < count; i++) {
        tool_progress("measuring: warming up");
        round += calibrate(run, &c[i]);
    }
    int rounds = (int)(budget / round);
    if (rounds < LEAST_ROUNDS)
        rounds = LEAST_ROUNDS;
    if (rounds > RUN_MAX_ROUNDS)
        rounds = RUN_MAX_ROUNDS;
    for (int r = 0; r < rounds; r++) {
        char text[60];
        snprintf(text, sizeof text, "measuring: round %d of %d", r + 1, rounds);
        tool_progress(text);
        for (int i = 0; i < count; i++)
            c[i].seconds[r] = sample(run, &c[i]);
    }
    return rounds;
}

/* Rows of the step by the default ISA, the best of a few: one small part, told for orientation. */
static void measure_rows(struct run *run)
{
    double best = 1e9;
    int isa = run_default_isa(run);
    posenc_positions positions;
    posenc_positions_start(&positions, run->options.start);
    for (int r = 0; r < 5; r++) {
        double start = thread_now();
        for (int32_t s = 0; s < run->num_sets; s++)
            posenc_rows(run->sets[s].plan[isa], &positions, &run->sets[s].rows, NULL);
        double seconds = thread_now() - start;
        if (seconds < best)
            best = seconds;
    }
    run->rows_seconds = best;
}

int run_measure(struct run *run)
{
    struct competitor *c = calloc(COMPETITORS, sizeof *c);
    if (!c)
        return tool_fail(TOOL_SYSTEM, "no memory for the measurement");
    touch_kernel *touches[RUN_TOUCHES];
    const char *names[RUN_TOUCHES];
    int count = 0;
    run->touches = touch_kernels(touches, names);
    for (int t = 0; t < run->touches; t++) {
        c[count].isa = -1;
        c[count++].touch = touches[t];
    }
    for (int i = run->isas - 1; i >= 0; i--)
        c[count++].isa = i;
    run->rounds = measure_rounds(run, c, count);

    /* The limit is the touch kernel that is the fastest by its median; a minimum in each round
     * would be one of noise. */
    for (int t = 0; t < run->touches; t++) {
        run->touch[t].name = names[t];
        summarise(&run->touch[t], &c[t], c[t].seconds, run->rounds);
        if (run->touch[t].seconds < run->touch[run->limit].seconds)
            run->limit = t;
    }
    const double *limit = c[run->limit].seconds;
    for (int n = run->touches; n < count; n++) {
        run->result[c[n].isa].name = posenc_isa_name(run->isa[c[n].isa]);
        summarise(&run->result[c[n].isa], &c[n], limit, run->rounds);
    }
    free(c);
    measure_rows(run);
    return TOOL_OK;
}
