/* SPDX-License-Identifier: MIT */
/* Loading the shared library and calling it leave the floating-point control words as they were. */
#include "../support/control_word.h"

#include <dlfcn.h>
#include <fenv.h>
#include <posenc/posenc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef int32_t create_function(posenc_plan **, int32_t, int32_t, double, posenc_error *);
typedef int32_t rope_function(const posenc_plan *, void *, void *, int32_t, size_t, size_t, size_t,
                              size_t, int64_t, posenc_error *);
typedef void free_function(posenc_plan *);

/* The address as the function pointer that it is: C has no cast for that, POSIX has the bits. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

static void load_and_call(void)
{
    const uint64_t before = test_control_word();
    void *library = dlopen(POSENC_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    create_function *create;
    rope_function *rope;
    free_function *release;
    posenc_plan *plan = NULL;
    assert_non_null(library);
    assert_true(test_control_word() == before);
    find(library, "posenc_plan_create_simple", &create);
    find(library, "posenc_rope_flat", &rope);
    find(library, "posenc_plan_free", &release);
    assert_int_equal(create(&plan, POSENC_SPLIT_HALF, 64, 10000.0, NULL), POSENC_OK);
    for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
        float q[3 * 64];
        memset(q, 1, sizeof q); /* subnormal as f32, f16 and bf16 */
        assert_int_equal(rope(plan, q, NULL, dtype, 1, 3, 1, 0, 100, NULL), POSENC_OK);
    }
    release(plan);
    assert_true(test_control_word() == before);
    dlclose(library);
    assert_true(test_control_word() == before);
}

static void default_environment_is_kept(void **state)
{
    (void)state;
    load_and_call();
}

static void rounding_mode_of_the_caller_is_kept(void **state)
{
    (void)state;
    const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        fesetround(modes[i]);
        load_and_call();
        assert_int_equal(fegetround(), modes[i]);
    }
    fesetround(FE_TONEAREST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_environment_is_kept),
        cmocka_unit_test(rounding_mode_of_the_caller_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
