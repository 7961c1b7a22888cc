/* SPDX-License-Identifier: MIT */
/* What posenc inspect found, and its two forms. */
#ifndef POSENC_INSPECT_H
#define POSENC_INSPECT_H

#include "model.h"

#include <stdio.h>

struct inspected_set {
    posenc_contract_set facts;
    posenc_rope_params params;
    posenc_plan *plan;
    double *inv_freq; /* [posenc_plan_pairs] */
};

struct inspection {
    struct model model;
    struct inspected_set *sets;
    int32_t num_sets;
};

void inspect_json(const struct inspection *inspection);
void inspect_text(const struct inspection *inspection);

/* 1 if layers have different sets or kinds. */
int inspect_layers_differ(const struct model *model);

/* The name under which layer_sets lists a layer: its set where there are several, else its kind;
 * "nope" and "no_attention" are no sets. */
const char *inspect_layer_group(const struct model *model, int64_t layer);

#endif
