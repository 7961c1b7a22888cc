/* SPDX-License-Identifier: MIT */
/* Hostile text: size, depth, floods of keys, long names; other locales; no memory. */
#include "contract_text.h"

#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIMIT = POSENC_CONTRACT_MAX_BYTES };

static int32_t status_of(const char *json, size_t length, posenc_error *error)
{
    posenc_contract *contract = NULL;
    int32_t status = posenc_contract_parse(&contract, json, length, error);
    assert_int_equal(status == POSENC_OK, contract != NULL);
    posenc_contract_free(contract);
    return status;
}

static void test_size(void **state)
{
    static const char config[] = "{" LLAMA "}";
    posenc_error error;
    char *text = malloc(LIMIT + 1);
    assert_non_null(text);
    memset(text, ' ', LIMIT + 1);
    memcpy(text, config, sizeof config - 1);
    assert_int_equal(status_of(text, LIMIT, &error), POSENC_OK);
    assert_int_equal(status_of(text, LIMIT + 1, &error), POSENC_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "16777217"));
    memset(text, '[', LIMIT);
    assert_int_equal(status_of(text, LIMIT, &error), POSENC_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "64"));
    memset(text, '"', LIMIT);
    assert_int_equal(status_of(text, LIMIT, &error), POSENC_ERROR_FORMAT);
    memset(text, '\\', LIMIT);
    assert_int_equal(status_of(text, LIMIT, &error), POSENC_ERROR_FORMAT);
    memset(text, 0, LIMIT);
    assert_int_equal(status_of(text, LIMIT, &error), POSENC_ERROR_FORMAT);
    free(text);
    (void)state;
}

/* Files beyond the limit are given up after one byte more, whatever their length. */
static void test_long_files(void **state)
{
    char name[] = "contract.XXXXXX";
    posenc_contract *contract = NULL;
    posenc_error error;
    char *text = malloc(LIMIT);
    int file = mkstemp(name);
    assert_true(file >= 0 && text);
    memset(text, ' ', LIMIT);
    memcpy(text, "{" LLAMA "}", strlen("{" LLAMA "}"));
    assert_int_equal(write(file, text, LIMIT), LIMIT);
    free(text);
    assert_int_equal(posenc_contract_open(&contract, name, &error), POSENC_OK);
    posenc_contract_free(contract);
    contract = NULL;
    assert_int_equal(ftruncate(file, 17 << 20), 0);
    close(file);
    assert_int_equal(posenc_contract_open(&contract, name, &error), POSENC_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "16777216"));
    assert_int_equal(posenc_contract_open(&contract, "/dev/zero", &error), POSENC_ERROR_FORMAT);
    assert_int_equal(posenc_contract_open(&contract, "/dev/null", &error), POSENC_ERROR_FORMAT);
    assert_null(contract);
    unlink(name);
    (void)state;
}

/* {"x": [[...]]} of `depth` levels in all, besides a llama. */
static int32_t status_of_depth(int depth)
{
    char text[1024] = "{" LLAMA ", \"x\": ", *end = text + strlen(text);
    for (int i = 1; i < depth; i++) {
        *end++ = '[';
    }
    for (int i = 1; i < depth; i++) {
        *end++ = ']';
    }
    *end++ = '}';
    return status_of(text, (size_t)(end - text), NULL);
}

static void test_depth(void **state)
{
    static const char quoted[] =
        "{" LLAMA ", \"x\": \"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}";
    assert_int_equal(status_of_depth(64), POSENC_OK);
    assert_int_equal(status_of_depth(65), POSENC_ERROR_FORMAT);
    assert_int_equal(status_of(quoted, sizeof quoted - 1, NULL), POSENC_OK);
    (void)state;
}

