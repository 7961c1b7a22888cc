/* SPDX-License-Identifier: MIT */
/* One rope block -> one frequency set: the kind after aliases, base, rotary width, scaling. */
#include "family.h"
#include "kind.h"
#include "reader.h"

#include <math.h>
#include <string.h>

/* By name; the last one stands for "dynamic" with alpha, as classes that have it mean it. */
static const struct posenc_kind kinds[] = {
    {"default", "default", POSENC_KIND_DEFAULT, POSENC_SCALING_NONE},
    {"linear", "linear", POSENC_KIND_LINEAR, POSENC_SCALING_LINEAR},
    {"llama3", "llama3", POSENC_KIND_LLAMA3, POSENC_SCALING_LLAMA3},
    {"yarn", "yarn", POSENC_KIND_YARN, POSENC_SCALING_YARN},
    {"dynamic", "dynamic", POSENC_KIND_DYNAMIC, POSENC_SCALING_DYNAMIC_NTK},
    {"longrope", "longrope", POSENC_KIND_LONGROPE, POSENC_SCALING_LONGROPE},
    {"proportional", "proportional", POSENC_KIND_PROPORTIONAL, POSENC_SCALING_PROPORTIONAL},
    {"ntk", "ntk", POSENC_KIND_NTK, POSENC_SCALING_NTK_SCALED},
    {"xdrope", "ntk", POSENC_KIND_ALPHA, POSENC_SCALING_NTK},
};

enum {
    LENGTHS = POSENC_KIND_LLAMA3 | POSENC_KIND_YARN | POSENC_KIND_DYNAMIC | POSENC_KIND_LONGROPE,
    FACTORS = LENGTHS | POSENC_KIND_LINEAR | POSENC_KIND_PROPORTIONAL | POSENC_KIND_NTK,
    EVERY_KIND = FACTORS | POSENC_KIND_DEFAULT | POSENC_KIND_ALPHA
};

/* Every key that a block may hold and the kinds that it changes. */
static const struct block_key {
    const char *name;
    int32_t kinds;
    uint32_t flag; /* known only in families with this flag */
} block_keys[] = {
    {"rope_type", EVERY_KIND, 0},
    {"type", EVERY_KIND, 0},
    {"rope_theta", EVERY_KIND, 0},
    {"partial_rotary_factor", EVERY_KIND, 0},
    {"factor", FACTORS, 0},
    {"original_max_position_embeddings", LENGTHS, 0},
    {"low_freq_factor", POSENC_KIND_LLAMA3, 0},
    {"high_freq_factor", POSENC_KIND_LLAMA3, 0},
    {"attention_factor", POSENC_KIND_YARN | POSENC_KIND_LONGROPE, 0},
    {"beta_fast", POSENC_KIND_YARN, 0},
    {"beta_slow", POSENC_KIND_YARN, 0},
    {"mscale", POSENC_KIND_YARN, 0},
    {"mscale_all_dim", POSENC_KIND_YARN, 0},
    {"truncate", POSENC_KIND_YARN, 0},
    {"short_factor", POSENC_KIND_LONGROPE, 0},
    {"long_factor", POSENC_KIND_LONGROPE, 0},
    {"short_mscale", POSENC_KIND_LONGROPE, POSENC_FAMILY_MSCALES},
    {"long_mscale", POSENC_KIND_LONGROPE, POSENC_FAMILY_MSCALES},
    {"alpha", POSENC_KIND_ALPHA, 0},
    {"mixed_b", POSENC_KIND_NTK, 0},
    {"mrope_section", EVERY_KIND, 0},
    {"mrope_interleaved", EVERY_KIND, 0},
    {"xdrope_section", EVERY_KIND, 0},
    {"llama_4_scaling_beta", EVERY_KIND, POSENC_FAMILY_QUERY_BETA},
    {"max_position_embeddings", EVERY_KIND, POSENC_FAMILY_QUERY_BETA},
};

