/* SPDX-License-Identifier: MIT */
/* Families of rotary models whose positions have several axes. Sources: docs/models.md. */
#include "family.h"

#include <posenc/posenc.h>

#define ADJACENT .layout = POSENC_ADJACENT
#define SPLIT_HALF .layout = POSENC_SPLIT_HALF
#define KEY_HEADS(n) .kv_rule = POSENC_KV_FIXED, .kv_heads = (n)
#define SECTIONS(a, b, c) .flags = POSENC_FAMILY_MROPE, .sections = {a, b, c, 0}
#define ALTERNATE(t, h, w) \
    .flags = POSENC_FAMILY_MROPE | POSENC_FAMILY_ALTERNATE, .sections = {t, h, w, 0}
#define ERNIE_VL                                                                          \
    ADJACENT, KEY_HEADS(4), .base = 500000, .sections = {22, 22, 20, 0},                  \
              .flags = POSENC_FAMILY_MROPE | POSENC_FAMILY_ERNIE
#define GLM_VL SECTIONS(8, 12, 12)
#define PADDLE SPLIT_HALF, KEY_HEADS(2), .base = 500000, .head_dim = 128, SECTIONS(16, 24, 24)
#define QWEN2_VL                                                                          \
    SPLIT_HALF, .base = 1000000, SECTIONS(16, 24, 24),                                    \
                .window_rule = POSENC_WINDOW_SWITCH, .window_key = "sliding_window",      \
                .window = 4096, .window_from = 80
#define QWEN3_5                                                                           \
    .partial = 0.25, .head_dim = 256, .period_key = "full_attention_interval",            \
    .period = 4, .phase = 1, .sections = {11, 11, 10, 0},                                 \
    .flags = POSENC_FAMILY_MROPE | POSENC_FAMILY_ALTERNATE | POSENC_FAMILY_OTHERS_LINEAR

static const struct posenc_family rows[] = {
    {"ernie4_5_vl_moe", ERNIE_VL},
    {"ernie4_5_vl_moe_text", ERNIE_VL},
    {"glm4v", ADJACENT, GLM_VL, .partial = 0.5},
    {"glm4v_moe", SPLIT_HALF, GLM_VL, .partial = 0.5},
    {"glm4v_moe_text", SPLIT_HALF, GLM_VL, .partial = 0.5},
    {"glm4v_text", ADJACENT, GLM_VL, .partial = 0.5},
    {"glm_image_text", SPLIT_HALF, GLM_VL, .partial = 0.5},
    {"glm_ocr_text", ADJACENT, GLM_VL, .partial = 0.5},
    {"hunyuan_vl", SPLIT_HALF},
    {"hunyuan_vl_text", SPLIT_HALF},
    {"paddleocr_vl", PADDLE},
    {"paddleocr_vl_text", PADDLE},
    {"qwen2_5_omni_text", QWEN2_VL},
    {"qwen2_5_vl", QWEN2_VL},
    {"qwen2_5_vl_text", QWEN2_VL},
    {"qwen2_vl", QWEN2_VL},
    {"qwen2_vl_text", QWEN2_VL},
    {"qwen3_5_moe_text", SPLIT_HALF, QWEN3_5, KEY_HEADS(2)},
    {"qwen3_5_text", SPLIT_HALF, QWEN3_5, KEY_HEADS(4)},
    {"qwen3_omni_moe_text", SPLIT_HALF, KEY_HEADS(4), .base = 1000000, ALTERNATE(24, 20, 20)},
    {"qwen3_vl_moe_text", SPLIT_HALF, KEY_HEADS(16), .base = 500000, ALTERNATE(24, 20, 20)},
    {"qwen3_vl_text", SPLIT_HALF, .base = 500000, .head_dim = 128, ALTERNATE(24, 20, 20)},
};

const struct posenc_family_table posenc_families_axes = {rows, sizeof rows / sizeof rows[0]};
