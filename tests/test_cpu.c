/* SPDX-License-Identifier: MIT */
/* CPU detection over a table of processors and systems, the default, and the control word. */
#include "support/control_word.h"
#include "support/random.h"
#include "support/test.h"

#include "cpu.h"
#include "kernels.h"

#include <pthread.h>

/* Intel SDM, volume 2A, CPUID: bits of leaf 1 ecx and leaf 7 ebx. */
enum {
    SSE42 = 1 << 20, FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29,
    AVX2 = 1 << 5, F = 1 << 16, DQ = 1 << 17, BW = 1 << 30
};
#define VL 0x80000000u
#define ALL1 (uint32_t)(SSE42 | FMA | OSXSAVE | AVX | F16C)
#define ALL7 ((uint32_t)(AVX2 | F | DQ | BW) | VL)

struct machine { const char *name; uint32_t leaf1, leaf7; uint64_t xcr0; int32_t best; };

static const struct machine machines[] = {
    /* B42-a, with what the kernels really need: F16C besides. */
    {"everything, all state saved", ALL1, ALL7, 0xe7, POSENC_ISA_AVX512},
    {"no opmask or ZMM state", ALL1, ALL7, 0x07, POSENC_ISA_AVX2},
    {"opmask state alone", ALL1, ALL7, 0x27, POSENC_ISA_AVX2},
    {"no YMM state", ALL1, ALL7, 0x03, POSENC_ISA_SCALAR},
    {"OSXSAVE off, words say the rest", ALL1 & ~(uint32_t)OSXSAVE, ALL7, 0xe7, POSENC_ISA_SCALAR},
    {"AVX2 and FMA", ALL1, AVX2, 0x07, POSENC_ISA_AVX2},
    {"AVX2 without FMA", ALL1 & ~(uint32_t)FMA, AVX2, 0x07, POSENC_ISA_SCALAR},
    /* Real processors and emulators. */
    {"AVX2 without F16C", ALL1 & ~(uint32_t)F16C, AVX2, 0x07, POSENC_ISA_SCALAR},
    {"Ivy Bridge", SSE42 | OSXSAVE | AVX | F16C, 0, 0x07, POSENC_ISA_SCALAR},
    {"Westmere", SSE42, 0, 0, POSENC_ISA_SCALAR},
    {"qemu max,-avx", ALL1 & ~(uint32_t)AVX, AVX2, 0x21b, POSENC_ISA_SCALAR},
    {"Xeon Phi: AVX-512 F without BW, DQ, VL", ALL1, AVX2 | F, 0xe7, POSENC_ISA_AVX2},
    {"AVX-512 without VL", ALL1, ALL7 & ~VL, 0xe7, POSENC_ISA_AVX2},
    {"AVX-512 without BW", ALL1, ALL7 & ~(uint32_t)BW, 0xe7, POSENC_ISA_AVX2},
    {"AVX-512 without DQ", ALL1, ALL7 & ~(uint32_t)DQ, 0xe7, POSENC_ISA_AVX2},
    {"AVX-512 without AVX2", ALL1, ALL7 & ~(uint32_t)AVX2, 0xe7, POSENC_ISA_SCALAR},
    {"AVX-512 without FMA", ALL1 & ~(uint32_t)FMA, ALL7, 0xe7, POSENC_ISA_SCALAR},
    {"upper ZMM state missing", ALL1, ALL7, 0x67, POSENC_ISA_AVX2},
    {"SSE state missing", ALL1, ALL7, 0xe5, POSENC_ISA_SCALAR},
    {"AMX state besides", ALL1, ALL7, 0x602e7, POSENC_ISA_AVX512},
    {"nothing", 0, 0, 0, POSENC_ISA_SCALAR},
};

static void test_machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const struct machine *m = &machines[i];
        struct posenc_cpuid words = {m->leaf1, m->leaf7, m->xcr0, {0, 0, 0}};
        uint32_t expected = 1u << POSENC_ISA_SCALAR;

        if (m->best >= POSENC_ISA_AVX2) expected |= 1u << POSENC_ISA_AVX2;
        if (m->best >= POSENC_ISA_AVX512) expected |= 1u << POSENC_ISA_AVX512;
        if (posenc_cpu_x86(&words) != expected) {
            fail_msg("%s: 0x%x instead of 0x%x", m->name, posenc_cpu_x86(&words), expected);
        }
    }
}