static const char *without_alias(const char *name)
{
    return strcmp(name, "su") == 0 ? "longrope" : strcmp(name, "mrope") == 0 ? "default" : name;
}

/* The kind that `rope_type` and the older `type` name together. A `type` that says "default" beside
 * another rope_type is how some writers fill a field that they do not use. */
static int read_type(struct posenc_reader *reader, const struct posenc_node *block,
                     const char **name, const char **key)
{
    const char *now = NULL, *old = NULL;
    if (posenc_get_string(reader, block, "rope_type", &now) < 0 ||
        posenc_get_string(reader, block, "type", &old) < 0) {
        return -1;
    }
    *key = now ? "rope_type" : "type";
    *name = without_alias(now ? now : old ? old : "default");
    if (!now || !old || strcmp(*name, without_alias(old)) == 0) {
        return 0;
    }
    if (strcmp(old, "default") != 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must agree with rope_type, which is \"%s\"", now);
        return posenc_refuse(reader, block, "type", rule.text);
    }
    posenc_fail(posenc_warning(reader, block, "type"), POSENC_OK,
                "is \"default\" but rope_type is \"%s\": rope_type counts", now);
    return 0;
}

/* Classes with alpha call their larger base "dynamic"; it does not depend on the length. */
static const struct posenc_kind *with_alpha(const struct posenc_node *block,
                                            const struct posenc_kind *kind)
{
    const json_t *alpha = block->json ? json_object_get(block->json, "alpha") : NULL;
    int given = alpha && !json_is_null(alpha) && kind->bit == POSENC_KIND_DYNAMIC;
    return given ? &kinds[sizeof kinds / sizeof kinds[0] - 1] : kind;
}

static int read_kind(struct posenc_reader *reader, const struct posenc_node *block,
                     const struct posenc_kind **kind)
{
    const char *name = "default", *key = "rope_type";
    if (block->json && read_type(reader, block, &name, &key) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *kind = with_alpha(block, &kinds[i]);
            return 0;
        }
    }
    return posenc_refuse(reader, block, key,
                         "unknown kind: must be default, linear, llama3, yarn, dynamic, longrope, "
                         "proportional, ntk, mrope or xdrope");
}

/* Keys that change nothing are named, because their writer expected otherwise. */
static void check_keys(struct posenc_reader *reader, const struct posenc_node *block,
                       const struct posenc_kind *kind)
{
    const char *key;
    json_t *value;
    json_object_foreach(block->json, key, value) {
        const struct block_key *known = NULL;
        for (size_t i = 0; i < sizeof block_keys / sizeof block_keys[0]; i++) {
            if (strcmp(block_keys[i].name, key) == 0 &&
                (!block_keys[i].flag || (reader->family->flags & block_keys[i].flag))) {
                known = &block_keys[i];
            }
        }
        if (!known) {
            posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                        "unknown key of a rope block: ignored");
        } else if (!(known->kinds & kind->bit) && !json_is_null(value)) {
            posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                        "has no effect on the kind %s", kind->reported);
        }
    }
}

/* GLM counts its base in multiples of 10000. */
static int read_ratio(struct posenc_reader *reader, struct posenc_set *set)
{
    double ratio = 1.0;
    int found = posenc_get_real(reader, &reader->text, "rope_ratio", &ratio);
    set->params.base = 10000.0 * ratio;
    if (found <= 0) {
        posenc_assume_real(reader, "rope_theta", set->params.base, "the base of this class");
        return found;
    }
    if (!(set->params.base > 1.0 && set->params.base < 0x1p76)) {
        return posenc_refuse(reader, &reader->text, "rope_ratio",
                             "10000 times it must be > 1 and < 2^76");
    }
    posenc_fail(posenc_warning(reader, &reader->text, "rope_ratio"), POSENC_OK,
                "multiplies the base; ChatGLM2-6B-32K has the same keys but divides positions");
    return 0;
}

