/* SPDX-License-Identifier: MIT */
/* Layer lists that single classes have: a cycle of blocks, lists in linear_attn_config, cross
 * attention. */
#include "family.h"
#include "reader.h"

#include <string.h>

static int64_t layer_count(const struct posenc_reader *reader)
{
    return reader->contract->facts.num_layers;
}

/* RecurrentGemma: block_types repeats to the last layer; its attention slides. */
int posenc_read_layer_cycle(struct posenc_reader *reader)
{
    static const char key[] = "block_types";
    static const char *const usual[] = {"recurrent", "recurrent", "attention"};
    json_t *list = NULL;
    int found = posenc_get_array(reader, &reader->text, key, &list);
    if (found < 0) {
        return -1;
    }
    size_t size = found ? json_array_size(list) : 3;
    if (size == 0) {
        return posenc_refuse(reader, &reader->text, key, "must name a block or more");
    }
    if (!found) {
        posenc_assume_text(reader, key, "\"recurrent, recurrent, attention\"",
                           "the default of this model_type");
    }
    for (int64_t i = 0; i < layer_count(reader); i++) {
        size_t at = (size_t)i % size;
        const char *name = found ? json_string_value(json_array_get(list, at)) : usual[at];
        int attends = name && strcmp(name, "attention") == 0;
        if (!attends && (!name || strcmp(name, "recurrent") != 0)) {
            return posenc_refuse(reader, &reader->text, key,
                                 "its entries must be recurrent or attention");
        }
        reader->contract->layers[i].kind = attends ? POSENC_LAYER_SLIDING : POSENC_LAYER_LINEAR;
    }
    return 0;
}

/* A list of layers counted from `first`; those get `kind`. */
static int place_layers(struct posenc_reader *reader, const struct posenc_node *node,
                        const char *key, int64_t first, enum posenc_layer_kind kind)
{
    size_t i;
    json_t *list = NULL, *entry;
    int found = posenc_get_array(reader, node, key, &list);
    json_array_foreach(list, i, entry) {
        int64_t layer = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (layer < first || layer - first >= layer_count(reader)) {
            posenc_error rule;
            posenc_fail(&rule, POSENC_OK, "its entries must be layers, %d..%d", first,
                        first + layer_count(reader) - 1);
            return posenc_refuse(reader, node, key, rule.text);
        }
        reader->contract->layers[layer - first].kind = (uint8_t)kind;
    }
    return found;
}

/* Kimi Linear: linear_attn_config.full_attn_layers, counted from 1; the others are linear. */
int posenc_read_layer_config(struct posenc_reader *reader)
{
    struct posenc_node config = {0};
    if (posenc_get_object(reader, &reader->text, "linear_attn_config", &config) < 0) {
        return -1;
    }
    for (int64_t i = 0; i < layer_count(reader); i++) {
        reader->contract->layers[i].kind = POSENC_LAYER_LINEAR;
    }
    int found = config.json ? place_layers(reader, &config, "full_attn_layers", 1,
                                           POSENC_LAYER_FULL)
                            : 0;
    for (int64_t i = 4; found == 0 && i < layer_count(reader); i += 4) {
        reader->contract->layers[i].kind = POSENC_LAYER_FULL;
    }
    if (found == 0) {
        posenc_assume_integer(reader, "linear_attn_config", 4,
                              "layers 4, 8, ... counted from 0 are full, by this model_type");
    }
    return found < 0 ? -1 : 0;
}

/* Mllama: queries of some layers attend to the image, and nothing is rotated there. */
int posenc_drop_cross_layers(struct posenc_reader *reader)
{
    static const char key[] = "cross_attention_layers";
    size_t i;
    json_t *list = NULL, *entry;
    int found = posenc_get_array(reader, &reader->text, key, &list);
    if (found < 0) {
        return -1;
    }
    if (!found) {
        posenc_assume_text(reader, key, "\"3, 8, 13, 18, 23, 28, 33, 38\"",
                           "the default of this model_type");
    }
    for (int64_t layer = 3; !found && layer < layer_count(reader) && layer <= 38; layer += 5) {
        reader->contract->layers[layer].set = POSENC_LAYER_NOT_ROTATED;
    }
    json_array_foreach(list, i, entry) {
        int64_t layer = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (layer < 0 || layer >= layer_count(reader)) {
            return posenc_refuse(reader, &reader->text, key, "its entries must be layers");
        }
        reader->contract->layers[layer].set = POSENC_LAYER_NOT_ROTATED;
    }
    posenc_fail(posenc_warning(reader, &reader->text, key), POSENC_OK,
                "these layers attend to image features, not to tokens, and do not rotate");
    return 0;
}
