/* SPDX-License-Identifier: MIT */
/* The table of model families. Sources of each fact: docs/contract.md. */
#include "family.h"

#include <posenc/posenc.h>
#include <string.h>

#define ADJACENT .layout = POSENC_ADJACENT
#define SPLIT_HALF .layout = POSENC_SPLIT_HALF
#define MLA_FAMILY ADJACENT, .layout_key = "rope_interleave", .flags = POSENC_FAMILY_MLA
#define KEY_HEADS(n) .kv_rule = POSENC_KV_FIXED, .kv_heads = (n)
#define KEY_WINDOW .window_rule = POSENC_WINDOW_KEY, .window_key = "sliding_window"
#define SWITCHED_WINDOW .window_rule = POSENC_WINDOW_SWITCH, .window_key = "sliding_window"

/* Alphabetical: the search is linear, the list is for readers. */
static const struct posenc_family families[] = {
    {"bart", .refused = "learned"},
    {"bert", .refused = "learned"},
    {"bitnet", SPLIT_HALF, KEY_HEADS(5), .base = 500000},
    {"bloom", .refused = "alibi"},
    {"chatglm", ADJACENT, .partial = 0.5, .kv_rule = POSENC_KV_CHATGLM,
     .flags = POSENC_FAMILY_ROPE_RATIO},
    {"codegen", ADJACENT, .rotary_dim = 64},
    {"cohere", ADJACENT, .base = 500000},
    {"cohere2", ADJACENT, KEY_WINDOW, .window = 4096, .period_key = "sliding_window_pattern",
     .period = 4, .phase = 1, .flags = POSENC_FAMILY_ROPE_ON_SLIDING},
    {"deberta", .refused = "deberta"},
    {"deberta-v2", .refused = "deberta"},
    {"deepseek_v2", ADJACENT, .flags = POSENC_FAMILY_MLA},
    {"deepseek_v3", MLA_FAMILY},
    {"distilbert", .refused = "learned"},
    {"electra", .refused = "learned"},
    {"ernie4_5", ADJACENT, KEY_HEADS(2), .base = 500000, .head_dim = 128},
    {"falcon", SPLIT_HALF, .kv_rule = POSENC_KV_FALCON},
    {"gemma", SPLIT_HALF, .head_dim = 256, KEY_HEADS(16)},
    {"gemma2", SPLIT_HALF, KEY_HEADS(4), .head_dim = 256,
     .softmax_rule = POSENC_SOFTMAX_SCALAR, .softmax = 256, KEY_WINDOW, .window = 4096,
     .period = 2, .phase = 1},
    {"gemma3_text", SPLIT_HALF, KEY_HEADS(4), .flags = POSENC_FAMILY_LOCAL_PLAIN, .base = 1000000,
     .local_base_key = "rope_local_base_freq", .local_base = 10000, .head_dim = 256,
     .softmax_rule = POSENC_SOFTMAX_SCALAR, .softmax = 256, KEY_WINDOW, .window = 4096,
     .period_key = "sliding_window_pattern", .period = 6, .phase = 1},
    {"gemma4_text", .refused = "rope with proportional frequencies"},
    {"glm", ADJACENT, KEY_HEADS(2), .partial = 0.5, .head_dim = 128},
    {"glm4", ADJACENT, KEY_HEADS(2), .partial = 0.5, .head_dim = 128},
    {"glm4_moe", SPLIT_HALF, KEY_HEADS(8), .partial = 0.5},
    {"glm4v", ADJACENT, .partial = 0.5, .flags = POSENC_FAMILY_MROPE},
    {"glm4v_text", ADJACENT, .partial = 0.5, .flags = POSENC_FAMILY_MROPE},
    {"glm_moe_dsa", MLA_FAMILY},
    {"gpt2", .refused = "learned"},
    {"gpt_bigcode", .refused = "learned"},
    {"gpt_neo", .refused = "learned"},
    {"gpt_neox", SPLIT_HALF, .base_key = "rotary_emb_base", .partial = 0.25},
    {"gpt_oss", SPLIT_HALF, KEY_HEADS(8), .base = 150000, .head_dim = 64, KEY_WINDOW,
     .window = 128, .period = 2, .phase = 1,
     .block = "{\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0,"
              " \"beta_slow\": 1.0, \"truncate\": false,"
              " \"original_max_position_embeddings\": 4096}"},
    {"gptj", ADJACENT, .rotary_dim = 64},
    {"granite", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1},
    {"granitemoe", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1},
    {"internlm", SPLIT_HALF},
    {"internlm2", SPLIT_HALF},
    {"jamba", .refused = "none"},
    {"kimi_k2", MLA_FAMILY},
    {"llama", SPLIT_HALF},
    {"llama4_text", ADJACENT, .base = 500000, .head_dim = 128, KEY_HEADS(8),
     .flags = POSENC_FAMILY_NOPE_LIST | POSENC_FAMILY_QUERY_LLAMA4},
    {"longt5", .refused = "t5_relative_bias"},
    {"m2m_100", .refused = "sinusoidal"},
    {"mamba", .refused = "none"},
    {"mamba2", .refused = "none"},
    {"marian", .refused = "sinusoidal"},
    {"mimo_v2_flash", SPLIT_HALF, .local_base_key = "swa_rope_theta", .local_base = 10000,
     KEY_WINDOW, .pattern_key = "hybrid_layer_pattern"},
    {"minicpm", SPLIT_HALF},
    {"minimax_m3", SPLIT_HALF},
    {"ministral3", SPLIT_HALF, KEY_HEADS(8), .base = 1000000, .head_dim = 128, KEY_WINDOW,
     .flags = POSENC_FAMILY_QUERY_BETA,
     .block = "{\"rope_type\": \"yarn\", \"rope_theta\": 1000000.0, \"factor\": 16.0,"
              " \"original_max_position_embeddings\": 16384, \"beta_fast\": 32.0,"
              " \"beta_slow\": 1.0, \"mscale\": 1.0, \"mscale_all_dim\": 1.0,"
              " \"llama_4_scaling_beta\": 0.1}"},
    {"mistral", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .window = 4096},
    {"mixtral", SPLIT_HALF, .base = 1000000, KEY_HEADS(8),
     KEY_WINDOW},
    {"modernbert", SPLIT_HALF, .base_key = "global_rope_theta", .base = 160000,
     .local_base_key = "local_rope_theta", .local_base = 10000,
     .window_rule = POSENC_WINDOW_KEY, .window_key = "local_attention", .window = 128,
     .period_key = "global_attn_every_n_layers", .period = 3, .phase = 0},
    {"mpt", .refused = "alibi"},
    {"mt5", .refused = "t5_relative_bias"},
    {"nomic_bert", SPLIT_HALF, .layout_key = "rotary_emb_interleaved",
     .base_key = "rotary_emb_base", .base = 1000, .position_key = "n_positions"},
    {"olmo", SPLIT_HALF},
    {"olmo2", SPLIT_HALF},
    {"olmoe", SPLIT_HALF},
    {"opt", .refused = "learned"},
    {"persimmon", SPLIT_HALF, .base = 25000, .partial = 0.5},
    {"phi", SPLIT_HALF, .partial = 0.5},
    {"phi-msft", SPLIT_HALF, .rotary_dim = 32},
    {"phi3", SPLIT_HALF, KEY_WINDOW},
    {"qwen2", SPLIT_HALF, SWITCHED_WINDOW, .window = 4096},
    {"qwen2_5_vl", SPLIT_HALF, .base = 1000000, .flags = POSENC_FAMILY_MROPE},
    {"qwen2_5_vl_text", SPLIT_HALF, .base = 1000000, .flags = POSENC_FAMILY_MROPE},
    {"qwen2_moe", SPLIT_HALF, KEY_HEADS(16), SWITCHED_WINDOW, .window = 4096},
    {"qwen2_vl", SPLIT_HALF, .base = 1000000, .flags = POSENC_FAMILY_MROPE},
    {"qwen2_vl_text", SPLIT_HALF, .base = 1000000, .flags = POSENC_FAMILY_MROPE},
    {"qwen3", SPLIT_HALF, .head_dim = 128, SWITCHED_WINDOW, .window = 4096},
    {"qwen3_5_text", SPLIT_HALF, .partial = 0.25, .head_dim = 256, .flags = POSENC_FAMILY_MROPE},
    {"qwen3_moe", SPLIT_HALF, KEY_HEADS(4), SWITCHED_WINDOW, .window = 4096},
    {"qwen3_next", SPLIT_HALF, KEY_HEADS(2), .partial = 0.25, .head_dim = 256, .period = 4,
     .phase = 1,
     .period_key = "full_attention_interval", .flags = POSENC_FAMILY_OTHERS_LINEAR},
    {"qwen3_vl_text", SPLIT_HALF, .head_dim = 128, .flags = POSENC_FAMILY_MROPE},
    {"roberta", .refused = "learned"},
    {"rwkv", .refused = "none"},
    {"seed_oss", SPLIT_HALF, KEY_HEADS(8), .head_dim = 128},
    {"smollm3", SPLIT_HALF, KEY_HEADS(4), .base = 2000000, .flags = POSENC_FAMILY_NOPE_LIST},
    {"stablelm", SPLIT_HALF, .partial = 0.25},
    {"starcoder2", SPLIT_HALF, KEY_HEADS(2), KEY_WINDOW},
    {"t5", .refused = "t5_relative_bias"},
    {"umt5", .refused = "t5_relative_bias"},
    {"whisper", .refused = "sinusoidal"},
    {"xlm-roberta", .refused = "learned"},
};

/* A multimodal wrapper whose text_config has no model_type of its own. */
static const char *const aliases[][2] = {
    {"gemma3", "gemma3_text"}, {"gemma4", "gemma4_text"},     {"llama4", "llama4_text"},
    {"mistral3", "mistral"},   {"qwen3_5", "qwen3_5_text"}, {"qwen3_vl", "qwen3_vl_text"},
};

const struct posenc_family *posenc_family_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(model_type, aliases[i][0]) == 0) {
            model_type = aliases[i][1];
        }
    }
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(model_type, families[i].model_type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

const struct posenc_family *posenc_family_at(int32_t index)
{
    return index >= 0 && (size_t)index < sizeof families / sizeof families[0] ? &families[index]
                                                                               : NULL;
}
