/* SPDX-License-Identifier: MIT */
/* posenc run, in steps: set up the model's own shape, check, measure, print. */
#ifndef POSENC_RUN_H
#define POSENC_RUN_H

#include "measure.h"
#include "model.h"
#include "tool.h"

enum { RUN_ISAS = MEASURE_ISAS };

struct run_options {
    const char *model;
    const char *set; /* --set: only layers of this frequency set; NULL all */
    int64_t tokens, start, layers; /* layers 0: as many as a short run affords */
    int32_t dtype;
    int json, limit;
};

/* A frequency set in force in this step, with what the step needs of it. Index i of plan[] belongs
 * to run.isa[i]. */
struct run_set {
    int32_t index; /* in the contract */
    posenc_contract_set facts;
    posenc_rope_params params;
    posenc_plan *plan[RUN_ISAS];
    int64_t k_heads, k_channels; /* MLA: one shared key head, the rotary part alone */
    double attention_factor;
    double *inv_freq;
    posenc_tensor rows;       /* of this step */
    posenc_tensor timed_rows; /* attention factor 1: repeats must not make the data grow */
};

struct run_layer {
    int32_t set; /* -1: not rotated */
    posenc_tensor q, k;
};

/* What the self-check found. */
struct run_check {
    double row_error;       /* in units of 2^-24, where it is the largest share of: */
    double row_bound;       /* what promise 1 allows there */
    double rotation_error;  /* largest, as a share of its own bound */
    double attention_error; /* in units of 2^-24 for values below 1, the largest share of: */
    double attention_bound; /* what float32 may cost there */
    int isa_rows[RUN_ISAS], isa_rotation[RUN_ISAS], isa_attention[RUN_ISAS]; /* 1: scalar's bits */
};

struct run {
    struct run_options options;
    struct model model;
    int32_t isa[RUN_ISAS]; /* scalar first */
    int isas;
    struct run_set *sets;
    int32_t num_sets;
    int64_t length; /* running length of the step: chooses among LongRoPE's sets, grows a base */
    struct run_layer *layers;
    int64_t num_layers, rotated_layers;
    double bytes; /* that one pass reads and writes: 2 x the rotated channels of Q and K */
    struct run_check check;
    struct measurement measured;
    double rows_seconds; /* of the step's rows, all sets, by the default ISA */
};

/* Each returns TOOL_OK or an exit code after saying why. */
int run_set_up(struct run *run);
void run_tear_down(struct run *run);
int run_check(struct run *run);
int run_measure(struct run *run);

/* Notes `error` if it is the largest share of its bound so far; a NaN is, and stays. */
void run_note_error(double *worst, double *worst_bound, double error, double bound);

/* run_sets.c: the sets in force at the running length, or the one that --set names; they have no
 * plans yet. */
int run_choose_sets(struct run *run);

/* run_sets.c: index in run->sets for a layer, -1 where the layer is not part of the run. */
int32_t run_set_of_layer(const struct run *run, int64_t layer);

/* The attention of a sample, as part of run_check. */
int run_check_attention(struct run *run, const struct run_set *set);

/* 1 if every ISA gave the bits of scalar. */
int run_isas_equal(const struct run *run);

/* 1 if nothing that was checked is out of bounds or differs. */
int run_passed(const struct run *run);

void run_print(const struct run *run);
void run_print_json(const struct run *run);

/* Words of `text` in lines of at most 80 columns, all but the first one indented by 12. */
void run_print_wrapped(const char *text);

/* Fills with ordinary numbers: 0.125 <= |x| < 1, none near a subnormal of any dtype. */
void run_fill(const posenc_tensor *tensor, uint32_t seed);

/* Index of the default ISA in run->isa. */
int run_default_isa(const struct run *run);

#endif
