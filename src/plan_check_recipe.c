/* SPDX-License-Identifier: MIT */
/* What transformers, vLLM and ggml do not have is refused with their recipe (docs/schemes.md). */
#include "plan_check.h"

#include "dd.h"

static int32_t refuse(int broken, const char *field, int64_t value, const char *rule,
                      posenc_error *error)
{
    if (!broken)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %s", field, value, rule);
}

/* r - 2 is a divisor in the base of both kinds. */
static int divides_by_zero(const posenc_rope_params *p)
{
    return p->rotary_dim == 2 &&
           (p->scaling == POSENC_SCALING_NTK || p->scaling == POSENC_SCALING_DYNAMIC_NTK);
}

/*
 * DYNAMIC_NTK subtracts s - 1 from a rounded product of at least s: beyond these factors, 3 or more
 * bits short of the mantissa, what is left of the base may be nothing or negative.
 */
static int32_t check_growth(const posenc_rope_params *p, posenc_error *error)
{
    int vllm = p->recipe == POSENC_RECIPE_VLLM;
    int grows = p->scaling == POSENC_SCALING_DYNAMIC_NTK;
    return need(!grows || p->factor <= (vllm ? 0x1p50 : 0x1p20), "factor", p->factor,
                vllm ? "<= 2^50 for DYNAMIC_NTK with recipe VLLM"
                     : "<= 2^20 for DYNAMIC_NTK with recipe HF_F32", error);
}

static int32_t check_blend(const posenc_rope_params *p, posenc_error *error)
{
    int geometric =
        p->scaling == POSENC_SCALING_YARN && p->yarn_blend == POSENC_YARN_GEOMETRIC;
    return refuse(geometric, "yarn_blend", p->yarn_blend,
                  "POSENC_YARN_LINEAR unless recipe is EXACT", error);
}

static int32_t check_plain_yarn(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = check_blend(p, error);
    int plain = p->scaling != POSENC_SCALING_YARN || p->magnitude_slope == 0.1;
    return status ? status
                  : need(plain, "magnitude_slope", p->magnitude_slope,
                         "0.1 unless recipe is EXACT or VLLM", error);
}

static int32_t check_hf(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = refuse(p->frequency_source == POSENC_FREQUENCIES_PERIODS, "frequency_source",
                            p->frequency_source,
                            "FORMULA, INVERSE or DIVISORS: transformers has no periods", error);
    int ntk = p->scaling >= POSENC_SCALING_NTK && p->scaling <= POSENC_SCALING_NTK_MIXED;
    if (!status)
        status = refuse(ntk, "scaling", p->scaling,
                        "none of POSENC_SCALING_NTK, _NTK_SCALED, _NTK_MIXED with recipe HF_F32: "
                        "transformers has none", error);
    if (!status)
        status = refuse(p->scaling == POSENC_SCALING_LINEAR && p->factors, "num_factors",
                        p->num_factors, "0 with recipe HF_F32: transformers has one factor", error);
    if (!status)
        status = refuse(divides_by_zero(p), "rotary_dim", p->rotary_dim,
                        "> 2 with recipe HF_F32: transformers divides by r - 2", error);
    if (!status)
        status = check_growth(p, error);
    return status ? status : check_plain_yarn(p, error);
}

/* h^B is a float32 there, and so is each (i+1)^B: infinite ones would have no quotient. */
static int32_t check_mixed(const posenc_rope_params *p, posenc_error *error)
{
    const double ln_2_to_127 = 88;
    const int mixed = p->scaling == POSENC_SCALING_NTK_MIXED;
    const double log = posenc_dd_log(0.5 * (double)p->rotary_dim).hi;
    return need(!mixed || p->mixed_exponent * log <= ln_2_to_127, "mixed_exponent",
                p->mixed_exponent,
                "no more than keeps (r/2)^mixed_exponent below 2^127 with recipe VLLM", error);
}

static int32_t check_vllm(const posenc_rope_params *p, posenc_error *error)
{
    int32_t status = refuse(p->frequency_source != POSENC_FREQUENCIES_FORMULA, "frequency_source",
                            p->frequency_source,
                            "POSENC_FREQUENCIES_FORMULA with recipe VLLM: it takes no others",
                            error);
    int longrope = p->scaling == POSENC_SCALING_LONGROPE;
    int proportional = p->scaling == POSENC_SCALING_PROPORTIONAL;
    if (!status)
        status = refuse(divides_by_zero(p), "rotary_dim", p->rotary_dim,
                        "> 2 with recipe VLLM: it divides by r - 2", error);
    if (!status)
        status = refuse(longrope && p->layout != POSENC_SPLIT_HALF, "layout", p->layout,
                        "POSENC_SPLIT_HALF for LONGROPE with recipe VLLM", error);
    if (!status)
        status = refuse(longrope && p->length == 0, "length", p->length,
                        "> 0 for LONGROPE with recipe VLLM: the longest that it serves", error);
    if (!status)
        status = need(!proportional || p->factor == 0 || p->factor == 1, "factor", p->factor,
                      "0 or 1 for PROPORTIONAL with recipe VLLM", error);
    if (!status)
        status = check_growth(p, error);
    if (!status)
        status = check_mixed(p, error);
    return status ? status : check_blend(p, error);
}

/* LLAMA3 and PROPORTIONAL come as divisors, NTK in the base. */
static int is_in_ggml(int32_t scaling)
{
    return scaling <= POSENC_SCALING_NTK || scaling == POSENC_SCALING_LONGROPE ||
           scaling == POSENC_SCALING_PROPORTIONAL;
}

static int32_t check_ggml(const posenc_rope_params *p, posenc_error *error)
{
    int own = p->frequency_source == POSENC_FREQUENCIES_INVERSE ||
              p->frequency_source == POSENC_FREQUENCIES_PERIODS;
    int32_t status = refuse(own, "frequency_source", p->frequency_source,
                            "FORMULA or DIVISORS with recipe GGML", error);
    if (!status)
        status = refuse(!is_in_ggml(p->scaling), "scaling", p->scaling,
                        "none of POSENC_SCALING_NTK_SCALED, _NTK_MIXED, _DYNAMIC_NTK with recipe "
                        "GGML: ggml has none", error);
    if (!status)
        status = refuse(p->scaling == POSENC_SCALING_LINEAR && p->factors, "num_factors",
                        p->num_factors, "0 with recipe GGML: it has one factor", error);
    if (!status)
        status = refuse(p->scaling == POSENC_SCALING_YARN && p->truncate != 1, "truncate",
                        p->truncate, "1 with recipe GGML: it always truncates", error);
    if (!status)
        status = refuse(p->scaling == POSENC_SCALING_LONGROPE && p->length == 0, "length",
                        p->length, "> 0 for LONGROPE with recipe GGML: the context's size", error);
    return status ? status : check_plain_yarn(p, error);
}

int32_t posenc_recipe_check(const posenc_rope_params *p, posenc_error *error)
{
    switch (p->recipe) {
    case POSENC_RECIPE_HF_F32:
        return check_hf(p, error);
    case POSENC_RECIPE_VLLM:
        return check_vllm(p, error);
    case POSENC_RECIPE_GGML:
        return check_ggml(p, error);
    default:
        return POSENC_OK;
    }
}
