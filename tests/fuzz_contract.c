/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the reader of all kinds of files: any bytes are refused with a one-line reason or become a
 * contract whose every answer is consistent and whose every frequency set makes a plan. Built only
 * on request:
 *
 *     cmake -B build/fuzz -DCMAKE_C_COMPILER=clang -DPOSENC_BUILD_FUZZERS=ON
 *           -DPOSENC_SANITIZE=address,undefined,fuzzer-no-link
 *     cmake --build build/fuzz --target fuzz_contract
 *     build/fuzz/bin/fuzz_contract -dict=tests/data/contract.dict CORPUS tests/data/configs
 *           tests/data/gguf tests/data/params tests/data/genai
 */
#include <posenc/contract.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int holds)
{
    if (!holds) {
        abort();
    }
}

static void check_refusal(int32_t status, const posenc_error *error)
{
    need(error->code == status && error->text[0]);
    for (const char *c = error->text; *c; c++) {
        need(*c >= 0x20 && *c < 0x7f);
    }
}

static void check_sets(const posenc_contract *contract, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        posenc_contract_set set = {.struct_size = sizeof set};
        posenc_rope_params params;
        posenc_plan *plan = NULL;
        posenc_rope_params_init(&params);
        need(posenc_contract_get_set(contract, i, &set, NULL) == POSENC_OK && set.id);
        need(set.num_heads % set.num_kv_heads == 0);
        need(posenc_contract_plan_params(contract, i, &params, NULL) == POSENC_OK);
        /* Widths beyond those of models only cost time. */
        need(params.rotary_dim > 1024 || posenc_plan_create(&plan, &params, NULL) == POSENC_OK);
        posenc_plan_free(plan);
    }
}

static void check_layers(const posenc_contract *contract, const posenc_contract_facts *facts)
{
    for (int64_t i = 0; i < facts->num_layers; i++) {
        int32_t set = posenc_contract_layer_set(contract, i);
        need(set >= POSENC_LAYER_NO_ATTENTION && set < facts->num_sets);
        need(posenc_contract_layer_type(contract, i) != NULL);
    }
}

static void check_notes(const posenc_contract *contract, const posenc_contract_facts *facts)
{
    posenc_contract_note note = {.struct_size = sizeof note};
    for (int32_t i = 0; i < facts->num_assumed; i++) {
        need(posenc_contract_get_assumed(contract, i, &note, NULL) == POSENC_OK);
        need(note.key && note.value && note.text[0]);
    }
    for (int32_t i = 0; i < facts->num_warnings; i++) {
        need(posenc_contract_get_warning(contract, i, &note, NULL) == POSENC_OK);
        need(note.key && !note.value && note.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    posenc_contract *contract = NULL;
    posenc_error error = {0, ""};
    int32_t status = posenc_contract_parse(&contract, (const char *)data, size, &error);
    if (status != POSENC_OK) {
        need(!contract);
        check_refusal(status, &error);
        return 0;
    }
    posenc_contract_facts facts = {.struct_size = sizeof facts};
    need(posenc_contract_get_facts(contract, &facts, NULL) == POSENC_OK);
    need((facts.num_sets >= 1) == (facts.scheme == POSENC_SCHEME_ROPE));
    need(facts.num_heads >= 1 ? facts.softmax_scale > 0 : facts.num_heads == -1);
    check_sets(contract, facts.num_sets);
    check_layers(contract, &facts);
    check_notes(contract, &facts);
    posenc_contract_free(contract);
    return 0;
}
