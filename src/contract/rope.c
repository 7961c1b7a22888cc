/* SPDX-License-Identifier: MIT */
/* Finds the rope block under all its spellings and makes the frequency sets that follow from it. */
#include "family.h"
#include "reader.h"

#include <string.h>

const struct posenc_layer_name posenc_layer_names[POSENC_LAYER_KINDS] = {
    {"full_attention", "full", "global"},
    {"sliding_attention", "sliding", "local"},
    {"chunked_attention", "chunked", "chunked"},
    {"linear_attention", "linear", "linear"},
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
    posenc_assume_text(reader, "rope_parameters", "\"yarn\"",
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

static int refuse_axes(struct posenc_reader *reader, const struct posenc_node *block)
{
    static const char rule[] = "positions of several axes (mrope) are not supported yet";
    if (block->json) {
        static const char *const keys[] = {"mrope_section", "mrope_interleaved", "xdrope_section"};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            const json_t *json = json_object_get(block->json, keys[i]);
            if (json && !json_is_null(json)) {
                return posenc_refuse(reader, block, keys[i], rule);
            }
        }
        const char *type = json_string_value(json_object_get(block->json, "type"));
        const char *now = json_string_value(json_object_get(block->json, "rope_type"));
        if ((type && strcmp(type, "mrope") == 0) || (now && strcmp(now, "mrope") == 0)) {
            return posenc_refuse(reader, block, now ? "rope_type" : "type", rule);
        }
    }
    if (reader->family->flags & POSENC_FAMILY_MROPE) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL, "model_type is \"%s\": %s",
                                     reader->family->model_type, rule);
        return -1;
    }
    return 0;
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

static int add_set(struct posenc_reader *reader, const struct posenc_node *block,
                   enum posenc_layer_kind layers, const char *id, int own)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    struct posenc_set *set = &reader->contract->sets[facts->num_sets++];
    *set = reader->common;
    set->id = id;
    if (layers == POSENC_LAYER_SLIDING && reader->family->pattern_key &&
        local_widths(reader, set) < 0) {
        return -1;
    }
    return posenc_read_set(reader, block, layers, own, set);
}

static int any_layer(const struct posenc_reader *reader, enum posenc_layer_kind kind)
{
    for (int64_t i = 0; i < reader->contract->facts.num_layers; i++) {
        if (reader->contract->layers[i].kind == kind) {
            return 1;
        }
    }
    return 0;
}

/* A block for each kind of layer. Classes with two sets have defaults for both. */
static int nested_sets(struct posenc_reader *reader, const struct posenc_node *block)
{
    const struct posenc_node none = {0};
    for (enum posenc_layer_kind kind = 0; kind <= POSENC_LAYER_CHUNKED; kind++) {
        const struct posenc_layer_name *name = &posenc_layer_names[kind];
        struct posenc_node own = {0};
        int found = posenc_get_object(reader, block, name->key, &own);
        int used = any_layer(reader, kind);
        if (found < 0) {
            return -1;
        }
        if (!found && used && !reader->family->local_base_key) {
            return posenc_refuse_missing(reader, block, name->key, "layers of this kind exist");
        }
        if (found && !used) {
            posenc_fail(posenc_warning(reader, block, name->key), POSENC_OK,
                        "no layer is of this kind: unused");
        }
        if ((found || used) && (refuse_axes(reader, &own) < 0 ||
                                add_set(reader, found ? &own : &none, kind, name->set, 1) < 0)) {
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
        nested |= json_object_get(block->json, posenc_layer_names[kind].key) != NULL;
    }
    json_object_foreach(nested ? block->json : NULL, key, value) {
        int known = 0;
        for (enum posenc_layer_kind kind = 0; kind < POSENC_LAYER_LINEAR; kind++) {
            known |= strcmp(key, posenc_layer_names[kind].key) == 0;
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
    if (find_block(reader, block) < 0 || refuse_axes(reader, block) < 0) {
        return -1;
    }
    if (is_nested(reader, block)) {
        return nested_sets(reader, block);
    }
    if (!family->local_base_key) {
        return add_set(reader, block, POSENC_LAYER_FULL, "main", 1);
    }
    const struct posenc_node *local = family->flags & POSENC_FAMILY_LOCAL_PLAIN ? &none : block;
    if (add_set(reader, block, POSENC_LAYER_FULL, "global", 1) < 0) {
        return -1;
    }
    return add_set(reader, local, POSENC_LAYER_SLIDING, "local", 0);
}
