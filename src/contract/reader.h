/* SPDX-License-Identifier: MIT */
/* What the files of the reader share: the contract, the state of one reading, typed look-ups. */
#ifndef POSENC_CONTRACT_READER_H
#define POSENC_CONTRACT_READER_H

#include "../common.h"
#include "../error.h"

#include <jansson.h>
#include <posenc/contract.h>

/* A set for each kind of layer that can be rotated, two where the length chooses (LongRoPE). */
enum { POSENC_MAX_SETS = 6, POSENC_MAX_ASSUMED = 24, POSENC_MAX_WARNINGS = 32 };

/* Kinds of layers; the names of the first three are also keys of a nested rope block. */
enum posenc_layer_kind {
    POSENC_LAYER_FULL,
    POSENC_LAYER_SLIDING,
    POSENC_LAYER_CHUNKED,
    POSENC_LAYER_LINEAR,
    POSENC_LAYER_KINDS
};

struct posenc_layer_name {
    const char *key; /* as config.json spells it */
    const char *type;
    const char *set; /* id of the frequency set where each kind has its own */
    const char *short_set; /* the same where the length chooses between two */
    const char *long_set;
};

extern const struct posenc_layer_name posenc_layer_names[POSENC_LAYER_KINDS];

/* Texts live in posenc_error because posenc_fail is our formatter; code is unused. */
struct posenc_note {
    posenc_error key;
    posenc_error value;
    posenc_error text;
};

enum { POSENC_EVERY_KIND = -1 }; /* posenc_set.layers: one set for all kinds of layers */

struct posenc_set {
    const char *id;
    const char *rope_type;
    posenc_rope_params params; /* what it points to is owned by the contract (posenc_own) */
    int64_t original_max_position;
    double mscale_all_dim; /* as the file gives it; params hold it only where it makes the ratio */
    int32_t num_heads;
    int32_t num_kv_heads;
    int32_t layers; /* enum posenc_layer_kind of those that use it, or POSENC_EVERY_KIND */
    int32_t num_sections; /* position axes: pairs of each; 0 where there is one axis */
    int32_t sections[4];
    int32_t interleaved;
    double attention_factor; /* in force; by posenc_contract_settle, as the next */
    uint8_t fingerprint[16]; /* of a plan made of params */
};

struct posenc_layer {
    int8_t set; /* index of a set or POSENC_LAYER_* */
    uint8_t kind;
};

/* The structs of the other schemes have struct_size 0 where the model has none of it. */
struct posenc_contract {
    posenc_contract_facts facts;
    struct posenc_set sets[POSENC_MAX_SETS];
    struct posenc_layer *layers; /* [facts.num_layers], by posenc_own as all that follows */
    posenc_contract_alibi alibi;
    posenc_contract_t5 t5;
    posenc_contract_deberta deberta;
    posenc_contract_learned learned;
    posenc_contract_sinusoidal sinusoidal;
    struct posenc_owned *owned;
    struct posenc_note assumed[POSENC_MAX_ASSUMED];
    struct posenc_note warnings[POSENC_MAX_WARNINGS];
};

/* An object of the file and its name in messages ("" for the root). */
struct posenc_node {
    json_t *json;
    char name[80];
};

/* One reading. `status` is set by whoever refuses; the functions below then answer -1. */
struct posenc_reader {
    struct posenc_contract *contract;
    const struct posenc_family *family;
    struct posenc_node root;
    struct posenc_node text;  /* the language model: the root or its text_config */
    struct posenc_set common; /* what all sets share: layout, widths, heads */
    int scheme;               /* enum posenc_family_scheme in force */
    posenc_error *error;
    int32_t status;
};

/* owned.c: zeroed memory that posenc_contract_free releases; NULL if there is none. */
void *posenc_own(struct posenc_contract *contract, size_t size);
void posenc_disown(struct posenc_contract *contract);

/* owned.c: a contract without any fact (absent numbers are -1), or NULL. */
struct posenc_contract *posenc_contract_new(void);

/* owned.c: copies an answer of `size` bytes into a caller's struct; `name` is that of the argument.
 * Refuses a NULL contract, a NULL struct and one that is too small. */
int32_t posenc_give(const struct posenc_contract *contract, const char *name, void *to,
                    const void *from, size_t size, posenc_error *error);

/* json.c */

/* Strict JSON, an object at the root; independent of the locale. */
int32_t posenc_json_load(json_t **root, const char *text, size_t length, posenc_error *error);

/* `node` becomes the object under `key`. 1 found, 0 absent or null, -1 refused: not an object. */
int posenc_get_object(struct posenc_reader *reader, const struct posenc_node *parent,
                      const char *key, struct posenc_node *node);

/* Look-ups answer 1 found, 0 absent or null (the value is untouched), -1 refused. A real with an
 * integral value is taken as an integer, since Python writes 8192.0, with a warning. */
int posenc_get_integer(struct posenc_reader *reader, const struct posenc_node *node,
                       const char *key, int64_t low, int64_t high, int64_t *value);
int posenc_get_real(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                    double *value);
int posenc_get_bool(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                    int *value);
int posenc_get_string(struct posenc_reader *reader, const struct posenc_node *node,
                      const char *key, const char **value);
