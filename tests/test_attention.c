/* SPDX-License-Identifier: MIT */
/* Attention: truth, equal bits on every ISA and for every split, published values, geometry. */
#include "attention_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int32_t vector_isas[] = {POSENC_ISA_AVX2, POSENC_ISA_AVX512, POSENC_ISA_NEON};

/* Runs the problem on every ISA; all must give the bits of the scalar kernel. */
static void assert_isas_agree(struct problem *p)
{
    size_t bytes = tensor_bytes(&p->out);
    void *expected = malloc(bytes ? bytes : 1);
    assert_non_null(expected);
    run(p, POSENC_ISA_SCALAR);
    memcpy(expected, p->out.data, bytes);
    for (size_t i = 0; i < 3; i++) {
        if (!posenc_isa_available(vector_isas[i]))
            continue;
        run(p, vector_isas[i]);
        if (memcmp(p->out.data, expected, bytes) != 0)
            fail_msg("%s differs from scalar: B %d Tq %d Tk %d Hq %d Hk %d D %d E %d causal %d",
                     posenc_isa_name(vector_isas[i]), (int)p->shape.batch, (int)p->shape.queries,
                     (int)p->shape.keys, (int)p->shape.q_heads, (int)p->shape.k_heads,
                     (int)p->shape.channels, (int)p->shape.values, (int)p->shape.causal);
    }
    free(expected);
}

static void assert_right(struct problem *p)
{
    assert_isas_agree(p);
    run(p, POSENC_ISA_SCALAR);
    long double ratio = worst_ratio(p);
    if (!(ratio <= 1))
        fail_msg("error is %.3Lf of its bound: Tq %d Tk %d D %d E %d", ratio, (int)p->shape.queries,
                 (int)p->shape.keys, (int)p->shape.channels, (int)p->shape.values);
}

static void errors_stay_within_their_bound(void **state)
{
    static const struct shape shapes[] = {
        {1, 1, 1, 1, 1, 1, 1, 0},      {1, 3, 2, 2, 1, 2, 3, 1},     {2, 5, 5, 4, 2, 8, 8, 1},
        {1, 2, 63, 3, 1, 16, 17, 0},   {1, 2, 64, 1, 1, 33, 15, 1},  {1, 2, 65, 2, 2, 64, 64, 1},
        {1, 1, 1023, 2, 1, 80, 5, 0},  {1, 2, 1025, 1, 1, 128, 9, 1}, {1, 1, 2500, 1, 1, 96, 3, 0},
        {1, 1, 40, 1, 1, 4096, 16, 0}, {1, 1, 70, 1, 1, 3, 4096, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct problem p;
        problem_init(&p, shapes[i], i);
        assert_right(&p);
        p.params.scale = 0.37;
        assert_right(&p);
        problem_free(&p);
    }
}

/* The bound above follows the data; this one is what a user may expect of ordinary numbers. */
static void ordinary_data_is_right_to_a_few_ulp(void **state)
{
    struct problem p;
    static long double truth[64], bound[64];
    (void)state;
    problem_init(&p, (struct shape){1, 4, 700, 2, 1, 64, 64, 1}, 77);
    run(&p, POSENC_ISA_DEFAULT);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t h = 0; h < 2; h++) {
            true_row(&p, 0, i, h, truth, bound);
            for (int c = 0; c < 64; c++) {
                assert_true(fabsl(element(&p.out, 0, i, h)[c] - truth[c]) < 1e-6L);
                assert_true(bound[c] < 4e-5L);
            }
        }
    problem_free(&p);
}

static void scale_keys(struct problem *p, float by)
{
    for (int64_t i = 0; i < tensor_count(&p->k); i++)
        ((float *)p->k.data)[i] *= by;
}

