/* SPDX-License-Identifier: MIT */
/* GGUF headers made in memory, field by field, for tests of the reader. */
#ifndef POSENC_GGUF_TEXT_H
#define POSENC_GGUF_TEXT_H

#include "contract_text.h"

#include <stdlib.h>

enum { GGUF_ROOM = 1 << 21 };

/* A header under construction. Entries and tensors are counted when they are added. */
struct gguf_text {
    uint8_t bytes[GGUF_ROOM];
    size_t length;
    int big;
};

static inline void gguf_number(struct gguf_text *text, uint64_t value, size_t size)
{
    assert_true(text->length + size <= GGUF_ROOM);
    for (size_t i = 0; i < size; i++) {
        size_t shift = text->big ? size - 1 - i : i;
        text->bytes[text->length++] = (uint8_t)(value >> (8 * shift));
    }
}

static inline void gguf_string(struct gguf_text *text, const char *word)
{
    size_t length = strlen(word);
    gguf_number(text, length, 8);
    assert_true(text->length + length <= GGUF_ROOM);
    memcpy(text->bytes + text->length, word, length);
    text->length += length;
}

static inline uint64_t gguf_count(const struct gguf_text *text, size_t at)
{
    uint64_t count = 0;
    for (size_t i = 0; i < 8; i++) {
        count = count << 8 | text->bytes[at + (text->big ? i : 7 - i)];
    }
    return count;
}

static inline void gguf_set_count(struct gguf_text *text, size_t at, uint64_t count)
{
    size_t end = text->length;
    text->length = at;
    gguf_number(text, count, 8);
    text->length = end;
}

static inline struct gguf_text *gguf_new(int big, uint64_t version)
{
    struct gguf_text *text = calloc(1, sizeof *text);
    assert_non_null(text);
    text->big = big;
    memcpy(text->bytes, "GGUF", 4);
    text->length = 4;
    gguf_number(text, version, 4);
    gguf_number(text, 0, 8);
    gguf_number(text, 0, 8);
    return text;
}

static inline void gguf_key(struct gguf_text *text, const char *key, uint64_t type)
{
    gguf_set_count(text, 16, gguf_count(text, 16) + 1);
    gguf_string(text, key);
    gguf_number(text, type, 4);
}

static inline void gguf_u32(struct gguf_text *text, const char *key, uint32_t value)
{
    gguf_key(text, key, 4);
    gguf_number(text, value, 4);
}

static inline void gguf_f32(struct gguf_text *text, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    gguf_key(text, key, 6);
    gguf_number(text, bits, 4);
}

static inline void gguf_word(struct gguf_text *text, const char *key, const char *value)
{
    gguf_key(text, key, 8);
    gguf_string(text, value);
}

static inline void gguf_list(struct gguf_text *text, const char *key, uint64_t type,
                             uint64_t count)
{
    gguf_key(text, key, 9);
    gguf_number(text, type, 4);
    gguf_number(text, count, 8);
}

static inline void gguf_tensor(struct gguf_text *text, const char *name, uint64_t elements,
                               uint64_t type, uint64_t offset)
{
    gguf_set_count(text, 8, gguf_count(text, 8) + 1);
    gguf_string(text, name);
    gguf_number(text, 1, 4);
    gguf_number(text, elements, 8);
    gguf_number(text, type, 4);
    gguf_number(text, offset, 8);
}

static inline void gguf_align(struct gguf_text *text, size_t to)
{
    while (text->length % to) {
        text->bytes[text->length++] = 0;
    }
}

/* A llama of 2 layers whose heads have 128 channels; more entries may follow. */
static inline struct gguf_text *gguf_llama(void)
{
    struct gguf_text *text = gguf_new(0, 3);
    gguf_word(text, "general.architecture", "llama");
    gguf_u32(text, "llama.block_count", 2);
    gguf_u32(text, "llama.embedding_length", 4096);
    gguf_u32(text, "llama.attention.head_count", 32);
    return text;
}

static inline int32_t gguf_try(posenc_contract **contract, const struct gguf_text *text,
                               posenc_error *error)
{
    /* An exact copy, so that a sanitizer sees every byte read beyond it. */
    char *bytes = malloc(text->length);
    assert_non_null(bytes);
    memcpy(bytes, text->bytes, text->length);
    *contract = NULL;
    memset(error, 0, sizeof *error);
    int32_t status = posenc_contract_parse(contract, bytes, text->length, error);
    free(bytes);
    return status;
}

/* A contract that must be accepted; the text is freed. */
static inline posenc_contract *gguf_contract(struct gguf_text *text)
{
    posenc_contract *contract;
    posenc_error error;
    if (gguf_try(&contract, text, &error) != POSENC_OK) {
        print_error("refused: %s\n", error.text);
        fail();
    }
    free(text);
    return contract;
}

/* One that must be refused, with these words; the text is freed. */
static inline void gguf_refused(struct gguf_text *text, int32_t status, const char *words)
{
    posenc_contract *contract;
    posenc_error error;
    assert_int_equal(gguf_try(&contract, text, &error), status);
    assert_null(contract);
    if (!strstr(error.text, words)) {
        print_error("\"%s\" lacks \"%s\"\n", error.text, words);
        fail();
    }
    free(text);
}

#endif
