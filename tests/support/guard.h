/* SPDX-License-Identifier: MIT */
/* Memory between two unreadable pages, so that a single element read beyond its end is a fault. */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H

#include <stddef.h>

struct test_guard {
    unsigned char *map;
    size_t map_size;
    unsigned char *first; /* the first readable byte */
    size_t capacity;      /* readable bytes, whole pages */
};

/* Where a block lies in the guarded pages. */
enum test_place {
    TEST_AT_END,   /* its last byte is the last before an unreadable page */
    TEST_AT_START, /* its first byte is the first after an unreadable page */
    TEST_ODD,      /* one element behind the start: aligned to the element and to nothing more */
    TEST_PLACES
};

/* Room for at least `capacity` bytes. Fails the test if the system has none. */
struct test_guard test_guard_new(size_t capacity);
void test_guard_free(struct test_guard *guard);

/* `size` bytes at `place`. Blocks of one guard share its memory: use one at a time. */
void *test_guard_at(const struct test_guard *guard, size_t size, size_t element_size,
                    enum test_place place);

/* Makes the memory read-only (1) or writable again (0). */
void test_guard_protect(const struct test_guard *guard, int read_only);

#endif