/* Logits of 1e4, and so small that products underflow: weights of 0 and 1, much rescaling. */
static void large_and_small_logits_are_right(void **state)
{
    static const float by[] = {40, 4000, 0x1p-140f, 0x1p-149f, 0};
    (void)state;
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        struct problem p;
        problem_init(&p, (struct shape){1, 3, 1100, 2, 1, 24, 19, 1}, 5 + i);
        scale_keys(&p, by[i]);
        assert_right(&p);
        if (i > 1) {
            p.params.scale = 0x1p120;
            assert_right(&p);
        }
        problem_free(&p);
    }
}

/* One key after the other a little larger: the maximum moves with each tile and span. */
static void a_rising_maximum_is_right(void **state)
{
    static const float step[] = {0.001f, 0.25f, 3, -0.25f};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct problem p;
        problem_init(&p, (struct shape){1, 1, 2300, 1, 1, 1, 7, 0}, i);
        *(float *)p.q.data = 1;
        for (int j = 0; j < 2300; j++)
            *element(&p.k, 0, j, 0) = step[i] * (float)j;
        assert_right(&p);
        problem_free(&p);
    }
}

static struct shape random_shape(uint64_t *seed)
{
    static const int64_t keys[] = {1, 2, 15, 16, 17, 63, 64, 65, 200, 1023, 1024, 1025, 2050};
    struct shape s = {.batch = random_between(seed, 1, 2)};
    s.keys = keys[random_between(seed, 0, 12)];
    if (s.keys > 1 && random_between(seed, 0, 1))
        s.keys = random_between(seed, 1, 300);
    s.queries = random_between(seed, 1, s.keys > 300 ? 2 : 6);
    s.k_heads = random_between(seed, 1, 2);
    s.q_heads = s.k_heads * random_between(seed, 1, s.keys > 300 ? 3 : 12);
    s.channels = random_between(seed, 1, random_between(seed, 0, 1) ? 40 : 257);
    s.values = random_between(seed, 1, random_between(seed, 0, 1) ? 40 : 257);
    s.causal = (int32_t)random_between(seed, 0, 1);
    return s;
}

static void isas_agree_on_random_shapes(void **state)
{
    uint64_t seed = 2026;
    (void)state;
    for (int i = 0; i < 150; i++) {
        struct problem p;
        struct shape shape = random_shape(&seed);
        problem_init(&p, shape, seed);
        p.params.scale = i % 3 ? 0 : 1.5;
        assert_isas_agree(&p);
        problem_free(&p);
    }
}

/* Every width in turn: all tails of all kernels. */
static void isas_agree_on_every_width(void **state)
{
    (void)state;
    for (int64_t width = 1; width <= 258; width++) {
        struct problem p;
        problem_init(&p, (struct shape){1, 3, 5 + width % 61, 2, 1, width, 259 - width, 1},
                     (uint64_t)width);
        assert_isas_agree(&p);
        problem_free(&p);
    }
}

static void isas_agree_on_special_values(void **state)
{
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00001, 0xff801234, 0x00000001,
                                       0x807fffff, 0x80000000, 0x7f7fffff, 0xff7fffff, 0x00800000};
    uint64_t seed = 9;
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct problem p;
        struct shape shape = {1, 4, 90 + i % 40, 4, 2, 1 + i % 35, 1 + i % 37, i & 1};
        problem_init(&p, shape, seed);
        posenc_tensor *view[3] = {&p.q, &p.k, &p.v};
        for (int n = i % 5; n >= 0; n--) {
            posenc_tensor *t = view[random_between(&seed, 0, 2)];
            int64_t at = random_between(&seed, 0, tensor_count(t) - 1);
            memcpy((float *)t->data + at, &special[random_between(&seed, 0, 9)], 4);
        }
        if (i % 7 == 0)
            scale_keys(&p, 3e38f);
        if (i % 7 == 1)
            scale_keys(&p, 1e-40f);
        assert_isas_agree(&p);
        problem_free(&p);
    }
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

