/* SPDX-License-Identifier: MIT */
/* What the reader refuses: the status, and a text that names the key, its value and the rule. */
#include "contract_text.h"

struct refusal {
    const char *json;
    const char *words[3]; /* all must stand in the text */
};

#define SCALED(members) "{" LLAMA ", \"rope_scaling\": {" members "}}"
#define YARN "\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 4096"
#define LLAMA3 \
    "\"rope_type\": \"llama3\", \"factor\": 8, \"original_max_position_embeddings\": 8192"
#define MLA "{\"model_type\": \"deepseek_v3\", " SHAPE
#define GEMMA3                                                                      \
    "{\"model_type\": \"gemma3_text\", \"head_dim\": 256, " HEADS ", \"num_hidden_layers\": 2"

static const struct refusal models[] = {
    {"{}", {"model_type is missing", "layout"}},
    {"{" SHAPE "}", {"model_type is missing"}},
    {"{\"model_type\": \"llamb\", " SHAPE "}", {"model_type is \"llamb\"", "unknown"}},
    {"{\"model_type\": \"openelm\", " SHAPE "}", {"model_type is \"openelm\"", "num_query_heads"}},
    {"{\"model_type\": \"step3p5\", " SHAPE "}", {"model_type is \"step3p5\"", "by layer"}},
    {"{\"model_type\": \"zamba2\", \"use_mem_rope\": true, \"use_long_context\": true, " SHAPE "}",
     {"use_long_context is true", "not supported"}},
    {"{\"model_type\": \"recurrent_gemma\", \"block_types\": [], " SHAPE "}",
     {"block_types", "a block"}},
    {"{\"model_type\": \"recurrent_gemma\", \"block_types\": [\"full\"], " SHAPE "}",
     {"block_types", "recurrent or attention"}},
    {"{\"model_type\": \"mllama_text_model\", \"cross_attention_layers\": [2], " SHAPE "}",
     {"cross_attention_layers", "layers"}},
    {"{\"model_type\": \"kimi_linear\", \"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 8,"
     " \"linear_attn_config\": {\"full_attn_layers\": [0]}, " SHAPE "}",
     {"linear_attn_config.full_attn_layers", "1..2"}},
    {"{\"model_type\": 7, " SHAPE "}", {"model_type is 7", "string"}},
    {"{\"model_type\": null, " SHAPE "}", {"model_type is missing"}},
    {"{" LLAMA ", \"alibi\": true}", {"alibi is true", "not supported"}},
    {"{" LLAMA ", \"use_alibi\": true}", {"use_alibi is true", "not supported"}},
    {"{\"model_type\": \"bert\", \"position_embedding_type\": \"relative_key\", " SHAPE "}",
     {"position_embedding_type is \"relative_key\"", "not supported"}},
    {"{\"model_type\": \"bert\", \"position_embedding_type\": \"spiral\", " SHAPE "}",
     {"position_embedding_type is \"spiral\"", "unknown scheme"}},
    {"{\"model_type\": \"mpt\", \"attn_config\": {\"rope\": true}, " SHAPE "}",
     {"attn_config.rope is true", "unknown"}},
    {"{\"model_type\": \"falcon\", \"alibi\": \"no\", " SHAPE "}", {"alibi is \"no\"", "true or"}},
    {"{\"model_type\": \"chatglm\", \"position_encoding_2d\": true, " SHAPE "}",
     {"position_encoding_2d is true"}},
    {"{\"model_type\": \"nomic_bert\", \"rotary_scaling_factor\": 2, " SHAPE "}",
     {"rotary_scaling_factor is 2", "dynamic ntk"}},
    {"{\"model_type\": \"nomic_bert\", \"rotary_emb_scale_base\": 512, " SHAPE "}",
     {"rotary_emb_scale_base is 512", "xpos"}},
    {"{" LLAMA ", \"text_config\": []}", {"text_config is a list", "object"}},
    {"{" LLAMA ", \"text_config\": {}}", {"text_config.num_attention_heads is missing"}},
    {"{\"thinker_config\": {\"text_config\": {\"model_type\": \"x\"}}}",
     {"thinker_config.text_config.model_type is \"x\""}},
};

