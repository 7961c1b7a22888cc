/* SPDX-License-Identifier: MIT */
/* What rotations must mean: inverses, norms, scores that depend on gaps of positions alone. */
#include "support/random.h"
#include "support/test.h"
#include "support/truth.h"

#include <complex.h>
#include <math.h>

enum { WIDTH = 64 };

static const int32_t layouts[2] = {POSENC_ADJACENT, POSENC_SPLIT_HALF};

static posenc_plan *plan_of(int32_t layout, int32_t width, double factor)
{
    posenc_rope_params params = test_params(layout, width, width);

    params.attention_factor = factor;
    return test_plan(&params);
}

/* Rotates one head vector in place. */
static void turn(const posenc_plan *plan, int32_t direction, float *x, int64_t position)
{
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor tensor;

    posenc_positions_start(&positions, position);
    posenc_tensor_contiguous(&tensor, x, POSENC_F32, 1, 1, 1, 2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rope(plan, direction, &positions, &tensor, NULL, NULL, NULL, &error), &error);
}

/* The score of q at position m and k at position n. */
static double score(const posenc_plan *plan, const float *q, int64_t m, const float *k, int64_t n)
{
    float a[256], b[256];
    int width = 2 * posenc_plan_pairs(plan);
    double sum = 0;

    memcpy(a, q, (size_t)width * sizeof(float));
    memcpy(b, k, (size_t)width * sizeof(float));
    turn(plan, POSENC_FORWARD, a, m);
    turn(plan, POSENC_FORWARD, b, n);
    for (int i = 0; i < width; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void close_to(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance)) fail_msg("%.9g instead of %.9g", got, expected);
}

static void fill(float *x, int n, uint32_t seed)
{
    struct test_random random = {seed};

    for (int i = 0; i < n; i++) x[i] = test_unit(&random);
}

static void test_inverse_undoes(void **state)
{
    static const double factors[] = {1.0, 1.2079441541679836, 0.8, 4.0};
    static const int64_t positions[] = {0, 1, 5, 4095, 1048575, -17, INT32_MIN, INT32_MAX};
    float x[WIDTH], y[WIDTH];

    (void)state;
    for (int n = 0; n < 2 * 4 * 8; n++) {
        posenc_plan *plan = plan_of(layouts[n % 2], WIDTH, factors[n / 2 % 4]);

        fill(x, WIDTH, (uint32_t)n);
        memcpy(y, x, sizeof x);
        turn(plan, POSENC_FORWARD, y, positions[n / 8]);
        if (positions[n / 8] != 0) assert_true(memcmp(x, y, sizeof x) != 0);
        turn(plan, POSENC_INVERSE, y, positions[n / 8]);
        for (int i = 0; i < WIDTH; i++) close_to((double)y[i], (double)x[i], 1e-6);
        posenc_plan_free(plan);
    }
}

/* Transpose is inverse times A^2, and the adjoint: (R x) . y = x . (R^T y). */
static void test_transpose_is_the_adjoint(void **state)
{
    float x[WIDTH], y[WIDTH], turned[WIDTH], back[WIDTH];

    (void)state;
    for (int l = 0; l < 2; l++) {
        posenc_plan *plan = plan_of(layouts[l], WIDTH, 1.5);
        double left = 0, right = 0;

        fill(x, WIDTH, 5);
        fill(y, WIDTH, 6);
        memcpy(turned, x, sizeof x);
        memcpy(back, y, sizeof y);
        turn(plan, POSENC_FORWARD, turned, 777);
        turn(plan, POSENC_TRANSPOSE, back, 777);
        for (int i = 0; i < WIDTH; i++) {
            left += (double)turned[i] * (double)y[i];
            right += (double)x[i] * (double)back[i];
        }
        close_to(left, right, 1e-5);
        memcpy(back, turned, sizeof back);
        turn(plan, POSENC_TRANSPOSE, back, 777);
        for (int i = 0; i < WIDTH; i++) close_to((double)back[i], 2.25 * (double)x[i], 3e-6);
        posenc_plan_free(plan);
    }
}

/* INVERSE at p equals FORWARD at -p bit for bit where the factor is 1. */
static void test_minus_position(void **state)
{
    float x[WIDTH], y[WIDTH];

    (void)state;
    for (int l = 0; l < 2; l++) {
        posenc_plan *plan = plan_of(layouts[l], WIDTH, 0);

        for (int64_t p = 1; p < INT32_MAX / 3; p *= 3) {
            fill(x, WIDTH, (uint32_t)p);
            memcpy(y, x, sizeof x);
            turn(plan, POSENC_FORWARD, x, -p);
            turn(plan, POSENC_INVERSE, y, p);
            assert_memory_equal(x, y, sizeof x);
        }
        posenc_plan_free(plan);
    }
}

