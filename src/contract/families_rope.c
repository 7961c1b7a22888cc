/* SPDX-License-Identifier: MIT */
/* Families of rotary models with plain positions. Sources of each fact: docs/models.md. */
#include "family.h"

#include <posenc/posenc.h>

#define ADJACENT .layout = POSENC_ADJACENT
#define SPLIT_HALF .layout = POSENC_SPLIT_HALF
#define KEY_HEADS(n) .kv_rule = POSENC_KV_FIXED, .kv_heads = (n)
#define MLA_FAMILY ADJACENT, .layout_key = "rope_interleave", .flags = POSENC_FAMILY_MLA
#define KEY_WINDOW .window_rule = POSENC_WINDOW_KEY, .window_key = "sliding_window"
#define SWITCHED_WINDOW .window_rule = POSENC_WINDOW_SWITCH, .window_key = "sliding_window"

#define GEMMA4                                                                       \
    "{\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 10000.0},"    \
    " \"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 1000000.0," \
    " \"partial_rotary_factor\": 0.25}}"

#define EXAONE                                                                        \
    KEY_WINDOW, .window = 4096, .period_key = "sliding_window_pattern", .period = 4,  \
    .phase = 1, .flags = POSENC_FAMILY_ROPE_ON_SLIDING | POSENC_FAMILY_FREE_OF_WINDOW
#define LLAMA3(theta, length, low, high)                                            \
    "{\"rope_type\": \"llama3\", \"rope_theta\": " theta ", \"factor\": " length "," \
    " \"low_freq_factor\": " low ", \"high_freq_factor\": " high ","                 \
    " \"original_max_position_embeddings\": 8192}"
#define APERTUS LLAMA3("12000000.0", "8.0", "1.0", "4.0")
#define CWM LLAMA3("1000000.0", "16.0", "1.0", "4.0")
#define HIGGS                                                                  \
    "{\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": 32.0,"     \
    " \"low_freq_factor\": 0.125, \"high_freq_factor\": 0.5,"                    \
    " \"original_max_position_embeddings\": 1024}"
#define MELLUM                                                                     \
    "{\"full_attention\": {\"rope_type\": \"default\", \"rope_theta\": 500000.0}," \
    " \"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 10000.0}}"
#define MINISTRAL(theta, factor, length)                                                        \
    "{\"rope_type\": \"yarn\", \"rope_theta\": " theta ", \"factor\": " factor ","                \
    " \"original_max_position_embeddings\": " length ", \"beta_fast\": 32.0,"                   \
    " \"beta_slow\": 1.0, \"mscale\": 1.0, \"mscale_all_dim\": 1.0,"                            \
    " \"llama_4_scaling_beta\": 0.1}"

