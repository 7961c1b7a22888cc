/* SPDX-License-Identifier: MIT */
/* The scheme that a subcommand works on: a model's own, or one given directly. */
#ifndef POSENC_TOOL_SCHEME_H
#define POSENC_TOOL_SCHEME_H

#include "model.h"

#include <posenc/absolute.h>
#include <posenc/biases.h>

enum scheme_kind {
    SCHEME_NONE = 0,
    SCHEME_ROPE = 1,
    SCHEME_SINUSOID = 2,
    SCHEME_ALIBI = 4,
    SCHEME_T5 = 8,
    SCHEME_LEARNED = 16
};

enum scheme_part { SCHEME_ANY_PART = 0, SCHEME_ENCODER, SCHEME_DECODER };

/* What the options said; init with SCHEME_CHOICE. */
struct scheme_choice {
    struct model_choice model;
    const char *sinusoid, *alibi, *t5;
    enum scheme_part part;
};

extern const struct scheme_choice scheme_no_choice;

/* Help of the options that name a scheme; their ids are the subcommand's own. */
extern const char scheme_sinusoid_argument[], scheme_sinusoid_help[];
extern const char scheme_alibi_argument[], scheme_alibi_help[];
extern const char scheme_t5_argument[], scheme_t5_help[];
extern const char scheme_part_help[];

int scheme_take_part(struct scheme_choice *choice, const char *value);

struct scheme {
    enum scheme_kind kind;
    struct model model;   /* its contract is NULL where the scheme was given directly */
    struct model_set set; /* ROPE */
    posenc_sinusoid_params sinusoid;
    posenc_alibi_params alibi;
    posenc_t5_params t5;
    int64_t heads;        /* ALIBI; T5: of the model, or -1 */
    int64_t max_position; /* declared; -1 unknown */
};

/* 1 if a scheme or a model is named. */
int scheme_is_named(const struct scheme_choice *choice);

/* Opens what `choice` names. Of a model with several schemes the first of `kinds` (a sum of
 * scheme_kind) that it has, in the order of the enumeration; refuses one that has none of them. */
int scheme_choose(struct scheme *scheme, const struct scheme_choice *choice, int kinds);
void scheme_close(struct scheme *scheme);

/* Parameters of what a contract says. ALiBi by distance or, where the model looks both ways, by its
 * absolute value: these have the softmax of the model's own form, and future keys get 0. */
void scheme_fill_sinusoid(posenc_sinusoid_params *params, const posenc_contract_sinusoidal *waves);
void scheme_fill_alibi(posenc_alibi_params *params, const posenc_contract_alibi *alibi,
                       const posenc_contract_facts *facts);

/* scheme_parse.c: the texts of --sinusoid, --alibi and --t5; TOOL_OK or wrong usage. */
int scheme_parse_sinusoid(posenc_sinusoid_params *params, const char *text);
int scheme_parse_alibi(posenc_alibi_params *params, const char *text);
int scheme_parse_t5(posenc_t5_params *params, const char *text);

/* scheme_parse.c: sets what the name of a form fixes; 0 for an unknown name. */
int scheme_set_form(posenc_sinusoid_params *params, const char *form);

#endif
