/* SPDX-License-Identifier: MIT */
/* Frequencies of scalings 4 to 9 against long double truth, at their edges, in pieces, in one hash.
 */
#include "common.h"
#include "frequencies_case.h"

#include <float.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const double BASES[] = {1.5, 2.0, 1000.0, 1e4, 1.5e5, 65536, 5e5, 1e6, 8e6, 0x1p75, 1.0001};

static const int32_t WIDTHS[] = {2, 4, 6, 8, 10, 16, 20, 32, 64, 80, 96, 128, 192, 256, 576, 1024};

static const double FACTORS[] = {8.0, 1.0, 3.7, 40.0, 0.5, 1000.0, 2.0};

static const int32_t PIECES[] = {16, 7, 1, 16, 40, 16};

/* A true value and how much the long double's own errors may amount to, relative to it. */
typedef struct truth {
    long double value;
    long double error;
} truth;

static double shorts[MOST_PAIRS], longs[MOST_PAIRS];

static posenc_rope_params scheme(int32_t scaling, double base, int32_t width, size_t variant)
{
    posenc_rope_params p = parameters(scaling, base, width);
    p.factor = FACTORS[variant % COUNT(FACTORS)];
    p.mixed_exponent = variant % 3 == 0 ? 0.65 : variant % 3 == 1 ? 2.0 : 0.0;
    p.rotating_pairs = width / 4;
    p.short_factors = shorts;
    p.long_factors = longs;
    for (int i = 0; i < width / 2; i++) {
        shorts[i] = 1.0 + 0.37 * i;
        longs[i] = 2.0 + 1.91 * i;
    }
    return p;
}

/* x^(-n/d): the exponent's rounding is scaled by the logarithm of the power. */
static truth power_truth(long double x, long double n, long double d)
{
    long double value = powl(x, -n / d);
    return (truth){value, 0.5L * LDBL_EPSILON * (2.0L + fabsl(logl(value)))};
}

static truth product(truth a, truth b)
{
    return (truth){a.value * b.value, a.error + b.error + 0.5L * LDBL_EPSILON};
}

/* s N/L0 - (s - 1) without its cancellation. */
static truth growth_truth(const posenc_rope_params *p, int64_t length, int32_t i)
{
    long double trained = (long double)p->original_max_position;
    long double beyond = ((long double)length - trained) / trained;
    long double growth = 1.0L + (long double)p->factor * (beyond > 0.0L ? beyond : 0.0L);
    truth t = power_truth(growth, i, p->rotary_dim / 2 - 1);
    t.error += 2.0L * LDBL_EPSILON;
    return t;
}

static truth mixed_truth(const posenc_rope_params *p, int32_t i)
{
    long double part = (i + 1.0L) / (p->rotary_dim / 2), log = logl((long double)p->factor);
    long double exponent = powl(part, (long double)p->mixed_exponent) * log;
    long double steps = 3.0L + (long double)p->mixed_exponent * (1.0L - logl(part));
    return (truth){expl(-exponent), LDBL_EPSILON * (1.0L + steps * fabsl(exponent))};
}

static truth scheme_truth(const posenc_rope_params *p, int64_t length, int32_t i)
{
    int32_t pairs = p->rotary_dim / 2;
    long double s = (long double)p->factor;
    truth w = power_truth((long double)p->base, i, pairs);
    switch (p->scaling) {
    case POSENC_SCALING_NTK:
        return pairs > 1 ? product(w, power_truth(s, i, pairs - 1)) : w;
    case POSENC_SCALING_NTK_SCALED:
        return product(w, power_truth(s, i + 1, pairs));
    case POSENC_SCALING_NTK_MIXED:
        return product(w, mixed_truth(p, i));
    case POSENC_SCALING_DYNAMIC_NTK:
        return pairs > 1 ? product(w, growth_truth(p, length, i)) : w;
    case POSENC_SCALING_LONGROPE:
        s = (long double)((double)length > p->original_max_position ? longs : shorts)[i];
        return (truth){w.value / s, w.error + LDBL_EPSILON};
    default:
        return (truth){i < p->rotating_pairs ? w.value / s : 0.0L, w.error + LDBL_EPSILON};
    }
}

