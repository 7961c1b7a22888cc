/* SPDX-License-Identifier: MIT */
/* One rope block -> one frequency set: the kind after aliases, base, rotary width, scaling. */
#include "family.h"
#include "reader.h"

#include <math.h>
#include <string.h>

enum { DEFAULT = 1, LINEAR = 2, LLAMA3 = 4, YARN = 8, EVERY_KIND = 15 };

static const struct kind {
    const char *name;
    int32_t bit; /* 0: known, not supported yet */
    int32_t scaling;
} kinds[] = {
    {"default", DEFAULT, POSENC_SCALING_NONE}, {"linear", LINEAR, POSENC_SCALING_LINEAR},
    {"llama3", LLAMA3, POSENC_SCALING_LLAMA3}, {"yarn", YARN, POSENC_SCALING_YARN},
    {"dynamic", 0, 0},                         {"longrope", 0, 0},
    {"proportional", 0, 0},                    {"ntk", 0, 0},
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
    {"factor", LINEAR | LLAMA3 | YARN, 0},
    {"original_max_position_embeddings", LLAMA3 | YARN, 0},
    {"low_freq_factor", LLAMA3, 0},
    {"high_freq_factor", LLAMA3, 0},
    {"attention_factor", YARN, 0},
    {"beta_fast", YARN, 0},
    {"beta_slow", YARN, 0},
    {"mscale", YARN, 0},
    {"mscale_all_dim", YARN, 0},
    {"truncate", YARN, 0},
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

static int read_kind(struct posenc_reader *reader, const struct posenc_node *block,
                     const struct kind **kind)
{
    const char *name = "default", *key = "rope_type";
    if (block->json && read_type(reader, block, &name, &key) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *kind = &kinds[i];
            if (!kinds[i].bit) {
                posenc_error rule;
                posenc_fail(&rule, POSENC_OK, "the kind %s is not supported yet", name);
                return posenc_refuse(reader, block, key, rule.text);
            }
            return 0;
        }
    }
    return posenc_refuse(reader, block, key,
                         "unknown kind: must be default, linear, llama3 or yarn");
}

/* Keys that change nothing are named, because their writer expected otherwise. */
static void check_keys(struct posenc_reader *reader, const struct posenc_node *block,
                       const struct kind *kind)
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
                        "has no effect on the kind %s", kind->name);
        }
    }
}

static int refuse_unless(struct posenc_reader *reader, int holds, const struct posenc_node *node,
                         const char *key, const char *rule)
{
    return holds ? 0 : posenc_refuse(reader, node, key, rule);
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
    const struct posenc_place places[] = {
        {block, own ? "rope_theta" : NULL},
        {&reader->text, local ? family->local_base_key : "rope_theta"},
        {&reader->text, local ? NULL : family->base_key},
    };
    const struct posenc_place *found;
    if (posenc_get_first(reader, places, 3, &set->params.base, &found) < 0) {
        return -1;
    }
    if (!found) {
        set->params.base = local ? family->local_base : family->base > 0.0 ? family->base : 10000.0;
        posenc_assume_real(reader, local ? family->local_base_key : "rope_theta", set->params.base,
                           "the default of this model_type");
        return 0;
    }
    return refuse_unless(reader, set->params.base > 1.0 && set->params.base < 0x1p76, found->node,
                         found->key, "a base must be > 1 and < 2^76");
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

static int read_rotary_dim(struct posenc_reader *reader, const struct posenc_node *block,
                           struct posenc_set *set)
{
    const struct posenc_family *family = reader->family;
    int32_t width = set->params.head_dim - set->params.rotary_offset;
    int64_t given = 0;
    double turned = width;
    int by_factor = width_by_factor(reader, block, width, &turned);
    int direct = family->flags & POSENC_FAMILY_MLA
                     ? 0
                     : posenc_get_integer(reader, &reader->text, "rotary_dim", 1, width, &given);
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
    if (given < 2 || given % 2 != 0) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL,
                                     "rotary_dim is %d, of head_dim %d: must be even and >= 2",
                                     given, (int64_t)set->params.head_dim);
        return -1;
    }
    return 0;
}

