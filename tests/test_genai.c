/* SPDX-License-Identifier: MIT */
/* genai_config.json, which has the shape of a model and not its frequencies; and folders. */
#include "contract_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DECODER                                                                                    \
    "\"head_size\": 128, \"hidden_size\": 3584, \"num_attention_heads\": 28,"                      \
    " \"num_hidden_layers\": 4, \"num_key_value_heads\": 4"
#define GENAI(type, decoder)                                                                       \
    "{\"model\": {\"type\": \"" type "\", \"context_length\": 4096, \"decoder\": {" decoder        \
    "}}, \"search\": {\"top_k\": 1}}"

static void test_shape(void **state)
{
    (void)state;
    posenc_contract *contract = contract_of(GENAI("qwen2", DECODER));
    posenc_contract_facts facts = contract_facts(contract);
    assert_string_equal(facts.source, "genai_config.json");
    assert_string_equal(facts.model_type, "qwen2");
    assert_int_equal(facts.num_heads, 28);
    assert_int_equal(facts.num_kv_heads, 4);
    assert_int_equal(facts.head_dim, 128);
    assert_int_equal(facts.num_layers, 4);
    assert_int_equal(facts.max_position, 4096);
    assert_string_equal(facts.max_position_key, "context_length");
    assert_int_equal(contract_set(contract, 0).layout, POSENC_SPLIT_HALF);
    assert_string_equal(contract_assumed(contract, "rope_theta"), "10000");
    assert_non_null(strstr(contract_warning(contract, "model.type"), "stand in the graph"));
    posenc_contract_free(contract);

    contract = contract_of(GENAI("gptoss", DECODER));
    assert_string_equal(contract_facts(contract).model_type, "gpt_oss");
    posenc_contract_free(contract);
}

static void test_window(void **state)
{
    (void)state;
    posenc_contract *contract = contract_of(
        GENAI("gemma3_text", DECODER ", \"sliding_window\": {\"window_size\": 512, \"layers\":"
                                     " [0, 1, 2]}"));
    assert_int_equal(contract_facts(contract).sliding_window, 512);
    assert_string_equal(posenc_contract_layer_type(contract, 2), "sliding");
    assert_string_equal(posenc_contract_layer_type(contract, 3), "full");
    posenc_contract_free(contract);
}

static void test_refusals(void **state)
{
    static const char *const pairs[][2] = {
        {"{\"model\": {\"decoder\": {" DECODER "}}}", "model.type is missing"},
        {GENAI("whatever", DECODER), "model_type is \"whatever\": unknown"},
        {GENAI("qwen2", "\"num_hidden_layers\": 4"), "num_attention_heads is missing"},
        {"{\"model\": {\"type\": \"phi3\", \"context_length\": 131072, \"decoder\": {" DECODER
         "}}}",
         "model.context_length is 131072: phi3 reaches it by LongRoPE"},
        {GENAI("gemma3_text", DECODER ", \"sliding_window\": {\"layers\": [4]}"),
         "model.decoder.sliding_window.layers is a list"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        posenc_contract *contract;
        posenc_error error;
        assert_int_equal(contract_try(&contract, pairs[i][0], &error), POSENC_ERROR_MODEL);
        if (!strstr(error.text, pairs[i][1])) {
            print_error("\"%s\" lacks \"%s\"\n", error.text, pairs[i][1]);
            fail();
        }
    }
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(file), 0);
}

static void assert_source(const char *folder, const char *source)
{
    posenc_contract *contract = NULL;
    assert_int_equal(posenc_contract_open(&contract, folder, NULL), POSENC_OK);
    assert_string_equal(contract_facts(contract).source, source);
    posenc_contract_free(contract);
}

/* Of a folder the first of the three counts; a file's content counts, not its name. */
static void test_folder(void **state)
{
    char folder[] = "genai-XXXXXX", path[128];
    static const char *const names[] = {"config.json", "params.json", "genai_config.json"};
    static const char params[] =
        "{\"dim\": 64, \"n_layers\": 1, \"n_heads\": 1, \"hidden_dim\": 1}";
    (void)state;
    assert_non_null(mkdtemp(folder));
    posenc_contract *contract = NULL;
    posenc_error error;
    assert_int_equal(posenc_contract_open(&contract, folder, &error), POSENC_ERROR_IO);
    assert_non_null(strstr(error.text, "has no config.json, params.json or genai_config.json"));
    put(folder, names[2], GENAI("qwen2", DECODER));
    assert_source(folder, names[2]);
    put(folder, names[1], params);
    assert_source(folder, names[1]);
    put(folder, names[0], "{" LLAMA "}");
    assert_source(folder, names[0]);
    put(folder, names[0], params);
    assert_source(folder, names[1]);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
