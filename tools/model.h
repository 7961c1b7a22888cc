/* SPDX-License-Identifier: MIT */
/* The MODEL argument: a contract, or a scheme given directly, and the choice of a frequency set. */
#ifndef POSENC_MODEL_H
#define POSENC_MODEL_H

#include "tool.h"

#include <posenc/contract.h>

/* What the shared options said. */
struct model_choice {
    const char *model; /* MODEL */
    const char *rope;  /* --rope */
    const char *set;   /* --set */
    int64_t layer;     /* --layer; -1 not given */
    int64_t length;    /* --length; -1 not given */
    int limit;         /* --limit */
};

/* --model, --rope, --set, --layer, --length, --limit for tool_usage.shared. */
extern const struct tool_option model_options[];

/* Takes one option; TOOL_OK, or wrong usage after saying so. Ids that are not ours give -1. */
int model_take_option(struct model_choice *choice, int id, const char *value);

/* For subcommands whose one operand is MODEL: takes it from argv[optind]; --model and --rope stand
 * for it. TOOL_OK or wrong usage. */
int model_take_operand(struct model_choice *choice, int argc, char **argv);

struct model {
    posenc_contract *contract; /* NULL with --rope */
    const char *name;
    posenc_contract_facts facts;
};

/* Reads MODEL ("-" is standard input). TOOL_OK or an exit code after saying why. */
int model_open(struct model *model, const char *path);
void model_close(struct model *model);

/* The chosen frequency set. */
struct model_set {
    const char *id; /* "main", or "--rope" */
    posenc_rope_params params;
    int64_t max_position; /* -1 unknown */
    int rotated;          /* 0: --layer named one without rotation */
    int32_t index;        /* in the contract; -1 where there is none */
};

/* Opens what `choice` names and picks the set that it means; refuses a choice that is none. */
int model_choose(struct model *model, struct model_set *set, const struct model_choice *choice);

/* The same of an open model, which it leaves open. */
int model_choose_set(struct model *model, struct model_set *set, const struct model_choice *choice);

/* Refuses the id of a set that the model does not have, and lists those that it has. */
int model_no_such_set(const struct model *model, const char *id);

/* 1 if a layer is turned by the chosen set, or, where that is none, by none. */
int model_set_has_layer(const struct model *model, const struct model_set *set, int64_t layer);

/* Parses WIDTH[,key=value]...; TOOL_OK or wrong usage. */
int model_parse_rope(posenc_rope_params *params, const char *text);

/* Passes on what the contract warns about. */
void model_warn_notes(const struct model *model);

/* Warns if positions up to `last` pass the trained limit. */
void model_warn_limit(const struct model *model, int64_t max_position, int64_t last);

#endif