/* What a plan accepts, so that a contract that was read can be used. */
static const char RANGE[] = "must be > 0, within 2^-64..2^64";

static int in_range(double value)
{
    return value >= 0x1p-64 && value < 0x1p64;
}

/* A number that the kind cannot do without. */
static int need_real(struct posenc_reader *reader, const struct posenc_node *block, const char *key,
                     const struct kind *kind, double *value)
{
    int found = posenc_get_real(reader, block, key, value);
    if (found == 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "the kind %s needs it", kind->name);
        return posenc_refuse_missing(reader, block, key, rule.text);
    }
    return found < 0 ? -1 : refuse_unless(reader, in_range(*value), block, key, RANGE);
}

/* The length before extension: beside the block, then in it, then the declared limit. */
static int read_original(struct posenc_reader *reader, const struct posenc_node *block,
                         struct posenc_set *set)
{
    static const char key[] = "original_max_position_embeddings";
    const posenc_contract_facts *facts = &reader->contract->facts;
    int64_t beside = 0, inside = 0;
    int outer = posenc_get_integer(reader, &reader->text, key, 1, INT64_C(1) << 53, &beside);
    int inner = posenc_get_integer(reader, block, key, 1, INT64_C(1) << 53, &inside);
    if (outer < 0 || inner < 0) {
        return -1;
    }
    if (outer && inner && beside != inside) {
        posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                    "is %d but %d beside the block: the one beside it counts", inside, beside);
    }
    int64_t original = outer ? beside : inside;
    if (!outer && !inner) {
        original = facts->max_position;
        if (original < 1) {
            return posenc_refuse_missing(reader, block, key,
                                         "no other key gives the length before extension");
        }
        posenc_assume_integer(reader, key, original, "the declared limit of positions");
    }
    set->original_max_position = original;
    set->params.original_max_position = (double)original;
    return 0;
}

/* `factor` may be null: then it follows from the two lengths, as transformers does it. */
static int read_yarn_factor(struct posenc_reader *reader, const struct posenc_node *block,
                            const struct kind *kind, struct posenc_set *set)
{
    int64_t limit = reader->contract->facts.max_position;
    double ratio = (double)limit / set->params.original_max_position;
    if (limit > 0 && json_is_null(json_object_get(block->json, "factor"))) {
        set->params.factor = ratio;
        posenc_assume_real(reader, "factor", ratio,
                           "max_position divided by original_max_position_embeddings");
        return 0;
    }
    if (need_real(reader, block, "factor", kind, &set->params.factor) < 0) {
        return -1;
    }
    if (limit > 0 && fabs(set->params.factor - ratio) > 1e-6 * ratio) {
        posenc_fail(posenc_warning(reader, block, "factor"), POSENC_OK,
                    "is %g but the declared limit is %g times the original length: factor counts",
                    set->params.factor, ratio);
    }
    return 0;
}

/* An optional number that must be > 0 and keeps its default otherwise. */
static int optional_real(struct posenc_reader *reader, const struct posenc_node *block,
                         const char *key, double *value)
{
    double found_value = 0.0;
    int found = posenc_get_real(reader, block, key, &found_value);
    if (found < 0) {
        return -1;
    }
    if (found && !in_range(found_value)) {
        return posenc_refuse(reader, block, key, RANGE);
    }
    if (found) {
        *value = found_value;
    } else if (*value > 0.0) {
        posenc_assume_real(reader, key, *value, "the default of yarn");
    }
    return 0;
}

