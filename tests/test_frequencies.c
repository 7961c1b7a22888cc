/* SPDX-License-Identifier: MIT */
/* Frequencies and attention factor against long double truth, at their edges, and in one hash. */
#include "dd.h"
#include "frequencies_case.h"

#include <float.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const double BASES[] = {1.5,    2.0,   10.0,  100.0, 1000.0, 1e4,   25000.0, 1e5,
                               1.5e5,  1.6e5, 5e5,   1e6,   5e6,    8e6,   1e7,     1e8,
                               1e9,    1e12,  1e15,  65536, 1.0001, 7e22,  0x1p75,  12345.678};

static const int32_t WIDTHS[] = {2,  4,  6,   8,   10,  16,  20,  24,  28,  32,  40,
                                 48, 64, 80,  96,  112, 128, 192, 256, 512, 576, 1024};

/* A true value and how much the long double's own errors may amount to, relative to it. */
typedef struct truth {
    long double value;
    long double error;
} truth;

static const long double TWO_PI = 6.283185307179586476925286766559005768L;

/* Su et al., "RoFormer", arXiv:2104.09864, eq. 15. The exponent's rounding is scaled by |ln w|. */
static truth rope_truth(const posenc_rope_params *p, int32_t i)
{
    long double exponent = -2.0L * (long double)i / (long double)p->rotary_dim;
    long double value = powl((long double)p->base, exponent);
    return (truth){value, 0.5L * LDBL_EPSILON * (2.0L + fabsl(logl(value)))};
}

/* Chen et al., "Extending context window ... via position interpolation", arXiv:2306.15595. */
static truth linear_truth(const posenc_rope_params *p, int32_t i)
{
    truth w = rope_truth(p, i);
    return (truth){w.value / (long double)p->factor, w.error + LDBL_EPSILON};
}

/* w / s with weight m: an error of m weighs against what m leaves of w. */
static truth blend_truth(const posenc_rope_params *p, int32_t i, long double m, long double m_error)
{
    truth w = rope_truth(p, i);
    long double s = (long double)p->factor;
    if (m <= 0.0L || m >= 1.0L) {
        return m <= 0.0L ? w : linear_truth(p, i);
    }
    long double left = m / s + (1.0L - m);
    return (truth){w.value * left, w.error + 2.0L * LDBL_EPSILON + m_error / left};
}

/* Llama 3.1's rule as published with the model ("apply_scaling"). */
static truth llama3_truth(const posenc_rope_params *p, int32_t i)
{
    long double low = (long double)p->low_freq_factor, high = (long double)p->high_freq_factor;
    truth w = rope_truth(p, i);
    long double turns = (long double)p->original_max_position * w.value / TWO_PI;
    long double t_error = turns * (w.error + 2.0L * LDBL_EPSILON) / (high - low);
    return blend_truth(p, i, 1.0L - (turns - low) / (high - low), t_error);
}

/* Peng et al., "YaRN", arXiv:2309.00071, section 3.2, with transformers' clamps to [0, r - 1]. */
static long double yarn_pair(const posenc_rope_params *p, double turns)
{
    long double length = (long double)p->original_max_position / (TWO_PI * (long double)turns);
    return (long double)p->rotary_dim * logl(length) / (2.0L * logl((long double)p->base));
}

static truth yarn_truth(const posenc_rope_params *p, int32_t i)
{
    long double low = yarn_pair(p, p->beta_fast), high = yarn_pair(p, p->beta_slow);
    long double error = fabsl(low) + fabsl(high) + p->rotary_dim / logl((long double)p->base);
    if (p->truncate) {
        low = floorl(low);
        high = ceill(high);
        error = 0.0L;
    }
    low = low > 0.0L ? low : 0.0L;
    high = high < p->rotary_dim - 1.0L ? high : p->rotary_dim - 1.0L;
    high += low == high ? 0.001L : 0.0L;
    return blend_truth(p, i, (i - low) / (high - low), LDBL_EPSILON * error / fabsl(high - low));
}

static truth (*const TRUTHS[])(const posenc_rope_params *, int32_t) = {rope_truth, linear_truth,
                                                                       llama3_truth, yarn_truth};

/*
 * Each frequency must be within half a unit in the last place of the truth, widened by the error of
 * the truth alone. Those within twice that error of a tie prove nothing, so they must be few.
 */
static void check_all_pairs(const posenc_rope_params *p, long *total, long *undecided)
{
    double got[MOST_PAIRS];
    all_frequencies(p, got);
    for (int32_t i = 0; i < p->rotary_dim / 2; i++) {
        truth t = TRUTHS[p->scaling](p, i);
        long double half = 0.5L * (long double)spacing((double)t.value);
        long double error = t.error * t.value, off = fabsl((long double)got[i] - t.value);
        if (!(off <= half + error)) {
            fail_msg("scaling %d base %.17g r %d pair %d: %a is %.3Lf units off", p->scaling,
                     p->base, p->rotary_dim, i, got[i], off / (2.0L * half));
        }
        ++*total;
        *undecided += off > half - error;
    }
}

