/* SPDX-License-Identifier: MIT */
/* What posenc inspect found, and its two forms. */
#ifndef POSENC_INSPECT_H
#define POSENC_INSPECT_H

#include "model.h"

#include <stdio.h>

struct inspected_set {
    posenc_contract_set facts;
    posenc_rope_params params;
    char id[48];     /* that of the contract, or "dynamic@N" */
    int64_t seq_len; /* the running length that --lengths asked for; -1 none */
    posenc_plan *plan;
    double *inv_freq; /* [posenc_plan_pairs] */
};

struct inspection {
    struct model model;
    struct inspected_set *sets;
    int32_t num_sets;
    double *slopes; /* [num_heads], NULL without ALiBi */
};

void inspect_json(const struct inspection *inspection);
void inspect_text(const struct inspection *inspection);

/* JSON: the members alibi, t5, learned, sinusoidal and deberta, null where the model has none. */
void inspect_json_schemes(const struct inspection *inspection);

/* The slopes of ALiBi, where the model has them. TOOL_OK or an exit code after saying why. */
int inspect_slopes(struct inspection *inspection);

/* Text: the same facts, a line each; put by inspect_line. */
void inspect_text_schemes(const struct model *model);

/* Text: what a user of the model should watch. */
void inspect_text_watch(const struct inspection *inspection);

/* A label (NULL: the same as above), then a text in hanging lines of at most 80 columns. */
void inspect_line(const char *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Numbers and texts of JSON. */
void inspect_put_count(int64_t value);
void inspect_put_string(const char *text);

/* "rope", "alibi", ... as JSON spells POSENC_SCHEME_*. */
const char *inspect_scheme(int32_t scheme);

/* 1 for the set of lengths beyond the original one ("long"): its layers are listed under the first.
 */
int inspect_is_second(const posenc_contract_set *set, const posenc_rope_params *params);

/* 1 if layers have different sets or kinds. */
int inspect_layers_differ(const struct model *model);

/* The name under which layer_sets lists a layer: its set where there are several, else its kind;
 * "nope" and "no_attention" are no sets. */
const char *inspect_layer_group(const struct model *model, int64_t layer);

#endif
