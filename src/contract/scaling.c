/* SPDX-License-Identifier: MIT */
/* Scaling of a frequency set: what each kind of rope block needs, checked as a plan does. */
#include "family.h"
#include "kind.h"
#include "reader.h"

#include <math.h>

const char posenc_factor_rule[] = "must be > 0, within 2^-64..2^64";

/* A number that the kind cannot do without. */
int posenc_need_real(struct posenc_reader *reader, const struct posenc_node *block,
                     const char *key, const struct posenc_kind *kind, double *value)
{
    int found = posenc_get_real(reader, block, key, value);
    if (found == 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "the kind %s needs it", kind->reported);
        return posenc_refuse_missing(reader, block, key, rule.text);
    }
    return found < 0 ? -1
                     : posenc_refuse_unless(reader, posenc_is_factor(*value), block, key,
                                            posenc_factor_rule);
}

/* The length before extension: beside the block, then in it, then the declared limit. */
int posenc_read_original(struct posenc_reader *reader, const struct posenc_node *block,
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

int posenc_read_ratio(struct posenc_reader *reader, const struct posenc_node *block,
                      const struct posenc_kind *kind, struct posenc_set *set)
{
    int64_t limit = reader->contract->facts.max_position;
    double ratio = (double)limit / set->params.original_max_position;
    const json_t *given = json_object_get(block->json, "factor");
    int free = kind->bit == POSENC_KIND_LONGROPE ? !given || json_is_null(given)
                                                 : json_is_null(given);
    if (limit > 0 && free) {
        set->params.factor = ratio;
        posenc_assume_real(reader, "factor", ratio,
                           "max_position divided by original_max_position_embeddings");
        return 0;
    }
    if (posenc_need_real(reader, block, "factor", kind, &set->params.factor) < 0) {
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
int posenc_optional_real(struct posenc_reader *reader, const struct posenc_node *block,
                         const char *key, double *value)
{
    double found_value = 0.0;
    int found = posenc_get_real(reader, block, key, &found_value);
    if (found < 0) {
        return -1;
    }
    if (found && !posenc_is_factor(found_value)) {
        return posenc_refuse(reader, block, key, posenc_factor_rule);
    }
    if (found) {
        *value = found_value;
    } else if (*value > 0.0) {
        posenc_assume_real(reader, key, *value, "the default of this kind");
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
                     const struct posenc_kind *kind, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    int truncate = 1;
    if (posenc_read_original(reader, block, set) < 0 ||
        posenc_read_ratio(reader, block, kind, set) < 0 ||
        posenc_optional_real(reader, block, "attention_factor", &params->attention_factor) < 0 ||
        posenc_optional_real(reader, block, "beta_fast", &params->beta_fast) < 0 ||
        posenc_optional_real(reader, block, "beta_slow", &params->beta_slow) < 0 ||
        read_mscale(reader, block, set) < 0 ||
        posenc_get_bool(reader, block, "truncate", &truncate) < 0) {
        return -1;
    }
    params->truncate = truncate;
    if ((reader->family->flags & POSENC_FAMILY_TAIL) && !(params->attention_factor > 0.0)) {
        params->attention_factor = 1.0; /* its own code multiplies nothing */
        posenc_assume_real(reader, "attention_factor", 1.0, "the rule of this model_type");
    }
    return posenc_refuse_unless(reader, params->beta_slow <= params->beta_fast, block, "beta_slow",
                         "must not exceed beta_fast");
}

static int read_llama3(struct posenc_reader *reader, const struct posenc_node *block,
                       const struct posenc_kind *kind, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    if (posenc_need_real(reader, block, "factor", kind, &params->factor) < 0 ||
        posenc_need_real(reader, block, "low_freq_factor", kind, &params->low_freq_factor) < 0 ||
        posenc_need_real(reader, block, "high_freq_factor", kind, &params->high_freq_factor) < 0 ||
        posenc_read_original(reader, block, set) < 0) {
        return -1;
    }
    if (posenc_refuse_unless(reader, params->low_freq_factor <= params->high_freq_factor, block,
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

/* The length from which the base grows: transformers reads the declared limit. */
static int read_dynamic(struct posenc_reader *reader, const struct posenc_node *block,
                        const struct posenc_kind *kind, struct posenc_set *set)
{
    static const char key[] = "original_max_position_embeddings";
    int64_t limit = reader->contract->facts.max_position, original = limit;
    int found = posenc_get_integer(reader, block, key, 1, INT64_C(1) << 53, &original);
    if (found < 0 || posenc_need_real(reader, block, "factor", kind, &set->params.factor) < 0) {
        return -1;
    }
    if (original < 1) {
        return posenc_refuse_missing(reader, &reader->text, "max_position_embeddings",
                                     "the kind dynamic grows from this length on");
    }
    if (found && limit > 0 && limit != original) {
        posenc_fail(posenc_warning(reader, block, key), POSENC_OK,
                    "is %d but the declared limit is %d: the former counts here, "
                    "transformers takes the latter",
                    original, limit);
    }
    set->original_max_position = original;
    set->params.original_max_position = (double)original;
    return 0;
}

/* vLLM's: with mixed_b each pair has a factor of its own. */
static int read_ntk(struct posenc_reader *reader, const struct posenc_node *block,
                    const struct posenc_kind *kind, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    int mixed = posenc_get_real(reader, block, "mixed_b", &params->mixed_exponent);
    if (mixed < 0 || posenc_need_real(reader, block, "factor", kind, &params->factor) < 0) {
        return -1;
    }
    if (mixed) {
        params->scaling = POSENC_SCALING_NTK_MIXED;
        return posenc_refuse_unless(
            reader, params->mixed_exponent >= 0.0 && params->mixed_exponent <= 16.0, block,
            "mixed_b", "must be >= 0 and <= 16");
    }
    return 0;
}

int posenc_read_scaling(struct posenc_reader *reader, const struct posenc_node *block,
                        const struct posenc_kind *kind, struct posenc_set *set)
{
    double *factor = &set->params.factor;
    int answer = 0;
    switch (kind->bit) {
    case POSENC_KIND_LINEAR:
        answer = posenc_need_real(reader, block, "factor", kind, factor);
        break;
    case POSENC_KIND_LLAMA3: answer = read_llama3(reader, block, kind, set); break;
    case POSENC_KIND_YARN: answer = read_yarn(reader, block, kind, set); break;
    case POSENC_KIND_DYNAMIC: answer = read_dynamic(reader, block, kind, set); break;
    case POSENC_KIND_LONGROPE: answer = posenc_read_longrope(reader, block, kind, set); break;
    case POSENC_KIND_NTK: answer = read_ntk(reader, block, kind, set); break;
    case POSENC_KIND_ALPHA:
        return posenc_need_real(reader, block, "alpha", kind, factor);
    case POSENC_KIND_PROPORTIONAL:
        *factor = 1.0;
        answer = posenc_optional_real(reader, block, "factor", factor);
        break;
    default: return 0;
    }
    if (answer == 0 && *factor < 1.0) {
        posenc_fail(posenc_warning(reader, block, "factor"), POSENC_OK,
                    "is %g: a factor below 1 shortens the context", *factor);
    }
    return answer;
}
