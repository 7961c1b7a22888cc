/* SPDX-License-Identifier: MIT */
/* Plans of every kind, with random widths and layouts. */
#include "cache_schemes.h"

static double divisors[2][SCHEME_CHANNELS / 2];
static const double linear_factors[SCHEME_SETS] = {2, 6};
static int32_t axis_of_pair[SCHEME_CHANNELS / 2];

int scheme_is_exact(enum scheme scheme)
{
    return scheme <= MULTIAXIS;
}

int scheme_has_sets(enum scheme scheme)
{
    return scheme == FACTORS || scheme == VLLM_FACTORS;
}

static void add_scaling(posenc_rope_params *p, enum scheme scheme)
{
    p->original_max_position = SCHEME_TRAINED;
    p->factor = 4;
    if (scheme == YARN || scheme == HF_YARN || scheme == GGML_YARN)
        p->scaling = POSENC_SCALING_YARN;
    if (scheme == DYNAMIC || scheme == HF_DYNAMIC)
        p->scaling = POSENC_SCALING_DYNAMIC_NTK;
    if (scheme == LONGROPE) {
        p->scaling = POSENC_SCALING_LONGROPE;
        p->short_factors = divisors[0];
        p->long_factors = divisors[1];
    }
    if (scheme_has_sets(scheme)) {
        p->scaling = POSENC_SCALING_LINEAR;
        p->factors = linear_factors;
        p->num_factors = SCHEME_SETS;
    }
    if (scheme == MULTIAXIS) {
        p->axes = SCHEME_AXES;
        p->axis_of_pair = axis_of_pair;
    }
    if (scheme == HF_YARN || scheme == HF_DYNAMIC)
        p->recipe = POSENC_RECIPE_HF_F32;
    if (scheme == VLLM_FACTORS)
        p->recipe = POSENC_RECIPE_VLLM;
    if (scheme == GGML_YARN)
        p->recipe = POSENC_RECIPE_GGML;
}

posenc_rope_params scheme_params(struct test_random *random, enum scheme scheme, int32_t channels)
{
    int32_t width = 2 * (1 + (int32_t)test_below(random, (uint32_t)channels / 2));
    if (scheme == HF_DYNAMIC && width == 2) width = 4; /* transformers divides by r - 2 */
    const int alone = test_below(random, 4) == 0;
    posenc_rope_params p = test_params(POSENC_ADJACENT + (int32_t)test_below(random, 2), channels,
                                       alone ? channels : width);
    p.out_layout = test_below(random, 2) ? POSENC_ADJACENT + (int32_t)test_below(random, 2) : 0;
    p.rotary_offset = alone ? 8 : (int32_t)test_below(random, (uint32_t)(channels - width) + 1);
    p.head_dim += alone ? 16 : 0;
    p.max_position = 100; /* no concern of deltas */
    add_scaling(&p, scheme);
    for (int32_t i = 0; i < SCHEME_CHANNELS / 2; i++) {
        divisors[0][i] = 1 + i / 64.0;
        divisors[1][i] = 2 + i / 8.0;
        axis_of_pair[i] = (int32_t)test_below(random, SCHEME_AXES);
    }
    return p;
}

posenc_plan *scheme_plan(posenc_rope_params p, enum scheme scheme, struct test_random *random)
{
    int32_t isas[TEST_ISAS];
    const size_t n = test_isas(isas);
    p.isa = test_below(random, 2) ? POSENC_ISA_DEFAULT : isas[test_below(random, (uint32_t)n)];
    if (scheme == VLLM_FACTORS) p.max_position = 0;
    return test_plan(&p);
}
