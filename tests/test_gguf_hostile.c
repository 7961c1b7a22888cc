/* SPDX-License-Identifier: MIT */
/* Malformed GGUF headers: cut at each byte, counts beyond reason, twins, depth, cut files. */
#include "gguf_text.h"
#include "support/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Every type of entry, a tensor and its data. */
static struct gguf_text *rich(int big)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    struct gguf_text *text = gguf_new(big, 3);
    char key[16] = "any.0";
    gguf_word(text, "general.architecture", "llama");
    gguf_u32(text, "llama.block_count", 2);
    gguf_u32(text, "llama.context_length", 4096);
    gguf_u32(text, "llama.embedding_length", 64);
    gguf_u32(text, "llama.attention.head_count", 8);
    for (uint64_t type = 0; type < 13; type++) {
        key[4] = (char)('a' + type);
        if (sizes[type]) {
            gguf_key(text, key, type);
            gguf_number(text, 1, sizes[type]);
        }
    }
    gguf_list(text, "any.words", 8, 2);
    gguf_string(text, "one");
    gguf_string(text, "two");
    gguf_list(text, "any.nested", 9, 2);
    for (int i = 0; i < 2; i++) {
        gguf_number(text, 3, 4);
        gguf_number(text, 1, 8);
        gguf_number(text, 7, 2);
    }
    gguf_tensor(text, "rope_freqs.weight", 4, 0, 0);
    gguf_align(text, 32);
    for (int i = 0; i < 4; i++) {
        gguf_number(text, 0x40000000, 4); /* 2 */
    }
    return text;
}

/* No cut of it is accepted, and none is read beyond. */
static void test_every_cut(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        struct gguf_text *text = rich(big);
        struct test_guard guard = test_guard_new(text->length);
        posenc_contract *contract = NULL;
        for (size_t length = 0; length <= text->length; length++) {
            char *bytes = test_guard_at(&guard, length, 1, TEST_AT_END);
            memcpy(bytes, text->bytes, length);
            int32_t status = posenc_contract_parse(&contract, bytes, length, NULL);
            assert_int_equal(status == POSENC_OK, length == text->length);
            assert_int_equal(contract != NULL, length == text->length);
        }
        posenc_contract_free(contract);
        test_guard_free(&guard);
        free(text);
    }
}

/* Any byte may be anything: the answer is a contract or a refusal in words. */
static void test_every_byte(void **state)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    (void)state;
    struct gguf_text *text = rich(0);
    for (size_t i = 0; i < text->length; i++) {
        uint8_t before = text->bytes[i];
        for (size_t n = 0; n < sizeof values; n++) {
            posenc_contract *contract;
            posenc_error error;
            text->bytes[i] = values[n];
            int32_t status = gguf_try(&contract, text, &error);
            assert_int_equal(status == POSENC_OK, contract != NULL);
            assert_true(status == POSENC_OK || error.text[0]);
            posenc_contract_free(contract);
        }
        text->bytes[i] = before;
    }
    free(text);
}

/* The two counts, a length, the number of a list, dimensions: far more than there are bytes. */
static void test_huge_counts(void **state)
{
    static const uint64_t counts[] = {65537, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct gguf_text *text = gguf_llama();
        gguf_set_count(text, 8, counts[i]);
        gguf_refused(text, POSENC_ERROR_FORMAT, "tensor records");
        text = gguf_llama();
        gguf_set_count(text, 16, counts[i]);
        gguf_refused(text, POSENC_ERROR_FORMAT, "entry records");
        for (uint64_t type = 0; type < 13; type++) {
            text = gguf_llama();
            gguf_list(text, "any", type, counts[i]);
            gguf_refused(text, POSENC_ERROR_FORMAT, "beyond the end");
        }
        text = gguf_llama();
        gguf_key(text, "any", 8);
        gguf_number(text, counts[i], 8);
        gguf_refused(text, POSENC_ERROR_FORMAT, "beyond the end");
    }
    struct gguf_text *text = gguf_llama();
    gguf_set_count(text, 8, 2);
    gguf_refused(text, POSENC_ERROR_FORMAT, "GGUF: 0 bytes are too few for its tensor records");
}

