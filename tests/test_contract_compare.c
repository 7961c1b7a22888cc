/* SPDX-License-Identifier: MIT */
/* Comparing contracts: what is listed, and that no difference means equal fingerprints. */
#include "contract_text.h"

#include <stdio.h>

enum { ROOM = 64 };

struct compared {
    posenc_contract_difference list[ROOM];
    size_t count;
    int equal; /* the fingerprints */
};

/* Compares both ways round: the lists mirror each other, the fingerprints agree with them. */
static struct compared compare(const char *a_json, const char *b_json)
{
    struct compared c, back;
    uint8_t x[16], y[16];
    posenc_contract *a = contract_of(a_json), *b = contract_of(b_json);
    assert_int_equal(posenc_contract_compare(a, b, c.list, ROOM, &c.count, NULL), POSENC_OK);
    assert_int_equal(posenc_contract_compare(b, a, back.list, ROOM, &back.count, NULL), POSENC_OK);
    assert_int_equal(posenc_contract_fingerprint(a, x, NULL), POSENC_OK);
    assert_int_equal(posenc_contract_fingerprint(b, y, NULL), POSENC_OK);
    posenc_contract_free(a);
    posenc_contract_free(b);
    assert_int_equal(c.count, back.count);
    c.equal = memcmp(x, y, sizeof x) == 0;
    assert_int_equal(c.equal, c.count == 0);
    return c;
}

static void same(const char *a, const char *b)
{
    struct compared c = compare(a, b);
    if (c.count)
        fail_msg("%s: %s, %s", c.list[0].key, c.list[0].a, c.list[0].b);
}

/* Exactly `count` differences, the given one among them. */
static void differs(const char *a_json, const char *b_json, size_t count, const char *key,
                    const char *a, const char *b)
{
    struct compared c = compare(a_json, b_json);
    int found = 0;
    for (size_t i = 0; i < c.count; i++)
        found |= strcmp(c.list[i].key, key) == 0 && strcmp(c.list[i].a, a) == 0 &&
                 strcmp(c.list[i].b, b) == 0;
    if (found && c.count == count)
        return;
    for (size_t i = 0; i < c.count; i++)
        print_error("%s: %s | %s\n", c.list[i].key, c.list[i].a, c.list[i].b);
    fail_msg("%zu differences, not %zu with %s: %s | %s", c.count, count, key, a, b);
}

#define WITH(members) "{" LLAMA ", " members "}"

static void names_and_limits_do_not_count(void **state)
{
    (void)state;
    same(WITH("\"rope_theta\": 10000"), WITH("\"rope_theta\": 10000.0"));
    same(WITH("\"max_position_embeddings\": 4096"), WITH("\"max_position_embeddings\": 8192"));
    same("{" LLAMA "}", WITH("\"rope_theta\": 10000"));
    same("{\"model_type\": \"llama\", " SHAPE "}", "{\"model_type\": \"mistral\", " SHAPE
                                                   ", \"sliding_window\": null, "
                                                   "\"num_key_value_heads\": 32}");
}

static void facts_of_the_model(void **state)
{
    (void)state;
    differs("{" LLAMA "}", WITH("\"num_key_value_heads\": 8"), 2, "num_kv_heads", "32", "8");
    differs("{" LLAMA "}", WITH("\"num_key_value_heads\": 8"), 2, "rope[main].num_kv_heads", "32",
            "8");
    differs("{\"model_type\": \"llama\", " HEADS ", \"hidden_size\": 4096, "
            "\"num_hidden_layers\": 3}",
            "{" LLAMA "}", 1, "num_layers", "3", "2");
    differs("{\"model_type\": \"mistral\", " SHAPE ", \"sliding_window\": 4096}",
            "{\"model_type\": \"mistral\", " SHAPE ", \"sliding_window\": 1024}", 1,
            "sliding_window", "4096", "1024");
}

