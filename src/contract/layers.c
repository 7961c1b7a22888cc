/* SPDX-License-Identifier: MIT */
/* Which layer attends how: kinds, frequency sets, layers without rotation, the window. */
#include "family.h"
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static int64_t layer_count(const struct posenc_reader *reader)
{
    return reader->contract->facts.num_layers;
}

/* A list of the file must have an entry a layer. */
static int check_length(struct posenc_reader *reader, const char *key, const json_t *list)
{
    int64_t size = (int64_t)json_array_size(list);
    if (size == layer_count(reader)) {
        return 0;
    }
    posenc_error rule;
    posenc_fail(&rule, POSENC_OK, "has %d entries, but the model has %d layers", size,
                layer_count(reader));
    return posenc_refuse(reader, &reader->text, key, rule.text);
}

static int refuse_entry(struct posenc_reader *reader, const char *key, size_t index,
                        const json_t *entry, const char *rule)
{
    posenc_error text;
    posenc_fail(&text, POSENC_OK, "%s", json_is_string(entry) ? json_string_value(entry) : "?");
    text.text[40] = '\0';
    reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL, "%s[%d] is \"%s\": %s", key,
                                 (int64_t)index, text.text, rule);
    return -1;
}

/* Names that other files have for the same kinds. */
static const struct kind_alias {
    const char *name;
    enum posenc_layer_kind kind;
} kind_aliases[] = {
    {"attention", POSENC_LAYER_FULL},         {"indexed_attention", POSENC_LAYER_FULL},
    {"compressed_sparse_attention", POSENC_LAYER_FULL},
    {"heavily_compressed_attention", POSENC_LAYER_FULL},
    {"minimax_m3_sparse", POSENC_LAYER_FULL}, {"hybrid", POSENC_LAYER_FULL},
    {"hybrid_sliding", POSENC_LAYER_SLIDING}, {"mamba", POSENC_LAYER_LINEAR},
    {"mamba2", POSENC_LAYER_LINEAR},          {"conv", POSENC_LAYER_LINEAR},
    {"recurrent", POSENC_LAYER_LINEAR},       {"moe", POSENC_LAYER_LINEAR},
    {"mlp", POSENC_LAYER_LINEAR},
};

/* POSENC_LAYER_KINDS for none. */
static enum posenc_layer_kind kind_of(const char *name)
{
    enum posenc_layer_kind kind = POSENC_LAYER_FULL;
    while (name && kind < POSENC_LAYER_KINDS && strcmp(name, posenc_layer_names[kind].key)) {
        kind++;
    }
    for (size_t i = 0; name && kind == POSENC_LAYER_KINDS &&
                       i < sizeof kind_aliases / sizeof kind_aliases[0]; i++) {
        if (strcmp(name, kind_aliases[i].name) == 0) {
            return kind_aliases[i].kind;
        }
    }
    return name ? kind : POSENC_LAYER_KINDS;
}

static int kinds_by_name(struct posenc_reader *reader, const char *key, const json_t *list)
{
    size_t i;
    json_t *entry;
    if (check_length(reader, key, list) < 0) {
        return -1;
    }
    json_array_foreach(list, i, entry) {
        enum posenc_layer_kind kind = kind_of(json_string_value(entry));
        if (kind == POSENC_LAYER_KINDS) {
            return refuse_entry(reader, key, i, entry,
                                "must be full_attention, sliding_attention, chunked_attention or "
                                "linear_attention");
        }
        reader->contract->layers[i].kind = (uint8_t)kind;
    }
    return 0;
}

/* A list of 0 and 1; entry i goes to flags[i]. */
static int read_flags(struct posenc_reader *reader, const char *key, const json_t *list,
                      uint8_t *flags)
{
    size_t i;
    json_t *entry;
    if (check_length(reader, key, list) < 0) {
        return -1;
    }
    json_array_foreach(list, i, entry) {
        if (!json_is_integer(entry) || json_integer_value(entry) < 0 ||
            json_integer_value(entry) > 1) {
            return refuse_entry(reader, key, i, entry, "must be 0 or 1");
        }
        flags[i] = (uint8_t)json_integer_value(entry);
    }
    return 0;
}

