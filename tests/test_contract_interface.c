/* SPDX-License-Identifier: MIT */
/* The functions of contract.h: wrong arguments, growing structs, files, errno, threads. */
#include "contract_text.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG "{" LLAMA ", \"unknown\": 1, \"rope_scaling\": {\"new_key\": 1}}"

static void assert_refused(int32_t status, const posenc_error *error, int32_t wanted,
                           const char *word)
{
    if (status != wanted || error->code != wanted || !strstr(error->text, word)) {
        print_error("status %d, code %d: %s\n", (int)status, (int)error->code, error->text);
        fail();
    }
}

static void test_null(void **state)
{
    enum { BAD = POSENC_ERROR_ARGUMENT };
    posenc_contract *contract = contract_of(CONFIG), *const untouched = contract, *none = contract;
    posenc_contract_facts facts = {.struct_size = sizeof facts};
    posenc_contract_set set = {.struct_size = sizeof set};
    posenc_contract_note note = {.struct_size = sizeof note};
    posenc_rope_params params;
    posenc_error e;
    posenc_rope_params_init(&params);
    assert_refused(posenc_contract_open(NULL, "x", &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_open(&none, NULL, &e), &e, BAD, "path is NULL");
    assert_refused(posenc_contract_parse(NULL, "{}", 2, &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_parse(&none, NULL, 2, &e), &e, BAD, "data is NULL");
    assert_refused(posenc_contract_get_facts(NULL, &facts, &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_get_facts(contract, NULL, &e), &e, BAD, "facts is NULL");
    assert_refused(posenc_contract_get_set(NULL, 0, &set, &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_get_set(contract, 0, NULL, &e), &e, BAD, "set is NULL");
    assert_refused(posenc_contract_plan_params(NULL, 0, &params, &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_plan_params(contract, 0, NULL, &e), &e, BAD, "params is NULL");
    assert_refused(posenc_contract_get_assumed(NULL, 0, &note, &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_get_assumed(contract, 0, NULL, &e), &e, BAD, "note is NULL");
    assert_refused(posenc_contract_get_warning(NULL, 0, &note, &e), &e, BAD, "contract is NULL");
    assert_refused(posenc_contract_get_warning(contract, 0, NULL, &e), &e, BAD, "note is NULL");
    assert_ptr_equal(none, untouched);
    assert_int_equal(posenc_contract_layer_set(NULL, 0), POSENC_LAYER_INVALID);
    assert_null(posenc_contract_layer_type(NULL, 0));
    posenc_contract_free(NULL);
    posenc_contract_free(contract);
    (void)state;
}

static void test_index(void **state)
{
    posenc_contract *contract = contract_of(CONFIG);
    posenc_contract_facts facts = contract_facts(contract);
    const int32_t wrong[] = {-1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < 6; i++) {
        posenc_contract_set set = {.struct_size = sizeof set};
        posenc_contract_note note = {.struct_size = sizeof note};
        posenc_rope_params params;
        posenc_error e;
        posenc_rope_params_init(&params);
        int32_t n = i < 3 ? wrong[i] : 0, far = i >= 3;
        assert_refused(posenc_contract_get_set(contract, far ? facts.num_sets : n, &set, &e), &e,
                       POSENC_ERROR_ARGUMENT, "index is");
        assert_refused(
            posenc_contract_plan_params(contract, far ? facts.num_sets : n, &params, &e), &e,
            POSENC_ERROR_ARGUMENT, "index is");
        assert_refused(
            posenc_contract_get_assumed(contract, far ? facts.num_assumed : n, &note, &e), &e,
            POSENC_ERROR_ARGUMENT, "index is");
        assert_refused(
            posenc_contract_get_warning(contract, far ? facts.num_warnings : n, &note, &e), &e,
            POSENC_ERROR_ARGUMENT, "index is");
    }
    assert_int_equal(posenc_contract_layer_set(contract, -1), POSENC_LAYER_INVALID);
    assert_int_equal(posenc_contract_layer_set(contract, 2), POSENC_LAYER_INVALID);
    assert_int_equal(posenc_contract_layer_set(contract, INT64_MAX), POSENC_LAYER_INVALID);
    assert_null(posenc_contract_layer_type(contract, 2));
    posenc_contract_free(contract);
    (void)state;
}

/* A struct of `room` bytes in a sea of 0xa5; what lies behind it must stay. */
typedef int32_t give(const posenc_contract *contract, void *to, posenc_error *error);

static int32_t give_facts(const posenc_contract *contract, void *to, posenc_error *error)
{
    return posenc_contract_get_facts(contract, to, error);
}

static int32_t give_set(const posenc_contract *contract, void *to, posenc_error *error)
{
    return posenc_contract_get_set(contract, 0, to, error);
}

static int32_t give_params(const posenc_contract *contract, void *to, posenc_error *error)
{
    return posenc_contract_plan_params(contract, 0, to, error);
}

static int32_t give_assumed(const posenc_contract *contract, void *to, posenc_error *error)
{
    return posenc_contract_get_assumed(contract, 0, to, error);
}

static int32_t give_warning(const posenc_contract *contract, void *to, posenc_error *error)
{
    return posenc_contract_get_warning(contract, 0, to, error);
}

static void check_sizes(give *function, size_t size)
{
    posenc_contract *contract = contract_of(CONFIG);
    uint64_t memory[64], before[64];
    uint32_t rooms[] = {0, 1, (uint32_t)size - 1, 65537, UINT32_MAX, (uint32_t)size,
                        (uint32_t)size + 8};
    for (size_t i = 0; i < 7; i++) {
        posenc_error error;
        memset(memory, 0xa5, sizeof memory);
        memcpy(memory, &rooms[i], sizeof rooms[i]);
        memcpy(before, memory, sizeof memory);
        int32_t status = function(contract, memory, &error);
        if (i < 5) {
            assert_refused(status, &error, POSENC_ERROR_ARGUMENT, "struct_size is");
            assert_memory_equal(memory, before, sizeof memory);
            continue;
        }
        assert_int_equal(status, POSENC_OK);
        assert_memory_equal(memory, &rooms[i], sizeof rooms[i]);
        for (size_t b = size; b < sizeof memory; b++) {
            assert_int_equal(((unsigned char *)memory)[b], b < rooms[i] ? 0 : 0xa5);
        }
    }
    posenc_contract_free(contract);
}

static void test_sizes(void **state)
{
    check_sizes(give_facts, sizeof(posenc_contract_facts));
    check_sizes(give_set, sizeof(posenc_contract_set));
    check_sizes(give_params, sizeof(posenc_rope_params));
    check_sizes(give_assumed, sizeof(posenc_contract_note));
    check_sizes(give_warning, sizeof(posenc_contract_note));
    (void)state;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_files(void **state)
{
    char folder[] = "contract.XXXXXX", path[64];
    posenc_contract *contract = NULL;
    posenc_error error;
    assert_non_null(mkdtemp(folder));
    assert_refused(posenc_contract_open(&contract, folder, &error), &error, POSENC_ERROR_IO,
                   "no config.json");
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_refused(posenc_contract_open(&contract, path, &error), &error, POSENC_ERROR_IO,
                   "no such file");
    assert_non_null(strstr(error.text, path));
    assert_refused(posenc_contract_open(&contract, "", &error), &error, POSENC_ERROR_IO, "no such");
    write_file(path, CONFIG);
    assert_int_equal(posenc_contract_open(&contract, folder, &error), POSENC_OK);
    posenc_contract_free(contract);
    contract = NULL;
    assert_int_equal(posenc_contract_open(&contract, path, &error), POSENC_OK);
    posenc_contract_free(contract);
    contract = NULL;
    write_file(path, "");
    assert_refused(posenc_contract_open(&contract, path, &error), &error, POSENC_ERROR_FORMAT,
                   "not JSON");
    strcat(path, "/x");
    assert_refused(posenc_contract_open(&contract, path, &error), &error, POSENC_ERROR_IO,
                   "not a folder");
    path[strlen(path) - 2] = '\0';
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(posenc_contract_open(&contract, folder, &error), &error, POSENC_ERROR_IO,
                   folder);
    assert_null(contract);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    (void)state;
}

static void test_errno(void **state)
{
    posenc_contract *contract = NULL;
    errno = 4711;
    assert_int_equal(posenc_contract_open(&contract, "none/such", NULL), POSENC_ERROR_IO);
    assert_int_equal(errno, 4711);
    assert_int_equal(posenc_contract_parse(&contract, "{\"x\": 1e999}", 12, NULL),
                     POSENC_ERROR_FORMAT);
    assert_int_equal(errno, 4711);
    contract = contract_of("{" LLAMA ", \"underflows\": 1e-400}");
    assert_int_equal(errno, 4711);
    posenc_contract_free(contract);
    (void)state;
}

static void *read_often(void *text)
{
    for (int i = 0; i < 200; i++) {
        posenc_contract *contract = NULL;
        if (posenc_contract_parse(&contract, text, strlen(text), NULL) ||
            posenc_contract_layer_set(contract, 1) != 0) {
            return text;
        }
        posenc_contract_free(contract);
    }
    return NULL;
}

static void test_threads(void **state)
{
    static char text[] = CONFIG;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, text), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),  cmocka_unit_test(test_index), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_files), cmocka_unit_test(test_errno), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
