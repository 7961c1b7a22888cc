/* SPDX-License-Identifier: MIT */
/* Finds the row of a model_type. */
#include "family.h"

#include <stddef.h>
#include <string.h>

static const struct posenc_family_table *const tables[] = {
    &posenc_families_rope, &posenc_families_axes, &posenc_families_other};

enum { TABLES = sizeof tables / sizeof tables[0] };

/* A multimodal wrapper whose text_config has no model_type of its own. */
static const char *const aliases[][2] = {
    {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n_text"},
    {"gemma4", "gemma4_text"},
    {"glm_ocr", "glm_ocr_text"},
    {"llama4", "llama4_text"},
    {"minimax_m3_vl", "minimax_m3_vl_text"},
    {"mistral3", "mistral"},
    {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text"},
};

/* Types whose layers differ in ways that no field of the contract holds. */
static const char *const refusals[][2] = {
    {"cohere2_moe", "which layers rotate depends on how many of the first are dense"},
    {"granite_swa", "layer_rope_theta gives each layer a base of its own"},
    {"granitemoe_swa", "layer_rope_theta gives each layer a base of its own"},
    {"laguna", "num_attention_heads_per_layer gives each layer query heads of its own"},
    {"openelm", "num_query_heads and num_kv_heads give each layer heads of its own"},
    {"step3p5", "rope_theta and partial_rotary_factors are lists by layer"},
};

const char *posenc_family_refusal(const char *model_type)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (strcmp(model_type, refusals[i][0]) == 0) {
            return refusals[i][1];
        }
    }
    return NULL;
}

const struct posenc_family *posenc_family_at(int32_t index)
{
    for (size_t i = 0; index >= 0 && i < TABLES; i++) {
        if (index < tables[i]->count) {
            return &tables[i]->rows[index];
        }
        index -= tables[i]->count;
    }
    return NULL;
}

const struct posenc_family *posenc_family_find(const char *model_type)
{
    const struct posenc_family *family;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(model_type, aliases[i][0]) == 0) {
            model_type = aliases[i][1];
        }
    }
    for (int32_t i = 0; (family = posenc_family_at(i)) != NULL; i++) {
        if (strcmp(model_type, family->model_type) == 0) {
            return family;
        }
    }
    return NULL;
}