static int kinds_by_pattern(struct posenc_reader *reader, const char *key)
{
    json_t *list = NULL;
    int found = posenc_get_array(reader, &reader->text, key, &list);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(reader, &reader->text, key,
                                                 "it says which layers are full");
    }
    uint8_t *flags = calloc((size_t)layer_count(reader), 1);
    if (!flags) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY, "no memory for layers");
        return -1;
    }
    int answer = read_flags(reader, key, list, flags);
    for (int64_t i = 0; answer == 0 && i < layer_count(reader); i++) {
        reader->contract->layers[i].kind = flags[i] ? POSENC_LAYER_SLIDING : POSENC_LAYER_FULL;
    }
    free(flags);
    return answer;
}

static int kinds_by_period(struct posenc_reader *reader)
{
    const struct posenc_family *family = reader->family;
    int64_t period = family->period;
    int found = family->period_key ? posenc_get_integer(reader, &reader->text, family->period_key,
                                                        1, 65536, &period)
                                   : 0;
    if (found < 0) {
        return -1;
    }
    int64_t phase = family->phase, start = -1;
    int placed = family->offset_key ? posenc_get_integer(reader, &reader->text, family->offset_key,
                                                         0, 65535, &start)
                                    : 0;
    if (placed < 0) {
        return -1;
    }
    phase = placed ? period - start % period : phase;
    if (!found) {
        posenc_assume_integer(reader, family->period_key ? family->period_key : "layer_types",
                              period, "one layer of so many is full, by this model_type");
    }
    uint8_t other = family->flags & POSENC_FAMILY_OTHERS_LINEAR ? POSENC_LAYER_LINEAR
                                                                : POSENC_LAYER_SLIDING;
    for (int64_t i = 0; i < layer_count(reader); i++) {
        reader->contract->layers[i].kind =
            (i + phase) % period == 0 ? (uint8_t)POSENC_LAYER_FULL : other;
    }
    return 0;
}

/* Layers with attention by their indices; the others have none. */
static int kinds_by_index(struct posenc_reader *reader, const char *key)
{
    size_t i;
    json_t *list = NULL, *entry;
    int found = posenc_get_array(reader, &reader->text, key, &list);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(reader, &reader->text, key,
                                                 "it says which layers have attention");
    }
    for (int64_t layer = 0; layer < layer_count(reader); layer++) {
        reader->contract->layers[layer].kind = POSENC_LAYER_LINEAR;
    }
    json_array_foreach(list, i, entry) {
        if (!json_is_integer(entry) || json_integer_value(entry) < 0 ||
            json_integer_value(entry) >= layer_count(reader)) {
            return refuse_entry(reader, key, i, entry, "must be the index of a layer");
        }
        reader->contract->layers[json_integer_value(entry)].kind = POSENC_LAYER_FULL;
    }
    return 0;
}

/* DeepSeek-V4: how many tokens make one key of a layer; 0 is a sliding window alone. */
static int kinds_by_ratio(struct posenc_reader *reader)
{
    static const char key[] = "compress_ratios";
    size_t i;
    json_t *list = NULL, *entry;
    int found = posenc_get_array(reader, &reader->text, key, &list);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(reader, &reader->text, "layer_types",
                                                 "it says which layers slide");
    }
    if (check_length(reader, key, list) < 0) {
        return -1;
    }
    json_array_foreach(list, i, entry) {
        if (!json_is_integer(entry) || json_integer_value(entry) < 0) {
            return refuse_entry(reader, key, i, entry, "must be an integer >= 0");
        }
        reader->contract->layers[i].kind =
            json_integer_value(entry) ? POSENC_LAYER_FULL : POSENC_LAYER_SLIDING;
    }
    return 0;
}

