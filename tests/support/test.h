/* SPDX-License-Identifier: MIT */
/* What every test program includes: CMocka with its prerequisites, and the public header. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <posenc/posenc.h>
#include <stdlib.h>
#include <string.h>

/* The ISAs that can run here, scalar first. Returns their number, at most TEST_ISAS. */
enum { TEST_ISAS = 4 };
size_t test_isas(int32_t isas[TEST_ISAS]);

/* 1: fewer widths and repetitions, never fewer kinds. POSENC_TEST_QUICK=1 in the environment asks
 * for it, 0 refuses it; cross and sanitizer builds do it by themselves. */
int test_quick(void);

/* A plan that must come out well: fails the test with the library's own text otherwise. */
posenc_plan *test_plan(const posenc_rope_params *params);

/* The parameters of an unscaled plan over the whole head. */
posenc_rope_params test_params(int32_t layout, int32_t head_dim, int32_t rotary_dim);

/* Fails with the library's text unless `status` is POSENC_OK. */
void test_ok(int32_t status, const posenc_error *error);

/* Fails unless the status is the expected error and its text, one ASCII line, holds every word of
 * `words` (separated by '|'). */
void test_refused(int32_t status, int32_t expected, const posenc_error *error, const char *words);

/* FNV-1a with 64 bits over the bytes, most significant first where elements have several, so that
 * one hash serves both byte orders. Start with TEST_HASH_START. */
#define TEST_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t test_hash(uint64_t hash, const void *data, size_t count, size_t element_size);

#endif
