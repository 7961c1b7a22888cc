/* SPDX-License-Identifier: MIT */
/* How much stack a call takes. */
#ifndef TEST_STACK_H
#define TEST_STACK_H

#include <stddef.h>

/* Bytes of stack that `work` wrote to, in a thread of its own whose stack was painted before. */
size_t test_stack_of(void *(*work)(void *), void *argument);

/* The same of a thread that does nothing, and the most that a call may take beyond that:
 * instrumented code takes more. */
size_t test_stack_of_nothing(void);
size_t test_stack_most(void);

#endif