/* Nemotron-H: "M-M*-": * is attention, the others are recurrent layers and feed-forward ones. */
static int kinds_by_letters(struct posenc_reader *reader, const char *key)
{
    const char *letters = NULL;
    int found = posenc_get_string(reader, &reader->text, key, &letters);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(reader, &reader->text, key,
                                                 "it says which layers have attention");
    }
    if ((int64_t)strlen(letters) != layer_count(reader)) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "has %d letters, but the model has %d layers",
                    (int64_t)strlen(letters), layer_count(reader));
        return posenc_refuse(reader, &reader->text, key, rule.text);
    }
    for (int64_t i = 0; i < layer_count(reader); i++) {
        int attends = letters[i] == '*';
        if (!attends && !strchr("M-E", letters[i])) {
            return posenc_refuse(reader, &reader->text, key, "its letters must be M, *, - or E");
        }
        reader->contract->layers[i].kind = attends ? POSENC_LAYER_FULL : POSENC_LAYER_LINEAR;
    }
    return 0;
}

/* A window that is written as null, in a class that has one by default. */
static int no_window(const struct posenc_reader *reader)
{
    const char *key = reader->family->window_key;
    return key && json_is_null(json_object_get(reader->text.json, key));
}

/* Qwen: a window only where a switch is on, and from a certain layer on. dots.1: without switch. */
static int read_switch(struct posenc_reader *reader, int64_t *first)
{
    int on = reader->family->window_rule == POSENC_WINDOW_LAYERS && !no_window(reader);
    if (reader->family->window_rule == POSENC_WINDOW_SWITCH &&
        posenc_get_bool(reader, &reader->text, "use_sliding_window", &on) < 0) {
        return -1;
    }
    *first = reader->family->window_from ? reader->family->window_from : 28;
    if (on && posenc_get_integer(reader, &reader->text, "max_window_layers", 0, 65536, first) < 0) {
        return -1;
    }
    return on;
}

int posenc_read_layer_kinds(struct posenc_reader *reader)
{
    const struct posenc_family *family = reader->family;
    static const char *const keys[] = {"layer_types", "layers_block_type"};
    for (size_t i = 0; i < 2; i++) {
        json_t *list = NULL;
        int found = posenc_get_array(reader, &reader->text, keys[i], &list);
        if (found != 0) {
            return found < 0 ? -1 : kinds_by_name(reader, keys[i], list);
        }
    }
    if (family->pattern_key) {
        return kinds_by_pattern(reader, family->pattern_key);
    }
    if (family->flags & POSENC_FAMILY_TAIL) {
        return kinds_by_ratio(reader);
    }
    if (family->flags & POSENC_FAMILY_CYCLE) {
        return posenc_read_layer_cycle(reader);
    }
    if (family->flags & POSENC_FAMILY_LINEAR_CONFIG) {
        return posenc_read_layer_config(reader);
    }
    if (family->letters_key) {
        return kinds_by_letters(reader, family->letters_key);
    }
    if (family->index_key) {
        return kinds_by_index(reader, family->index_key);
    }
    if ((family->flags & POSENC_FAMILY_FREE_OF_WINDOW) && no_window(reader)) {
        return 0;
    }
    if (family->period) {
        return kinds_by_period(reader);
    }
    int64_t first = 0;
    int on = family->window_rule >= POSENC_WINDOW_SWITCH ? read_switch(reader, &first) : 0;
    for (int64_t i = first; on > 0 && i < layer_count(reader); i++) {
        reader->contract->layers[i].kind = POSENC_LAYER_SLIDING;
    }
    return on < 0 ? -1 : 0;
}

int posenc_any_layer(const struct posenc_contract *contract, enum posenc_layer_kind kind)
{
    for (int64_t i = 0; i < contract->facts.num_layers; i++) {
        if (contract->layers[i].kind == kind) {
            return 1;
        }
    }
    return 0;
}

