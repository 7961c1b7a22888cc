/* SPDX-License-Identifier: MIT */
/*
 * The table of GGUF architectures. Source: the loaders and the table of rope types of llama.cpp
 * (src/llama-model.cpp, src/models); where its rotation is not that of the model (gpt-oss, the
 * leftover pairs of interleaved axes), the model counts and docs/contract.md says so.
 */
#include "gguf_arch.h"

#include <posenc/contract.h>
#include <string.h>

#define ROPE .scheme = POSENC_SCHEME_ROPE
#define NORM ROPE, .layout = POSENC_ADJACENT
#define NEOX ROPE, .layout = POSENC_SPLIT_HALF
#define LAST(n) .kinds = POSENC_GGUF_KINDS_LAST, .period = (n)
#define FIRST(n) .kinds = POSENC_GGUF_KINDS_FIRST, .period = (n)
#define LIST .kinds = POSENC_GGUF_KINDS_LIST
#define LINEAR(n) .kinds = POSENC_GGUF_KINDS_LINEAR, .period = (n)
#define SECTIONS .axes = POSENC_GGUF_AXES_SECTIONS
#define INTERLEAVED .axes = POSENC_GGUF_AXES_INTERLEAVED
#define OPTIONAL .axes = POSENC_GGUF_AXES_OPTIONAL
#define MLA .flags = POSENC_GGUF_MLA | POSENC_GGUF_LOG_TENTH
#define ALIBI .scheme = POSENC_SCHEME_ALIBI
#define LEARNED .scheme = POSENC_SCHEME_LEARNED
#define NONE .scheme = POSENC_SCHEME_NONE

