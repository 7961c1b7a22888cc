/* SPDX-License-Identifier: MIT */
/* The scaling of a GGUF frequency set: rope.scaling.*, and what tensors of factors say. */
#include "gguf.h"
#include "gguf_arch.h"

#include <math.h>

/* An optional number that must be > 0 and keeps its value otherwise. */
static int optional(struct posenc_gguf_reader *from, const char *suffix, double *value)
{
    double given = 0.0;
    int found = posenc_gguf_real(from, suffix, &given);
    if (found > 0 && !posenc_is_factor(given)) {
        return posenc_gguf_refuse(from, suffix, posenc_factor_rule);
    }
    *value = found > 0 ? given : *value;
    return found;
}

/* 0 stands for unscaled: writers without a factor leave it so. */
static int read_factor(struct posenc_gguf_reader *from, double *factor)
{
    const char *key = "rope.scaling.factor";
    int found = posenc_gguf_real(from, key, factor);
    if (found == 0) {
        key = "rope.scale_linear"; /* its older name */
        found = posenc_gguf_real(from, key, factor);
    }
    if (found > 0 && *factor == 0.0) {
        posenc_fail(posenc_gguf_warning(from, key), POSENC_OK, "is 0, read as unscaled");
        *factor = 1.0;
    } else if (found > 0 && !posenc_is_factor(*factor)) {
        return posenc_gguf_refuse(from, key, posenc_factor_rule);
    } else if (found > 0 && *factor < 1.0) {
        posenc_fail(posenc_gguf_warning(from, key), POSENC_OK,
                    "is %g: a factor below 1 shortens the context", *factor);
    }
    return found < 0 ? -1 : 0;
}

/* Hunyuan-VL's base grows by alpha^(r/(r-2)). */
static int read_alpha(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char key[] = "rope.scaling.alpha";
    double alpha = 0.0;
    int found = optional(from, key, &alpha);
    if (found > 0 && set->params.scaling == POSENC_SCALING_NONE) {
        set->params.scaling = POSENC_SCALING_NTK;
        set->params.factor = alpha;
        set->rope_type = "ntk";
    } else if (found > 0) {
        posenc_fail(posenc_gguf_warning(from, key), POSENC_OK,
                    "has no effect beside another scaling");
    }
    return found < 0 ? -1 : 0;
}

static int read_linear(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    double factor = 1.0;
    if (read_factor(from, &factor) < 0) {
        return -1;
    }
    if (factor != 1.0) {
        set->params.scaling = POSENC_SCALING_LINEAR;
        set->params.factor = factor;
        set->rope_type = "linear";
    }
    return 0;
}

static int is(const struct posenc_gguf_text *text, const char *word)
{
    return text->length == strlen(word) && memcmp(text->bytes, word, text->length) == 0;
}

/* A file without a type means linear, with the factor 1 if it has none. */
static int read_type(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char key[] = "rope.scaling.type";
    struct posenc_gguf_text type = {(const uint8_t *)"linear", 6};
    if (posenc_gguf_string(from, key, &type) < 0) {
        return -1;
    }
    if (is(&type, "linear")) {
        return read_linear(from, set);
    }
    if (is(&type, "yarn")) {
        return posenc_gguf_yarn(from, set);
    }
    if (is(&type, "longrope")) {
        return posenc_gguf_refuse(from, key, "needs the tensor rope_factors_long.weight");
    }
    return is(&type, "none") ? 0
                             : posenc_gguf_refuse(from, key,
                                                  "must be none, linear, yarn or longrope");
}

int posenc_gguf_scaling(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    int found = posenc_gguf_longrope(from, set);
    if (found != 0) {
        return found < 0 ? -1 : 0;
    }
    if (read_type(from, set) < 0 || read_alpha(from, set) < 0) {
        return -1;
    }
    return posenc_gguf_divisors(from, set) < 0 ? -1 : 0;
}

static int read_betas(struct posenc_gguf_reader *from, posenc_rope_params *params)
{
    static const char *const keys[] = {"rope.scaling.yarn_beta_fast",
                                       "rope.scaling.yarn_beta_slow"};
    double *const values[] = {&params->beta_fast, &params->beta_slow};
    for (int i = 0; i < 2; i++) {
        double usual = *values[i];
        if (optional(from, keys[i], values[i]) < 0) {
            return -1;
        }
        if (*values[i] != usual && !(from->arch->flags & POSENC_GGUF_YARN_KEYS)) {
            posenc_fail(posenc_gguf_warning(from, keys[i]), POSENC_OK,
                        "is %g and counts; llama.cpp takes %g for this architecture", *values[i],
                        usual);
        }
    }
    return params->beta_slow <= params->beta_fast
               ? 0
               : posenc_gguf_refuse(from, keys[1], "must not exceed yarn_beta_fast");
}

