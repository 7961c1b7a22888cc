/* SPDX-License-Identifier: MIT */
/* Plans of every kind, for tests of cached keys that were rotated by them. */
#ifndef CACHE_SCHEMES_H
#define CACHE_SCHEMES_H

#include "support/random.h"
#include "support/test.h"

enum { SCHEME_CHANNELS = 96, SCHEME_AXES = 3, SCHEME_SETS = 2, SCHEME_TRAINED = 4096 };
enum { SCHEME_LENGTH = 9000 }; /* a running length beyond the trained one */

/* The schemes that rows come from in different ways. */
enum scheme {
    PLAIN, YARN, DYNAMIC, LONGROPE, FACTORS, MULTIAXIS,
    HF_YARN, HF_DYNAMIC, VLLM_FACTORS, GGML_YARN, SCHEMES
};

int scheme_is_exact(enum scheme scheme);
int scheme_has_sets(enum scheme scheme);

/* Parameters for heads of `channels` or for windows that are as wide as them; arrays that they
 * point to are filled anew by each call. */
posenc_rope_params scheme_params(struct test_random *random, enum scheme scheme, int32_t channels);

/* Its plan, on any ISA. */
posenc_plan *scheme_plan(posenc_rope_params p, enum scheme scheme, struct test_random *random);

#endif
