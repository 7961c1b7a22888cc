/* SPDX-License-Identifier: MIT */
/* What params.json says of scaling: Meta's switch, Mistral's yarn, and both query scales. */
#include "json_files.h"

#include "../yarn.h"

#include <math.h>

static int optional(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                    double *value, const char *why)
{
    int found = posenc_get_real(reader, node, key, value);
    if (found > 0 && !posenc_is_factor(*value)) {
        return posenc_refuse(reader, node, key, posenc_factor_rule);
    }
    if (found == 0) {
        posenc_assume_real(reader, key, *value, why);
    }
    return found < 0 ? -1 : 0;
}

/* The numbers stand in Meta's code alone: 8, 1, 4 and 8192 for Llama 3; for Llama 4, which is known
 * by its layers without rotation, 16, 1, 1. */
static int read_meta(struct posenc_reader *reader, struct posenc_set *set)
{
    static const char why[] = "the constant of Meta's code";
    posenc_rope_params *params = &set->params;
    int on = 0, llama4 = json_is_integer(json_object_get(reader->root.json, "nope_layer_interval"));
    int found = posenc_get_bool(reader, &reader->root, "use_scaled_rope", &on);
    if (found < 0 || !on) {
        return found < 0 ? -1 : 0;
    }
    params->scaling = POSENC_SCALING_LLAMA3;
    params->factor = llama4 ? 16.0 : 8.0;
    params->low_freq_factor = 1.0;
    params->high_freq_factor = llama4 ? 1.0 : 4.0;
    params->original_max_position = 8192.0;
    set->original_max_position = 8192;
    set->rope_type = "llama3";
    if (optional(reader, &reader->root, "rope_scaling_factor", &params->factor, why) < 0 ||
        optional(reader, &reader->root, "rope_high_freq_factor", &params->high_freq_factor, why) <
            0) {
        return -1;
    }
    posenc_assume_real(reader, "low_freq_factor", 1.0, why);
    posenc_assume_integer(reader, "original_max_position_embeddings", 8192, why);
    if (params->high_freq_factor < 1.0) {
        return posenc_refuse(reader, &reader->root, "rope_high_freq_factor", "must be >= 1");
    }
    if (params->high_freq_factor == 1.0) {
        params->high_freq_factor = nextafter(1.0, 2.0); /* an abrupt change, see rope_set.c */
    }
    if (!llama4 && !json_object_get(reader->root.json, "rope_scaling_factor")) {
        posenc_fail(posenc_warning(reader, &reader->root, "use_scaled_rope"), POSENC_OK,
                    "means a factor of 8; the small models of Llama 3.2 have 32 elsewhere");
    }
    return 0;
}

static void check_yarn_keys(struct posenc_reader *reader, const struct posenc_node *block)
{
    static const char *const known[] = {"factor", "original_max_position_embeddings", "beta",
                                        "alpha", "apply_scale"};
    const char *key;
    json_t *value;
    json_object_foreach(block->json, key, value) {
        size_t i = 0;
        while (i < sizeof known / sizeof known[0] && strcmp(known[i], key) != 0) {
            i++;
        }
        if (i == sizeof known / sizeof known[0]) {
            posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                        "unknown key of a yarn block: ignored");
        }
    }
}

/* In latent attention the magnitude goes into the softmax scale instead, unless it is off. */
static void apply_magnitude(struct posenc_reader *reader, struct posenc_set *set, int apply)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    if (!apply) {
        set->params.attention_factor = 1.0;
    } else if (set->params.rotary_offset) {
        posenc_dd g = posenc_yarn_magnitude(set->params.factor, 1.0);
        facts->softmax_scale *= posenc_dd_mul(g, g).hi;
        facts->softmax_rule = "head_dim^-0.5 * yarn_mscale(factor, mscale_all_dim)^2";
        set->mscale_all_dim = set->params.mscale = set->params.mscale_all_dim = 1.0;
    }
}

