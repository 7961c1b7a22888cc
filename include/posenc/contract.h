/* SPDX-License-Identifier: MIT */
/*
 * libposenc-contract: from a model's own files to its position contract: which scheme it uses, how
 * each layer turns its heads, and what that means in parameters of libposenc.
 *
 * What a file does not state is supplied by the default of its model class and listed as assumed;
 * two places that disagree are settled by a documented precedence and listed as a warning; what is
 * unknown, malformed or contradictory is refused by name. docs/contract.md has the rules.
 *
 * Conventions: see posenc.h. Only posenc_contract_open and _parse allocate; a contract may be read
 * by all threads. Set struct_size of a struct before it is filled; that of a newer header is filled
 * as far as this version knows it, and the rest is cleared. errno keeps its value.
 */
#ifndef POSENC_CONTRACT_H
#define POSENC_CONTRACT_H

#include <posenc/posenc.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { /* scheme */
    POSENC_SCHEME_NONE = 0,
    POSENC_SCHEME_ROPE = 1
};

enum { /* what posenc_contract_layer_set answers beside an index */
    POSENC_LAYER_NOT_ROTATED = -1, /* attention without rotation ("NoPE") */
    POSENC_LAYER_NO_ATTENTION = -2,
    POSENC_LAYER_INVALID = -3 /* no such layer */
};

/* Limits for hostile files. */
enum {
    POSENC_CONTRACT_MAX_BYTES = 16777216, /* size of a file */
    POSENC_CONTRACT_MAX_DEPTH = 64,       /* nesting of arrays and objects */
    POSENC_CONTRACT_MAX_LAYERS = 65536
};

/* What a model's files say. Never changes after its creation; may be shared by all threads. */
typedef struct posenc_contract posenc_contract;

/* Reads a config.json, or the one in a folder. */
POSENC_API int32_t posenc_contract_open(posenc_contract **contract, const char *path,
                                        posenc_error *error);

/* Reads the text of a config.json: `length` bytes of UTF-8, no NUL needed. */
POSENC_API int32_t posenc_contract_parse(posenc_contract **contract, const char *json,
                                         size_t length, posenc_error *error);

/* Frees a contract and every string it handed out; NULL is allowed. */
POSENC_API void posenc_contract_free(posenc_contract *contract);

/* The facts of the whole model. Set struct_size before the call; strings live as long as the
 * contract; an absent number is -1, an absent string NULL. */
typedef struct posenc_contract_facts {
    uint32_t struct_size; /* sizeof(posenc_contract_facts) */
    int32_t scheme;       /* POSENC_SCHEME_* */
    const char *model_type;
    int64_t num_heads;
    int64_t num_kv_heads;
    int64_t head_dim; /* of q and k; for MLA nope + rope */
    int64_t num_layers;
    int64_t max_position; /* declared; never enforced by itself */
    const char *max_position_key;
    int64_t trained_position; /* before extension, where the file tells it from the declared one */
    double softmax_scale;
    const char *softmax_rule;
    int64_t sliding_window;
    int32_t num_sets;     /* frequency sets */
    int32_t num_assumed;  /* facts that a default supplied */
    int32_t num_warnings; /* things to watch */
    int32_t reserved;
    /* Queries of "all" or "nope_layers" (NULL: of none) are multiplied, after rotation, by
     * 1 + factor*ln(1 + floor((position + offset)/floor)). */
    const char *query_scale_layers;
    const char *query_scale_rule;
    double query_scale_factor;
    int64_t query_scale_floor;
    int64_t query_scale_offset;
} posenc_contract_facts;

POSENC_API int32_t posenc_contract_get_facts(const posenc_contract *contract,
                                             posenc_contract_facts *facts, posenc_error *error);

/* One frequency set, 0 <= index < num_sets. */
typedef struct posenc_contract_set {
    uint32_t struct_size; /* sizeof(posenc_contract_set) */
    int32_t layout;       /* POSENC_ADJACENT or POSENC_SPLIT_HALF */
    const char *id;       /* "main"; "global" and "local" */
    const char *rope_type; /* after aliases: "default", "linear", "llama3", "yarn" */
    double base;
    int32_t head_dim; /* of the layers that use this set */
    int32_t rotary_dim;
    int32_t rotary_offset;
    int32_t num_heads;
    int32_t num_kv_heads;
    int32_t reserved;
    int64_t original_max_position; /* -1 where the scaling has none */
} posenc_contract_set;

POSENC_API int32_t posenc_contract_get_set(const posenc_contract *contract, int32_t index,
                                           posenc_contract_set *set, posenc_error *error);

/* The frequency set of a layer, or POSENC_LAYER_*. */
POSENC_API int32_t posenc_contract_layer_set(const posenc_contract *contract, int64_t layer);

/* How a layer attends: "full", "sliding", "chunked", "linear" (no softmax); NULL: no such layer. */
POSENC_API const char *posenc_contract_layer_type(const posenc_contract *contract, int64_t layer);

/* Plan parameters of a set, into a struct that posenc_rope_params_init filled. They hold no
 * pointer, so the contract may be freed before they are used. */
POSENC_API int32_t posenc_contract_plan_params(const posenc_contract *contract, int32_t index,
                                               posenc_rope_params *params, posenc_error *error);

/* One fact that a default supplied, 0 <= index < num_assumed, or one warning, 0 <= index <
 * num_warnings. At most 24 facts and 32 warnings are kept. */
typedef struct posenc_contract_note {
    uint32_t struct_size; /* sizeof(posenc_contract_note) */
    uint32_t reserved;
    const char *key;   /* as the file spells it, with the objects around it: "rope_scaling.type" */
    const char *value; /* JSON text: 10000 or "split_half"; NULL for a warning */
    const char *text;  /* why, or the warning */
} posenc_contract_note;

POSENC_API int32_t posenc_contract_get_assumed(const posenc_contract *contract, int32_t index,
                                               posenc_contract_note *note, posenc_error *error);
POSENC_API int32_t posenc_contract_get_warning(const posenc_contract *contract, int32_t index,
                                               posenc_contract_note *note, posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
