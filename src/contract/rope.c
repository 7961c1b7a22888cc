/* SPDX-License-Identifier: MIT */
/* Finds the rope block under all its spellings and makes the frequency sets that follow from it. */
#include "family.h"
#include "reader.h"

#include <string.h>

const struct posenc_layer_name posenc_layer_names[POSENC_LAYER_KINDS] = {
    {"full_attention", "full", "global", "global-short", "global-long"},
    {"sliding_attention", "sliding", "local", "local-short", "local-long"},
    {"chunked_attention", "chunked", "chunked", "chunked-short", "chunked-long"},
    {"linear_attention", "linear", "linear", "linear", "linear"},
};

/* The class supplies a block where the file has none: kept in the file's tree, which is ours. */
static int class_block(struct posenc_reader *reader, struct posenc_node *block)
{
    if (!reader->family->block) {
        return 0;
    }
    const char *text = reader->family->block;
    json_t *json = NULL;
    reader->status = posenc_json_load(&json, text, strlen(text), reader->error);
    if (reader->status == POSENC_OK &&
        json_object_set_new(reader->text.json, "rope_parameters", json) != 0) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY,
                                     "no memory to read the text");
    }
    if (reader->status != POSENC_OK) {
        return -1;
    }
    const char *type = json_string_value(json_object_get(json, "rope_type"));
    posenc_error value;
    posenc_fail(&value, POSENC_OK, "\"%s\"", type ? type : "by kind of layer");
    posenc_assume_text(reader, "rope_parameters", value.text,
                       "the whole block is the default of this model_type");
    return posenc_get_object(reader, &reader->text, "rope_parameters", block);
}

/* The newer spelling counts; an empty block is none. */
static int find_block(struct posenc_reader *reader, struct posenc_node *block)
{
    struct posenc_node now = {0}, old = {0};
    if (posenc_get_object(reader, &reader->text, "rope_parameters", &now) < 0 ||
        posenc_get_object(reader, &reader->text, "rope_scaling", &old) < 0) {
        return -1;
    }
    int has_now = json_object_size(now.json) > 0, has_old = json_object_size(old.json) > 0;
    if (has_now && has_old && !json_equal(now.json, old.json)) {
        posenc_fail(posenc_warning(reader, &reader->text, "rope_scaling"), POSENC_OK,
                    "differs from rope_parameters, which counts");
    }
    *block = has_now ? now : old;
    if (has_now || has_old) {
        return 1;
    }
    block->json = NULL;
    return class_block(reader, block);
}

/* Widths that only the sliding layers of a hybrid model have. */
static int local_widths(struct posenc_reader *reader, struct posenc_set *set)
{
    int64_t heads = set->num_heads, kv = set->num_kv_heads, width = set->params.head_dim;
    const struct posenc_node *text = &reader->text;
    if (posenc_get_integer(reader, text, "swa_num_attention_heads", 1, 65536, &heads) < 0 ||
        posenc_get_integer(reader, text, "swa_num_key_value_heads", 1, 65536, &kv) < 0 ||
        posenc_get_integer(reader, text, "swa_head_dim", 2, 65536, &width) < 0) {
        return -1;
    }
    if (heads % kv != 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must divide the number of query heads, %d", heads);
        return posenc_refuse(reader, text, "swa_num_key_value_heads", rule.text);
    }
    set->num_heads = (int32_t)heads;
    set->num_kv_heads = (int32_t)kv;
    set->params.head_dim = (int32_t)width;
    return 0;
}

/* Widths that only the full layers of Gemma 4 have. */
static int global_widths(struct posenc_reader *reader, struct posenc_set *set)
{
    int64_t kv = set->num_kv_heads, width = 512;
    const struct posenc_node *text = &reader->text;
    int shared = 0;
    int found = posenc_get_integer(reader, text, "global_head_dim", 2, 65536, &width);
    if (found < 0 || posenc_get_bool(reader, text, "attention_k_eq_v", &shared) < 0 ||
        posenc_get_integer(reader, text, "num_global_key_value_heads", 1, 65536, &kv) < 0) {
        return -1;
    }
    if (!found) {
        posenc_assume_integer(reader, "global_head_dim", width, "the default of this model_type");
    }
    if (set->num_heads % kv != 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must divide the number of query heads, %d",
                    (int64_t)set->num_heads);
        return posenc_refuse(reader, text, "num_global_key_value_heads", rule.text);
    }
    set->num_kv_heads = shared ? (int32_t)kv : set->num_kv_heads;
    set->params.head_dim = (int32_t)width;
    return 0;
}

/* LongRoPE is two sets: the length of the first is as far as it goes, that of the second the next
 * one. */
