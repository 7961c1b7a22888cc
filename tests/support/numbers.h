/* SPDX-License-Identifier: MIT */
/* Stored numbers of tests/data: lines "ID NAME value value ...", '#' begins a comment line. */
#ifndef TEST_NUMBERS_H
#define TEST_NUMBERS_H

#include <stddef.h>

/* Reads the values of ID NAME from tests/data/FILE into `values`. Returns their number; fails the
 * test if the line is missing or has more than `capacity` values. */
size_t test_numbers(const char *file, const char *id, const char *name, double *values,
                    size_t capacity);

/* The ID of line number `n` of those with NAME, counted from 0. Returns 0 if there are no more. */
int test_number_id(const char *file, const char *name, size_t n, char *id, size_t size);

/* The path of tests/data/FILE. */
const char *test_data_path(const char *file, char *path, size_t size);

#endif