/* 0 counts as not given: only two true values make the ratio. */
static int read_mscale(struct posenc_reader *reader, const struct posenc_node *block,
                       struct posenc_set *set)
{
    static const char *const keys[2] = {"mscale", "mscale_all_dim"};
    double values[2] = {0.0, 0.0};
    for (int i = 0; i < 2; i++) {
        if (posenc_get_real(reader, block, keys[i], &values[i]) < 0) {
            return -1;
        }
        if (!(values[i] >= 0.0 && values[i] <= 0x1p64)) {
            return posenc_refuse(reader, block, keys[i], "must be >= 0 and <= 2^64");
        }
    }
    set->mscale_all_dim = values[1];
    if (values[0] > 0.0 && values[1] > 0.0) {
        set->params.mscale = values[0];
        set->params.mscale_all_dim = values[1];
    } else if (values[0] > 0.0 || values[1] > 0.0) {
        int given = values[1] > 0.0;
        posenc_fail(posenc_warning(reader, block, keys[given]), POSENC_OK,
                    "does not change the attention factor without %s", keys[!given]);
    }
    return 0;
}

static int read_yarn(struct posenc_reader *reader, const struct posenc_node *block,
                     const struct kind *kind, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    int truncate = 1;
    if (read_original(reader, block, set) < 0 ||
        read_yarn_factor(reader, block, kind, set) < 0 ||
        optional_real(reader, block, "attention_factor", &params->attention_factor) < 0 ||
        optional_real(reader, block, "beta_fast", &params->beta_fast) < 0 ||
        optional_real(reader, block, "beta_slow", &params->beta_slow) < 0 ||
        read_mscale(reader, block, set) < 0 ||
        posenc_get_bool(reader, block, "truncate", &truncate) < 0) {
        return -1;
    }
    params->truncate = truncate;
    return refuse_unless(reader, params->beta_slow <= params->beta_fast, block, "beta_slow",
                         "must not exceed beta_fast");
}

static int read_llama3(struct posenc_reader *reader, const struct posenc_node *block,
                       const struct kind *kind, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    if (need_real(reader, block, "factor", kind, &params->factor) < 0 ||
        need_real(reader, block, "low_freq_factor", kind, &params->low_freq_factor) < 0 ||
        need_real(reader, block, "high_freq_factor", kind, &params->high_freq_factor) < 0 ||
        read_original(reader, block, set) < 0) {
        return -1;
    }
    if (refuse_unless(reader, params->low_freq_factor <= params->high_freq_factor, block,
                      "low_freq_factor", "must not exceed high_freq_factor") < 0) {
        return -1;
    }
    /* Equal factors (Llama 4 Scout) leave no room for a blend. A plan refuses them, since the
     * formula would divide by zero; the next double gives the abrupt change that they mean. */
    if (params->low_freq_factor == params->high_freq_factor) {
        params->high_freq_factor = nextafter(params->high_freq_factor, INFINITY);
    }
    return 0;
}

static int read_scaling(struct posenc_reader *reader, const struct posenc_node *block,
                        const struct kind *kind, struct posenc_set *set)
{
    set->params.scaling = kind->scaling;
    set->rope_type = kind->name;
    int answer = 0;
    switch (kind->bit) {
    case LINEAR: answer = need_real(reader, block, "factor", kind, &set->params.factor); break;
    case LLAMA3: answer = read_llama3(reader, block, kind, set); break;
    case YARN: answer = read_yarn(reader, block, kind, set); break;
    default: break;
    }
    if (answer == 0 && kind->bit != DEFAULT && set->params.factor < 1.0) {
        posenc_fail(posenc_warning(reader, block, "factor"), POSENC_OK,
                    "is %g: a factor below 1 shortens the context", set->params.factor);
    }
    return answer;
}

int posenc_read_set(struct posenc_reader *reader, const struct posenc_node *block,
                    enum posenc_layer_kind layers, int own, struct posenc_set *set)
{
    const struct kind *kind = NULL;
    if (read_kind(reader, block, &kind) < 0) {
        return -1;
    }
    if (block->json) {
        check_keys(reader, block, kind);
    }
    if (read_base(reader, block, layers, own, set) < 0 ||
        read_rotary_dim(reader, block, set) < 0) {
        return -1;
    }
    return read_scaling(reader, block, kind, set);
}
