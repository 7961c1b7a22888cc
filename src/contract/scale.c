/* SPDX-License-Identifier: MIT */
/* What multiplies scores and queries: the softmax scale and position-dependent query scales. */
#include "family.h"
#include "reader.h"
#include "yarn.h"

#include <math.h>
#include <string.h>

static int has(const struct posenc_reader *reader, const char *key)
{
    const json_t *json = json_object_get(reader->text.json, key);
    return json && !json_is_null(json);
}

static int keyed_scale(struct posenc_reader *reader, const char *key, double *value)
{
    int found = posenc_get_real(reader, &reader->text, key, value);
    if (found == 0) {
        *value = reader->family->softmax;
        posenc_assume_real(reader, key, *value, "the default of this model_type");
    }
    if (found > 0 && !(*value > 0.0)) {
        return posenc_refuse(reader, &reader->text, key, "must be > 0");
    }
    return found < 0 ? -1 : 0;
}

/* Each kind of score that is added widens the divisor. */
static void deberta_scale(posenc_contract_facts *facts, const posenc_contract_deberta *deberta)
{
    const char *types = deberta->pos_att_type;
    double kinds = !types ? 1.0 : strchr(types, '|') ? 3.0 : 2.0;
    facts->softmax_scale = 1.0 / sqrt((double)facts->head_dim * kinds);
    facts->softmax_rule = "(head_dim * (1 + kinds of pos_att_type))^-0.5";
}

int posenc_read_softmax(struct posenc_reader *reader)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    const struct posenc_set *set = &reader->contract->sets[0];
    double value = 0.0;
    switch (reader->family->softmax_rule) {
    case POSENC_SOFTMAX_SCALAR:
        if (keyed_scale(reader, "query_pre_attn_scalar", &value) < 0) {
            return -1;
        }
        facts->softmax_scale = 1.0 / sqrt(value);
        facts->softmax_rule = "query_pre_attn_scalar^-0.5";
        return 0;
    case POSENC_SOFTMAX_MULTIPLIER:
        if (reader->family->softmax > 0.0 || has(reader, "attention_multiplier")) {
            if (keyed_scale(reader, "attention_multiplier", &value) < 0) {
                return -1;
            }
            facts->softmax_scale = value;
            facts->softmax_rule = "attention_multiplier";
            return 0;
        }
        break;
    case POSENC_SOFTMAX_ONE:
        facts->softmax_scale = 1.0;
        facts->softmax_rule = "no scaling of q.k";
        return 0;
    case POSENC_SOFTMAX_DEBERTA: deberta_scale(facts, &reader->contract->deberta); return 0;
    default: break;
    }
    if (facts->num_heads < 0) {
        return 0;
    }
    facts->softmax_scale = 1.0 / sqrt((double)facts->head_dim);
    facts->softmax_rule = "head_dim^-0.5";
    if (reader->family->flags & POSENC_FAMILY_DOUBLED) {
        facts->softmax_scale = 1.0 / sqrt((double)facts->head_dim / 2.0);
        facts->softmax_rule = "(head_dim / 2)^-0.5";
    }
    if ((reader->family->flags & POSENC_FAMILY_MLA) && set->params.scaling == POSENC_SCALING_YARN &&
        set->mscale_all_dim > 0.0) {
        posenc_dd g = posenc_yarn_magnitude(set->params.factor, set->mscale_all_dim);
        facts->softmax_scale *= posenc_dd_mul(g, g).hi;
        facts->softmax_rule = "head_dim^-0.5 * yarn_mscale(factor, mscale_all_dim)^2";
    }
    return 0;
}

static int llama4_query(struct posenc_reader *reader, posenc_contract_facts *facts)
{
    const struct posenc_node *text = &reader->text;
    const json_t *switched = json_object_get(text->json, "attn_temperature_tuning");
    double scale = 0.1;
    int64_t floor_scale = 8192;
    /* First releases wrote the number 4 for true. */
    if (switched && !json_is_null(switched) && !json_is_boolean(switched) &&
        !json_is_integer(switched)) {
        return posenc_refuse(reader, text, "attn_temperature_tuning", "must be true or false");
    }
    if (json_is_false(switched) ||
        (json_is_integer(switched) && json_integer_value(switched) == 0)) {
        return 0;
    }
    int has_scale = posenc_get_real(reader, text, "attn_scale", &scale);
    int has_floor = posenc_get_integer(reader, text, "floor_scale", 1, INT64_C(1) << 53,
                                       &floor_scale);
    if (has_scale < 0 || has_floor < 0) {
        return -1;
    }
    if (!has_scale) {
        posenc_assume_real(reader, "attn_scale", scale, "the default of this model_type");
    }
    if (!has_floor) {
        posenc_assume_integer(reader, "floor_scale", floor_scale, "the default of this model_type");
    }
    facts->query_scale_layers = "nope_layers";
    facts->query_scale_rule = "1 + attn_scale*ln(1 + floor((pos+1)/floor_scale))";
    facts->query_scale_factor = scale;
    facts->query_scale_floor = floor_scale;
    facts->query_scale_offset = 1;
    return 0;
}

int posenc_read_query_scale(struct posenc_reader *reader, const struct posenc_node *block)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    if (reader->family->flags & POSENC_FAMILY_QUERY_LLAMA4) {
        return llama4_query(reader, facts);
    }
    if (!(reader->family->flags & POSENC_FAMILY_QUERY_BETA) || !block->json) {
        return 0;
    }
    double beta = 0.0;
    int found = posenc_get_real(reader, block, "llama_4_scaling_beta", &beta);
    if (found <= 0) {
        return found;
    }
    int64_t original = reader->contract->sets[0].original_max_position;
    if (original < 1) {
        return posenc_refuse(reader, block, "llama_4_scaling_beta",
                             "needs original_max_position_embeddings of a yarn block");
    }
    facts->query_scale_layers = "all";
    facts->query_scale_rule =
        "1 + llama_4_scaling_beta*ln(1 + floor(pos/original_max_position_embeddings))";
    facts->query_scale_factor = beta;
    facts->query_scale_floor = original;
    facts->query_scale_offset = 0;
    return 0;
}