/* Alphabetical: the search is linear, the list is for readers. */
static const struct posenc_gguf_arch archs[] = {
    {"afmoe", NEOX, LAST(4), .nope = 4},
    {"apertus", NEOX},
    {"arcee", NORM},
    {"arctic", NORM},
    {"baichuan", NORM},
    {"bailingmoe", NORM},
    {"bailingmoe2", NEOX},
    {"bert", LEARNED},
    {"bitnet", NEOX},
    {"bloom", ALIBI, .max_bias = 8, .bias = "slope*key_position"},
    {"chameleon", NORM},
    {"chatglm", NORM},
    {"codeshell", NEOX},
    {"cogvlm", NEOX},
    {"cohere2", NORM, LAST(4), .flags = POSENC_GGUF_ROPE_ON_SLIDING},
    {"command-r", NORM},
    {"dbrx", NEOX},
    {"deci", NORM, .flags = POSENC_GGUF_WHOLE_HEAD},
    {"deepseek", NORM},
    {"deepseek2", NORM, MLA},
    {"deepseek32", NORM, MLA},
    {"dots1", NEOX},
    {"dream", NEOX},
    {"ernie4_5", NORM},
    {"ernie4_5-moe", NORM},
    {"eurobert", NEOX},
    {"exaone", NEOX},
    {"falcon", NEOX, .flags = POSENC_GGUF_WHOLE_HEAD},
    {"falcon-h1", NEOX},
    {"gemma", NEOX},
    {"gemma-embedding", NEOX, LAST(6),
     .flags = POSENC_GGUF_LOCAL_SET | POSENC_GGUF_LOCAL_PLAIN | POSENC_GGUF_TWO_SIDES},
    {"gemma2", NEOX, LAST(2), .softmax = POSENC_GGUF_SOFTMAX_GEMMA, .wide_layers = 46},
    {"gemma3", NEOX, LAST(6), .flags = POSENC_GGUF_LOCAL_SET | POSENC_GGUF_LOCAL_PLAIN,
     .softmax = POSENC_GGUF_SOFTMAX_GEMMA, .wide_layers = 62},
    {"gemma3n", NEOX, LAST(5), .flags = POSENC_GGUF_LOCAL_SET | POSENC_GGUF_LOCAL_PLAIN,
     .softmax = POSENC_GGUF_SOFTMAX_ONE},
    {"gemma4", NEOX, LIST, .flags = POSENC_GGUF_LOCAL_SET | POSENC_GGUF_LOCAL_PLAIN,
     .softmax = POSENC_GGUF_SOFTMAX_ONE},
    {"glm-dsa", NORM, MLA},
    {"glm4", NORM, OPTIONAL},
    {"glm4moe", NEOX, OPTIONAL},
    {"gpt-oss", NEOX, LAST(2), .flags = POSENC_GGUF_EXACT_RANGE | POSENC_GGUF_SINKS},
    {"gpt2", LEARNED},
    {"gptj", NORM, .flags = POSENC_GGUF_UNREAD},
    {"gptneox", NEOX},
    {"granite", NORM},
    {"granitehybrid", NORM},
    {"granitemoe", NORM},
    {"grovemoe", NEOX},
    {"hunyuan-dense", NEOX},
    {"hunyuan-moe", NEOX},
    {"internlm2", NORM},
    {"jais", ALIBI, .max_bias = 8, .bias = "-slope*|query-key|"},
    {"jais2", NEOX},
    {"jamba", NONE},
    {"jina-bert-v2", ALIBI, .max_bias = 8, .bias = "-slope*|query-key|"},
    {"jina-bert-v3", NEOX},
    {"lfm2", NEOX},
    {"lfm2moe", NEOX},
    {"llada", NORM},
    {"llada-moe", NEOX},
    {"llama", NORM, .flags = POSENC_GGUF_WHOLE_HEAD},
    {"llama-embed", NORM, .flags = POSENC_GGUF_WHOLE_HEAD},
    {"llama4", NORM, .nope = 4, .flags = POSENC_GGUF_QUERY_LLAMA4},
    {"maincoder", NORM},
    {"mamba", NONE},
    {"mamba2", NONE},
    {"mimo2", NEOX, LIST, .flags = POSENC_GGUF_LOCAL_SET},
    {"minicpm", NORM},
    {"minicpm3", NEOX, MLA},
    {"minimax-m2", NEOX},
    {"minimax-m3", NEOX},
    {"mistral3", NORM, .flags = POSENC_GGUF_YARN_KEYS | POSENC_GGUF_QUERY_BETA},
    {"modern-bert", NEOX, FIRST(3),
     .flags = POSENC_GGUF_LOCAL_SET | POSENC_GGUF_LOCAL_PLAIN | POSENC_GGUF_TWO_SIDES},
    {"mpt", ALIBI, .max_bias = 0, .bias = "slope*(key_position - (key_length-1))"},
    {"nanbeige", NORM},
    {"nemotron", NEOX},
    {"nemotron_h", NONE},
    {"nemotron_h_moe", NONE},
    {"neo-bert", NORM},
    {"nomic-bert", NEOX},
    {"nomic-bert-moe", NEOX},
    {"olmo", NORM},
    {"olmo2", NEOX},
    {"olmoe", NEOX},
    {"openelm", NEOX},
    {"orion", NEOX},
    {"paddleocr", NEOX, SECTIONS},
    {"pangu-embedded", NEOX},
    {"phi2", NEOX},
    {"phi3", NEOX},
    {"phimoe", NEOX},
    {"plamo", NEOX},
    {"plamo2", NEOX},
    {"plm", NORM, MLA},
    {"qwen", NEOX},
    {"qwen2", NEOX},
    {"qwen2moe", NEOX},
    {"qwen2vl", NEOX, SECTIONS},
    {"qwen3", NEOX},
    {"qwen35", NEOX, INTERLEAVED, LINEAR(4)},
    {"qwen35moe", NEOX, INTERLEAVED, LINEAR(4)},
    {"qwen3moe", NEOX},
    {"qwen3next", NEOX, LINEAR(4)},
    {"qwen3tts", NEOX, INTERLEAVED},
    {"qwen3vl", NEOX, INTERLEAVED},
    {"qwen3vlmoe", NEOX, INTERLEAVED},
    {"refact", ALIBI, .max_bias = 8, .bias = "-slope*|query-key|"},
    {"rwkv6", NONE},
    {"rwkv7", NONE},
    {"seed_oss", NEOX},
    {"smallthinker", NEOX, FIRST(4), .nope = 4, .nope_first = 1},
    {"smollm3", NORM, .nope = 4},
    {"stablelm", NEOX},
    {"starcoder", LEARNED},
    {"starcoder2", NEOX},
    {"t5", .scheme = POSENC_SCHEME_T5, .softmax = POSENC_GGUF_SOFTMAX_ONE},
    {"t5encoder", .scheme = POSENC_SCHEME_T5, .softmax = POSENC_GGUF_SOFTMAX_ONE},
    {"xverse", NORM},
};

const struct posenc_gguf_arch *posenc_gguf_arch_at(int32_t index)
{
    return index >= 0 && (size_t)index < sizeof archs / sizeof archs[0] ? &archs[index] : NULL;
}

const struct posenc_gguf_arch *posenc_gguf_arch_find(const uint8_t *name, size_t length)
{
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        if (strlen(archs[i].name) == length && memcmp(archs[i].name, name, length) == 0) {
            return &archs[i];
        }
    }
    return NULL;
}