static void every_scaling_is_the_nearest_double(void **state)
{
    (void)state;
    static const double FACTORS[] = {8.0, 1.0, 3.7, 40.0, 0.5}, LENGTHS[] = {8192.0, 1e5, 7.0};
    long total[4] = {0}, undecided[4] = {0};
    for (size_t b = 0; b < COUNT(BASES); b++) {
        for (size_t r = 0; r < COUNT(WIDTHS); r++) {
            for (int32_t scaling = 0; scaling < 4; scaling++) {
                posenc_rope_params p = parameters(scaling, BASES[b], WIDTHS[r]);
                p.factor = FACTORS[(b + r) % COUNT(FACTORS)];
                p.original_max_position = LENGTHS[b % COUNT(LENGTHS)];
                p.truncate = (int32_t)(r % 2);
                check_all_pairs(&p, &total[scaling], &undecided[scaling]);
            }
        }
    }
    for (int32_t scaling = 0; scaling < 4; scaling++) {
        assert_true(total[scaling] > 30000);
        assert_true(undecided[scaling] * 25 < total[scaling]);
    }
}

/* Bases 2^k have exact frequencies where r/2 divides k i; these come from inexact roots. */
static const struct {
    double base;
    int32_t r, pair, exponent;
} EXACT[] = {{16.0, 8, 3, -3},         {2.0, 6, 0, 0},        {0x1p10, 20, 7, -7},
             {0x1p75, 300, 148, -74},  {65536.0, 96, 45, -15}, {0x1p30, 64, 16, -15},
             {0x1p13, 1690, 65, -1},   {0x1p64, 2048, 16, -1}};

/* IEEE division then gives the right quotient, also below the normal range and for divisors such as
 * 2 - 2^-52, whose quotient lies 2^-107 from a tie. */
static void check_exact_quotient(size_t n, double s)
{
    double got[MOST_PAIRS], divided[MOST_PAIRS], divisors[MOST_PAIRS];
    for (int i = 0; i < MOST_PAIRS; i++) {
        divisors[i] = s;
    }
    posenc_rope_params p = parameters(POSENC_SCALING_LINEAR, EXACT[n].base, EXACT[n].r);
    p.factor = s;
    all_frequencies(&p, got);
    p.scaling = POSENC_SCALING_NONE;
    p.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    p.frequencies = divisors;
    all_frequencies(&p, divided);
    double expected = ldexp(1.0, EXACT[n].exponent) / s;
    if (got[EXACT[n].pair] != expected || divided[EXACT[n].pair] != expected) {
        fail_msg("2^%d / %a: %a and %a", EXACT[n].exponent, s, got[EXACT[n].pair],
                 divided[EXACT[n].pair]);
    }
}

static void quotients_of_exact_frequencies_are_rounded_once(void **state)
{
    (void)state;
    uint64_t bits = 1;
    for (size_t n = 0; n < COUNT(EXACT); n++) {
        for (int i = 0; i < (EXACT[n].r < 50 ? 1200 : 53); i++) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            double s = posenc_double(bits & 0x7fffffffffffffffu);
            if (isfinite(s) && s >= 0x1p-950) {
                check_exact_quotient(n, s);
            }
            check_exact_quotient(n, 2.0 - ldexp(1.0, -i % 53));
            check_exact_quotient(n, 0x1p1023 - ldexp(1.0, 970 + i % 40));
        }
    }
}

static void inverse_copies_and_divisors_go_before_the_factor(void **state)
{
    (void)state;
    double given[4] = {1.0, -0.0, 3.0, 1e-300}, got[4];
    posenc_rope_params p = parameters(POSENC_SCALING_NONE, 256.0, 8);
    p.frequency_source = POSENC_FREQUENCIES_INVERSE;
    p.frequencies = given;
    all_frequencies(&p, got);
    given[1] = 0.0; /* of either sign it stands still, and has the same rows */
    assert_memory_equal(got, given, sizeof got);
    float rounded[4];
    all_frequencies_f32(&p, rounded);
    assert_true(rounded[2] == 3.0f && rounded[3] == 0.0f);

    double divisors[4] = {1.0, 2.0, 5.0, 3.0};
    p.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    p.frequencies = divisors;
    p.scaling = POSENC_SCALING_LINEAR;
    p.factor = 7.0;
    static const long double EXPECTED[4] = {1.0L / 7.0L, 0.125L / 7.0L, 1.0L / 560.0L,
                                            1.0L / 1344.0L};
    all_frequencies(&p, got);
    all_frequencies_f32(&p, rounded);
    for (int i = 0; i < 4; i++) {
        assert_true(got[i] == (double)EXPECTED[i]);
        assert_true(rounded[i] == 1.0f / ((float)divisors[i] * ldexpf(1.0f, 2 * i)) / 7.0f);
    }
}

