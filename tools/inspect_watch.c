/* SPDX-License-Identifier: MIT */
/* posenc inspect: what to watch: pairs that training never turned once, lengths at which the
 * frequencies change, what an extension does to distances. */
#include "inspect.h"

#include <stdlib.h>

static const double TURN = 6.283185307179586;

/* The length of training as far as the files tell, 0 if they do not. `plain` is 1 if the unscaled
 * frequencies were trained on it: it is the length before an extension. */
static double trained_length(const struct inspection *inspection, const struct inspected_set *set,
                             int *plain)
{
    const posenc_contract_facts *facts = &inspection->model.facts;
    int64_t before = facts->trained_position > 0 ? facts->trained_position
                                                 : set->facts.original_max_position;
    *plain = before > 0;
    int64_t length = before > 0 ? before : facts->max_position;
    return length > 0 ? (double)length : 0.0;
}

static void watch_turns(const struct inspected_set *set, const double *frequencies, double trained)
{
    int32_t pairs = posenc_plan_pairs(set->plan), slow = 0, still = 0;
    for (int32_t i = 0; i < pairs; i++) {
        int rests = !(set->inv_freq[i] > 0.0);
        still += rests;
        slow += !rests && frequencies[i] * trained < TURN;
    }
    if (trained > 0.0 && slow > 0) {
        inspect_line("watch", "%s: %d of %d pairs never completed a turn within the %.9g tokens of "
                     "training: beyond them their angles are new to the model",
                     set->id, slow, pairs, trained);
    }
    if (still > 0) {
        inspect_line("watch", "%s: %d of %d pairs stand still, they carry no position", set->id,
                     still, pairs);
    }
}

/* Every pair by its own ratio to the unscaled frequency: the slowest pair is stretched most. */
static void watch_extension(const struct inspected_set *set, const double *plain)
{
    int32_t pairs = posenc_plan_pairs(set->plan), kept = 0;
    double least = 1.0;
    for (int32_t i = 0; i < pairs; i++) {
        double ratio = set->inv_freq[i] / plain[i];
        kept += ratio > 0.999999 && ratio < 1.000001;
        if (ratio > 0.0 && ratio < least) {
            least = ratio;
        }
    }
    if (least < 0.999999) {
        inspect_line("watch", "%s: extended by up to %.6g: in the pair that is stretched most a "
                     "distance of 8000 becomes %.6g, one step %.6g; %d of %d pairs are unchanged",
                     set->id, 1.0 / least, 8000.0 * least, least, kept, pairs);
    }
}

/* For LongRoPE the two sets have their lengths; the one plan that switches tells where. */
static void watch_length(const struct inspected_set *set)
{
    posenc_rope_params params = set->params;
    posenc_plan *plan = NULL;
    int64_t first = 0, next = 0;
    params.length = 0;
    if (!set->facts.depends_on_length || set->seq_len > 0 ||
        inspect_is_second(&set->facts, &set->params) || posenc_plan_create(&plan, &params, NULL)) {
        return;
    }
    if (!posenc_plan_length_range(plan, 1, &first, &next, NULL) && next != INT64_MAX) {
        int once = set->params.scaling == POSENC_SCALING_LONGROPE;
        inspect_line("watch", "%s: frequencies change %s %lld tokens%s: keys cached before were "
                     "turned by others",
                     set->id, once ? "at" : "with every token from", (long long)next,
                     once ? "" : " on");
    }
    posenc_plan_free(plan);
}

static void watch_set(const struct inspection *inspection, const struct inspected_set *set)
{
    posenc_rope_params params = set->params;
    size_t pairs = (size_t)posenc_plan_pairs(set->plan);
    double *plain = malloc(pairs * sizeof *plain);
    posenc_plan *plan = NULL;
    int unscaled = 0;
    params.scaling = POSENC_SCALING_NONE;
    params.frequency_source = POSENC_FREQUENCIES_FORMULA;
    params.frequencies = NULL;
    if (plain && !posenc_plan_create(&plan, &params, NULL) &&
        !posenc_plan_inv_freq(plan, plain, pairs, NULL)) {
        double trained = trained_length(inspection, set, &unscaled);
        watch_turns(set, unscaled ? plain : set->inv_freq, trained);
        watch_extension(set, plain);
    }
    watch_length(set);
    posenc_plan_free(plan);
    free(plain);
}

void inspect_text_watch(const struct inspection *inspection)
{
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        watch_set(inspection, &inspection->sets[i]);
    }
}
