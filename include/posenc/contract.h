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
    POSENC_SCHEME_ROPE = 1,
    POSENC_SCHEME_ALIBI = 2,
    POSENC_SCHEME_T5 = 3,         /* relative bias by buckets */
    POSENC_SCHEME_DEBERTA = 4,    /* disentangled relative attention */
    POSENC_SCHEME_LEARNED = 5,    /* a trained table */
    POSENC_SCHEME_SINUSOIDAL = 6
};

enum { /* what posenc_contract_layer_set answers beside an index */
    POSENC_LAYER_NOT_ROTATED = -1, /* attention without rotation ("NoPE") */
    POSENC_LAYER_NO_ATTENTION = -2,
    POSENC_LAYER_INVALID = -3 /* no such layer */
};

/* Limits for hostile files. */
enum {
    POSENC_CONTRACT_MAX_BYTES = 16777216, /* size of a JSON file, and of what is read from a pipe */
    POSENC_CONTRACT_MAX_HEADER = 134217728, /* header of a GGUF file, vocabulary included */
    POSENC_CONTRACT_MAX_DEPTH = 64,       /* nesting of arrays and objects */
    POSENC_CONTRACT_MAX_LAYERS = 65536,
    POSENC_CONTRACT_MAX_ENTRIES = 65536   /* metadata entries, and tensors, of a GGUF file */
};

/* What a model's files say. Never changes after its creation; may be shared by all threads. */
typedef struct posenc_contract posenc_contract;

/*
 * Reads a model's file: a config.json, a params.json (Meta, Mistral), a genai_config.json, a GGUF
 * file (versions 2 and 3, both byte orders), or a folder with one of the JSON files, tried in this
 * order. What a file is follows from its content, not its name. Of a GGUF file only the header and
 * small tensors of factors are touched; it is mapped, so that it must not be shortened meanwhile
 * (the system would end the process, by SIGBUS).
 */
POSENC_API int32_t posenc_contract_open(posenc_contract **contract, const char *path,
                                        posenc_error *error);

/* Reads the same from memory: `length` bytes of JSON in UTF-8 (no NUL needed), or of a GGUF file
 * from its start to the end of its header and of the tensors rope_freqs and rope_factors_*. */
POSENC_API int32_t posenc_contract_parse(posenc_contract **contract, const char *data,
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
    double softmax_scale; /* complete: posenc_plan_softmax_multiplier is in it where one applies */
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
    double logit_softcap; /* scores become cap*tanh(score/cap); 0 = none */
    const char *source;   /* "config.json", "params.json", "genai_config.json" or "gguf" */
    /* Each head has a learned sink in layers "all", "sliding" or "full"; NULL: in none. */
    const char *sink_layers;
    /* Chunked layers, or rotated ones where none has that type: a query sees the keys of its own
     * chunk of so many positions; -1: no chunks. */
    int64_t attention_chunk;
    int32_t window_sides; /* 1: sliding layers see 0 <= query - key < sliding_window; 2: |query - */
                          /* key| <= sliding_window / 2; -1: there is no window */
    int32_t reserved2;
} posenc_contract_facts;

POSENC_API int32_t posenc_contract_get_facts(const posenc_contract *contract,
                                             posenc_contract_facts *facts, posenc_error *error);

/* One frequency set, 0 <= index < num_sets. */
typedef struct posenc_contract_set {
    uint32_t struct_size; /* sizeof(posenc_contract_set) */
    int32_t layout;       /* POSENC_ADJACENT or POSENC_SPLIT_HALF */
    /* "main" of all layers; "global", "local", "chunked" of one kind of them. For LongRoPE "short"
     * and "long", or "global-short" and so on. */
    const char *id;
    const char *rope_type; /* after aliases: "default", "linear", "llama3", "yarn", "dynamic", */
                           /* "longrope", "proportional", "ntk" */
    double base;
    int32_t head_dim; /* of the layers that use this set */
    int32_t rotary_dim;
    int32_t rotary_offset;
    int32_t num_heads;
    int32_t num_kv_heads;
    int32_t reserved;
    int64_t original_max_position; /* -1 where the scaling has none */
    /* Position axes (M-RoPE): how many, the pairs of each, and the axis of each pair; 1 and NULL
     * for plain positions. The arrays live as long as the contract. */
    int32_t axes;
    int32_t num_sections;
    const int32_t *sections;
    const int32_t *axis_of_pair; /* [rotary_dim/2] */
    int32_t interleaved;         /* 1: axes alternate from pair to pair */
    int32_t depends_on_length;   /* 1: dynamic NTK and LongRoPE */
} posenc_contract_set;

