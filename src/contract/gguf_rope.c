/* SPDX-License-Identifier: MIT */
/* The frequency sets of a GGUF model: one for all layers, or one each for full and sliding ones. */
#include "gguf.h"
#include "gguf_arch.h"

#include <stdlib.h>

static int refuse_width(struct posenc_gguf_reader *from, const char *suffix, int64_t width)
{
    posenc_error rule;
    posenc_fail(&rule, POSENC_OK, "must be even, and 2..%d, the width of the head", width);
    return posenc_gguf_refuse(from, suffix, rule.text);
}

/* In latent attention the rotated part stands last. */
static int read_width(struct posenc_gguf_reader *from, const char *suffix, struct posenc_set *set)
{
    int32_t width = set->params.head_dim;
    int64_t turned = width;
    int found = posenc_gguf_integer(from, suffix, 0, 65536, &turned);
    if (found < 0) {
        return -1;
    }
    if (!found && (from->arch->flags & POSENC_GGUF_MLA)) {
        return posenc_gguf_refuse_missing(from, suffix, "latent attention needs it");
    }
    if (turned < 2 || turned > width || turned % 2 != 0) {
        return refuse_width(from, suffix, width);
    }
    if ((from->arch->flags & POSENC_GGUF_WHOLE_HEAD) && turned != width) {
        return posenc_gguf_refuse(from, suffix, "this architecture turns whole heads");
    }
    set->params.rotary_dim = (int32_t)turned;
    set->params.rotary_offset =
        from->arch->flags & POSENC_GGUF_MLA ? width - (int32_t)turned : 0;
    return 0;
}

static int read_base(struct posenc_gguf_reader *from, const char *suffix, double usual,
                     const char *why, double *base)
{
    int found = posenc_gguf_real(from, suffix, base);
    if (found < 0) {
        return -1;
    }
    if (!found) {
        *base = usual;
        posenc_gguf_assume(from, suffix, usual, why);
    } else if (!(*base > 1.0 && *base < 0x1p76)) {
        return posenc_gguf_refuse(from, suffix, "a base must be > 1 and < 2^76");
    }
    return 0;
}

static int read_sections(struct posenc_gguf_reader *from, const struct posenc_gguf_entry *entry,
                         struct posenc_set *set)
{
    static const char key[] = "rope.dimension_sections";
    int64_t sum = 0, pairs = set->params.rotary_dim / 2;
    if (!entry->array || entry->count < 3 || entry->count > 4 ||
        (entry->type != POSENC_GGUF_I32 && entry->type != POSENC_GGUF_U32)) {
        return posenc_gguf_refuse(from, key, "must be a list of 3 or 4 integers");
    }
    for (uint64_t i = 0; i < entry->count; i++) {
        double number = posenc_gguf_number(&from->gguf, entry, i);
        if (!(number >= 0.0 && number <= (double)pairs)) {
            return posenc_gguf_refuse(from, key, "each must be >= 0 and no more than the pairs");
        }
        set->sections[i] = (int32_t)number;
        sum += set->sections[i];
    }
    if (sum != pairs) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "they add up to %d, but there are %d pairs", sum, pairs);
        return posenc_gguf_refuse(from, key, rule.text);
    }
    set->num_sections = set->sections[3] ? 4 : 3;
    return 0;
}

/* What ggml leaves to a fourth axis, which stands at 0 in text: the model turns it by time. */
static void warn_of_fourth(struct posenc_gguf_reader *from, const struct posenc_set *set,
                           int32_t *map, size_t pairs)
{
    int64_t left = 0;
    int32_t status = posenc_axis_map(map, pairs, POSENC_AXES_INTERLEAVED_GGML, set->sections, 3,
                                     NULL);
    for (size_t i = 0; status == POSENC_OK && i < pairs; i++) {
        left += map[i] == 3;
    }
    if (left) {
        posenc_fail(posenc_gguf_warning(from, "rope.dimension_sections"), POSENC_OK,
                    "ggml does not turn %d of the pairs in text; the model does, by time", left);
    }
}

static int map_axes(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    size_t pairs = (size_t)set->params.rotary_dim / 2;
    int alternate = from->arch->axes == POSENC_GGUF_AXES_INTERLEAVED;
    int32_t *map = posenc_own(from->reader->contract, pairs * sizeof *map);
    if (!map) {
        from->reader->status =
            posenc_fail(from->reader->error, POSENC_ERROR_MEMORY, "no memory for %d pairs",
                        (int64_t)pairs);
        return -1;
    }
    if (alternate && set->num_sections > 3) {
        return posenc_gguf_refuse(from, "rope.dimension_sections",
                                  "axes alternate between 3, the fourth must be 0");
    }
    if (alternate) {
        warn_of_fourth(from, set, map, pairs);
    }
    from->reader->status = posenc_axis_map(
        map, pairs, alternate ? POSENC_AXES_INTERLEAVED : POSENC_AXES_SECTIONS, set->sections,
        (size_t)set->num_sections, from->reader->error);
    set->params.axes = set->num_sections;
    set->params.axis_of_pair = map;
    set->interleaved = alternate;
    return from->reader->status == POSENC_OK ? 0 : -1;
}

static int read_axes(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char key[] = "rope.dimension_sections";
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, key);
    enum posenc_gguf_axes axes = from->arch->axes;
    if (axes == POSENC_GGUF_AXES_NONE) {
        if (entry) {
            posenc_fail(posenc_gguf_warning(from, key), POSENC_OK,
                        "has no effect on this architecture");
        }
        return 0;
    }
    if (!entry) {
        return axes == POSENC_GGUF_AXES_OPTIONAL
                   ? 0
                   : posenc_gguf_refuse_missing(from, key, "this architecture has 3 axes");
    }
    /* Converters undo the adjacent order of these classes where there are axes. */
    set->params.layout = POSENC_SPLIT_HALF;
    return read_sections(from, entry, set) < 0 ? -1 : map_axes(from, set);
}

