/* SPDX-License-Identifier: MIT */
/* Helpers that every test program shares. */
#include "test.h"

#include <stdio.h>

size_t test_isas(int32_t isas[TEST_ISAS])
{
    static const int32_t all[TEST_ISAS] = {POSENC_ISA_SCALAR, POSENC_ISA_AVX2, POSENC_ISA_AVX512,
                                           POSENC_ISA_NEON};
    size_t n = 0;

    for (size_t i = 0; i < TEST_ISAS; i++) {
        if (posenc_isa_available(all[i])) isas[n++] = all[i];
    }
    return n;
}

#ifndef POSENC_TEST_QUICK
#define POSENC_TEST_QUICK "0"
#endif

int test_quick(void)
{
    const char *value = getenv("POSENC_TEST_QUICK");

    return strcmp(value != NULL && value[0] != '\0' ? value : POSENC_TEST_QUICK, "0") != 0;
}

void test_ok(int32_t status, const posenc_error *error)
{
    if (status != POSENC_OK) {
        fail_msg("status %s: %s", posenc_status_name(status), error ? error->text : "(no text)");
    }
}

posenc_plan *test_plan(const posenc_rope_params *params)
{
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};

    test_ok(posenc_plan_create(&plan, params, &error), &error);
    assert_non_null(plan);
    return plan;
}

posenc_rope_params test_params(int32_t layout, int32_t head_dim, int32_t rotary_dim)
{
    posenc_rope_params params;

    posenc_rope_params_init(&params);
    params.layout = layout;
    params.head_dim = head_dim;
    params.rotary_dim = rotary_dim;
    return params;
}

static int holds_word(const char *text, const char *word, size_t length)
{
    for (size_t n = strlen(text); n >= length; n--, text++) {
        if (strncmp(text, word, length) == 0) return 1;
    }
    return 0;
}

void test_refused(int32_t status, int32_t expected, const posenc_error *error, const char *words)
{
    if (status != expected) {
        fail_msg("status %s instead of %s (expected words: %s; text: %s)",
                 posenc_status_name(status), posenc_status_name(expected), words, error->text);
    }
    assert_int_equal(error->code, expected);
    assert_non_null(memchr(error->text, '\0', sizeof error->text));
    assert_true(error->text[0] != '\0');
    for (const char *c = error->text; *c; c++) {
        if (*c < ' ' || *c > '~') fail_msg("not one line of ASCII: %s", error->text);
    }
    while (*words) {
        size_t length = strcspn(words, "|");

        if (!holds_word(error->text, words, length)) {
            fail_msg("\"%.*s\" is missing in: %s", (int)length, words, error->text);
        }
        words += length + (words[length] == '|');
    }
}

uint64_t test_hash(uint64_t hash, const void *data, size_t count, size_t element_size)
{
    const unsigned char *bytes = data;
    const uint16_t probe = 1;
    int little = *(const unsigned char *)&probe == 1;

    for (size_t i = 0; i < count; i++, bytes += element_size) {
        for (size_t j = 0; j < element_size; j++) {
            hash ^= bytes[little ? element_size - 1 - j : j];
            hash *= UINT64_C(0x100000001b3);
        }
    }
    return hash;
}