/* Within half a unit in the last place, widened by the error of the truth; few stay undecided. */
static void check_all_pairs(const posenc_rope_params *p, int64_t length, long *total,
                            long *undecided)
{
    double got[MOST_PAIRS];
    posenc_frequencies(p, length, 0, 0, p->rotary_dim / 2, got);
    for (int32_t i = 0; i < p->rotary_dim / 2; i++) {
        truth t = scheme_truth(p, length, i);
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
    static const int64_t LENGTHS[] = {1, 8192, 8193, 100000, 1 << 24};
    for (int32_t scaling = POSENC_SCALING_NTK; scaling <= POSENC_SCALING_PROPORTIONAL; scaling++) {
        long total = 0, undecided = 0;
        for (size_t b = 0; b < COUNT(BASES); b++) {
            for (size_t r = 0; r < COUNT(WIDTHS); r++) {
                posenc_rope_params p = scheme(scaling, BASES[b], WIDTHS[r], b + r);
                check_all_pairs(&p, LENGTHS[(b + 2 * r) % COUNT(LENGTHS)], &total, &undecided);
            }
        }
        assert_true(total > 10000);
        assert_true(undecided * 20 < total);
    }
}

/* At the ends of every range nothing overflows, and the truth holds all the same. */
static void ends_of_the_ranges(void **state)
{
    (void)state;
    static const double ENDS[] = {0x1p-64, 0.5, 1.0, 1.0000000000000002, 0x1p64};
    static const int64_t LENGTHS[] = {1, 2, 1 << 20, INT64_MAX};
    long total = 0, undecided = 0;
    for (int32_t scaling = POSENC_SCALING_NTK; scaling <= POSENC_SCALING_PROPORTIONAL; scaling++) {
        for (size_t k = 0; k < 5 * 4 * 3 * 4; k++) {
            double base = k / 20 % 3 == 0 ? 1.0000000000000002 : k / 20 % 3 == 1 ? 1e4 : 0x1.8p75;
            posenc_rope_params p = scheme(scaling, base, WIDTHS[k / 60 * 5], k);
            p.factor = ENDS[k % 5];
            p.original_max_position = k % 2 ? 1.0 : 12345.5;
            p.mixed_exponent = k % 3 ? 16.0 : 0.0;
            check_all_pairs(&p, LENGTHS[k / 5 % 4], &total, &undecided);
        }
    }
    assert_true(total > 10000);
}

/* Rows take frequencies in blocks: any piece has the bits of the whole. */
static void pieces_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    for (int32_t scaling = 0; scaling <= POSENC_SCALING_PROPORTIONAL; scaling++) {
        posenc_rope_params p = scheme(scaling, 1e4, 192, 2);
        double whole[96], piece[96];
        float whole_f32[96], piece_f32[96];
        posenc_frequencies(&p, 9000, 0, 0, 96, whole);
        posenc_frequencies_f32(&p, 9000, 0, 0, 96, whole_f32);
        for (int32_t first = 0, n = 0; first < 96; first += PIECES[n++]) {
            posenc_frequencies(&p, 9000, 0, first, PIECES[n], piece);
            posenc_frequencies_f32(&p, 9000, 0, first, PIECES[n], piece_f32);
            assert_memory_equal(piece, whole + first, (size_t)PIECES[n] * sizeof *piece);
            assert_memory_equal(piece_f32, whole_f32 + first, (size_t)PIECES[n] * sizeof(float));
        }
    }
}

/* A base beyond float32 is infinite there: the first pair turns by 1, the others stand still. */
static void float32_bases_may_overflow(void **state)
{
    (void)state;
    float got[32];
    posenc_rope_params p = scheme(POSENC_SCALING_DYNAMIC_NTK, 0x1p75, 64, 0);
    p.factor = 0x1p64;
    p.original_max_position = 1.0;
    for (p.recipe = POSENC_RECIPE_HF_F32; p.recipe <= POSENC_RECIPE_VLLM; p.recipe++) {
        posenc_frequencies_f32(&p, INT64_MAX, 0, 0, 32, got);
        for (int i = 0; i < 32; i++) {
            assert_true(got[i] == (i ? 0.0f : 1.0f));
        }
    }
}

/* A zero of the caller's has no sign: rows of equal fingerprints have equal bits. */
static void zero_has_one_sign(void **state)
{
    (void)state;
    const double given[2] = {-0.0, 0.5};
    posenc_rope_params p = parameters(POSENC_SCALING_NONE, 1e4, 4);
    double exact[2];
    float f32[2];
    p.frequency_source = POSENC_FREQUENCIES_INVERSE;
    p.frequencies = given;
    posenc_frequencies(&p, 0, 0, 0, 2, exact);
    posenc_frequencies_f32(&p, 0, 0, 0, 2, f32);
    assert_true(posenc_bits64(exact[0]) == 0 && exact[1] == 0.5);
    assert_true(posenc_bits32(f32[0]) == 0 && f32[1] == 0.5f);
}

static void mix(uint64_t *hash, uint64_t bits)
{
    for (int byte = 0; byte < 8; byte++, bits >>= 8) {
        *hash = (*hash ^ (bits & 0xff)) * 0x100000001b3u;
    }
}

static void mix_all(uint64_t *hash, const posenc_rope_params *p, int64_t length)
{
    double exact[MOST_PAIRS];
    float f32[MOST_PAIRS];
    posenc_frequencies(p, length, 0, 0, p->rotary_dim / 2, exact);
    posenc_frequencies_f32(p, length, 0, 0, p->rotary_dim / 2, f32);
    for (int32_t i = 0; i < p->rotary_dim / 2; i++) {
        mix(hash, posenc_bits64(exact[i]));
        mix(hash, posenc_bits32(f32[i]));
    }
    mix(hash, posenc_bits64(posenc_attention_factor(p, length)));
    mix(hash, posenc_bits64(posenc_softmax_multiplier(p)));
}

/* FNV-1a over the bits of all recipes: every machine and compiler must reach the stored value. */
static void all_machines_reach_one_hash(void **state)
{
    (void)state;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t b = 0; b < COUNT(BASES); b++) {
        for (size_t r = 1; r < COUNT(WIDTHS); r++) {
            for (int32_t scaling = POSENC_SCALING_YARN; scaling <= POSENC_SCALING_PROPORTIONAL;
                 scaling++) {
                posenc_rope_params p = scheme(scaling, BASES[b], WIDTHS[r], b + r);
                p.yarn_blend = POSENC_YARN_GEOMETRIC;
                p.mscale_all_dim = 0.7;
                p.magnitude_slope = b % 2 ? 0.07 : 0.123;
                p.recipe = (int32_t)(r % 2) + POSENC_RECIPE_HF_F32;
                mix_all(&hash, &p, r % 3 ? 50000 : 7);
            }
        }
    }
    if (hash != 0xac78e9a3d76d0b39u) {
        fail_msg("hash of all frequencies is 0x%016" PRIx64, hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scaling_is_the_nearest_double),
        cmocka_unit_test(ends_of_the_ranges),
        cmocka_unit_test(pieces_have_the_bits_of_the_whole),
        cmocka_unit_test(float32_bases_may_overflow),
        cmocka_unit_test(zero_has_one_sign),
        cmocka_unit_test(all_machines_reach_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