static void test_norms(void **state)
{
    static const int64_t positions[] = {1, 1000, 131071, 2000000000};
    float x[256];

    (void)state;
    for (int32_t width = 2; width <= 256; width += 2) {
        for (int l = 0; l < 2; l++) {
            for (int f = 0; f < 2; f++) {
                double factor = f ? 1.25 : 1.0, before = 0, after = 0;
                posenc_plan *plan = plan_of(layouts[l], width, factor);

                fill(x, width, (uint32_t)width);
                for (int i = 0; i < width; i++) before += (double)x[i] * (double)x[i];
                turn(plan, POSENC_FORWARD, x, positions[width / 2 % 4]);
                for (int i = 0; i < width; i++) after += (double)x[i] * (double)x[i];
                close_to(after / before, factor * factor, 1e-6);
                posenc_plan_free(plan);
            }
        }
    }
}

static void test_common_shift(void **state)
{
    static const int64_t shifts[] = {1, 16, 20, 4096, 1000003, -5000, 2000000000};
    float q[WIDTH], k[WIDTH], other[WIDTH];

    (void)state;
    for (int l = 0; l < 2; l++) {
        posenc_plan *plan = plan_of(layouts[l], WIDTH, 0);
        double at_home;

        fill(q, WIDTH, 7);
        fill(k, WIDTH, 8);
        fill(other, WIDTH, 9);
        at_home = score(plan, q, 12, k, 5);
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
            close_to(score(plan, q, 12 + shifts[s], k, 5 + shifts[s]), at_home, 1e-5);
        }
        /* The same gap with other content, and another gap with the same content, are others. */
        assert_true(fabs(score(plan, q, 12, other, 5) - at_home) > 1e-2);
        assert_true(fabs(score(plan, q, 13, k, 5) - at_home) > 1e-2);
        assert_true(fabs(score(plan, q, 5, k, 12) - at_home) > 1e-2);
        posenc_plan_free(plan);
    }
}

/* (1, 0) at m against (0, 1) at n: R(m)(1,0) . R(n)(0,1) = -cos m sin n + sin m cos n = sin(m - n),
 * so seen from the key, -sin(n - m): the sign tells which way the library turns. */
static void test_sign_of_the_turn(void **state)
{
    const float first[2] = {1, 0}, second[2] = {0, 1};

    (void)state;
    for (int l = 0; l < 2; l++) {
        posenc_plan *plan = plan_of(layouts[l], 2, 0);

        for (int64_t m = 0; m < 20; m++) {
            for (int64_t n = 0; n < 20; n++) {
                close_to(score(plan, first, m, second, n), -sin((double)(n - m)), 2e-7);
            }
        }
        posenc_plan_free(plan);
    }
}

/* Su et al. 2021, section 3.4.2: a pair is a complex number, the rotation a factor e^(i p w). */
static void test_complex_oracle(void **state)
{
    enum { PAIRS = WIDTH / 2 };
    float x[WIDTH], y[WIDTH];
    double frequencies[PAIRS];

    (void)state;
    for (int n = 0; n < 2 * 200; n++) {
        struct test_random random = {(uint32_t)n};
        int64_t position = (int64_t)test_below(&random, 5000) - 500;
        int32_t layout = layouts[n % 2];
        posenc_plan *plan = plan_of(layout, WIDTH, 0);

        test_ok(posenc_plan_inv_freq(plan, frequencies, PAIRS, NULL), NULL);
        fill(x, WIDTH, (uint32_t)n + 1000);
        memcpy(y, x, sizeof x);
        turn(plan, POSENC_FORWARD, y, position);
        for (int i = 0; i < PAIRS; i++) {
            int p = layout == POSENC_ADJACENT ? 2 * i : i;
            int q = layout == POSENC_ADJACENT ? p + 1 : p + PAIRS;
            double complex z = ((double)x[p] + (double)x[q] * I)
                               * cexp((double)position * frequencies[i] * I);

            close_to((double)y[p], creal(z), 1e-6);
            close_to((double)y[q], cimag(z), 1e-6);
        }
        posenc_plan_free(plan);
    }
}

/* v = [1, 0, 1, 0, ...] turns into (cos, sin) pairs themselves. */
static void test_unit_pairs(void **state)
{
    enum { D = 8 };
    static const int64_t positions[] = {0, 1, 5};
    posenc_plan *plan = plan_of(POSENC_ADJACENT, D, 0);
    const float v[D] = {1, 0, 1, 0, 1, 0, 1, 0};
    double first, second;

    (void)state;
    for (int n = 0; n < 3; n++) {
        float x[D];

        memcpy(x, v, sizeof v);
        turn(plan, POSENC_FORWARD, x, positions[n]);
        for (int i = 0; i < D / 2; i++) {
            double angle = (double)positions[n] * (double)test_frequency(10000, i, D);

            close_to((double)x[2 * i], cos(angle), 1e-7);
            close_to((double)x[2 * i + 1], sin(angle), 1e-7);
        }
    }
    /* cos 2 + cos 0.2 + cos 0.02 + cos 0.002: two pairs of places with the same gap. */
    first = score(plan, v, 1, v, 3);
    second = score(plan, v, 5, v, 7);
    close_to(first, 2.563717747961344, 3e-7);
    close_to(second, 2.563717747961344, 3e-7);
    posenc_plan_free(plan);
}

/* ---- an attention layer ---- */

enum { T = 12, HQ = 4, HK = 2, D = 16 };