void posenc_split_by_length(struct posenc_contract *contract, const struct posenc_layer_name *name)
{
    struct posenc_set *one = &contract->sets[contract->facts.num_sets - 1];
    struct posenc_set *two = &contract->sets[contract->facts.num_sets++];
    *two = *one;
    one->id = name ? name->short_set : "short";
    two->id = name ? name->long_set : "long";
    one->params.length = one->original_max_position;
    two->params.length = one->original_max_position + 1;
}

/* A set for one kind of layers, or for every kind. `own`: see posenc_read_set. */
static int add_set(struct posenc_reader *reader, const struct posenc_node *block, int32_t layers,
                   int own)
{
    struct posenc_contract *contract = reader->contract;
    const struct posenc_layer_name *name =
        layers == POSENC_EVERY_KIND ? NULL : &posenc_layer_names[layers];
    enum posenc_layer_kind kind = name ? (enum posenc_layer_kind)layers : POSENC_LAYER_FULL;
    struct posenc_set *set = &contract->sets[contract->facts.num_sets++];
    uint32_t flags = reader->family->flags;
    *set = reader->common;
    set->id = name ? name->set : "main";
    set->layers = layers;
    if (layers == POSENC_LAYER_SLIDING && reader->family->pattern_key &&
        local_widths(reader, set) < 0) {
        return -1;
    }
    if (layers == POSENC_LAYER_FULL && (flags & POSENC_FAMILY_GLOBAL_WIDTHS) &&
        global_widths(reader, set) < 0) {
        return -1;
    }
    if (posenc_read_set(reader, block, kind, own, set) < 0) {
        return -1;
    }
    if (set->params.scaling == POSENC_SCALING_LONGROPE) {
        posenc_split_by_length(contract, name);
    }
    return 0;
}

static const char *block_key(const struct posenc_reader *reader, enum posenc_layer_kind kind)
{
    const char *label = kind <= POSENC_LAYER_SLIDING ? reader->family->labels[kind] : NULL;
    return label ? label : posenc_layer_names[kind].key;
}

/* A block for each kind of layer. Classes with two sets have defaults for both. */
static int nested_sets(struct posenc_reader *reader, const struct posenc_node *block)
{
    const struct posenc_node none = {0};
    for (enum posenc_layer_kind kind = 0; kind <= POSENC_LAYER_CHUNKED; kind++) {
        const char *key = block_key(reader, kind);
        struct posenc_node own = {0};
        int found = posenc_get_object(reader, block, key, &own);
        int used = posenc_any_layer(reader->contract, kind);
        if (!found && json_object_get(block->json, key)) {
            continue; /* a block of null: without a set these layers are not rotated */
        }
        if (found < 0) {
            return -1;
        }
        if (!found && used && !reader->family->local_base_key) {
            return posenc_refuse_missing(reader, block, key, "layers of this kind exist");
        }
        if (found && !used) {
            posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                        "no layer is of this kind: unused");
        }
        if ((found || used) && add_set(reader, found ? &own : &none, (int32_t)kind, 1) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Nested if any key names a kind of layer; other keys beside those mean nothing. */
static int is_nested(struct posenc_reader *reader, const struct posenc_node *block)
{
    const char *key;
    json_t *value;
    int nested = 0;
    for (enum posenc_layer_kind kind = 0; block->json && kind < POSENC_LAYER_LINEAR; kind++) {
        nested |= json_object_get(block->json, block_key(reader, kind)) != NULL;
    }
    json_object_foreach(nested ? block->json : NULL, key, value) {
        int known = 0;
        for (enum posenc_layer_kind kind = 0; kind < POSENC_LAYER_LINEAR; kind++) {
            known |= strcmp(key, block_key(reader, kind)) == 0;
        }
        if (!known) {
            posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                        "unknown key beside the blocks of layer kinds: ignored");
        }
    }
    return nested;
}

int posenc_read_rope(struct posenc_reader *reader, struct posenc_node *block)
{
    const struct posenc_family *family = reader->family;
    const struct posenc_node none = {0};
    if (find_block(reader, block) < 0) {
        return -1;
    }
    if (is_nested(reader, block)) {
        return nested_sets(reader, block);
    }
    if (!family->local_base_key) {
        return add_set(reader, block, POSENC_EVERY_KIND, 1);
    }
    const struct posenc_node *local = family->flags & POSENC_FAMILY_LOCAL_PLAIN ? &none : block;
    /* Where full layers have a key of their own, the base of a flat block is not theirs. */
    return add_set(reader, block, POSENC_LAYER_FULL, !family->global_base_key) < 0
               ? -1
               : add_set(reader, local, POSENC_LAYER_SLIDING, 0);
}
