/* SPDX-License-Identifier: MIT */
/* LongRoPE ("su"): two lists of divisors, one for lengths up to the original, one beyond. */
#include "family.h"
#include "kind.h"
#include "reader.h"

static int refuse_list(struct posenc_reader *reader, const struct posenc_node *block,
                       const char *key, int64_t size, int64_t pairs)
{
    posenc_error rule;
    posenc_fail(&rule, POSENC_OK, "has %d entries: must have %d, one for each pair that turns",
                size, pairs);
    return posenc_refuse(reader, block, key, rule.text);
}

static int read_factors(struct posenc_reader *reader, const struct posenc_node *block,
                        const char *key, int64_t pairs, const double **factors)
{
    json_t *list = NULL, *entry;
    size_t i;
    int found = posenc_get_array(reader, block, key, &list);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(reader, block, key, "the kind longrope needs it");
    }
    if ((int64_t)json_array_size(list) != pairs) {
        return refuse_list(reader, block, key, (int64_t)json_array_size(list), pairs);
    }
    double *values = posenc_own(reader->contract, (size_t)pairs * sizeof *values);
    if (!values) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY, "no memory for %d factors",
                                     pairs);
        return -1;
    }
    json_array_foreach(list, i, entry) {
        values[i] = json_number_value(entry);
        if (!json_is_number(entry) || !posenc_is_factor(values[i])) {
            posenc_error rule;
            posenc_fail(&rule, POSENC_OK, "entry %d must be a number > 0, within 2^-64..2^64",
                        (int64_t)i);
            return posenc_refuse(reader, block, key, rule.text);
        }
    }
    *factors = values;
    return 0;
}

int posenc_read_longrope(struct posenc_reader *reader, const struct posenc_node *block,
                         const struct posenc_kind *kind, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    int64_t pairs = params->rotary_dim / 2;
    if (posenc_read_original(reader, block, set) < 0 ||
        posenc_read_ratio(reader, block, kind, set) < 0 ||
        posenc_optional_real(reader, block, "attention_factor", &params->attention_factor) < 0 ||
        read_factors(reader, block, "short_factor", pairs, &params->short_factors) < 0 ||
        read_factors(reader, block, "long_factor", pairs, &params->long_factors) < 0) {
        return -1;
    }
    if ((reader->family->flags & POSENC_FAMILY_MSCALES) &&
        (posenc_optional_real(reader, block, "short_mscale", &params->short_attention) < 0 ||
         posenc_optional_real(reader, block, "long_mscale", &params->long_attention) < 0)) {
        return -1;
    }
    if (set->original_max_position < 2 && params->factor > 1.0 &&
        !(params->attention_factor > 0.0)) {
        return posenc_refuse(reader, block, "original_max_position_embeddings",
                             "the attention factor divides by its logarithm: must be > 1");
    }
    return 0;
}