struct layer { float q[T * HQ * D], k[T * HK * D], v[T * HK * D], out[T * HQ * D]; };

static void layer_fill(struct layer *layer)
{
    fill(layer->q, T * HQ * D, 51);
    fill(layer->k, T * HK * D, 52);
    fill(layer->v, T * HK * D, 53);
}

static void attend(struct layer *layer, int32_t causal)
{
    posenc_attention_params params;
    posenc_tensor q, k, v, out;
    posenc_error error = {0, ""};

    posenc_attention_params_init(&params);
    params.causal = causal;
    posenc_tensor_contiguous(&q, layer->q, POSENC_F32, 1, T, HQ, D);
    posenc_tensor_contiguous(&k, layer->k, POSENC_F32, 1, T, HK, D);
    posenc_tensor_contiguous(&v, layer->v, POSENC_F32, 1, T, HK, D);
    posenc_tensor_contiguous(&out, layer->out, POSENC_F32, 1, T, HQ, D);
    test_ok(posenc_attention(&params, &q, &k, &v, &out, &error), &error);
}

static void test_layer_at_two_offsets(void **state)
{
    static struct layer home, away;

    (void)state;
    for (int n = 0; n < 4; n++) {
        posenc_plan *plan = plan_of(layouts[n % 2], D, 0);
        posenc_error error = {0, ""};
        double difference = 0;

        layer_fill(&home);
        layer_fill(&away);
        test_ok(posenc_rope_flat(plan, home.q, home.k, POSENC_F32, 1, T, HQ, HK, 0, &error),
                &error);
        test_ok(posenc_rope_flat(plan, away.q, away.k, POSENC_F32, 1, T, HQ, HK, 20, &error),
                &error);
        attend(&home, n / 2);
        attend(&away, n / 2);
        for (int i = 0; i < T * HQ * D; i++) {
            close_to((double)away.out[i], (double)home.out[i], 2e-6);
            difference = fmax(difference, fabs((double)away.q[i] - (double)home.q[i]));
        }
        assert_true(difference > 0.1);
        posenc_plan_free(plan);
    }
}

/* The same layer with its tokens in the order of `permutation`. */
static void permuted(const struct layer *layer, const int permutation[T], struct layer *result)
{
    for (int t = 0; t < T; t++) {
        int from = permutation[t];

        memcpy(result->q + t * HQ * D, layer->q + from * HQ * D, HQ * D * sizeof(float));
        memcpy(result->k + t * HK * D, layer->k + from * HK * D, HK * D * sizeof(float));
        memcpy(result->v + t * HK * D, layer->v + from * HK * D, HK * D * sizeof(float));
    }
}

static double unlike(const struct layer *plain, const int permutation[T], const struct layer *other)
{
    double worst = 0;

    for (int t = 0; t < T; t++) {
        for (int i = 0; i < HQ * D; i++) {
            double a = (double)plain->out[permutation[t] * HQ * D + i];
            double gap = fabs(a - (double)other->out[t * HQ * D + i]);

            if (!(gap <= worst)) worst = gap; /* not fmax: gcc 12.2 for aarch64 fails on it */
        }
    }
    return worst;
}

static void mean(const struct layer *layer, double result[HQ * D])
{
    for (int i = 0; i < HQ * D; i++) {
        result[i] = 0;
        for (int t = 0; t < T; t++) result[i] += (double)layer->out[t * HQ * D + i] / T;
    }
}

/* Without positions attention does not know the order; with a causal mask or with RoPE it does. */
static void test_permutations(void **state)
{
    static const int permutation[T] = {7, 2, 11, 0, 5, 9, 1, 10, 3, 8, 6, 4};
    static struct layer plain, other;
    posenc_plan *plan = plan_of(POSENC_SPLIT_HALF, D, 0);
    double a[HQ * D], b[HQ * D];

    (void)state;
    layer_fill(&plain);
    permuted(&plain, permutation, &other);
    attend(&plain, 0);
    attend(&other, 0);
    assert_true(unlike(&plain, permutation, &other) < 1e-6);
    mean(&plain, a);
    mean(&other, b);
    for (int i = 0; i < HQ * D; i++) close_to(b[i], a[i], 1e-6);

    attend(&plain, 1);
    attend(&other, 1);
    assert_true(unlike(&plain, permutation, &other) > 1e-2);

    test_ok(posenc_rope_flat(plan, plain.q, plain.k, POSENC_F32, 1, T, HQ, HK, 0, NULL), NULL);
    test_ok(posenc_rope_flat(plan, other.q, other.k, POSENC_F32, 1, T, HQ, HK, 0, NULL), NULL);
    attend(&plain, 0);
    attend(&other, 0);
    assert_true(unlike(&plain, permutation, &other) > 1e-2);
    posenc_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverse_undoes),
        cmocka_unit_test(test_transpose_is_the_adjoint),
        cmocka_unit_test(test_minus_position),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_common_shift),
        cmocka_unit_test(test_sign_of_the_turn),
        cmocka_unit_test(test_complex_oracle),
        cmocka_unit_test(test_unit_pairs),
        cmocka_unit_test(test_layer_at_two_offsets),
        cmocka_unit_test(test_permutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