/* Taking any one needed bit away from a full machine takes the ISA away. */
static void test_every_bit_counts(void **state)
{
    (void)state;
    for (int bit = 0; bit < 32 + 32 + 8; bit++) {
        struct posenc_cpuid words = {ALL1, ALL7, 0xe7, {0, 0, 0}};
        uint32_t isas, needed1 = (uint32_t)(FMA | OSXSAVE | AVX | F16C);

        if (bit < 32) words.leaf1_ecx &= ~(1u << bit);
        else if (bit < 64) words.leaf7_ebx &= ~(1u << (bit - 32));
        else words.xcr0 &= ~(UINT64_C(1) << (bit - 64));
        isas = posenc_cpu_x86(&words);
        assert_true(isas >> POSENC_ISA_SCALAR & 1);
        assert_int_equal(isas >> POSENC_ISA_AVX2 & 1,
                         (words.leaf1_ecx & needed1) == needed1 && (words.leaf7_ebx & AVX2)
                             && (words.xcr0 & 6) == 6);
        assert_int_equal(isas >> POSENC_ISA_AVX512 & 1,
                         (words.leaf1_ecx & needed1) == needed1 && words.leaf7_ebx == ALL7
                             && (words.xcr0 & 0xe6) == 0xe6);
    }
}

static void test_vendors(void **state)
{
    static const struct { char name[13]; int amd; } vendors[] = {
        {"AuthenticAMD", 1}, {"HygonGenuine", 1}, {"GenuineIntel", 0}, {"CentaurHauls", 0},
        {"AuthenticAMX", 0}, {"ButhenticAMD", 0}, {"", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        struct posenc_cpuid words = {ALL1, ALL7, 0xe7, {0, 0, 0}};
        memcpy(words.vendor, vendors[i].name, sizeof words.vendor);
        assert_int_equal(posenc_cpu_x86_is_amd(&words), vendors[i].amd);
    }
    assert_int_equal(posenc_cpu_features() >> 31, !posenc_asks_ahead(INT64_MAX));
    assert_int_equal(posenc_asks_ahead(1 << 20), 0);
    assert_int_equal(posenc_cpu_features() >> 31, posenc_fetches_twice());
}

/* What this process says agrees with itself, with its plans, and with the environment. */
static void test_default(void **state)
{
    int32_t isas[TEST_ISAS], best = posenc_isa_default();
    size_t n = test_isas(isas);
    const char *wanted = getenv("POSENC_ISA");
    posenc_rope_params params = test_params(POSENC_ADJACENT, 8, 8);
    posenc_plan *plan = test_plan(&params);

    (void)state;
    assert_int_equal(isas[0], POSENC_ISA_SCALAR);
    assert_int_equal(posenc_plan_isa(plan), best);
    posenc_plan_free(plan);
    assert_true(posenc_isa_available(best));
    for (size_t i = 0; i < n; i++) {
        if (wanted && strcmp(posenc_isa_name(isas[i]), wanted) == 0) {
            assert_int_equal(best, isas[i]);
            return;
        }
    }
    assert_int_equal(best, isas[n - 1]);
}

/* The variable is read once: changing it later changes nothing. */
static void test_variable_is_read_once(void **state)
{
    int32_t before = posenc_isa_default();
    const char *old = getenv("POSENC_ISA");
    char kept[32] = "";

    (void)state;
    if (old) strncpy(kept, old, sizeof kept - 1);
    setenv("POSENC_ISA", before == POSENC_ISA_SCALAR ? "avx2" : "scalar", 1);
    assert_int_equal(posenc_isa_default(), before);
    if (old) setenv("POSENC_ISA", kept, 1);
    else unsetenv("POSENC_ISA");
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(posenc_isa_name(POSENC_ISA_DEFAULT), "default");
    assert_string_equal(posenc_isa_name(POSENC_ISA_SCALAR), "scalar");
    assert_string_equal(posenc_isa_name(POSENC_ISA_AVX2), "avx2");
    assert_string_equal(posenc_isa_name(POSENC_ISA_AVX512), "avx512");
    assert_string_equal(posenc_isa_name(POSENC_ISA_NEON), "neon");
    assert_null(posenc_isa_name(-1));
    assert_null(posenc_isa_name(5));
    assert_int_equal(posenc_isa_available(POSENC_ISA_DEFAULT), 0);
    assert_int_equal(posenc_isa_available(-1), 0);
    assert_int_equal(posenc_isa_available(5), 0);
    assert_int_equal(posenc_isa_available(INT32_MIN), 0);
    assert_int_equal(posenc_isa_available(INT32_MAX), 0);
}

/* ---- the floating-point environment (B48) ---- */

static void run_everything(void)
{
    static const int32_t recipes[] = {POSENC_RECIPE_EXACT, POSENC_RECIPE_HF_F32};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    for (size_t i = 0; i < n * 2; i++) {
        float q[2 * 64], k[64], rows[2 * 64];
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 64, 64);
        posenc_attention_params attention;
        posenc_tensor rows_view, q_view, k_view, out_view;
        posenc_positions positions;
        posenc_plan *plan;

        for (int j = 0; j < 64; j++) q[j] = q[64 + j] = k[j] = 1e-40f * (float)j;
        params.isa = isas[i / 2];
        params.recipe = recipes[i % 2];
        plan = test_plan(&params);
        posenc_positions_start(&positions, 5);
        posenc_tensor_contiguous(&rows_view, rows, POSENC_F32, 1, 1, 1, 64);
        posenc_tensor_contiguous(&q_view, q, POSENC_F32, 1, 1, 1, 64);
        posenc_tensor_contiguous(&k_view, k, POSENC_F32, 1, 1, 1, 64);
        posenc_tensor_contiguous(&out_view, q + 64, POSENC_F32, 1, 1, 1, 64);
        test_ok(posenc_rows(plan, &positions, &rows_view, NULL), NULL);
        test_ok(posenc_rotate(plan, POSENC_FORWARD, &rows_view, &q_view, NULL, &k_view, NULL, NULL),
                NULL);
        test_ok(posenc_rope(plan, POSENC_INVERSE, &positions, &q_view, NULL, NULL, NULL, NULL),
                NULL);
        posenc_attention_params_init(&attention);
        attention.isa = params.isa;
        test_ok(posenc_attention(&attention, &q_view, &k_view, &k_view, &out_view, NULL), NULL);
        posenc_plan_free(plan);
    }
}