/* beta is beta_fast and alpha beta_slow. */
static int read_yarn(struct posenc_reader *reader, const struct posenc_node *block,
                     struct posenc_set *set)
{
    static const char length[] = "original_max_position_embeddings", why[] = "the default of yarn";
    posenc_rope_params *params = &set->params;
    int apply = 1;
    int found = posenc_get_real(reader, block, "factor", &params->factor);
    int has_length = posenc_get_integer(reader, block, length, 1, INT64_C(1) << 53,
                                        &set->original_max_position);
    int has_apply = posenc_get_bool(reader, block, "apply_scale", &apply);
    if (found < 0 || has_length < 0 || has_apply < 0) {
        return -1;
    }
    if (!found || !has_length) {
        return posenc_refuse_missing(reader, block, found ? length : "factor", "yarn needs it");
    }
    if (!posenc_is_factor(params->factor)) {
        return posenc_refuse(reader, block, "factor", posenc_factor_rule);
    }
    if (optional(reader, block, "beta", &params->beta_fast, why) < 0 ||
        optional(reader, block, "alpha", &params->beta_slow, why) < 0) {
        return -1;
    }
    if (params->beta_slow > params->beta_fast) {
        return posenc_refuse(reader, block, "alpha", "must not exceed beta");
    }
    if (!has_apply) {
        posenc_assume_text(reader, "yarn.apply_scale", "true", "the default of vLLM");
    }
    params->scaling = POSENC_SCALING_YARN;
    params->original_max_position = (double)set->original_max_position;
    set->rope_type = "yarn";
    check_yarn_keys(reader, block);
    apply_magnitude(reader, set, apply);
    return 0;
}

int posenc_read_params_scaling(struct posenc_reader *reader, struct posenc_set *set, int mistral)
{
    struct posenc_node block = {0};
    if (!mistral) {
        return read_meta(reader, set);
    }
    int found = posenc_get_object(reader, &reader->root, "yarn", &block);
    return found > 0 ? read_yarn(reader, &block, set) : found;
}

/* Llama 4: unless switched off, in layers without rotation, after the rule of its own code. */
static int meta_query(struct posenc_reader *reader, posenc_contract_facts *facts)
{
    static const char why[] = "the constant of Meta's code";
    double factor = 0.1;
    int64_t floor = 8192;
    int on = 0;
    const json_t *tuning = json_object_get(reader->root.json, "attn_temperature_tuning");
    if (json_is_integer(tuning) || json_is_real(tuning)) {
        on = json_number_value(tuning) != 0.0; /* first releases wrote the number 4 for true */
    } else if (posenc_get_bool(reader, &reader->root, "attn_temperature_tuning", &on) < 0) {
        return -1;
    }
    if (!on) {
        return 0;
    }
    int has_floor =
        posenc_get_integer(reader, &reader->root, "floor_scale", 1, INT64_C(1) << 53, &floor);
    if (has_floor < 0 || optional(reader, &reader->root, "attn_scale", &factor, why) < 0) {
        return -1;
    }
    if (!has_floor) {
        posenc_assume_integer(reader, "floor_scale", floor, why);
    }
    facts->query_scale_layers = "nope_layers";
    facts->query_scale_rule = "1 + attn_scale*ln(1 + floor((pos+1)/floor_scale))";
    facts->query_scale_factor = factor;
    facts->query_scale_floor = floor;
    facts->query_scale_offset = 1;
    return 0;
}

int posenc_read_params_query(struct posenc_reader *reader, int mistral)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    struct posenc_node block = {0};
    if (!mistral) {
        return meta_query(reader, facts);
    }
    int found = posenc_get_object(reader, &reader->root, "llama_4_scaling", &block);
    if (found <= 0) {
        return found;
    }
    int64_t floor = 0;
    double beta = 0.0;
    int has_beta = posenc_get_real(reader, &block, "beta", &beta);
    int has_floor = posenc_get_integer(reader, &block, "original_max_position_embeddings", 1,
                                       INT64_C(1) << 53, &floor);
    if (has_beta < 0 || has_floor < 0) {
        return -1;
    }
    if (!has_beta || !has_floor) {
        return posenc_refuse_missing(reader, &block,
                                     has_beta ? "original_max_position_embeddings" : "beta",
                                     "the query scale needs it");
    }
    facts->query_scale_layers = "all";
    facts->query_scale_rule =
        "1 + llama_4_scaling_beta*ln(1 + floor(pos/original_max_position_embeddings))";
    facts->query_scale_factor = beta;
    facts->query_scale_floor = floor;
    facts->query_scale_offset = 0;
    return 0;
}
