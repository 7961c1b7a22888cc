/* SPDX-License-Identifier: MIT */
/* A painted stack. */
#include "stack.h"
#include "test.h"

#include <pthread.h>

enum { STACK_BYTES = 1 << 20, PAINT = 0x5a };

size_t test_stack_of(void *(*work)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;
    unsigned char *stack = aligned_alloc(4096, STACK_BYTES);

    assert_non_null(stack);
    memset(stack, PAINT, STACK_BYTES);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, work, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    while (stack[untouched] == PAINT) untouched++;
    free(stack);
    return STACK_BYTES - untouched;
}

static void *do_nothing(void *argument)
{
    return argument;
}

size_t test_stack_of_nothing(void)
{
    return test_stack_of(do_nothing, NULL);
}

size_t test_stack_most(void)
{
    return test_quick() ? 256 << 10 : 64 << 10;
}
