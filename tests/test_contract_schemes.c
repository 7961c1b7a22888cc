/* SPDX-License-Identifier: MIT */
/* Which scheme a file asks for, and the facts of those that are not rotations. */
#include "contract_text.h"

#include <stdio.h>

#define MODEL(type) "{\"model_type\": \"" type "\", " SHAPE ", \"max_position_embeddings\": 512"

static void test_choice(void **state)
{
    static const struct {
        const char *json;
        int32_t scheme;
        const char *noted; /* a warning's key, or one that was assumed */
    } cases[] = {
        {MODEL("bert") "}", POSENC_SCHEME_LEARNED, NULL},
        {MODEL("bert") ", \"position_embedding_type\": \"absolute\"}", POSENC_SCHEME_LEARNED,
         NULL},
        {MODEL("bert") ", \"position_embedding_type\": \"alibi\"}", POSENC_SCHEME_ALIBI, NULL},
        {MODEL("esm") ", \"position_embedding_type\": \"rotary\"}", POSENC_SCHEME_ROPE, NULL},
        {MODEL("granitemoehybrid") ", \"position_embedding_type\": \"rope\"}", POSENC_SCHEME_ROPE,
         NULL},
        {MODEL("granitemoehybrid") "}", POSENC_SCHEME_NONE, "position_embedding_type"},
        {MODEL("granitemoehybrid") ", \"position_embedding_type\": \"nope\"}", POSENC_SCHEME_NONE,
         NULL},
        {MODEL("falcon") "}", POSENC_SCHEME_ROPE, NULL},
        {MODEL("falcon") ", \"alibi\": false}", POSENC_SCHEME_ROPE, NULL},
        {MODEL("falcon") ", \"alibi\": true}", POSENC_SCHEME_ALIBI, NULL},
        {MODEL("baichuan") "}", POSENC_SCHEME_ROPE, "scheme"},
        {"{\"model_type\": \"baichuan\", \"num_attention_heads\": 40, \"hidden_size\": 5120,"
         " \"num_hidden_layers\": 2}",
         POSENC_SCHEME_ALIBI, "scheme"},
        {MODEL("mpt") ", \"attn_config\": {\"alibi\": true}}", POSENC_SCHEME_ALIBI, NULL},
        {MODEL("mpt") ", \"attn_config\": {\"alibi\": true}, \"learned_pos_emb\": true}",
         POSENC_SCHEME_ALIBI, "learned_pos_emb"},
        {MODEL("mpt") ", \"attn_config\": {\"alibi\": false}}", POSENC_SCHEME_LEARNED, NULL},
        {MODEL("mpt") ", \"learned_pos_emb\": false}", POSENC_SCHEME_NONE, NULL},
        {MODEL("deberta-v2") ", \"relative_attention\": true}", POSENC_SCHEME_DEBERTA, NULL},
        {MODEL("deberta-v2") "}", POSENC_SCHEME_LEARNED, NULL},
        {MODEL("deberta-v2") ", \"position_biased_input\": false}", POSENC_SCHEME_NONE, NULL},
        {"{\"model_type\": \"mamba\", \"num_hidden_layers\": 2}", POSENC_SCHEME_NONE, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        posenc_contract_facts facts = contract_facts(contract);
        if (facts.scheme != cases[i].scheme) {
            print_error("%s: scheme %d\n", cases[i].json, (int)facts.scheme);
            fail();
        }
        assert_true(!cases[i].noted || contract_warning(contract, cases[i].noted) ||
                    contract_assumed(contract, cases[i].noted));
        assert_int_equal(facts.num_sets > 0, facts.scheme == POSENC_SCHEME_ROPE);
        posenc_contract_free(contract);
    }
    (void)state;
}

/* No heads, no softmax, no positions. */
static void test_recurrent(void **state)
{
    posenc_contract *contract = contract_of("{\"model_type\": \"mamba\", \"n_layer\": 3}");
    posenc_contract_facts facts = contract_facts(contract);
    assert_int_equal(facts.num_heads, -1);
    assert_int_equal(facts.num_layers, 3);
    assert_null(facts.softmax_rule);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(posenc_contract_layer_set(contract, i), POSENC_LAYER_NO_ATTENTION);
        assert_string_equal(posenc_contract_layer_type(contract, i), "linear");
    }
    posenc_contract_free(contract);
    (void)state;
}

