/* SPDX-License-Identifier: MIT */
/* Plans without memory: whichever allocation fails, nothing is left behind and nothing written. */
#include "support/test.h"

#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

static long allowed = -1; /* allocations until one fails; below 0 all succeed */
static long held;         /* blocks that were not freed yet */

static int fails(void)
{
    if (allowed == 0) return 1;
    allowed -= allowed > 0;
    held++;
    return 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

void __wrap_free(void *memory)
{
    held -= memory != NULL;
    __real_free(memory);
}

/* Lets each allocation of a plan fail in turn. Returns how many there are. */
static long each_failure(const posenc_rope_params *params)
{
    posenc_plan *const untouched = (posenc_plan *)(uintptr_t)0x1234;
    posenc_error error = {0, ""};
    long before = held, n = 0;

    for (;; n++) {
        posenc_plan *plan = untouched;
        allowed = n;
        int32_t status = posenc_plan_create(&plan, params, &error);
        allowed = -1;
        if (status == POSENC_OK) {
            posenc_plan_free(plan);
            assert_int_equal(held, before);
            return n;
        }
        test_refused(status, POSENC_ERROR_MEMORY, &error, "no memory");
        assert_ptr_equal(plan, untouched);
        assert_int_equal(held, before);
    }
}

static void test_every_allocation(void **state)
{
    static const double list[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const int32_t axes[16] = {0};
    posenc_rope_params params = test_params(POSENC_SPLIT_HALF, 32, 32);

    (void)state;
    assert_true(each_failure(&params) >= 4); /* plan, sets, frequencies, blocks */
    params.axis_of_pair = axes;
    params.frequency_source = POSENC_FREQUENCIES_DIVISORS;
    params.frequencies = list;
    assert_true(each_failure(&params) >= 6);
    params.recipe = POSENC_RECIPE_HF_F32;
    assert_true(each_failure(&params) >= 6);
    params.recipe = POSENC_RECIPE_GGML;
    assert_true(each_failure(&params) >= 6);
    params = test_params(POSENC_SPLIT_HALF, 32, 32);
    params.xpos = POSENC_XPOS_QUERIES;
    assert_true(each_failure(&params) >= 4);
    params.xpos = POSENC_XPOS_NONE;
    params.scaling = POSENC_SCALING_LINEAR;
    params.factors = list;
    params.num_factors = 3;
    assert_true(each_failure(&params) >= 9);
    params.scaling = POSENC_SCALING_LONGROPE;
    params.original_max_position = 2048;
    params.short_factors = params.long_factors = list;
    assert_true(each_failure(&params) >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