static void test_malformed(void **state)
{
    (void)state;
    gguf_refused(gguf_new(0, 1), POSENC_ERROR_FORMAT, "GGUF: version 1: must be 2 or 3");
    gguf_refused(gguf_new(1, 4), POSENC_ERROR_FORMAT, "GGUF: version 4");
    struct gguf_text *text = gguf_llama();
    gguf_u32(text, "llama.block_count", 2);
    gguf_refused(text, POSENC_ERROR_FORMAT, "\"llama.block_count\" occurs twice");
    text = gguf_llama();
    gguf_key(text, "any", 13);
    gguf_number(text, 0, 8);
    gguf_refused(text, POSENC_ERROR_FORMAT, "GGUF: entry 4 has a value of unknown type");
    text = gguf_llama();
    gguf_u32(text, "", 1);
    gguf_refused(text, POSENC_ERROR_FORMAT, "a name of no or more than 65535 bytes");
    text = gguf_llama();
    gguf_tensor(text, "one", 1, 0, 0);
    gguf_tensor(text, "one", 1, 0, 0);
    gguf_refused(text, POSENC_ERROR_FORMAT, "the tensor \"one\" occurs twice");
    static const uint32_t alignments[] = {0, 3, 1U << 21};
    for (size_t i = 0; i < 3; i++) {
        text = gguf_llama();
        gguf_u32(text, "general.alignment", alignments[i]);
        gguf_refused(text, POSENC_ERROR_FORMAT, "general.alignment");
    }
    text = gguf_llama();
    gguf_word(text, "general.alignment", "32");
    gguf_refused(text, POSENC_ERROR_FORMAT, "general.alignment");
    text = gguf_llama();
    gguf_set_count(text, 8, 1);
    gguf_string(text, "wide");
    gguf_number(text, 5, 4);
    gguf_number(text, 0, 8);
    gguf_refused(text, POSENC_ERROR_FORMAT, "GGUF: tensor 0 has more than 4 dimensions");
}

/* Arrays in arrays are skipped, up to the documented depth. */
static void test_depth(void **state)
{
    (void)state;
    for (int depth = 60; depth < 70; depth++) {
        struct gguf_text *text = gguf_llama();
        gguf_list(text, "any", 9, 1);
        for (int i = 0; i < depth; i++) {
            gguf_number(text, 9, 4);
            gguf_number(text, 1, 8);
        }
        gguf_number(text, 0, 4);
        gguf_number(text, 1, 8);
        gguf_number(text, 7, 1);
        if (depth + 2 > POSENC_CONTRACT_MAX_DEPTH) {
            gguf_refused(text, POSENC_ERROR_FORMAT, "nested too deeply");
        } else {
            posenc_contract_free(gguf_contract(text));
        }
    }
}

/* As many entries and tensors as are allowed, in an order that sorting has to turn around. */
static void test_many(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        int count = POSENC_CONTRACT_MAX_ENTRIES - 4 + more;
        struct gguf_text *text = gguf_llama();
        char key[16];
        for (int i = count; i > 0; i--) {
            snprintf(key, sizeof key, "k%05d", i);
            gguf_key(text, key, 0);
            gguf_number(text, 1, 1);
        }
        assert_int_equal(gguf_count(text, 16), count + 4);
        if (more) {
            gguf_refused(text, POSENC_ERROR_FORMAT, "more than 65536 entry records");
        } else {
            posenc_contract_free(gguf_contract(text));
        }
    }
}

static void put_file(const char *path, const struct gguf_text *text, size_t length)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text->bytes, length), (ssize_t)length);
    assert_int_equal(close(file), 0);
}

/* A file is mapped by the size that it has; cut anywhere it is refused. */
static void test_files(void **state)
{
    char path[] = "gguf-XXXXXX";
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    struct gguf_text *text = rich(0);
    for (size_t length = 0; length < text->length; length += 13) {
        posenc_contract *contract = NULL;
        posenc_error error;
        put_file(path, text, length);
        errno = 77;
        int32_t status = posenc_contract_open(&contract, path, &error);
        assert_int_equal(errno, 77);
        assert_true(status == POSENC_ERROR_FORMAT || status == POSENC_ERROR_MODEL);
        assert_null(contract);
    }
    put_file(path, text, text->length);
    posenc_contract *contract = NULL;
    assert_int_equal(posenc_contract_open(&contract, path, NULL), POSENC_OK);
    assert_string_equal(contract_facts(contract).source, "gguf");
    posenc_contract_free(contract);
    unlink(path);
    free(text);
}

/* The allocation that fails, counted from 0; -1: none. */
static int64_t countdown = -1;

static int may_allocate(void)
{
    return countdown < 0 || countdown-- > 0;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

/* Whichever allocation fails, that is what is said. */
static void test_no_memory(void **state)
{
    struct gguf_text *text = rich(0);
    posenc_contract *contract = NULL;
    int32_t status = POSENC_ERROR_MEMORY;
    int64_t failures = 0;
    (void)state;
    for (; status != POSENC_OK && failures < 100; failures++) {
        posenc_error error;
        countdown = failures;
        status = posenc_contract_parse(&contract, (const char *)text->bytes, text->length, &error);
        countdown = -1;
        assert_true(status == POSENC_OK || status == POSENC_ERROR_MEMORY);
        assert_true(status == POSENC_OK || strstr(error.text, "memory"));
    }
    assert_int_equal(status, POSENC_OK);
    assert_in_range(failures, 8, 99); /* contract, entries, tensors, layers, counts, values, ... */
    posenc_contract_free(contract);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),  cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_huge_counts), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_depth),      cmocka_unit_test(test_many),
        cmocka_unit_test(test_files),       cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