/* `own` is 1 if the block belongs to this kind of layer alone. */
static int read_base(struct posenc_reader *reader, const struct posenc_node *block,
                     enum posenc_layer_kind kind, int own, struct posenc_set *set)
{
    const struct posenc_family *family = reader->family;
    if (family->flags & POSENC_FAMILY_ROPE_RATIO) {
        return read_ratio(reader, set);
    }
    int local = kind == POSENC_LAYER_SLIDING && family->local_base_key;
    const char *key = local                      ? family->local_base_key
                      : family->global_base_key ? family->global_base_key
                                                : "rope_theta";
    struct posenc_node config = {0}; /* DBRX keeps its base there */
    if ((family->flags & POSENC_FAMILY_ATTN_CONFIG) &&
        posenc_get_object(reader, &reader->text, "attn_config", &config) < 0) {
        return -1;
    }
    const struct posenc_place places[] = {
        {block, own ? "rope_theta" : NULL},
        {&reader->text, key},
        {&reader->text, local ? NULL : family->base_key},
        {&config, "rope_theta"},
    };
    const struct posenc_place *found;
    if (posenc_get_first(reader, places, 4, &set->params.base, &found) < 0) {
        return -1;
    }
    if (!found) {
        set->params.base = local ? family->local_base : family->base > 0.0 ? family->base : 10000.0;
        posenc_assume_real(reader, key, set->params.base, "the default of this model_type");
        return 0;
    }
    return posenc_refuse_unless(reader, set->params.base > 1.0 && set->params.base < 0x1p76,
                                found->node, found->key, "a base must be > 1 and < 2^76");
}

/* Truncates in double as Python's int() does: 100 * 0.29 gives 28. */
static int width_by_factor(struct posenc_reader *reader, const struct posenc_node *block,
                           int32_t width, double *turned)
{
    const struct posenc_family *family = reader->family;
    const struct posenc_place places[] = {
        {block, "partial_rotary_factor"},
        {&reader->text, "partial_rotary_factor"},
        {&reader->text, "rotary_pct"},
        {&reader->text, "rotary_emb_fraction"},
    };
    const struct posenc_place *found;
    double partial = family->partial > 0.0 ? family->partial : 1.0;
    if (posenc_get_first(reader, places, 4, &partial, &found) < 0) {
        return -1;
    }
    *turned = trunc(width * partial);
    if (!found) {
        return 0;
    }
    if (!(partial > 0.0 && partial <= 1.0)) {
        return posenc_refuse(reader, found->node, found->key, "must be > 0 and <= 1");
    }
    if (*turned < 2.0 || fmod(*turned, 2.0) > 0.0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "%g of %d channels would turn, which must be even and >= 2",
                    *turned, (int64_t)width);
        return posenc_refuse(reader, found->node, found->key, rule.text);
    }
    return 1;
}

/* The whole head takes part; a fraction of its pairs moves. Python: int(fraction * width // 2). */
static int proportional_pairs(struct posenc_reader *reader, const struct posenc_node *block,
                              struct posenc_set *set)
{
    double fraction = 1.0;
    int found = posenc_get_real(reader, block, "partial_rotary_factor", &fraction);
    if (found < 0) {
        return -1;
    }
    if (!found) {
        posenc_assume_real(reader, "partial_rotary_factor", fraction,
                           "the default of the kind proportional");
    }
    if (!(fraction > 0.0 && fraction <= 1.0)) {
        return posenc_refuse(reader, block, "partial_rotary_factor", "must be > 0 and <= 1");
    }
    set->params.rotary_dim = set->params.head_dim;
    set->params.rotating_pairs = (int32_t)floor(fraction * set->params.head_dim / 2.0);
    if (set->params.head_dim % 2 != 0) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL,
                                     "head_dim is %d: must be even", (int64_t)set->params.head_dim);
        return -1;
    }
    return 0;
}

