/* SPDX-License-Identifier: MIT */
/* Families of models that do not rotate, and of those where a key decides. Sources: docs/models.md.
 */
#include "family.h"

#include <posenc/posenc.h>

#define LEARNED .scheme = POSENC_FAMILY_LEARNED
#define SINUSOIDAL .scheme = POSENC_FAMILY_SINUSOIDAL
#define FAIRSEQ SINUSOIDAL, .kind = "halves", .divisor = "half-1"
#define T5 .scheme = POSENC_FAMILY_T5, .softmax_rule = POSENC_SOFTMAX_ONE
#define ALIBI .scheme = POSENC_FAMILY_ALIBI
#define RECURRENT .scheme = POSENC_FAMILY_NONE, .flags = POSENC_FAMILY_RECURRENT
#define TYPED \
    LEARNED, .bias = "-slope*|query_position - key_position|", .flags = POSENC_FAMILY_TYPED
#define PADDED \
    LEARNED, .layout = POSENC_SPLIT_HALF, .flags = POSENC_FAMILY_TYPED | POSENC_FAMILY_PADDED

static const struct posenc_family rows[] = {
    {"albert", TYPED},
    {"bart", LEARNED, .offset = 2, .extra = 2},
    {"bert", TYPED},
    {"biogpt", LEARNED, .offset = 2, .extra = 2},
    {"blenderbot", LEARNED},
    {"bloom", ALIBI, .bias = "slope*key_position"},
    {"camembert", PADDED},
    {"deberta", .scheme = POSENC_FAMILY_DEBERTA, .softmax_rule = POSENC_SOFTMAX_DEBERTA},
    {"deberta-v2", .scheme = POSENC_FAMILY_DEBERTA, .softmax_rule = POSENC_SOFTMAX_DEBERTA},
    {"distilbert", LEARNED},
    {"electra", TYPED},
    {"esm", PADDED},
    {"falcon_mamba", RECURRENT},
    {"gpt2", LEARNED},
    {"gpt_bigcode", LEARNED, .kv_rule = POSENC_KV_BIGCODE},
    {"gpt_neo", LEARNED, .softmax_rule = POSENC_SOFTMAX_ONE},
    {"jamba", .scheme = POSENC_FAMILY_NONE, .kv_rule = POSENC_KV_FIXED, .kv_heads = 8,
     .period_key = "attn_layer_period", .period = 8, .offset_key = "attn_layer_offset",
     .phase = 4, .flags = POSENC_FAMILY_OTHERS_LINEAR},
    {"kimi_linear", .scheme = POSENC_FAMILY_NONE, .position_key = "model_max_length",
     .flags = POSENC_FAMILY_MLA | POSENC_FAMILY_LINEAR_CONFIG},
    {"longt5", T5},
    {"m2m_100", FAIRSEQ, .flags = POSENC_FAMILY_PADDED},
    {"mamba", RECURRENT},
    {"mamba2", RECURRENT},
    {"marian", SINUSOIDAL, .kind = "halves_vaswani", .divisor = "half"},
    {"mbart", LEARNED, .offset = 2, .extra = 2},
    {"mpnet", LEARNED, .flags = POSENC_FAMILY_PADDED | POSENC_FAMILY_BUCKETS},
    {"mpt", ALIBI, .bias = "slope*(key_position - (key_length-1))"},
    {"mt5", T5},
    {"nemotron_h", .scheme = POSENC_FAMILY_NONE, .kv_rule = POSENC_KV_FIXED, .kv_heads = 8,
     .head_dim = 128, .letters_key = "hybrid_override_pattern"},
    {"openai-gpt", LEARNED},
    {"opt", LEARNED, .offset = 2, .extra = 2},
    {"pegasus", SINUSOIDAL, .kind = "halves_vaswani", .divisor = "half"},
    {"roberta", PADDED},
    {"rwkv", RECURRENT},
    {"t5", T5},
    {"umt5", .scheme = POSENC_FAMILY_T5, .softmax_rule = POSENC_SOFTMAX_ONE,
     .flags = POSENC_FAMILY_PER_LAYER},
    {"whisper", FAIRSEQ, .position_key = "max_source_positions",
     .flags = POSENC_FAMILY_DECODER_TABLE},
    {"xglm", FAIRSEQ, .offset = 2},
    {"xlm-roberta", PADDED},
};

const struct posenc_family_table posenc_families_other = {rows, sizeof rows / sizeof rows[0]};
