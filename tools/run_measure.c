/* SPDX-License-Identifier: MIT */
/* posenc run, third step: every ISA and the limit, by one pass over all layers. */
#include "run.h"

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
static void pass(const void *data, int isa, touch_kernel *touch)
{
    const struct run *run = data;
    for (int64_t l = 0; l < run->num_layers; l++) {
        const struct run_layer *layer = &run->layers[l];
        if (layer->set < 0)
            continue;
        const struct run_set *set = &run->sets[layer->set];
        if (touch) {
            touch_tensor(touch, &layer->q, set);
            touch_tensor(touch, &layer->k, set);
        } else {
            posenc_rotate(set->plan[isa], POSENC_FORWARD, &set->timed_rows, &layer->q, NULL,
                          &layer->k, NULL, NULL);
        }
    }
}

/* Rows of the step by the default ISA, the best of a few: one small part, told for orientation. */
static void measure_rows(struct run *run)
{
    double best = 1e9;
    int isa = run_default_isa(run);
    posenc_positions positions;
    posenc_positions_start(&positions, run->options.start);
    for (int r = 0; r < 5; r++) {
        double start = measure_now();
        for (int32_t s = 0; s < run->num_sets; s++)
            posenc_rows(run->sets[s].plan[isa], &positions, &run->sets[s].rows, NULL);
        double seconds = measure_now() - start;
        if (seconds < best)
            best = seconds;
    }
    run->rows_seconds = best;
}

int run_measure(struct run *run)
{
    struct measure_work work = {.data = run, .pass = pass, .isas = run->isas, .isa = run->isa};
    work.touches = touch_kernels(work.touch, work.touch_name);
    int code = measure(&work, &run->measured);
    if (!code)
        measure_rows(run);
    return code;
}