static void test_truncated(void **state)
{
    static const char text[] = "{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\","
                               " \"factor\": 4.5e0, \"original_max_position_embeddings\": 4096}}";
    for (size_t length = 0; length < sizeof text - 1; length++) {
        char *copy = malloc(length + 1); /* its end is where a tool sees reads beyond it */
        memcpy(copy, text, length);
        copy = realloc(copy, length ? length : 1);
        assert_int_equal(status_of(copy, length, NULL), POSENC_ERROR_FORMAT);
        free(copy);
    }
    assert_int_equal(status_of(text, sizeof text - 1, NULL), POSENC_OK);
    assert_int_equal(status_of(text, sizeof text, NULL), POSENC_ERROR_FORMAT);
    (void)state;
}

/* 100 unknown keys: as many warnings as are kept, and the last says that there are more. */
static void test_flood(void **state)
{
    char text[4096] = "{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"default\"", *end = text;
    end += strlen(text);
    for (int i = 0; i < 100; i++) {
        end += sprintf(end, ", \"key%d\": %d", i, i);
    }
    strcpy(end, "}}");
    posenc_contract *contract = contract_of(text);
    posenc_contract_note note = {.struct_size = sizeof note};
    assert_int_equal(contract_facts(contract).num_warnings, 32);
    assert_int_equal(posenc_contract_get_warning(contract, 30, &note, NULL), POSENC_OK);
    assert_non_null(strstr(note.key, "rope_scaling.key"));
    assert_int_equal(posenc_contract_get_warning(contract, 31, &note, NULL), POSENC_OK);
    assert_non_null(strstr(note.text, "more warnings"));
    posenc_contract_free(contract);
    (void)state;
}

static void test_long_names(void **state)
{
    static char text[40000];
    posenc_error error;
    char *end = text + sprintf(text, "{\"model_type\": \"");
    memset(end, 'x', 30000);
    strcpy(end + 30000, "\", " SHAPE "}");
    assert_int_equal(status_of(text, strlen(text), &error), POSENC_ERROR_MODEL);
    assert_non_null(strstr(error.text, "model_type is \"xxx"));
    assert_non_null(strstr(error.text, "unknown"));
    end = text + sprintf(text, "{" LLAMA ", \"rope_scaling\": {\"");
    memset(end, 'k', 30000);
    strcpy(end + 30000, "\": 1}}");
    posenc_contract *contract = contract_of(text);
    posenc_contract_note note = {.struct_size = sizeof note};
    assert_int_equal(posenc_contract_get_warning(contract, 0, &note, NULL), POSENC_OK);
    assert_int_equal(strlen(note.key), 251);
    posenc_contract_free(contract);
    (void)state;
}

/* The source of a locale that has another decimal point. */
static void write_locale(const char *path, const char *code)
{
    static const char *const plain[] = {"CTYPE", "COLLATE", "MONETARY", "MESSAGES", "TIME"};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("comment_char %\nescape_char /\n", file);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        fprintf(file, "LC_%s\ncopy \"POSIX\"\nEND LC_%s\n", plain[i], plain[i]);
    }
    fprintf(file, "LC_NUMERIC\ndecimal_point \"<%s>\"\nthousands_sep \"\"\ngrouping -1\n"
                  "END LC_NUMERIC\n", code);
    assert_int_equal(fclose(file), 0);
}

/* Makes and sets it, where the tools for that are installed; a set locale needs no file. */
static int set_point(const char *code, const char *point)
{
    char folder[] = "locale.XXXXXX", path[64], command[200];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/source", folder);
    write_locale(path, code);
    /* It warns of the categories left out and exits with 1 although it made the locale. */
    snprintf(command, sizeof command,
             "cd %s && localedef -c -i ./source -f UTF-8 ./point.UTF-8 >/dev/null 2>&1", folder);
    int made = system(command);
    (void)made;
    char *whole = realpath(folder, NULL);
    assert_non_null(whole);
    setenv("LOCPATH", whole, 1);
    free(whole);
    setlocale(LC_ALL, "C");
    int set = setlocale(LC_ALL, "point.UTF-8") && strcmp(localeconv()->decimal_point, point) == 0;
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    return set;
}