/* NaN in, NaN out, as 0x7fc00000; a key of -inf counts for nothing; only such keys: NaN. */
static void nan_and_infinity_follow_the_rules(void **state)
{
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        struct problem p;
        if (!posenc_isa_available(isa))
            continue;
        problem_init(&p, (struct shape){1, 2, 80, 1, 1, 1, 20, 0}, 3);
        *element(&p.q, 0, 0, 0) = *element(&p.q, 0, 1, 0) = 1;
        *element(&p.k, 0, 0, 0) = -INFINITY;
        *element(&p.k, 0, 79, 0) = -INFINITY;
        run(&p, isa);
        float without = element(&p.out, 0, 0, 0)[0];
        element(&p.v, 0, 0, 0)[0] = 1e30f;
        run(&p, isa);
        assert_int_equal(bits_of(element(&p.out, 0, 0, 0)[0]), bits_of(without));
        float other = element(&p.out, 0, 0, 0)[19];
        *element(&p.q, 0, 1, 0) = NAN;
        run(&p, isa);
        assert_int_equal(bits_of(element(&p.out, 0, 0, 0)[19]), bits_of(other));
        assert_int_equal(bits_of(element(&p.out, 0, 1, 0)[19]), 0x7fc00000);
        for (int j = 0; j < 80; j++)
            *element(&p.k, 0, j, 0) = -INFINITY;
        run(&p, isa);
        assert_int_equal(bits_of(element(&p.out, 0, 0, 0)[3]), 0x7fc00000);
        problem_free(&p);
    }
}

/* What a row must not see, made unbearable: its bits stay. */
static void masked_keys_do_not_matter(void **state)
{
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        struct problem p;
        if (!posenc_isa_available(isa))
            continue;
        problem_init(&p, (struct shape){1, 70, 70, 3, 1, 20, 21, 1}, 4);
        run(&p, isa);
        float expected[21];
        for (int64_t i = 0; i < 69; i++) {
            memcpy(expected, element(&p.out, 0, i, 2), sizeof(expected));
            struct problem poisoned = p;
            poisoned.k.data = malloc(tensor_bytes(&p.k));
            poisoned.v.data = malloc(tensor_bytes(&p.v));
            poisoned.out.data = malloc(tensor_bytes(&p.out));
            assert_true(poisoned.k.data && poisoned.v.data && poisoned.out.data);
            memset(poisoned.k.data, 0xff, tensor_bytes(&p.k));
            memset(poisoned.v.data, 0xff, tensor_bytes(&p.v));
            memcpy(poisoned.k.data, p.k.data, (size_t)(i + 1) * 20 * sizeof(float));
            memcpy(poisoned.v.data, p.v.data, (size_t)(i + 1) * 21 * sizeof(float));
            run(&poisoned, isa);
            assert_memory_equal(element(&poisoned.out, 0, i, 2), expected, sizeof(expected));
            free(poisoned.k.data);
            free(poisoned.v.data);
            free(poisoned.out.data);
        }
        problem_free(&p);
    }
}

/* The same numbers everywhere: x86-64 and aarch64 both reach these bits. */
static void bits_are_those_of_every_machine(void **state)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), seed = 1;
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct problem p;
        struct shape shape = random_shape(&seed);
        problem_init(&p, shape, seed);
        scale_keys(&p, i % 4 ? 1 : 30);
        run(&p, POSENC_ISA_DEFAULT);
        hash = hash_bytes(p.out.data, tensor_bytes(&p.out), hash);
        problem_free(&p);
    }
    if (hash != UINT64_C(0x0f175ec47580009e))
        fail_msg("hash is 0x%llx", (unsigned long long)hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_within_their_bound),
        cmocka_unit_test(ordinary_data_is_right_to_a_few_ulp),
        cmocka_unit_test(large_and_small_logits_are_right),
        cmocka_unit_test(a_rising_maximum_is_right),
        cmocka_unit_test(isas_agree_on_random_shapes),
        cmocka_unit_test(isas_agree_on_every_width),
        cmocka_unit_test(isas_agree_on_special_values),
        cmocka_unit_test(nan_and_infinity_follow_the_rules),
        cmocka_unit_test(masked_keys_do_not_matter),
        cmocka_unit_test(bits_are_those_of_every_machine),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