/* The range of the ramp at its edges: empty, reversed (L0 very short or long), one point wide. */
static void yarn_ranges_outside_the_pairs(void **state)
{
    (void)state;
    double got[32], plain[32];
    posenc_rope_params p = parameters(POSENC_SCALING_YARN, 1e4, 64);
    posenc_rope_params n = parameters(POSENC_SCALING_NONE, 1e4, 64);
    all_frequencies(&n, plain);
    p.original_max_position = 1.0;
    all_frequencies(&p, got);
    assert_memory_equal(got, plain, sizeof got);
    p.original_max_position = 1e300;
    all_frequencies(&p, got);
    for (int i = 0; i < 32; i++) {
        assert_true(got[i] == plain[i] / 8.0);
    }
    p.original_max_position = 8192.0;
    p.beta_slow = p.beta_fast;
    p.truncate = 0;
    all_frequencies(&p, got);
    long double edge = yarn_pair(&p, p.beta_fast);
    for (int i = 0; i < 32; i++) {
        assert_true(got[i] == (i < edge ? plain[i] : plain[i] / 8.0));
    }
}

/* With one factor for low and high, as Llama 4 has it, the blend is a step at L0 / factor. */
static void llama3_with_an_empty_range_is_a_step(void **state)
{
    (void)state;
    double got[64], plain[64];
    float got_f32[64], plain_f32[64];
    posenc_rope_params n = parameters(POSENC_SCALING_NONE, 5e5, 128);
    posenc_rope_params p = parameters(POSENC_SCALING_LLAMA3, 5e5, 128);
    p.high_freq_factor = p.low_freq_factor;
    all_frequencies(&n, plain);
    all_frequencies(&p, got);
    all_frequencies_f32(&n, plain_f32);
    all_frequencies_f32(&p, got_f32);
    for (int i = 0; i < 64; i++) {
        int kept = 6.283185307179586 / plain[i] < 8192.0;
        assert_true(got[i] == (kept ? plain[i] : plain[i] / 8.0));
        assert_true(got_f32[i] == (kept ? plain_f32[i] : plain_f32[i] / 8.0f));
    }
    n.scaling = POSENC_SCALING_LLAMA3;
    n.low_freq_factor = n.high_freq_factor = 1.0;
    n.original_max_position = (double)(6.2831855f);
    all_frequencies_f32(&n, got_f32);
    assert_true(got_f32[0] == 0.125f);
}

/* Any positive double must be safe: where a parameter leaves the range of use, no NaN comes out. */
static void extreme_parameters_never_give_nan(void **state)
{
    (void)state;
    static const double EXTREMES[] = {DBL_TRUE_MIN, DBL_MIN, 1e-290, 1e-160, 1.0, 1e160, DBL_MAX};
    double got[32], plain[32];
    posenc_rope_params n = parameters(POSENC_SCALING_NONE, 1e4, 64);
    all_frequencies(&n, plain);
    for (size_t k = 0; k < 7 * 7 * 7 * 7; k++) {
        int32_t scaling = k % 2 ? POSENC_SCALING_YARN : POSENC_SCALING_LLAMA3;
        posenc_rope_params p = parameters(scaling, 1e4, 64);
        p.factor = EXTREMES[k % 7];
        p.original_max_position = EXTREMES[k / 7 % 7];
        p.low_freq_factor = p.beta_slow = EXTREMES[k / 49 % 7];
        p.high_freq_factor = p.beta_fast = EXTREMES[k / 343 % 7];
        if (p.low_freq_factor >= p.high_freq_factor || p.original_max_position < 1.0) {
            continue;
        }
        p.truncate = (int32_t)(k / 2 % 2);
        all_frequencies(&p, got);
        for (int i = 0; i < 32; i++) {
            double scaled = plain[i] / p.factor;
            double low = scaled < plain[i] ? scaled : plain[i];
            assert_true(got[i] >= low * (1.0 - 1e-15) || got[i] >= 0x1p500);
            assert_true(got[i] <= plain[i] || p.factor < 1.0);
        }
    }
}

