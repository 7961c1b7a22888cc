/* SPDX-License-Identifier: MIT */
/* Guarded memory by mmap and mprotect. */
#define _DEFAULT_SOURCE
#include "guard.h"

#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

struct test_guard test_guard_new(size_t capacity)
{
    struct test_guard guard;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    guard.capacity = (capacity + 64 + page - 1) / page * page;
    guard.map_size = guard.capacity + 2 * page;
    guard.map = mmap(NULL, guard.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(guard.map != MAP_FAILED);
    guard.first = guard.map + page;
    assert_int_equal(mprotect(guard.first, guard.capacity, PROT_READ | PROT_WRITE), 0);
    return guard;
}

void test_guard_free(struct test_guard *guard)
{
    assert_int_equal(munmap(guard->map, guard->map_size), 0);
    guard->map = NULL;
}

void *test_guard_at(const struct test_guard *guard, size_t size, size_t element_size,
                    enum test_place place)
{
    assert_true(size + element_size <= guard->capacity);
    switch (place) {
    case TEST_AT_END: return guard->first + (guard->capacity - size);
    case TEST_ODD: return guard->first + element_size;
    default: return guard->first;
    }
}

void test_guard_protect(const struct test_guard *guard, int read_only)
{
    int protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE;

    assert_int_equal(mprotect(guard->first, guard->capacity, protection), 0);
}