static void facts_of_a_set(void **state)
{
    (void)state;
    differs("{" LLAMA "}", WITH("\"rope_theta\": 500000"), 1, "rope[main].theta", "10000",
            "500000");
    const char *linear = WITH("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}");
    differs("{" LLAMA "}", linear, 2, "rope[main].rope_type", "default", "linear");
    differs("{" LLAMA "}", linear, 2, "rope[main].factor", "none", "4");
    differs(linear, WITH("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}"), 1,
            "rope[main].factor", "4", "2");
    /* The rows are the same, however they are asked for. */
    same("{" LLAMA "}", WITH("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 1}"));
}

#define YARN(more) \
    WITH("\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, " \
         "\"original_max_position_embeddings\": 4096" more "}")

static void effective_values_count(void **state)
{
    (void)state;
    differs(YARN(""), YARN(", \"attention_factor\": 1.5"), 1, "rope[main].attention_factor",
            "1.13862944", "1.5");
    differs(YARN(""), YARN(", \"beta_fast\": 64"), 1, "rope[main].beta_fast", "32", "64");
    same(YARN(""), YARN(", \"beta_fast\": 32"));
}

/* Where nine digits are not enough. */
static void close_values(void **state)
{
    (void)state;
    struct compared c = compare(WITH("\"rope_theta\": 10000"),
                                WITH("\"rope_theta\": 10000.000000000002"));
    assert_int_equal(c.count, 1);
    assert_string_equal(c.list[0].a, "10000");
    assert_string_equal(c.list[0].b, "10000 (1.8189894e-12 more)");
}

static void layers(void **state)
{
    (void)state;
    const char *alike = "{\"model_type\": \"qwen2\", " SHAPE ", \"layer_types\": "
                        "[\"full_attention\", \"full_attention\"]}";
    const char *mixed = "{\"model_type\": \"qwen2\", " SHAPE ", \"layer_types\": "
                        "[\"full_attention\", \"sliding_attention\"]}";
    const char *all = "{\"model_type\": \"qwen2\", " SHAPE ", \"layer_types\": "
                      "[\"sliding_attention\", \"sliding_attention\"]}";
    differs(alike, mixed, 1, "layer_sets[1]", "main, full", "main, sliding");
    differs(alike, all, 1, "layer_sets[0..1]", "main, full", "main, sliding");
    const char *chunked = "{\"model_type\": \"qwen2\", " SHAPE ", \"layer_types\": "
                          "[\"chunked_attention\", \"full_attention\"]}";
    differs(chunked, all, 2, "layer_sets[0]", "main, chunked", "main, sliding");
    differs(chunked, all, 2, "layer_sets[1]", "main, full", "main, sliding");
    const char *both = "{\"model_type\": \"smollm3\", " SHAPE ", \"no_rope_layers\": [1, 1]}";
    const char *one = "{\"model_type\": \"smollm3\", " SHAPE ", \"no_rope_layers\": [1, 0]}";
    differs(both, one, 1, "layer_sets[1]", "main, full", "not rotated, full");
}

static posenc_contract *stored(const char *name)
{
    char path[512];
    posenc_contract *contract = NULL;
    snprintf(path, sizeof path, "%s/configs/%s.json", POSENC_TEST_DATA, name);
    assert_int_equal(posenc_contract_open(&contract, path, NULL), POSENC_OK);
    return contract;
}

static void sets_of_one_model_alone(void **state)
{
    static const char *const wanted[][3] = {{"rope[main]", "default", "none"},
                                            {"rope[global]", "none", "linear"},
                                            {"rope[local]", "none", "default"}};
    posenc_contract *a = stored("llama-3-8b"), *b = stored("gemma3-12b");
    posenc_contract_difference list[ROOM];
    size_t count = 0;
    (void)state;
    assert_int_equal(posenc_contract_compare(a, b, list, ROOM, &count, NULL), POSENC_OK);
    assert_in_range(count, 3, ROOM);
    for (size_t w = 0; w < 3; w++) {
        int found = 0;
        for (size_t i = 0; i < count; i++)
            found += strcmp(list[i].key, wanted[w][0]) == 0 &&
                     strcmp(list[i].a, wanted[w][1]) == 0 && strcmp(list[i].b, wanted[w][2]) == 0;
        assert_int_equal(found, 1);
    }
    posenc_contract_free(a);
    posenc_contract_free(b);
}

