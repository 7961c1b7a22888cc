/* SPDX-License-Identifier: MIT */
/* Position axes of a frequency set (M-RoPE, XD-RoPE): sections of a block -> axis of a pair. */
#include "family.h"
#include "reader.h"

#include <string.h>

/* Where the sections stand: a block's key, or the class (node NULL). */
struct sections {
    const struct posenc_node *node;
    const char *key;
    int32_t count;
    int32_t value[4];
};

static int refuse(struct posenc_reader *reader, const struct sections *sections, const char *rule)
{
    if (sections->node) {
        return posenc_refuse(reader, sections->node, sections->key, rule);
    }
    posenc_error text;
    posenc_fail(&text, POSENC_OK, "the default of this model_type does not fit: %s", rule);
    return posenc_refuse_missing(reader, &reader->text, "mrope_section", text.text);
}

static int read_list(struct posenc_reader *reader, const json_t *list, struct sections *sections)
{
    size_t i;
    json_t *entry;
    if (json_array_size(list) < 1 || json_array_size(list) > 4) {
        return refuse(reader, sections, "must have 1 to 4 entries, one for each axis");
    }
    json_array_foreach(list, i, entry) {
        if (!json_is_integer(entry) || json_integer_value(entry) < 0 ||
            json_integer_value(entry) > 32768) {
            return refuse(reader, sections, "its entries must be integers in 0..32768");
        }
        sections->value[i] = (int32_t)json_integer_value(entry);
    }
    sections->count = (int32_t)json_array_size(list);
    while (sections->count > 1 && sections->value[sections->count - 1] == 0) {
        sections->count--;
    }
    return 1;
}

static int asks_for_axes(const struct posenc_node *block)
{
    static const char *const keys[] = {"rope_type", "type"};
    for (size_t i = 0; block->json && i < 2; i++) {
        const char *type = json_string_value(json_object_get(block->json, keys[i]));
        if (type && (strcmp(type, "mrope") == 0 || strcmp(type, "xdrope") == 0)) {
            return 1;
        }
    }
    return 0;
}

/* 1 found, 0 one axis, -1 refused. */
static int find_sections(struct posenc_reader *reader, const struct posenc_node *block,
                         struct sections *sections)
{
    static const char *const keys[] = {"mrope_section", "xdrope_section"};
    const struct posenc_family *family = reader->family;
    sections->node = block;
    for (size_t i = 0; block->json && i < 2; i++) {
        json_t *list = NULL;
        int found = posenc_get_array(reader, block, keys[i], &list);
        if (found != 0) {
            sections->key = keys[i];
            return found < 0 ? -1 : read_list(reader, list, sections);
        }
    }
    if (!(family->flags & POSENC_FAMILY_MROPE) && !asks_for_axes(block)) {
        return 0;
    }
    if (!family->sections[0]) {
        return posenc_refuse_missing(reader, block->json ? block : &reader->text, "mrope_section",
                                     "positions of several axes need it");
    }
    sections->node = NULL;
    sections->count = 3;
    memcpy(sections->value, family->sections, sizeof sections->value);
    posenc_error text;
    posenc_fail(&text, POSENC_OK, "[%d, %d, %d]", (int64_t)family->sections[0],
                (int64_t)family->sections[1], (int64_t)family->sections[2]);
    posenc_assume_text(reader, "mrope_section", text.text, "the default of this model_type");
    return 1;
}

static int read_pattern(struct posenc_reader *reader, const struct posenc_node *block,
                        int32_t *pattern)
{
    uint32_t flags = reader->family->flags;
    int alternate = (flags & POSENC_FAMILY_ALTERNATE) != 0;
    int found = 0;
    if (flags & POSENC_FAMILY_ERNIE) {
        *pattern = POSENC_AXES_ERNIE;
        return 0;
    }
    if (block->json) {
        found = posenc_get_bool(reader, block, "mrope_interleaved", &alternate);
    }
    if (!found && alternate) {
        posenc_assume_text(reader, "mrope_interleaved", "true", "the default of this model_type");
    }
    *pattern = alternate ? POSENC_AXES_INTERLEAVED : POSENC_AXES_SECTIONS;
    return found < 0 ? -1 : 0;
}

static int make_map(struct posenc_reader *reader, const struct sections *sections, int32_t pattern,
                    struct posenc_set *set)
{
    size_t pairs = (size_t)set->params.rotary_dim / 2;
    int32_t *map = posenc_own(reader->contract, pairs * sizeof *map);
    posenc_error error;
    if (!map) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY,
                                     "no memory for the axes of %d pairs", (int64_t)pairs);
        return -1;
    }
    if (posenc_axis_map(map, pairs, pattern, sections->value, (size_t)sections->count, &error)) {
        return refuse(reader, sections, error.text);
    }
    set->params.axes = sections->count;
    set->params.axis_of_pair = map;
    set->num_sections = sections->count;
    memcpy(set->sections, sections->value, sizeof set->sections);
    set->interleaved = pattern != POSENC_AXES_SECTIONS;
    return 0;
}

int posenc_read_axes(struct posenc_reader *reader, const struct posenc_node *block,
                     struct posenc_set *set)
{
    struct sections sections = {0};
    int32_t pattern = POSENC_AXES_SECTIONS;
    int64_t sum = 0, pairs = set->params.rotary_dim / 2;
    int found = find_sections(reader, block, &sections);
    if (found <= 0) {
        return found;
    }
    for (int32_t i = 0; i < sections.count; i++) {
        sum += sections.value[i];
    }
    if (sum != pairs) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "sums to %d: must sum to %d, the pairs that turn", sum,
                    pairs);
        return refuse(reader, &sections, rule.text);
    }
    if (read_pattern(reader, block, &pattern) < 0) {
        return -1;
    }
    if (pattern != POSENC_AXES_SECTIONS && sections.count != 3) {
        return refuse(reader, &sections, "axes that alternate need 3 sections");
    }
    return make_map(reader, &sections, pattern, set);
}