POSENC_API int32_t posenc_contract_get_set(const posenc_contract *contract, int32_t index,
                                           posenc_contract_set *set, posenc_error *error);

/* The frequency set of a layer, or POSENC_LAYER_*. For LongRoPE the short one; the long follows. */
POSENC_API int32_t posenc_contract_layer_set(const posenc_contract *contract, int64_t layer);

/* How a layer attends: "full", "sliding", "chunked", "linear" (no softmax); NULL: no such layer. */
POSENC_API const char *posenc_contract_layer_type(const posenc_contract *contract, int64_t layer);

/* Plan parameters of a set, into a struct that posenc_rope_params_init filled. Pointers in them
 * live as long as the contract; a plan copies what they point to. "short" and "long" of LongRoPE
 * come with their running length fixed (params->length): set it to 0 for one plan that switches. */
POSENC_API int32_t posenc_contract_plan_params(const posenc_contract *contract, int32_t index,
                                               posenc_rope_params *params, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * The other schemes. Each function answers POSENC_ERROR_UNSUPPORTED where the model has none of it.
 * Set struct_size before the call. They can stand side by side (a learned table in a decoder beside
 * sinusoids in the encoder).
 * --------------------------------------------------------------------------------------------- */

typedef struct posenc_contract_alibi {
    uint32_t struct_size;
    int32_t scaled; /* 1: the bias is added before the softmax scale multiplies (Falcon) */
    double max_bias;
    const char *bias; /* the model's own form: "slope*key_position", ... */
} posenc_contract_alibi;

POSENC_API int32_t posenc_contract_get_alibi(const posenc_contract *contract,
                                             posenc_contract_alibi *alibi, posenc_error *error);

typedef struct posenc_contract_t5 {
    uint32_t struct_size;
    int32_t num_buckets;
    int64_t max_distance;
    int32_t encoder; /* 1: has bidirectional buckets; 0: no encoder */
    int32_t decoder; /* 1: has causal buckets */
    int32_t per_layer; /* 1: a table in every layer; 0: one shared by all */
    int32_t reserved;
} posenc_contract_t5;

POSENC_API int32_t posenc_contract_get_t5(const posenc_contract *contract, posenc_contract_t5 *t5,
                                          posenc_error *error);

typedef struct posenc_contract_deberta {
    uint32_t struct_size;
    int32_t position_buckets; /* -1: none, plain distances */
    int64_t max_relative_positions;
    const char *pos_att_type; /* "c2p|p2c" */
} posenc_contract_deberta;

POSENC_API int32_t posenc_contract_get_deberta(const posenc_contract *contract,
                                               posenc_contract_deberta *deberta,
                                               posenc_error *error);

typedef struct posenc_contract_learned {
    uint32_t struct_size;
    int32_t dim;
    int64_t table_rows;
    int64_t position_offset; /* row = position + offset */
    int64_t usable_positions;
    const char *applies_to; /* NULL: the whole model; "decoder", ... */
} posenc_contract_learned;

POSENC_API int32_t posenc_contract_get_learned(const posenc_contract *contract,
                                               posenc_contract_learned *learned,
                                               posenc_error *error);

typedef struct posenc_contract_sinusoidal {
    uint32_t struct_size;
    int32_t dim;
    int64_t rows;       /* -1: not limited */
    int64_t row_offset; /* row = position + offset */
    const char *kind;   /* "interleaved", "halves", "halves_vaswani" */
    const char *freq_divisor; /* "half" or "half-1" */
    const char *applies_to;
} posenc_contract_sinusoidal;

POSENC_API int32_t posenc_contract_get_sinusoidal(const posenc_contract *contract,
                                                  posenc_contract_sinusoidal *sinusoidal,
                                                  posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Comparing models
 * --------------------------------------------------------------------------------------------- */

/* One difference: where, and what each contract says. Texts are cut to fit, NUL-terminated. */
typedef struct posenc_contract_difference {
    char key[64];
    char a[96];
    char b[96];
} posenc_contract_difference;

/* Lists what differs among the facts that change results (not names, sources, limits or notes).
 * `count` receives how many there are; at most `capacity` of them are written. */
POSENC_API int32_t posenc_contract_compare(const posenc_contract *a, const posenc_contract *b,
                                           posenc_contract_difference *differences,
                                           size_t capacity, size_t *count, posenc_error *error);

/* 16 bytes over the same facts: equal for contracts that compare without difference. */
POSENC_API int32_t posenc_contract_fingerprint(const posenc_contract *contract,
                                               uint8_t *fingerprint, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Notes
 * --------------------------------------------------------------------------------------------- */

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