/* Positions start behind the padding id; other tables have rows in reserve. */
static void test_tables(void **state)
{
    static const struct {
        const char *json;
        int64_t rows, offset;
    } cases[] = {
        {MODEL("bert") "}", 512, 0},
        {MODEL("roberta") "}", 512, 2},
        {MODEL("roberta") ", \"pad_token_id\": 0}", 512, 1},
        {MODEL("opt") "}", 514, 2},
        {MODEL("mbart") "}", 514, 2},
        {MODEL("blenderbot") "}", 512, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        posenc_contract *contract = contract_of(cases[i].json);
        posenc_contract_learned learned = {.struct_size = sizeof learned};
        assert_int_equal(posenc_contract_get_learned(contract, &learned, NULL), POSENC_OK);
        assert_int_equal(learned.table_rows, cases[i].rows);
        assert_int_equal(learned.position_offset, cases[i].offset);
        assert_int_equal(learned.usable_positions, cases[i].rows - cases[i].offset);
        assert_int_equal(learned.dim, 4096);
        assert_null(learned.applies_to);
        posenc_contract_free(contract);
    }
    (void)state;
}

static void test_two_halves(void **state)
{
    posenc_contract *contract = contract_of(
        "{\"model_type\": \"whisper\", \"encoder_attention_heads\": 8, \"d_model\": 512,"
        " \"encoder_layers\": 6, \"decoder_attention_heads\": 4}");
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    assert_int_equal(posenc_contract_get_learned(contract, &learned, NULL), POSENC_OK);
    assert_int_equal(posenc_contract_get_sinusoidal(contract, &waves, NULL), POSENC_OK);
    assert_string_equal(learned.applies_to, "decoder");
    assert_string_equal(waves.applies_to, "encoder");
    assert_int_equal(learned.table_rows, 448);
    assert_string_equal(contract_assumed(contract, "max_target_positions"), "448");
    assert_int_equal(waves.rows, -1);
    assert_non_null(contract_warning(contract, "decoder_attention_heads"));
    posenc_contract_free(contract);
    (void)state;
}

/* Both at once; a hybrid names its attention layers by letters. */
static void test_both(void **state)
{
    posenc_contract *contract = contract_of(MODEL("mpnet") "}");
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    assert_int_equal(contract_facts(contract).scheme, POSENC_SCHEME_LEARNED);
    assert_int_equal(posenc_contract_get_t5(contract, &t5, NULL), POSENC_OK);
    assert_int_equal(posenc_contract_get_learned(contract, &learned, NULL), POSENC_OK);
    assert_true(t5.encoder && !t5.decoder);
    assert_int_equal(learned.position_offset, 2);
    posenc_contract_free(contract);
    contract = contract_of(MODEL("nemotron_h") ", \"hybrid_override_pattern\": \"M*\"}");
    assert_int_equal(contract_facts(contract).scheme, POSENC_SCHEME_NONE);
    assert_int_equal(posenc_contract_layer_set(contract, 0), POSENC_LAYER_NO_ATTENTION);
    assert_int_equal(posenc_contract_layer_set(contract, 1), POSENC_LAYER_NOT_ROTATED);
    posenc_contract_free(contract);
    (void)state;
}

static void test_relative(void **state)
{
    posenc_contract *contract =
        contract_of(MODEL("umt5") ", \"is_encoder_decoder\": false, \"is_decoder\": true,"
                                  " \"relative_attention_max_distance\": 800}");
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    assert_int_equal(posenc_contract_get_t5(contract, &t5, NULL), POSENC_OK);
    assert_true(!t5.encoder && t5.decoder && t5.per_layer);
    assert_int_equal(t5.max_distance, 800);
    assert_true(contract_facts(contract).softmax_scale == 1.0);
    posenc_contract_free(contract);
    contract = contract_of(MODEL("deberta-v2") ", \"relative_attention\": true,"
                           " \"position_buckets\": 256, \"max_relative_positions\": -1,"
                           " \"pos_att_type\": [\"p2c\", \"c2p\"]}");
    posenc_contract_deberta deberta = {.struct_size = sizeof deberta};
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    assert_int_equal(posenc_contract_get_deberta(contract, &deberta, NULL), POSENC_OK);
    assert_int_equal(posenc_contract_get_learned(contract, &learned, NULL), POSENC_OK);
    assert_int_equal(deberta.position_buckets, 256);
    assert_int_equal(deberta.max_relative_positions, 512);
    assert_string_equal(deberta.pos_att_type, "c2p|p2c");
    double scale = contract_facts(contract).softmax_scale;
    assert_true(scale > 0.0510310 && scale < 0.0510311); /* (128 * 3)^-0.5 */
    posenc_contract_free(contract);
    (void)state;
}

/* Scores of Gemma 2 are capped unless the file says null. */
static void test_softcap(void **state)
{
    posenc_contract *contract = contract_of(MODEL("gemma2") "}");
    assert_true(contract_facts(contract).logit_softcap == 50.0);
    assert_string_equal(contract_assumed(contract, "attn_logit_softcapping"), "50");
    posenc_contract_free(contract);
    contract = contract_of(MODEL("gemma2") ", \"attn_logit_softcapping\": null}");
    assert_true(contract_facts(contract).logit_softcap == 0.0);
    posenc_contract_free(contract);
    contract = contract_of(MODEL("llama") ", \"attn_logit_softcapping\": 30}");
    assert_true(contract_facts(contract).logit_softcap == 30.0);
    posenc_contract_free(contract);
    (void)state;
}

/* Which keys are seen beside a window, and who has sinks. */
static void test_reach(void **state)
{
    posenc_contract *contract = contract_of(MODEL("llama") "}");
    posenc_contract_facts facts = contract_facts(contract);
    assert_true(facts.attention_chunk == -1 && facts.window_sides == -1 && !facts.sink_layers);
    posenc_contract_free(contract);
    contract = contract_of(MODEL("mistral") ", \"sliding_window\": 8, \"attention_chunk_size\": 4,"
                           " \"add_full_attention_sink_bias\": true}");
    facts = contract_facts(contract);
    assert_true(facts.attention_chunk == -1 && facts.window_sides == 1);
    assert_string_equal(facts.sink_layers, "full");
    posenc_contract_free(contract);
    contract = contract_of(MODEL("gpt_oss") "}");
    assert_string_equal(contract_facts(contract).sink_layers, "all");
    posenc_contract_free(contract);
    contract = contract_of(MODEL("modernbert") "}");
    assert_int_equal(contract_facts(contract).window_sides, 2);
    posenc_contract_free(contract);
    contract = contract_of(MODEL("gemma3_text") ", \"use_bidirectional_attention\": true}");
    assert_int_equal(contract_facts(contract).window_sides, 2);
    posenc_contract_free(contract);
    contract = contract_of(MODEL("llama4_text") ", \"attention_chunk_size\": 4096}");
    assert_int_equal(contract_facts(contract).attention_chunk, 4096);
    posenc_contract_free(contract);
    (void)state;
}

/* Each getter checks its arguments and says what the model lacks. */
static void test_getters(void **state)
{
    posenc_contract *contract = contract_of(MODEL("bloom") "}");
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    posenc_error error;
    assert_int_equal(posenc_contract_get_t5(contract, &t5, &error), POSENC_ERROR_UNSUPPORTED);
    assert_string_equal(error.text, "the model has no t5");
    assert_int_equal(posenc_contract_get_alibi(NULL, &alibi, &error), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "contract is NULL"));
    assert_int_equal(posenc_contract_get_alibi(contract, NULL, &error), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "alibi is NULL"));
    alibi.struct_size = 8;
    assert_int_equal(posenc_contract_get_alibi(contract, &alibi, &error), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "struct_size is 8"));
    alibi.struct_size = sizeof alibi;
    assert_int_equal(posenc_contract_get_alibi(contract, &alibi, NULL), POSENC_OK);
    assert_int_equal(alibi.struct_size, sizeof alibi);
    assert_true(alibi.max_bias == 8 && !alibi.scaled);
    posenc_contract_free(contract);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),     cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_tables),     cmocka_unit_test(test_two_halves),
        cmocka_unit_test(test_relative),   cmocka_unit_test(test_softcap),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_getters),    cmocka_unit_test(test_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