static void capacity(void **state)
{
    (void)state;
    posenc_contract *a = contract_of("{" LLAMA "}");
    posenc_contract *b = contract_of(WITH("\"num_key_value_heads\": 8, \"rope_theta\": 5000"));
    posenc_contract_difference list[2];
    size_t count = 0;
    memset(list, 0x5a, sizeof list);
    assert_int_equal(posenc_contract_compare(a, b, NULL, 0, &count, NULL), POSENC_OK);
    assert_int_equal(count, 3);
    assert_int_equal(posenc_contract_compare(a, b, list, 1, &count, NULL), POSENC_OK);
    assert_int_equal(count, 3);
    assert_string_equal(list[0].key, "num_kv_heads");
    assert_int_equal(list[1].key[0], 0x5a);
    posenc_contract_free(a);
    posenc_contract_free(b);
}

static void refusals(void **state)
{
    (void)state;
    posenc_contract *a = contract_of("{" LLAMA "}");
    posenc_contract_difference list[1];
    uint8_t bytes[16];
    size_t count = 7;
    posenc_error error;
    assert_int_equal(posenc_contract_compare(NULL, a, list, 1, &count, &error),
                     POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, "a is NULL: must be given");
    assert_int_equal(posenc_contract_compare(a, NULL, list, 1, &count, &error),
                     POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, "b is NULL: must be given");
    assert_int_equal(posenc_contract_compare(a, a, NULL, 1, &count, &error),
                     POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, "differences is NULL: must be given");
    assert_int_equal(posenc_contract_compare(a, a, list, 1, NULL, &error), POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, "count is NULL: must be given");
    assert_int_equal(count, 7);
    assert_int_equal(posenc_contract_fingerprint(NULL, bytes, &error), POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, "contract is NULL: must be given");
    assert_int_equal(posenc_contract_fingerprint(a, NULL, &error), POSENC_ERROR_ARGUMENT);
    assert_string_equal(error.text, "fingerprint is NULL: must be given");
    posenc_contract_free(a);
}

/* Every stored model against every other: no two of the families here rotate alike unless the
 * comparison says so, and it never disagrees with the fingerprints. */
static void stored_models(void **state)
{
    static const char *const names[] = {
        "llama-1-7b", "llama-2-7b", "llama-3-8b", "llama-3.1-8b", "gemma3-12b", "gpt-oss-20b",
        "llama4-scout", "deepseek-v2-lite", "smollm3-3b", "gpt-j-6b"};
    enum { MODELS = sizeof names / sizeof names[0] };
    posenc_contract *contracts[MODELS];
    uint8_t prints[MODELS][16];
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        contracts[i] = stored(names[i]);
        assert_int_equal(posenc_contract_fingerprint(contracts[i], prints[i], NULL), POSENC_OK);
    }
    for (int i = 0; i < MODELS; i++)
        for (int k = 0; k < MODELS; k++) {
            size_t count;
            assert_int_equal(posenc_contract_compare(contracts[i], contracts[k], NULL, 0, &count,
                                                     NULL), POSENC_OK);
            int alike = i == k || (i < 2 && k < 2); /* they differ in the limit alone */
            if ((count == 0) != alike || (memcmp(prints[i], prints[k], 16) == 0) != alike)
                fail_msg("%s and %s: %zu differences", names[i], names[k], count);
        }
    for (int i = 0; i < MODELS; i++)
        posenc_contract_free(contracts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_limits_do_not_count),
        cmocka_unit_test(facts_of_the_model),
        cmocka_unit_test(facts_of_a_set),
        cmocka_unit_test(effective_values_count),
        cmocka_unit_test(close_values),
        cmocka_unit_test(layers),
        cmocka_unit_test(sets_of_one_model_alone),
        cmocka_unit_test(capacity),
        cmocka_unit_test(refusals),
        cmocka_unit_test(stored_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