static int check_rotary_dim(struct posenc_reader *reader, int64_t rotary, int64_t head)
{
    if (rotary < 2 || rotary % 2 != 0) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL,
                                     "rotary_dim is %d, of head_dim %d: must be even and >= 2",
                                     rotary, head);
        return -1;
    }
    return 0;
}

/* DeepSeek-V4: the tail of the head turns; its width has a key of its own, or a fraction. */
static int tail_width(struct posenc_reader *reader, const struct posenc_node *block,
                      struct posenc_set *set)
{
    int64_t rotary = reader->family->rotary_dim;
    int32_t head = set->params.head_dim;
    double turned = 0.0;
    int found = posenc_get_integer(reader, &reader->text, "qk_rope_head_dim", 2, head, &rotary);
    int by_factor = found ? 0 : width_by_factor(reader, block, head, &turned);
    if (found < 0 || by_factor < 0) {
        return -1;
    }
    if (!found && !by_factor) {
        posenc_assume_integer(reader, "qk_rope_head_dim", rotary, "the default of this model_type");
    }
    rotary = by_factor ? (int64_t)turned : rotary;
    if (rotary > head || check_rotary_dim(reader, rotary, head) < 0) {
        return rotary > head ? posenc_refuse(reader, &reader->text, "head_dim",
                                             "must not be less than the width that turns")
                             : -1;
    }
    set->params.rotary_dim = (int32_t)rotary;
    set->params.rotary_offset = head - (int32_t)rotary;
    return 0;
}

static int read_rotary_dim(struct posenc_reader *reader, const struct posenc_node *block,
                           struct posenc_set *set)
{
    const struct posenc_family *family = reader->family;
    int32_t width = set->params.head_dim - set->params.rotary_offset;
    int64_t given = 0;
    double turned = width;
    if (family->flags & POSENC_FAMILY_TAIL) {
        return tail_width(reader, block, set);
    }
    if (family->flags & POSENC_FAMILY_MLA) { /* the rope part turns whole, whatever fractions say */
        set->params.rotary_dim = width;
        return check_rotary_dim(reader, width, set->params.head_dim);
    }
    int by_factor = width_by_factor(reader, block, width, &turned);
    int direct = posenc_get_integer(reader, &reader->text, "rotary_dim", 1, width, &given);
    if (by_factor < 0 || direct < 0) {
        return -1;
    }
    if (direct && by_factor && (double)given != turned) {
        posenc_fail(posenc_warning(reader, &reader->text, "rotary_dim"), POSENC_OK,
                    "is %d but the rotary fraction gives %g: rotary_dim counts", given, turned);
    }
    if (!direct && !by_factor && family->rotary_dim) {
        given = family->rotary_dim < width ? family->rotary_dim : width;
        posenc_assume_integer(reader, "rotary_dim", given, "the default of this model_type");
    } else if (!direct) {
        given = (int64_t)turned;
        if (!by_factor && family->partial > 0.0) {
            posenc_assume_real(reader, "partial_rotary_factor", family->partial,
                               "the default of this model_type");
        }
    }
    set->params.rotary_dim = (int32_t)given;
    return check_rotary_dim(reader, given, set->params.head_dim);
}

int posenc_read_set(struct posenc_reader *reader, const struct posenc_node *block,
                    enum posenc_layer_kind layers, int own, struct posenc_set *set)
{
    const struct posenc_kind *kind = NULL;
    if (read_kind(reader, block, &kind) < 0) {
        return -1;
    }
    if (block->json) {
        check_keys(reader, block, kind);
    }
    set->rope_type = kind->reported;
    set->params.scaling = kind->scaling;
    int proportional = kind->bit == POSENC_KIND_PROPORTIONAL;
    if (read_base(reader, block, layers, own, set) < 0 ||
        (proportional ? proportional_pairs : read_rotary_dim)(reader, block, set) < 0 ||
        posenc_read_scaling(reader, block, kind, set) < 0) {
        return -1;
    }
    return posenc_read_axes(reader, block, set);
}
