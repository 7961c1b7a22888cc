/* SPDX-License-Identifier: MIT */
/* A buffer that must stay as it was: what every refusal of a builder is checked with. */
#ifndef TEST_REFUSE_H
#define TEST_REFUSE_H

#include "test.h"

/* Bytes that no builder writes by itself. */
static inline void refuse_mark(void *data, size_t size)
{
    memset(data, 0xa5, size);
}

static inline void refuse_unmarked(const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0xa5) fail_msg("byte %zu was written", i);
    }
}

/*
 * Runs `call`, which uses `error`, and expects it to fail with `status` and a text that holds every
 * word of `words`, with `data` left as it is; then the same without a posenc_error.
 */
#define REFUSE(call, status, words, data)                                                         \
    do {                                                                                          \
        posenc_error refused = {0, ""}, *error = &refused;                                        \
        refuse_mark(data, sizeof(data));                                                          \
        test_refused(call, status, error, words);                                                 \
        refuse_unmarked(data, sizeof(data));                                                      \
        error = NULL;                                                                             \
        assert_int_equal(call, status);                                                           \
        refuse_unmarked(data, sizeof(data));                                                      \
    } while (0)

#endif