/* mscale itself stands in no key: that of the classes which have a multiplier. */
static int read_multiplier(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char key[] = "rope.scaling.yarn_log_multiplier";
    double multiplier = 0.0;
    int found = posenc_gguf_real(from, key, &multiplier);
    if (found < 0 || !(multiplier >= 0.0 && multiplier <= 0x1p32)) {
        return found < 0 ? -1 : posenc_gguf_refuse(from, key, "must be >= 0 and <= 2^32");
    }
    if (multiplier == 0.0) {
        return 0;
    }
    int tenth = (from->arch->flags & POSENC_GGUF_LOG_TENTH) != 0;
    double all_dim = tenth ? posenc_gguf_decimal((float)(multiplier * 10.0)) : multiplier;
    set->mscale_all_dim = all_dim;
    set->params.mscale_all_dim = all_dim;
    set->params.mscale = tenth ? all_dim : 1.0;
    posenc_gguf_assume(from, "rope.scaling.mscale", set->params.mscale,
                       tenth ? "equal to mscale_all_dim in this architecture: no key states it"
                             : "1 in this architecture: no key states it");
    return 0;
}

/* Keys by which the file asks for what no engine does. */
static int check_unused(struct posenc_gguf_reader *from)
{
    static const char *const keys[] = {"rope.scaling.yarn_ext_factor",
                                       "rope.scaling.yarn_attn_factor"};
    for (int i = 0; i < 2; i++) {
        double value = 1.0;
        if (posenc_gguf_real(from, keys[i], &value) < 0) {
            return -1;
        }
        if (value != 1.0) {
            posenc_fail(posenc_gguf_warning(from, keys[i]), POSENC_OK,
                        "is %g, but has no effect: llama.cpp overwrites it", value);
        }
    }
    return 0;
}

/* g of posenc_plan_create; a factor of the file goes on top of the rule. */
static double magnitude(const posenc_rope_params *params, double mscale)
{
    return params->factor > 1.0 ? 0.1 * mscale * log(params->factor) + 1.0 : 1.0;
}

static int read_attention(struct posenc_gguf_reader *from, posenc_rope_params *params)
{
    static const char key[] = "rope.scaling.attn_factor";
    double extra = 1.0;
    if (optional(from, key, &extra) < 0) {
        return -1;
    }
    if (extra != 1.0) {
        params->attention_factor =
            extra * (params->mscale > 0.0 ? magnitude(params, params->mscale) /
                                                magnitude(params, params->mscale_all_dim)
                                          : magnitude(params, 1.0));
        posenc_fail(posenc_gguf_warning(from, key), POSENC_OK,
                    "is %g and multiplies the factor of yarn: %g", extra,
                    params->attention_factor);
    }
    return 0;
}

int posenc_gguf_original(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    static const char key[] = "rope.scaling.original_context_length";
    const posenc_contract_facts *facts = &from->reader->contract->facts;
    set->original_max_position = facts->trained_position;
    if (set->original_max_position < 1) {
        set->original_max_position = facts->max_position;
        if (set->original_max_position < 1) {
            return posenc_gguf_refuse_missing(from, key, "without context_length it is needed");
        }
        posenc_gguf_assume(from, key, (double)set->original_max_position, "the context length");
    }
    set->params.original_max_position = (double)set->original_max_position;
    return 0;
}

int posenc_gguf_yarn(struct posenc_gguf_reader *from, struct posenc_set *set)
{
    posenc_rope_params *params = &set->params;
    set->rope_type = "yarn";
    params->scaling = POSENC_SCALING_YARN;
    params->factor = 1.0;
    if (from->arch->flags & POSENC_GGUF_EXACT_RANGE) {
        params->truncate = 0;
        posenc_gguf_assume(from, "rope.scaling.truncate", 0,
                           "the model's own: no key states it, and llama.cpp rounds the range");
    }
    if (posenc_gguf_original(from, set) < 0 || read_factor(from, &params->factor) < 0 ||
        read_betas(from, params) < 0 || read_multiplier(from, set) < 0 ||
        check_unused(from) < 0) {
        return -1;
    }
    return read_attention(from, params);
}