static const struct refusal shapes[] = {
    {"{\"model_type\": \"llama\"}", {"num_attention_heads is missing"}},
    {"{\"model_type\": \"llama\", " HEADS ", \"hidden_size\": 64}",
     {"num_hidden_layers is missing"}},
    {"{\"model_type\": \"llama\", " HEADS ", \"num_hidden_layers\": 2}",
     {"head_dim is missing", "hidden_size"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": 0}",
     {"num_attention_heads is 0", "1..65536"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": \"32\"}",
     {"num_attention_heads is \"32\"", "integer"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": true}",
     {"num_attention_heads is true", "integer"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": 2.5}",
     {"num_attention_heads is 2.5", "integer"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": -9223372036854775808}",
     {"num_attention_heads is -9223372036854775808"}},
    {"{\"model_type\": \"llama\", " HEADS ", \"num_hidden_layers\": 65537}",
     {"num_hidden_layers is 65537", "1..65536"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": 3, \"num_hidden_layers\": 2,"
     " \"hidden_size\": 100}",
     {"hidden_size is 100", "multiple", "3"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": 32, \"num_hidden_layers\": 2,"
     " \"hidden_size\": 32}",
     {"hidden_size is 32", "2..65536"}},
    {"{\"model_type\": \"llama\", \"num_attention_heads\": 8, \"num_hidden_layers\": 2,"
     " \"hidden_size\": 520}",
     {"rotary_dim is 65", "even"}},
    {"{" LLAMA ", \"head_dim\": 1}", {"head_dim is 1", "at least 2"}},
    {"{" LLAMA ", \"head_dim\": 65537}", {"head_dim is 65537"}},
    {"{" LLAMA ", \"head_dim\": -128}", {"head_dim is -128"}},
    {"{" LLAMA ", \"head_dim\": 33}", {"rotary_dim is 33", "even"}},
    {"{" LLAMA ", \"num_key_value_heads\": 5}", {"num_key_value_heads is 5", "divide", "32"}},
    {"{" LLAMA ", \"num_key_value_heads\": 64}", {"num_key_value_heads is 64", "divide"}},
    {"{" LLAMA ", \"num_key_value_heads\": 0}", {"num_key_value_heads is 0"}},
    {"{" LLAMA ", \"max_position_embeddings\": 0}", {"max_position_embeddings is 0"}},
    {"{" LLAMA ", \"max_position_embeddings\": 9007199254740993}",
     {"max_position_embeddings is 9007199254740993"}},
    {"{" LLAMA ", \"max_position_embeddings\": 1e300}", {"max_position_embeddings is 1e+300"}},
    {"{" LLAMA ", \"rotary_dim\": 130}", {"rotary_dim is 130"}},
    {"{" LLAMA ", \"rotary_dim\": -2}", {"rotary_dim is -2"}},
    {"{" LLAMA ", \"rotary_dim\": 3}", {"rotary_dim is 3", "even"}},
    {"{" LLAMA ", \"partial_rotary_factor\": 0}", {"partial_rotary_factor is 0", "> 0"}},
    {"{" LLAMA ", \"partial_rotary_factor\": 1.5}", {"partial_rotary_factor is 1.5", "<= 1"}},
    {"{" LLAMA ", \"partial_rotary_factor\": \"half\"}", {"partial_rotary_factor is \"half\""}},
    {"{" LLAMA ", \"head_dim\": 100, \"partial_rotary_factor\": 0.25}",
     {"partial_rotary_factor is 0.25", "25 of 100", "even"}},
    {"{" LLAMA ", \"head_dim\": 64, \"partial_rotary_factor\": 0.3}", {"19 of 64", "even"}},
    {"{" LLAMA ", \"head_dim\": 64, \"partial_rotary_factor\": 0.01}", {"0 of 64"}},
    {MLA "}", {"qk_nope_head_dim is missing"}},
    {MLA ", \"qk_nope_head_dim\": 128}", {"qk_rope_head_dim is missing"}},
    {MLA ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 63}", {"rotary_dim is 63"}},
    {MLA ", \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"rope_interleave\": 1}",
     {"rope_interleave is 1", "true or false"}},
    {"{\"model_type\": \"chatglm\", \"multi_query_attention\": true, " SHAPE "}",
     {"multi_query_group_num is missing"}},
    {"{\"model_type\": \"chatglm\", \"rope_ratio\": 0, " SHAPE "}", {"rope_ratio is 0"}},
};

static const struct refusal blocks[] = {
    {"{" LLAMA ", \"rope_theta\": \"10000\"}", {"rope_theta is \"10000\"", "number"}},
    {"{" LLAMA ", \"rope_theta\": true}", {"rope_theta is true", "number"}},
    {"{" LLAMA ", \"rope_theta\": 1}", {"rope_theta is 1", "> 1"}},
    {"{" LLAMA ", \"rope_theta\": -5.5}", {"rope_theta is -5.5", "> 1"}},
    {"{" LLAMA ", \"rope_theta\": 1e30}", {"rope_theta is 1e+30", "2^76"}},
    {"{" LLAMA ", \"rope_scaling\": 4.0}", {"rope_scaling is 4", "object or null"}},
    {"{" LLAMA ", \"rope_parameters\": \"yarn\"}", {"rope_parameters is \"yarn\"", "object"}},
    {SCALED("\"rope_theta\": 0.5"), {"rope_scaling.rope_theta is 0.5"}},
    {SCALED("\"type\": \"linear\""), {"rope_scaling.factor is missing", "linear needs it"}},
    {SCALED("\"type\": \"linear\", \"factor\": null"), {"rope_scaling.factor is missing"}},
    {SCALED("\"type\": \"linear\", \"factor\": \"4\""), {"rope_scaling.factor is \"4\""}},
    {SCALED("\"type\": \"linear\", \"factor\": 0"), {"rope_scaling.factor is 0", "> 0"}},
    {SCALED("\"type\": \"linear\", \"factor\": 1e300"), {"rope_scaling.factor is 1e+300", "2^64"}},
    {SCALED("\"type\": \"linear\", \"factor\": 1e-300"), {"rope_scaling.factor is 1e-300"}},
    {SCALED("\"type\": \"linear\", \"factor\": -2"), {"rope_scaling.factor is -2", "> 0"}},
    {SCALED("\"type\": \"spiral\", \"factor\": 2"), {"rope_scaling.type is \"spiral\"", "unknown"}},
    {SCALED("\"rope_type\": \"YARN\""), {"rope_scaling.rope_type is \"YARN\"", "unknown"}},
    {SCALED("\"rope_type\": 3"), {"rope_scaling.rope_type is 3", "string"}},
    {SCALED("\"type\": \"linear\", \"rope_type\": \"yarn\""),
     {"rope_scaling.type is \"linear\"", "agree", "yarn"}},
    {SCALED("\"type\": \"yarn\", \"rope_type\": \"default\""),
     {"rope_scaling.type is \"yarn\"", "agree", "default"}},
    {SCALED(YARN ", \"truncate\": 0"), {"rope_scaling.truncate is 0", "true or false"}},
    {SCALED(YARN ", \"beta_fast\": 0"), {"rope_scaling.beta_fast is 0", "> 0"}},
    {SCALED(YARN ", \"beta_fast\": 1, \"beta_slow\": 2"), {"beta_slow is 2", "beta_fast"}},
    {SCALED(YARN ", \"attention_factor\": -1"), {"attention_factor is -1", "> 0"}},
    {SCALED(YARN ", \"attention_factor\": 0"), {"attention_factor is 0", "> 0"}},
    {SCALED(YARN ", \"mscale\": -1"), {"mscale is -1", ">= 0"}},
    {SCALED(YARN ", \"mscale_all_dim\": []"), {"mscale_all_dim is a list"}},
    {SCALED("\"rope_type\": \"yarn\", \"factor\": 4"),
     {"original_max_position_embeddings is missing"}},
    {SCALED("\"rope_type\": \"yarn\", \"original_max_position_embeddings\": 4096"),
     {"rope_scaling.factor is missing", "yarn needs it"}},
    {SCALED("\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 0"),
     {"original_max_position_embeddings is 0"}},
    {SCALED("\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 8.5"),
     {"original_max_position_embeddings is 8.5", "integer"}},
    {SCALED(LLAMA3 ", \"low_freq_factor\": 1"), {"high_freq_factor is missing", "llama3"}},
    {SCALED(LLAMA3 ", \"high_freq_factor\": 4"), {"low_freq_factor is missing", "llama3"}},
    {SCALED(LLAMA3 ", \"low_freq_factor\": 4, \"high_freq_factor\": 1"),
     {"low_freq_factor is 4", "high_freq_factor"}},
    {SCALED("\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1,"
            " \"high_freq_factor\": 4"),
     {"original_max_position_embeddings is missing"}},
};

static const struct refusal layers[] = {
    {"{" LLAMA ", \"layer_types\": \"full\"}", {"layer_types is \"full\"", "list"}},
    {"{" LLAMA ", \"layer_types\": [\"full_attention\"]}",
     {"layer_types is a list", "1 entries", "2 layers"}},
    {"{" LLAMA ", \"layer_types\": [\"full_attention\", \"spiral\"]}",
     {"layer_types[1] is \"spiral\"", "full_attention"}},
    {"{" LLAMA ", \"layer_types\": [\"full_attention\", 1]}", {"layer_types[1]"}},
    {GEMMA3 ", \"sliding_window_pattern\": 0}", {"sliding_window_pattern is 0"}},
    {GEMMA3 ", \"sliding_window\": \"4096\"}", {"sliding_window is \"4096\""}},
    {GEMMA3 ", \"sliding_window\": 0}", {"sliding_window is 0"}},
    {GEMMA3 ", \"query_pre_attn_scalar\": 0}", {"query_pre_attn_scalar is 0", "> 0"}},
    {GEMMA3 ", \"rope_local_base_freq\": 0.5}", {"rope_local_base_freq is 0.5", "> 1"}},
    {GEMMA3 ", \"rope_parameters\": {\"full_attention\": 3}}",
     {"rope_parameters.full_attention is 3", "object"}},
    {"{" LLAMA ", \"layer_types\": [\"full_attention\", \"sliding_attention\"],"
     " \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 5000}}}",
     {"rope_parameters.sliding_attention is missing"}},
    {"{" LLAMA ", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\"}}}",
     {"rope_parameters.full_attention.factor is missing"}},
    {"{\"model_type\": \"smollm3\", " SHAPE ", \"no_rope_layers\": [1]}",
     {"no_rope_layers", "1 entries"}},
    {"{\"model_type\": \"smollm3\", " SHAPE ", \"no_rope_layers\": [1, 2]}",
     {"no_rope_layers[1]", "0 or 1"}},
    {"{\"model_type\": \"smollm3\", " SHAPE ", \"no_rope_layer_interval\": 0}",
     {"no_rope_layer_interval is 0"}},
    {"{\"model_type\": \"mimo_v2_flash\", " SHAPE "}", {"hybrid_layer_pattern is missing"}},
    {"{\"model_type\": \"mimo_v2_flash\", " SHAPE ", \"hybrid_layer_pattern\": [0, 1],"
     " \"swa_num_key_value_heads\": 5}",
     {"swa_num_key_value_heads is 5", "divide"}},
    {"{\"model_type\": \"qwen2\", " SHAPE ", \"use_sliding_window\": 1}",
     {"use_sliding_window is 1", "true or false"}},
    {"{\"model_type\": \"qwen2\", " SHAPE ", \"use_sliding_window\": true,"
     " \"max_window_layers\": -1}",
     {"max_window_layers is -1"}},
    {"{\"model_type\": \"granite\", " SHAPE ", \"attention_multiplier\": -1}",
     {"attention_multiplier is -1"}},
    {"{\"model_type\": \"llama4_text\", " SHAPE ", \"attn_temperature_tuning\": \"yes\"}",
     {"attn_temperature_tuning is \"yes\""}},
    {"{\"model_type\": \"llama4_text\", " SHAPE ", \"floor_scale\": 0}", {"floor_scale is 0"}},
    {"{\"model_type\": \"ministral3\", " SHAPE ", \"rope_parameters\":"
     " {\"rope_type\": \"default\", \"llama_4_scaling_beta\": 0.1}}",
     {"llama_4_scaling_beta is 0.1", "original_max_position_embeddings"}},
};

#define LENGTHS "\"factor\": 4, \"original_max_position_embeddings\": 4096"
#define SU "\"type\": \"su\", " LENGTHS
#define FOUR(members) \
    "{" LLAMA ", \"head_dim\": 8, \"max_position_embeddings\": 16384," \
    " \"rope_scaling\": {" members "}}"

/* The kinds that depend on the length, and those of several axes. */
static const struct refusal lengths[] = {
    {SCALED("\"type\": \"dynamic\", \"factor\": 2"), {"max_position_embeddings is missing"}},
    {FOUR("\"type\": \"dynamic\""), {"rope_scaling.factor is missing", "dynamic"}},
    {FOUR("\"type\": \"dynamic\", \"factor\": 0"), {"rope_scaling.factor is 0", "> 0"}},
    {FOUR("\"type\": \"dynamic\", \"factor\": 1, \"alpha\": 0"), {"rope_scaling.alpha is 0"}},
    {FOUR("\"type\": \"ntk\""), {"rope_scaling.factor is missing", "ntk"}},
    {FOUR("\"type\": \"ntk\", \"factor\": 2, \"mixed_b\": 17"), {"mixed_b is 17", "<= 16"}},
    {FOUR("\"rope_type\": \"proportional\", \"partial_rotary_factor\": 1.5"),
     {"partial_rotary_factor is 1.5"}},
    {FOUR("\"rope_type\": \"proportional\", \"factor\": -1"), {"factor is -1"}},
    {FOUR(SU), {"rope_scaling.short_factor is missing", "longrope"}},
    {FOUR(SU ", \"short_factor\": [1, 1, 1, 1]"), {"rope_scaling.long_factor is missing"}},
    {FOUR(SU ", \"short_factor\": 1"), {"short_factor is 1", "list"}},
    {FOUR(SU ", \"short_factor\": [1, 1, 1, 1, 1, 1, 1, 1]"),
     {"short_factor", "has 8 entries", "must have 4"}},
    {FOUR(SU ", \"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 1, 1]"),
     {"long_factor", "has 3 entries", "must have 4"}},
    {FOUR(SU ", \"short_factor\": [1, 1, 0, 1]"), {"short_factor", "entry 2", "> 0"}},
    {FOUR(SU ", \"short_factor\": [1, 1, 1, \"1\"]"), {"short_factor", "entry 3", "number"}},
    {FOUR(SU ", \"short_factor\": [1, 1e300, 1, 1]"), {"short_factor", "entry 1", "2^64"}},
    {FOUR("\"rope_type\": \"longrope\", \"original_max_position_embeddings\": 1,"
          " \"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 1, 1, 1]"),
     {"original_max_position_embeddings is 1", "logarithm"}},
    {"{" LLAMA ", \"head_dim\": 8, \"rope_scaling\": {\"type\": \"longrope\","
     " \"original_max_position_embeddings\": 8, \"short_factor\": [1, 1, 1, 1]}}",
     {"rope_scaling.factor is missing"}},
    {SCALED("\"type\": \"mrope\""), {"rope_scaling.mrope_section is missing"}},
    {SCALED("\"type\": \"xdrope\", \"alpha\": 2"), {"mrope_section is missing"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": 64"), {"mrope_section is 64", "list"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": []"), {"mrope_section", "1 to 4"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": [64, 0, 0, 0, 0]"), {"1 to 4"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": [16, 24, 23]"),
     {"mrope_section", "sums to 63", "must sum to 64"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": [-1, 41, 24]"), {"0..32768"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": [16, 24.0, 24]"), {"integers"}},
    {SCALED("\"type\": \"mrope\", \"mrope_section\": [32, 32], \"mrope_interleaved\": true"),
     {"mrope_section", "alternate", "3 sections"}},
    {SCALED("\"mrope_section\": [16, 24, 24], \"mrope_interleaved\": 1"),
     {"mrope_interleaved is 1", "true or false"}},
    {"{\"model_type\": \"qwen2_vl\", " SHAPE ", \"head_dim\": 64}",
     {"mrope_section is missing", "sums to 64: must sum to 32"}},
    {"{\"model_type\": \"ernie4_5_vl_moe\", " SHAPE ", \"num_key_value_heads\": 4,"
     " \"rope_scaling\": {\"mrope_section\": [21, 23, 20]}}",
     {"mrope_section"}},
};

static const struct refusal others[] = {
    {"{\"model_type\": \"gpt2\", " SHAPE "}", {"max_position_embeddings is missing", "table"}},
    {"{\"model_type\": \"roberta\", " SHAPE ", \"max_position_embeddings\": 514,"
     " \"pad_token_id\": 513}",
     {"pad_token_id is 513", "no row"}},
    {"{\"model_type\": \"roberta\", " SHAPE ", \"max_position_embeddings\": 514,"
     " \"pad_token_id\": -1}",
     {"pad_token_id is -1"}},
    {"{\"model_type\": \"mpt\", " SHAPE ", \"attn_config\": {\"alibi\": true,"
     " \"alibi_bias_max\": 0}}",
     {"attn_config.alibi_bias_max is 0", "> 0"}},
    {"{\"model_type\": \"mpt\", " SHAPE ", \"attn_config\": {\"alibi\": 1}}",
     {"attn_config.alibi is 1"}},
    {"{\"model_type\": \"t5\", " SHAPE ", \"relative_attention_num_buckets\": 1}",
     {"relative_attention_num_buckets is 1"}},
    {"{\"model_type\": \"t5\", " SHAPE ", \"relative_attention_max_distance\": 16}",
     {"relative_attention_max_distance is 16", "half of the buckets, 16"}},
    {"{\"model_type\": \"t5\", " SHAPE ", \"relative_attention_num_buckets\": 256}",
     {"relative_attention_num_buckets is 256", "128"}},
    {"{\"model_type\": \"t5\", " SHAPE ", \"is_encoder_decoder\": 1}", {"is_encoder_decoder"}},
    {"{\"model_type\": \"deberta-v2\", " SHAPE ", \"relative_attention\": true,"
     " \"pos_att_type\": \"c2c\"}",
     {"pos_att_type is \"c2c\"", "c2p"}},
    {"{\"model_type\": \"deberta-v2\", " SHAPE ", \"relative_attention\": true,"
     " \"pos_att_type\": [\"c2p\", 1]}",
     {"pos_att_type is a list"}},
    {"{\"model_type\": \"deberta-v2\", " SHAPE ", \"relative_attention\": true,"
     " \"position_buckets\": -2}",
     {"position_buckets is -2"}},
    {"{\"model_type\": \"whisper\", " SHAPE ", \"max_target_positions\": 0}",
     {"max_target_positions is 0"}},
    {"{\"model_type\": \"gemma2\", " SHAPE ", \"attn_logit_softcapping\": -50}",
     {"attn_logit_softcapping is -50", "> 0"}},
    {"{\"model_type\": \"lfm2\", " SHAPE "}", {"full_attn_idxs is missing"}},
    {"{\"model_type\": \"lfm2\", " SHAPE ", \"full_attn_idxs\": [2]}", {"full_attn_idxs[0]"}},
    {"{\"model_type\": \"nemotron_h\", " SHAPE "}", {"hybrid_override_pattern is missing"}},
    {"{\"model_type\": \"nemotron_h\", " SHAPE ", \"hybrid_override_pattern\": \"M\"}",
     {"hybrid_override_pattern is \"M\"", "1 letters", "2 layers"}},
    {"{\"model_type\": \"nemotron_h\", " SHAPE ", \"hybrid_override_pattern\": \"MX\"}",
     {"hybrid_override_pattern is \"MX\"", "letters must be"}},
    {"{\"model_type\": \"gemma4_text\", " SHAPE ", \"num_key_value_heads\": 4,"
     " \"num_global_key_value_heads\": 5}",
     {"num_global_key_value_heads is 5", "divide"}},
};

static const struct refusal texts[] = {
    {"", {"not JSON"}},
    {" ", {"not JSON"}},
    {"[]", {"object"}},
    {"[{" LLAMA "}]", {"object"}},
    {"3", {"not JSON"}},
    {"{" LLAMA, {"not JSON", "line 1"}},
    {"{" LLAMA "}}", {"not JSON"}},
    {"{" LLAMA ",}", {"not JSON"}},
    {"{" LLAMA ", \"rope_theta\": NaN}", {"not JSON"}},
    {"{" LLAMA ", \"rope_theta\": Infinity}", {"not JSON"}},
    {"{" LLAMA ", \"rope_theta\": 1e999}", {"not JSON"}},
    {"{" LLAMA ", \"rope_theta\": 0x10}", {"not JSON"}},
    {"{" LLAMA ", \"rope_theta\": 010000}", {"not JSON"}},
    {"{" LLAMA ", \"rope_theta\": 99999999999999999999}", {"not JSON", "big integer"}},
    {"{" LLAMA ", \"rope_theta\": 10000, \"rope_theta\": 10000}", {"not JSON", "duplicate"}},
    {"{" LLAMA ", \"rope_scaling\": {\"factor\": 2, \"factor\": 4}}", {"not JSON", "duplicate"}},
    {"{" LLAMA ", \"x\": \"\\u0000\"}", {"not JSON"}},
    {"{" LLAMA ", \"x\": \"\xff\xfe\"}", {"not JSON"}},
    {"{" LLAMA ", \"x\": \"\xc0\x80\"}", {"not JSON"}},
    {"{" LLAMA ", \"x\": \"\\ud800\"}", {"not JSON"}},
    {"{" LLAMA ", \"x\": \"\x01\"}", {"not JSON"}},
    {"\xef\xbb\xbf{" LLAMA "}", {"not JSON"}},
};

static void check(const struct refusal *table, size_t count, int32_t wanted)
{
    for (size_t i = 0; i < count; i++) {
        posenc_error error;
        posenc_contract *contract;
        int32_t status = contract_try(&contract, table[i].json, &error);
        int good = status == wanted && error.code == wanted && !contract;
        for (size_t w = 0; w < 3 && table[i].words[w]; w++) {
            good &= strstr(error.text, table[i].words[w]) != NULL;
        }
        for (const char *c = error.text; *c; c++) {
            good &= *c >= 0x20 && *c < 0x7f;
        }
        if (!good) {
            print_error("%s\nstatus %d: %s\n", table[i].json, (int)status, error.text);
            fail();
        }
        assert_int_equal(posenc_contract_parse(&contract, table[i].json, strlen(table[i].json),
                                               NULL),
                         wanted);
    }
}

#define TABLE(table) table, sizeof table / sizeof table[0]

static void test_models(void **state)
{
    check(TABLE(models), POSENC_ERROR_MODEL);
    (void)state;
}

static void test_shapes(void **state)
{
    check(TABLE(shapes), POSENC_ERROR_MODEL);
    (void)state;
}

static void test_blocks(void **state)
{
    check(TABLE(blocks), POSENC_ERROR_MODEL);
    (void)state;
}

static void test_layers(void **state)
{
    check(TABLE(layers), POSENC_ERROR_MODEL);
    (void)state;
}

static void test_lengths(void **state)
{
    check(TABLE(lengths), POSENC_ERROR_MODEL);
    (void)state;
}

static void test_others(void **state)
{
    check(TABLE(others), POSENC_ERROR_MODEL);
    (void)state;
}

static void test_texts(void **state)
{
    check(TABLE(texts), POSENC_ERROR_FORMAT);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models), cmocka_unit_test(test_shapes), cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_layers), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_others), cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