/* Alphabetical: the search is linear, the list is for readers. */
static const struct posenc_family rows[] = {
    {"afmoe", SPLIT_HALF, KEY_WINDOW, .window = 1024, .head_dim = 128,
     .period_key = "global_attn_every_n_layers", .period = 4, .phase = 1,
     .flags = POSENC_FAMILY_ROPE_ON_SLIDING},
    {"apertus", SPLIT_HALF, .base = 12000000, .block = APERTUS},
    {"apertus1p5_text", SPLIT_HALF, .base = 12000000, .block = APERTUS},
    {"arcee", SPLIT_HALF},
    {"aria_text", SPLIT_HALF},
    {"axk1", MLA_FAMILY},
    {"axk2", ADJACENT, .flags = POSENC_FAMILY_MLA},
    {"baichuan", SPLIT_HALF, .bias = "slope*key_position", .flags = POSENC_FAMILY_BY_WIDTH},
    {"bailing_hybrid", ADJACENT, .base = 6000000, .position_key = "model_max_length",
     .period_key = "layer_group_size", .period = 6, .phase = 1,
     .flags = POSENC_FAMILY_MLA | POSENC_FAMILY_OTHERS_LINEAR},
    {"bailing_moe", SPLIT_HALF},
    {"bamba", SPLIT_HALF, KEY_HEADS(8), .partial = 0.5, .index_key = "attn_layer_indices"},
    {"bitnet", SPLIT_HALF, KEY_HEADS(5), .base = 500000},
    {"chameleon", SPLIT_HALF, KEY_HEADS(32)},
    {"chatglm", ADJACENT, .partial = 0.5, .kv_rule = POSENC_KV_CHATGLM,
     .flags = POSENC_FAMILY_ROPE_RATIO},
    {"codegen", ADJACENT, .rotary_dim = 64},
    {"cohere", ADJACENT, .base = 500000},
    {"cohere2", ADJACENT, KEY_WINDOW, .window = 4096, .period_key = "sliding_window_pattern",
     .period = 4, .phase = 1, .flags = POSENC_FAMILY_ROPE_ON_SLIDING},
    {"csm", SPLIT_HALF, KEY_HEADS(8), .base = 500000},
    {"csm_depth_decoder_model", SPLIT_HALF, KEY_HEADS(2), .base = 500000},
    {"cwm", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .window = 8192, .base = 1000000,
     .head_dim = 128, .period = 4, .phase = 0, .block = CWM},
    {"dbrx", SPLIT_HALF, KEY_HEADS(1), .flags = POSENC_FAMILY_ATTN_CONFIG},
    {"deepseek_ocr2_text", SPLIT_HALF},
    {"deepseek_v2", ADJACENT, .flags = POSENC_FAMILY_MLA},
    {"deepseek_v3", MLA_FAMILY},
    {"deepseek_v32", ADJACENT, .flags = POSENC_FAMILY_MLA},
    {"deepseek_v4", ADJACENT, .sinks = 1, KEY_HEADS(1), .head_dim = 512, .rotary_dim = 64,
     .base = 160000, .global_base_key = "compress_rope_theta", .local_base_key = "rope_theta",
     .local_base = 10000, .labels = {"compress", "main"}, KEY_WINDOW, .window = 128,
     .flags = POSENC_FAMILY_LOCAL_PLAIN | POSENC_FAMILY_TAIL},
    {"diffllama", SPLIT_HALF},
    {"doge", SPLIT_HALF, KEY_WINDOW},
    {"dots1", SPLIT_HALF, .window_rule = POSENC_WINDOW_LAYERS, .window_key = "sliding_window",
     .window = 4096, .window_from = 62},
    {"emu3_text_model", SPLIT_HALF, KEY_HEADS(8), .base = 1000000},
    {"ernie4_5", ADJACENT, KEY_HEADS(2), .base = 500000, .head_dim = 128},
    {"ernie4_5_moe", ADJACENT, KEY_HEADS(4), .base = 500000},
    {"esmc", SPLIT_HALF},
    {"eurobert", SPLIT_HALF},
    {"evolla", SPLIT_HALF, KEY_HEADS(8), .base = 500000},
    {"exaone", SPLIT_HALF},
    {"exaone4", SPLIT_HALF, EXAONE},
    {"exaone_moe", SPLIT_HALF, EXAONE},
    {"falcon", SPLIT_HALF, .kv_rule = POSENC_KV_FALCON},
    {"falcon_h1", SPLIT_HALF, KEY_HEADS(8)},
    {"flex_olmo", SPLIT_HALF, .base = 500000},
    {"gemma", SPLIT_HALF, .head_dim = 256, KEY_HEADS(16)},
    {"gemma2", SPLIT_HALF, KEY_HEADS(4), .head_dim = 256,
     .softmax_rule = POSENC_SOFTMAX_SCALAR, .softmax = 256, .softcap = 50,
     KEY_WINDOW, .window = 4096,
     .period = 2, .phase = 1},
    {"gemma3_text", SPLIT_HALF, KEY_HEADS(4), .flags = POSENC_FAMILY_LOCAL_PLAIN, .base = 1000000,
     .local_base_key = "rope_local_base_freq", .local_base = 10000, .head_dim = 256,
     .softmax_rule = POSENC_SOFTMAX_SCALAR, .softmax = 256, KEY_WINDOW, .window = 4096,
     .period_key = "sliding_window_pattern", .period = 6, .phase = 1},
    {"gemma3n_text", SPLIT_HALF, KEY_HEADS(2), .flags = POSENC_FAMILY_LOCAL_PLAIN,
     .base = 1000000, .local_base_key = "rope_local_base_freq", .local_base = 10000,
     .head_dim = 256, .softmax_rule = POSENC_SOFTMAX_ONE, KEY_WINDOW, .window = 512,
     .period = 5, .phase = 1},
    {"gemma4_text", SPLIT_HALF, KEY_HEADS(4), .head_dim = 256, KEY_WINDOW, .window = 512,
     .softmax_rule = POSENC_SOFTMAX_ONE, .period_key = "sliding_window_pattern", .period = 6,
     .phase = 1, .flags = POSENC_FAMILY_GLOBAL_WIDTHS, .block = GEMMA4},
    {"gemma4_unified_text", SPLIT_HALF, KEY_HEADS(4), .head_dim = 256, KEY_WINDOW,
     .window = 1024, .softmax_rule = POSENC_SOFTMAX_ONE, .period = 6, .phase = 1,
     .flags = POSENC_FAMILY_GLOBAL_WIDTHS, .block = GEMMA4},
    {"glm", ADJACENT, KEY_HEADS(2), .partial = 0.5, .head_dim = 128},
    {"glm4", ADJACENT, KEY_HEADS(2), .partial = 0.5, .head_dim = 128},
    {"glm4_moe", SPLIT_HALF, KEY_HEADS(8), .partial = 0.5},
    {"glm4_moe_lite", MLA_FAMILY},
    {"glm_moe_dsa", MLA_FAMILY},
    {"gpt_neox", SPLIT_HALF, .base_key = "rotary_emb_base", .partial = 0.25},
    {"gpt_neox_japanese", SPLIT_HALF, .base_key = "rotary_emb_base"},
    {"gpt_oss", SPLIT_HALF, .sinks = 1, KEY_HEADS(8), .base = 150000, .head_dim = 64, KEY_WINDOW,
     .window = 128, .period = 2, .phase = 1,
     .block = "{\"rope_type\": \"yarn\", \"factor\": 32.0, \"beta_fast\": 32.0,"
              " \"beta_slow\": 1.0, \"truncate\": false,"
              " \"original_max_position_embeddings\": 4096}"},
    {"gptj", ADJACENT, .rotary_dim = 64},
    {"granite", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1},
    {"granite4_vision_text", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1},
    {"granite_docling_text", SPLIT_HALF, KEY_HEADS(4),
     .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 0.015625},
    {"granitemoe", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1},
    {"granitemoehybrid", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1,
     .flags = POSENC_FAMILY_ROPE_BY_TYPE},
    {"granitemoeshared", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER, .softmax = 1},
    {"gte", SPLIT_HALF, .base = 160000},
    {"helium", ADJACENT, KEY_HEADS(20), .base = 100000, .head_dim = 128},
    {"higgs_audio_v2", SPLIT_HALF, KEY_HEADS(8), .base = 500000, .head_dim = 128,
     .block = HIGGS},
    {"hunyuan_v1_dense", SPLIT_HALF},
    {"hunyuan_v1_moe", SPLIT_HALF},
    {"hy_v3", SPLIT_HALF, KEY_HEADS(8), .base = 11158840, .head_dim = 128},
    {"hy_v4", SPLIT_HALF, .flags = POSENC_FAMILY_MLA},
    {"hyperclovax", SPLIT_HALF, .softmax_rule = POSENC_SOFTMAX_MULTIPLIER},
    {"internlm", SPLIT_HALF},
    {"internlm2", SPLIT_HALF},
    {"internlm3", SPLIT_HALF},
    {"jais2", SPLIT_HALF},
    {"jetmoe", SPLIT_HALF, KEY_HEADS(16), .head_dim = 128},
    {"jina_embeddings_v3", SPLIT_HALF, .base = 20000},
    {"kimi_k2", MLA_FAMILY},
    {"kolibri1", SPLIT_HALF, KEY_HEADS(4), KEY_WINDOW, .window = 513, .head_dim = 128,
     .period = 5, .phase = 1,
     .flags = POSENC_FAMILY_ROPE_ON_SLIDING | POSENC_FAMILY_FREE_OF_WINDOW},
    {"lfm2", SPLIT_HALF, KEY_HEADS(8), .base = 1000000, .index_key = "full_attn_idxs"},
    {"lfm2_moe", SPLIT_HALF, KEY_HEADS(8), .base = 1000000, .index_key = "full_attn_idxs"},
    {"llama", SPLIT_HALF},
    {"llama4_text", ADJACENT, .base = 500000, .head_dim = 128, KEY_HEADS(8),
     .flags = POSENC_FAMILY_NOPE_LIST | POSENC_FAMILY_QUERY_LLAMA4},
    {"longcat_flash", ADJACENT, .base = 10000000, .flags = POSENC_FAMILY_MLA},
    {"mellum", SPLIT_HALF, KEY_HEADS(4), .window = 1024, .head_dim = 128, .block = MELLUM},
    {"mimo_v2_flash", SPLIT_HALF, .local_base_key = "swa_rope_theta", .local_base = 10000,
     KEY_WINDOW, .pattern_key = "hybrid_layer_pattern"},
    {"minicpm", SPLIT_HALF},
    {"minicpm3", SPLIT_HALF, .flags = POSENC_FAMILY_MLA},
    {"minimax", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .base = 1000000, .period = 2, .phase = 0,
     .flags = POSENC_FAMILY_OTHERS_LINEAR},
    {"minimax_m2", SPLIT_HALF, KEY_HEADS(8), .base = 5000000, .head_dim = 128},
    {"minimax_m3", SPLIT_HALF},
    {"minimax_m3_vl_text", SPLIT_HALF, KEY_HEADS(4), .base = 5000000, .head_dim = 128,
     .rotary_dim = 64},
    {"ministral", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .window = 4096},
    {"ministral3", SPLIT_HALF, KEY_HEADS(8), .base = 1000000, .head_dim = 128, KEY_WINDOW,
     .flags = POSENC_FAMILY_QUERY_BETA,
     .block = MINISTRAL("1000000.0", "16.0", "16384")},
    {"mistral", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .window = 4096},
    {"mistral4", ADJACENT, .layout_key = "rope_interleave",
     .flags = POSENC_FAMILY_MLA | POSENC_FAMILY_QUERY_BETA,
     .block = MINISTRAL("10000.0", "128.0", "8192")},
    {"mixtral", SPLIT_HALF, .base = 1000000, KEY_HEADS(8),
     KEY_WINDOW},
    {"mllama_text_model", SPLIT_HALF, KEY_HEADS(8), .base = 500000,
     .flags = POSENC_FAMILY_CROSS},
    {"modernbert", SPLIT_HALF, .base_key = "global_rope_theta", .base = 160000,
     .local_base_key = "local_rope_theta", .local_base = 10000,
     .window_rule = POSENC_WINDOW_KEY, .window_key = "local_attention", .window = 128,
     .period_key = "global_attn_every_n_layers", .period = 3, .phase = 0},
    {"modernbert-decoder", SPLIT_HALF, .base_key = "global_rope_theta", .base = 160000,
     .local_base_key = "local_rope_theta", .local_base = 10000,
     .window_rule = POSENC_WINDOW_KEY, .window_key = "local_attention", .window = 128,
     .period_key = "global_attn_every_n_layers", .period = 3, .phase = 0},
    {"nanochat", SPLIT_HALF},
    {"nemotron", SPLIT_HALF, .partial = 0.5},
    {"nomic_bert", SPLIT_HALF, .layout_key = "rotary_emb_interleaved",
     .base_key = "rotary_emb_base", .base = 1000, .position_key = "n_positions"},
    {"olmo", SPLIT_HALF},
    {"olmo2", SPLIT_HALF},
    {"olmo3", SPLIT_HALF, .flags = POSENC_FAMILY_LOCAL_PLAIN, .base = 500000,
     .local_base_key = "rope_theta", .local_base = 500000, KEY_WINDOW, .window = 4096,
     .period = 4, .phase = 1},
    {"olmo_hybrid", SPLIT_HALF, .period = 4, .phase = 1,
     .flags = POSENC_FAMILY_OTHERS_LINEAR | POSENC_FAMILY_NULL_BASE},
    {"olmoe", SPLIT_HALF},
    {"orion", SPLIT_HALF},
    {"persimmon", SPLIT_HALF, .base = 25000, .partial = 0.5},
    {"phi", SPLIT_HALF, .partial = 0.5},
    {"phi-msft", SPLIT_HALF, .rotary_dim = 32},
    {"phi3", SPLIT_HALF, KEY_WINDOW},
    {"phi4_multimodal", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW},
    {"phimoe", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .base = 1000000,
     .flags = POSENC_FAMILY_MSCALES},
    {"qwen2", SPLIT_HALF, SWITCHED_WINDOW, .window = 4096},
    {"qwen2_moe", SPLIT_HALF, KEY_HEADS(16), SWITCHED_WINDOW, .window = 4096},
    {"qwen3", SPLIT_HALF, .head_dim = 128, SWITCHED_WINDOW, .window = 4096},
    {"qwen3_moe", SPLIT_HALF, KEY_HEADS(4), SWITCHED_WINDOW, .window = 4096},
    {"qwen3_next", SPLIT_HALF, KEY_HEADS(2), .partial = 0.25, .head_dim = 256, .period = 4,
     .phase = 1,
     .period_key = "full_attention_interval", .flags = POSENC_FAMILY_OTHERS_LINEAR},
    {"recurrent_gemma", SPLIT_HALF, .partial = 0.5, .window_rule = POSENC_WINDOW_KEY,
     .window_key = "attention_window_size", .window = 2048, .flags = POSENC_FAMILY_CYCLE},
    {"seed_oss", SPLIT_HALF, KEY_HEADS(8), .head_dim = 128},
    {"smallthinker", SPLIT_HALF, .nope_key = "rope_layout",
     .window_key = "sliding_window_size", .pattern_key = "sliding_window_layout",
     .window_rule = POSENC_WINDOW_KEY,
     .flags = POSENC_FAMILY_NOPE_LIST | POSENC_FAMILY_NOPE_FIRST},
    {"smollm3", SPLIT_HALF, KEY_HEADS(4), .base = 2000000, .flags = POSENC_FAMILY_NOPE_LIST},
    {"solar_open", SPLIT_HALF, KEY_HEADS(8), .base = 1000000, .head_dim = 128},
    {"stablelm", SPLIT_HALF, .partial = 0.25},
    {"starcoder2", SPLIT_HALF, KEY_HEADS(2), KEY_WINDOW},
    {"vaultgemma", SPLIT_HALF, KEY_HEADS(4), .head_dim = 256,
     .softmax_rule = POSENC_SOFTMAX_SCALAR, .softmax = 256, .softcap = 50,
     KEY_WINDOW, .window = 4096,
     .period = 2, .phase = 1},
    {"voxtral_realtime_text", SPLIT_HALF, KEY_HEADS(8), KEY_WINDOW, .window = 4096},
    {"xverse", SPLIT_HALF},
    {"youtu", MLA_FAMILY},
    {"zamba2", SPLIT_HALF, .flags = POSENC_FAMILY_DOUBLED},
};

const struct posenc_family_table posenc_families_rope = {rows, sizeof rows / sizeof rows[0]};