/* Key heads may differ between the kinds of layers: those of the first of its kind. */
static int kind_heads(struct posenc_gguf_reader *from, enum posenc_layer_kind kind,
                      struct posenc_set *set)
{
    static const char key[] = "attention.head_count_kv";
    int64_t *counts = malloc((size_t)from->layers * sizeof *counts);
    if (!counts) {
        from->reader->status =
            posenc_fail(from->reader->error, POSENC_ERROR_MEMORY, "no memory for layers");
        return -1;
    }
    int found = posenc_gguf_per_layer(from, key, 0, 65536, counts);
    int64_t heads = 0;
    for (int64_t i = 0; found > 0 && i < from->layers && heads == 0; i++) {
        heads = from->reader->contract->layers[i].kind == kind ? counts[i] : 0;
    }
    free(counts);
    if (heads && set->num_heads % heads != 0) {
        return posenc_gguf_refuse(from, key, "must divide the number of query heads");
    }
    set->num_kv_heads = heads ? (int32_t)heads : set->num_kv_heads;
    return found < 0 ? -1 : 0;
}

static int local_set(struct posenc_gguf_reader *from, struct posenc_set *set, double base)
{
    int64_t width = set->params.head_dim;
    int own = from->arch->flags & POSENC_GGUF_LOCAL_SET;
    set->id = posenc_layer_names[POSENC_LAYER_SLIDING].set;
    set->rope_type = "default";
    set->layers = POSENC_LAYER_SLIDING;
    if (posenc_gguf_integer(from, "attention.key_length_swa", 2, 65536, &width) < 0) {
        return -1;
    }
    set->params.head_dim = (int32_t)width;
    int as_others = !posenc_gguf_find(from, "rope.dimension_count_swa") &&
                    width == from->reader->common.params.head_dim;
    const char *key = as_others ? "rope.dimension_count" : "rope.dimension_count_swa";
    if (kind_heads(from, POSENC_LAYER_SLIDING, set) < 0 || read_width(from, key, set) < 0 ||
        read_base(from, "rope.freq_base_swa", own ? 10000.0 : base,
                  own ? "the base of sliding layers of this architecture"
                      : "the base of the other layers",
                  &set->params.base) < 0) {
        return -1;
    }
    return from->arch->flags & POSENC_GGUF_LOCAL_PLAIN ? 0 : posenc_gguf_scaling(from, set);
}

static void assign(struct posenc_contract *contract, int8_t local)
{
    for (int64_t i = 0; i < contract->facts.num_layers; i++) {
        struct posenc_layer *layer = &contract->layers[i];
        if (layer->set >= 0) {
            layer->set = layer->kind == POSENC_LAYER_SLIDING ? local : 0;
        }
    }
}

/* Whether sliding layers differ from the others in what turns them. */
static int has_local(struct posenc_gguf_reader *from, double base)
{
    double local = base;
    if (!posenc_any_layer(from->reader->contract, POSENC_LAYER_SLIDING)) {
        return 0;
    }
    int found = posenc_gguf_real(from, "rope.freq_base_swa", &local);
    return found < 0 ? -1
                     : (from->arch->flags & POSENC_GGUF_LOCAL_SET) != 0 || local != base ||
                           posenc_gguf_find(from, "attention.key_length_swa") ||
                           posenc_gguf_find(from, "rope.dimension_count_swa");
}

static int main_set(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    set->id = "main";
    set->rope_type = "default";
    set->params.layout = from->arch->layout;
    if (read_width(from, "rope.dimension_count", set) < 0 ||
        read_base(from, "rope.freq_base", 10000.0, "the default of the format",
                  &set->params.base) < 0 ||
        read_axes(from, set) < 0) {
        return -1;
    }
    int adjacent = set->params.layout == POSENC_ADJACENT;
    posenc_assume_text(from->reader, "layout", adjacent ? "\"adjacent\"" : "\"split_half\"",
                       "the pair order of this architecture: no key states it");
    return posenc_gguf_scaling(from, set);
}

/* Facts of the model are those of its first layer that attends, as in config.json. */
static void facts_of_first(struct posenc_contract *contract)
{
    for (int64_t i = 0; i < contract->facts.num_layers; i++) {
        int8_t set = contract->layers[i].set;
        if (set >= 0) {
            contract->facts.head_dim = contract->sets[set].params.head_dim;
            return;
        }
    }
}

int posenc_gguf_rope(struct posenc_gguf_reader *from)
{
    struct posenc_contract *contract = from->reader->contract;
    struct posenc_set *sets = contract->sets;
    sets[0] = from->reader->common;
    if (main_set(from, &sets[0]) < 0) {
        return -1;
    }
    int local = has_local(from, sets[0].params.base);
    if (local < 0) {
        return -1;
    }
    contract->facts.num_sets = 1;
    if (local) {
        sets[0].id = posenc_layer_names[POSENC_LAYER_FULL].set;
        sets[0].layers = POSENC_LAYER_FULL;
        sets[1] = from->reader->common;
        sets[1].params.layout = sets[0].params.layout;
        if (kind_heads(from, POSENC_LAYER_FULL, &sets[0]) < 0 ||
            local_set(from, &sets[1], sets[0].params.base) < 0) {
            return -1;
        }
        contract->facts.num_sets = 2;
    } else if (sets[0].params.scaling == POSENC_SCALING_LONGROPE) {
        posenc_split_by_length(contract, NULL);
    }
    assign(contract, (int8_t)(local ? 1 : 0));
    facts_of_first(contract);
    return 0;
}