static void *second_thread(void *argument)
{
    uint64_t before = test_control_word();

    run_everything();
    return test_control_word() == before ? NULL : argument;
}

static void test_control_word_is_kept(void **state)
{
    uint64_t before = test_control_word();
    pthread_t thread;
    void *result = NULL;

    run_everything();
    assert_int_equal(test_control_word(), before);
    assert_int_equal(pthread_create(&thread, NULL, second_thread, &before), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    (void)state;
}

/* Subnormals survive (B48-b): at position 0 every bit, in every kernel and type. */
static void test_subnormals_survive(void **state)
{
    static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    static const uint32_t bits[] = {0x000116c2u, 0x0101u, 0x0041u};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t i = 0; i < n * 3; i++) {
        posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 72, 68);
        union { uint32_t word[72]; uint16_t half[72]; } x;
        posenc_plan *plan;

        for (int j = 0; j < 72; j++) {
            if (i % 3 == 0) x.word[j] = bits[0];
            else x.half[j] = (uint16_t)bits[i % 3];
        }
        params.isa = isas[i / 3];
        plan = test_plan(&params);
        test_ok(posenc_rope_flat(plan, &x, NULL, dtypes[i % 3], 1, 1, 1, 0, 0, NULL), NULL);
        for (int j = 0; j < 72; j++) {
            uint32_t got = i % 3 == 0 ? x.word[j] : x.half[j];

            assert_int_equal(got, bits[i % 3]);
        }
        posenc_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_vendors),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_variable_is_read_once),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_control_word_is_kept),
        cmocka_unit_test(test_subnormals_survive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
