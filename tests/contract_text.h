/* SPDX-License-Identifier: MIT */
/* Small configs for tests of the reader, and reading them. */
#ifndef POSENC_CONTRACT_TEXT_H
#define POSENC_CONTRACT_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <posenc/contract.h>
#include <string.h>

/* Members of a llama of 2 layers whose heads have 128 channels; more members may follow. */
#define HEADS "\"num_attention_heads\": 32"
#define SHAPE HEADS ", \"hidden_size\": 4096, \"num_hidden_layers\": 2"
#define LLAMA "\"model_type\": \"llama\", " SHAPE

static inline int32_t contract_try(posenc_contract **contract, const char *json,
                                   posenc_error *error)
{
    *contract = NULL;
    memset(error, 0, sizeof *error);
    return posenc_contract_parse(contract, json, strlen(json), error);
}

/* A contract that must be accepted. */
static inline posenc_contract *contract_of(const char *json)
{
    posenc_contract *contract;
    posenc_error error;
    if (contract_try(&contract, json, &error) != POSENC_OK) {
        print_error("%s\nrefused: %s\n", json, error.text);
        fail();
    }
    return contract;
}

static inline posenc_contract_facts contract_facts(const posenc_contract *contract)
{
    posenc_contract_facts facts = {.struct_size = sizeof facts};
    assert_int_equal(posenc_contract_get_facts(contract, &facts, NULL), POSENC_OK);
    return facts;
}

static inline posenc_contract_set contract_set(const posenc_contract *contract, int32_t index)
{
    posenc_contract_set set = {.struct_size = sizeof set};
    assert_int_equal(posenc_contract_get_set(contract, index, &set, NULL), POSENC_OK);
    return set;
}

static inline posenc_rope_params contract_params(const posenc_contract *contract, int32_t index)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    assert_int_equal(posenc_contract_plan_params(contract, index, &params, NULL), POSENC_OK);
    return params;
}

/* The text of the warning whose key is or ends in `key`; NULL if there is none. */
static inline const char *contract_warning(const posenc_contract *contract, const char *key)
{
    static posenc_contract_note note;
    note.struct_size = sizeof note;
    for (int32_t i = 0; i < contract_facts(contract).num_warnings; i++) {
        assert_int_equal(posenc_contract_get_warning(contract, i, &note, NULL), POSENC_OK);
        size_t all = strlen(note.key), end = strlen(key);
        if (all >= end && strcmp(note.key + all - end, key) == 0) {
            return note.text;
        }
    }
    return NULL;
}

/* The value that was assumed for `key`; NULL if it was not. */
static inline const char *contract_assumed(const posenc_contract *contract, const char *key)
{
    static posenc_contract_note note;
    note.struct_size = sizeof note;
    for (int32_t i = 0; i < contract_facts(contract).num_assumed; i++) {
        assert_int_equal(posenc_contract_get_assumed(contract, i, &note, NULL), POSENC_OK);
        if (strcmp(note.key, key) == 0) {
            return note.value;
        }
    }
    return NULL;
}

#endif