/* Roots, logarithm and exponential keep about 100 bits, of which doubles show only 53. */
static void double_doubles_keep_a_hundred_bits(void **state)
{
    (void)state;
    posenc_dd one = posenc_dd_from(1.0);
    for (size_t b = 0; b < COUNT(BASES); b++) {
        for (int32_t n = 1; n <= 32768; n = n * 2 + n % 3) {
            posenc_dd root = posenc_dd_inverse_root(posenc_dd_from(BASES[b]), n);
            posenc_dd back = posenc_dd_mul(posenc_dd_power(root, n), posenc_dd_from(BASES[b]));
            assert_true(fabs(posenc_dd_sub(back, one).hi) < n * 0x1p-103);
        }
        posenc_dd log = posenc_dd_log(BASES[b]);
        posenc_dd back = posenc_dd_div(posenc_dd_exp(log), posenc_dd_from(BASES[b]));
        assert_true(fabs(posenc_dd_sub(back, one).hi) < 0x1p-93);
    }
    posenc_dd e = {0x1.5bf0a8b145769p+1, 0x1.4d57ee2b1013ap-53};
    posenc_dd ln_10 = {0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53};
    assert_true(fabs(posenc_dd_sub(posenc_dd_exp(one), e).hi) < 0x1p-97);
    assert_true(fabs(posenc_dd_sub(posenc_dd_log(10.0), ln_10).hi) < 0x1p-102);
}

/* Python's float ** tensor is a float32 power; correctly rounded by way of long double. */
static void hf_powers_are_correctly_rounded(void **state)
{
    (void)state;
    for (size_t b = 0; b < COUNT(BASES); b++) {
        for (size_t r = 0; r < COUNT(WIDTHS); r++) {
            float got[MOST_PAIRS], scaled[MOST_PAIRS];
            posenc_rope_params p = parameters(POSENC_SCALING_NONE, BASES[b], WIDTHS[r]);
            all_frequencies_f32(&p, got);
            p.scaling = POSENC_SCALING_LINEAR;
            p.factor = 3.7;
            all_frequencies_f32(&p, scaled);
            for (int32_t i = 0; i < WIDTHS[r] / 2; i++) {
                float exponent = (float)(2 * i) / (float)WIDTHS[r];
                float power = (float)powl((long double)(float)BASES[b], (long double)exponent);
                assert_true(got[i] == 1.0f / power);
                assert_true(scaled[i] == got[i] / 3.7f);
            }
        }
    }
}

static void attention_factor_is_given_or_by_rule(void **state)
{
    (void)state;
    for (int32_t scaling = 0; scaling < 4; scaling++) {
        posenc_rope_params p = parameters(scaling, 1e4, 64);
        double by_rule = scaling == POSENC_SCALING_YARN ? 1.2079441541679836 : 1.0;
        assert_true(posenc_attention_factor(&p, 0) == by_rule);
        p.attention_factor = 0.75;
        assert_true(posenc_attention_factor(&p, 0) == 0.75);
    }
}

static void mix(uint64_t *hash, uint64_t bits)
{
    for (int byte = 0; byte < 8; byte++, bits >>= 8) {
        *hash = (*hash ^ (bits & 0xff)) * 0x100000001b3u;
    }
}

/* FNV-1a over the bits of both recipes: every machine and compiler must reach the stored value. */
static void all_machines_reach_one_hash(void **state)
{
    (void)state;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t b = 0; b < COUNT(BASES); b++) {
        for (size_t r = 0; r < COUNT(WIDTHS); r++) {
            for (int32_t scaling = 0; scaling < 4; scaling++) {
                double exact[MOST_PAIRS];
                float f32[MOST_PAIRS];
                posenc_rope_params p = parameters(scaling, BASES[b], WIDTHS[r]);
                p.truncate = (int32_t)(b % 2);
                p.original_max_position = r % 2 ? 1e5 : 8192.0;
                p.mscale = 0.9;
                p.mscale_all_dim = BASES[b];
                all_frequencies(&p, exact);
                all_frequencies_f32(&p, f32);
                for (int32_t i = 0; i < WIDTHS[r] / 2; i++) {
                    mix(&hash, posenc_bits64(exact[i]));
                    mix(&hash, posenc_bits32(f32[i]));
                }
                mix(&hash, posenc_bits64(posenc_attention_factor(&p, 0)));
                mix(&hash, posenc_bits64(posenc_dd_power(posenc_dd_log(BASES[b]), 3).lo));
            }
        }
    }
    if (hash != 0xc2250468ab0a3c90u) {
        fail_msg("hash of all frequencies is 0x%016" PRIx64, hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scaling_is_the_nearest_double),
        cmocka_unit_test(quotients_of_exact_frequencies_are_rounded_once),
        cmocka_unit_test(inverse_copies_and_divisors_go_before_the_factor),
        cmocka_unit_test(yarn_ranges_outside_the_pairs),
        cmocka_unit_test(llama3_with_an_empty_range_is_a_step),
        cmocka_unit_test(extreme_parameters_never_give_nan),
        cmocka_unit_test(double_doubles_keep_a_hundred_bits),
        cmocka_unit_test(hf_powers_are_correctly_rounded),
        cmocka_unit_test(attention_factor_is_given_or_by_rule),
        cmocka_unit_test(all_machines_reach_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