/* jansson alone aborts on a decimal point of two bytes. */
static void test_locale(void **state)
{
    static const char comma[] = "{" LLAMA ", \"rope_theta\": 1234,5}";
    static const char low[] = "{" LLAMA ", \"rope_theta\": 0.5}";
    static const char *const points[2][2] = {{"U066B", "\xd9\xab"}, {"U002C", ","}};
    for (size_t i = 0; i < 2; i++) {
        if (!set_point(points[i][0], points[i][1])) {
            print_message("no such locale can be made: install the package locales\n");
            skip();
        }
        posenc_contract *contract = contract_of("{" LLAMA ", \"rope_theta\": 1234.5,"
                                                " \"partial_rotary_factor\": 0.5}");
        assert_true(contract_set(contract, 0).base == 1234.5);
        assert_int_equal(contract_set(contract, 0).rotary_dim, 64);
        posenc_contract_free(contract);
        posenc_error error;
        assert_int_equal(status_of(comma, sizeof comma - 1, &error), POSENC_ERROR_FORMAT);
        assert_int_equal(status_of(low, sizeof low - 1, &error), POSENC_ERROR_MODEL);
        assert_non_null(strstr(error.text, "0.5"));
        assert_string_equal(localeconv()->decimal_point, points[i][1]);
        setlocale(LC_ALL, "C");
    }
    (void)state;
}

/* The allocation that fails, counted from 0; -1: none. */
static int64_t countdown = -1;

static int may_allocate(void)
{
    return countdown < 0 || countdown-- > 0;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return may_allocate() ? __real_realloc(memory, size) : NULL;
}

static void *limited_malloc(size_t size)
{
    return may_allocate() ? malloc(size) : NULL;
}

static void test_no_memory_for_json(void **state)
{
    static const char text[] = "{\"model_type\": \"gpt_oss\", " SHAPE "}";
    int64_t n = 0;
    int32_t status;
    json_set_alloc_funcs(limited_malloc, free);
    do {
        posenc_error error = {0};
        countdown = n++;
        status = status_of(text, sizeof text - 1, &error);
        assert_true(status == POSENC_OK || error.code == status);
    } while (status != POSENC_OK && n < 10000);
    countdown = -1;
    json_set_alloc_funcs(malloc, free);
    assert_in_range(n, 10, 9999);
    (void)state;
}

/* How many allocations of our own a text needs; each that fails is told. */
static int64_t count_allocations(const char *text)
{
    int64_t failures = 0;
    for (countdown = 0; status_of(text, strlen(text), NULL) != POSENC_OK; countdown = ++failures) {
        posenc_error error;
        countdown = failures;
        assert_int_equal(status_of(text, strlen(text), &error), POSENC_ERROR_MEMORY);
        assert_non_null(strstr(error.text, "memory"));
    }
    countdown = -1;
    return failures;
}

static void test_no_memory_for_contract(void **state)
{
    int64_t failures = count_allocations("{\"model_type\": \"smollm3\", " SHAPE "}");
    int64_t axes = count_allocations("{\"model_type\": \"qwen2_vl\", " SHAPE "}");
    int64_t lists = count_allocations(
        "{" LLAMA ", \"head_dim\": 4, \"rope_scaling\": {\"type\": \"su\", \"factor\": 2,"
        " \"original_max_position_embeddings\": 8, \"short_factor\": [1, 1],"
        " \"long_factor\": [1, 2]}}");
    countdown = 0;
    posenc_contract *contract = NULL;
    assert_int_equal(posenc_contract_open(&contract, "/dev/zero", NULL), POSENC_ERROR_MEMORY);
    countdown = -1;
    assert_int_equal(failures, 4); /* contract, what it owns, layers, the plan of its set */
    assert_int_equal(axes, 4);     /* contract, layers, map, plan */
    assert_int_equal(lists, 6);    /* contract, layers, both lists, two plans */
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_long_files),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_no_memory_for_json),
        cmocka_unit_test(test_no_memory_for_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