int posenc_get_array(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                     json_t **value);

/* Several spellings of one integer, ended by NULL: the first given counts, and a later one that
 * differs is a warning. `used` (may be NULL) receives the spelling. */
int posenc_get_spelled(struct posenc_reader *reader, const struct posenc_node *node,
                       const char *const *keys, int64_t low, int64_t high, int64_t *value,
                       const char **used);

/* A place that may give a fact; one without key or object is skipped. */
struct posenc_place {
    const struct posenc_node *node;
    const char *key;
};

/* The first place that gives a number counts and is `found` (NULL if none does); a later one that
 * differs is a warning. 0, or -1 refused. */
int posenc_get_first(struct posenc_reader *reader, const struct posenc_place *places, size_t count,
                     double *value, const struct posenc_place **found);

/* A factor that a plan accepts, so that a contract that was read can be used, and the rule. */
static inline int posenc_is_factor(double value)
{
    return value >= 0x1p-64 && value < 0x1p64;
}

extern const char posenc_factor_rule[];

/* The two refusals of a key: "NODE.KEY is VALUE: RULE" and "NODE.KEY is missing: RULE". Both -1. */
int posenc_refuse(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                  const char *rule);
int posenc_refuse_missing(struct posenc_reader *reader, const struct posenc_node *node,
                          const char *key, const char *rule);

/* 0 if `holds`, else the first of these. */
int posenc_refuse_unless(struct posenc_reader *reader, int holds, const struct posenc_node *node,
                         const char *key, const char *rule);

/* notes.c: each starts a note and answers where its text goes (posenc_fail takes NULL: no room). */
posenc_error *posenc_warning(struct posenc_reader *reader, const struct posenc_node *node,
                             const char *key);
void posenc_assume_integer(struct posenc_reader *reader, const char *key, int64_t value,
                           const char *why);
void posenc_assume_real(struct posenc_reader *reader, const char *key, double value,
                        const char *why);
void posenc_assume_text(struct posenc_reader *reader, const char *key, const char *value,
                        const char *why);

/* hf.c: reads a whole config.json into reader->contract. 0, or -1 refused. */
int posenc_read_hf(struct posenc_reader *reader);

/* scheme.c: the scheme in force, by the class and the keys that choose. */
int posenc_read_scheme(struct posenc_reader *reader);

/* other.c: facts of the schemes that are not rotations, after the shape. */
int posenc_read_other(struct posenc_reader *reader);

/* shape.c: heads, widths, layers, limits, into facts and reader->common. */
int posenc_read_shape(struct posenc_reader *reader);
int posenc_read_layout(struct posenc_reader *reader);

/* scale.c: what multiplies scores and queries; after the sets. */
int posenc_read_softmax(struct posenc_reader *reader);
int posenc_read_query_scale(struct posenc_reader *reader, const struct posenc_node *block);

/* reach.c: sides of the window, chunks, learned sinks; of a params.json only chunks. */
int posenc_read_reach(struct posenc_reader *reader);
int posenc_read_params_reach(struct posenc_reader *reader);

/* rope.c: the normalised rope block and the frequency sets that follow from it. `block` receives
 * the block in force (json NULL if there is none); reader->contract->sets are complete after it. */
int posenc_read_rope(struct posenc_reader *reader, struct posenc_node *block);

/* rope.c: the last set is LongRoPE's: makes it two, for layers of the kind with this name or for
 * all (NULL). */
void posenc_split_by_length(struct posenc_contract *contract, const struct posenc_layer_name *name);

/* rope_set.c: fills one set, whose widths and layout are known, from a block (json NULL: unscaled)
 * for layers of one kind. `own` is 1 if the block speaks of them alone. */
int posenc_read_set(struct posenc_reader *reader, const struct posenc_node *block,
                    enum posenc_layer_kind layers, int own, struct posenc_set *set);

/* scaling.c: what a kind of scaling needs, into a set whose base and width are known. */
struct posenc_kind;
int posenc_read_scaling(struct posenc_reader *reader, const struct posenc_node *block,
                        const struct posenc_kind *kind, struct posenc_set *set);

/* axes.c: the position axes of a set, from a block (json NULL: none) or the class. */
int posenc_read_axes(struct posenc_reader *reader, const struct posenc_node *block,
                     struct posenc_set *set);

/* layers.c: the kind of each layer, before the sets; then which set it uses, and the window. */
int posenc_read_layer_kinds(struct posenc_reader *reader);
int posenc_any_layer(const struct posenc_contract *contract, enum posenc_layer_kind kind);
int posenc_read_layer_sets(struct posenc_reader *reader);
int posenc_read_window(struct posenc_reader *reader);

/* layers_other.c: the same for classes with lists of their own; the last one after the sets. */
int posenc_read_layer_cycle(struct posenc_reader *reader);
int posenc_read_layer_config(struct posenc_reader *reader);
int posenc_drop_cross_layers(struct posenc_reader *reader);

/* compare.c: after all sets are complete, what their plans make of them. */
int32_t posenc_contract_settle(struct posenc_contract *contract, posenc_error *error);

#endif