/* Despite its name a 1 in no_rope_layers means that the layer is rotated. */
static int drop_listed(struct posenc_reader *reader)
{
    struct posenc_layer *layers = reader->contract->layers;
    json_t *list = NULL;
    int64_t interval = 4, differ = 0;
    const char *own = reader->family->nope_key, *key = own ? own : "no_rope_layers";
    int64_t shift = !(reader->family->flags & POSENC_FAMILY_NOPE_FIRST);
    int listed = posenc_get_array(reader, &reader->text, key, &list);
    int spaced = own ? 0
                     : posenc_get_integer(reader, &reader->text, "no_rope_layer_interval", 1, 65536,
                                          &interval);
    if (listed < 0 || spaced < 0) {
        return -1;
    }
    listed = listed && json_array_size(list) > 0;
    uint8_t *rotated = calloc((size_t)layer_count(reader), 1);
    if (!rotated) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY, "no memory for layers");
        return -1;
    }
    int answer = listed ? read_flags(reader, key, list, rotated) : 0;
    for (int64_t i = 0; answer == 0 && i < layer_count(reader); i++) {
        uint8_t by_interval = (i + shift) % interval != 0;
        differ += listed && by_interval != rotated[i];
        if (!(listed ? rotated[i] : by_interval)) {
            layers[i].set = POSENC_LAYER_NOT_ROTATED;
        }
    }
    free(rotated);
    if (spaced && differ > 0) {
        posenc_fail(posenc_warning(reader, &reader->text, "no_rope_layer_interval"), POSENC_OK,
                    "is %d but no_rope_layers says otherwise for %d layers: the list counts",
                    interval, differ);
    } else if (!listed && !spaced) {
        posenc_assume_integer(reader, "no_rope_layer_interval", interval,
                              "one layer of so many is not rotated, by this model_type");
    }
    return answer;
}

/* The first set for this kind of layer; for LongRoPE that is the short one. */
static int8_t set_of(const struct posenc_contract *contract, uint8_t kind)
{
    for (int32_t i = 0; i < contract->facts.num_sets; i++) {
        int32_t layers = contract->sets[i].layers;
        if (layers == POSENC_EVERY_KIND || layers == kind) {
            return (int8_t)i;
        }
    }
    return POSENC_LAYER_NOT_ROTATED;
}

int posenc_read_layer_sets(struct posenc_reader *reader)
{
    struct posenc_contract *contract = reader->contract;
    uint32_t flags = reader->family->flags;
    int freed = (flags & POSENC_FAMILY_FREE_OF_WINDOW) && no_window(reader);
    for (int64_t i = 0; i < layer_count(reader); i++) {
        struct posenc_layer *layer = &contract->layers[i];
        layer->set = set_of(contract, layer->kind);
        if (layer->kind == POSENC_LAYER_LINEAR || (flags & POSENC_FAMILY_RECURRENT)) {
            layer->kind = POSENC_LAYER_LINEAR;
            layer->set = POSENC_LAYER_NO_ATTENTION;
        } else if ((flags & POSENC_FAMILY_ROPE_ON_SLIDING) &&
                   layer->kind != POSENC_LAYER_SLIDING && !freed) {
            layer->set = POSENC_LAYER_NOT_ROTATED;
        }
    }
    if (flags & POSENC_FAMILY_CROSS) {
        return posenc_drop_cross_layers(reader);
    }
    return flags & POSENC_FAMILY_NOPE_LIST ? drop_listed(reader) : 0;
}

int posenc_read_window(struct posenc_reader *reader)
{
    const struct posenc_family *family = reader->family;
    const char *key = family->window_key ? family->window_key : "sliding_window";
    int64_t first, window = -1;
    int sliding = posenc_any_layer(reader->contract, POSENC_LAYER_SLIDING);
    int reads = family->window_rule == POSENC_WINDOW_NONE     ? sliding
                : family->window_rule >= POSENC_WINDOW_SWITCH ? read_switch(reader, &first)
                                                              : 1;
    if (reads <= 0) {
        return reads;
    }
    int found = posenc_get_integer(reader, &reader->text, key, 1, INT64_C(1) << 53, &window);
    if (found < 0) {
        return -1;
    }
    if (!json_object_get(reader->text.json, key) && family->window) {
        window = family->window;
        posenc_assume_integer(reader, key, window, "the default of this model_type");
    }
    reader->contract->facts.sliding_window = window;
    if (strcmp(key, "local_attention") == 0) {
        posenc_fail(posenc_warning(reader, &reader->text, key), POSENC_OK,
                    "this window has two sides: |query - key| <= %d", window / 2);
    }
    return 0;
}
