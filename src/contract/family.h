/* SPDX-License-Identifier: MIT */
/* What the class behind a model_type implies and config.json does not say: one row of data each. */
#ifndef POSENC_CONTRACT_FAMILY_H
#define POSENC_CONTRACT_FAMILY_H

#include <stdint.h>

enum posenc_kv_rule { /* how many key heads where no key says it */
    POSENC_KV_HEADS, /* as many as query heads */
    POSENC_KV_FIXED, /* family->kv_heads */
    POSENC_KV_FALCON,
    POSENC_KV_CHATGLM
};

enum posenc_softmax_rule {
    POSENC_SOFTMAX_HEAD,      /* head_dim^-0.5 */
    POSENC_SOFTMAX_SCALAR,    /* query_pre_attn_scalar^-0.5 */
    POSENC_SOFTMAX_MULTIPLIER /* attention_multiplier */
};

enum posenc_window_rule {
    POSENC_WINDOW_NONE,
    POSENC_WINDOW_KEY,   /* window_key */
    POSENC_WINDOW_SWITCH /* window_key, if use_sliding_window is true */
};

enum { /* flags */
    POSENC_FAMILY_MLA = 1,             /* a head is nope then rope */
    POSENC_FAMILY_MROPE = 2,           /* three-axis positions always */
    POSENC_FAMILY_NOPE_LIST = 4,       /* no_rope_layers, no_rope_layer_interval */
    POSENC_FAMILY_ROPE_ON_SLIDING = 8, /* other layers are not rotated */
    POSENC_FAMILY_ROPE_RATIO = 16,     /* base is 10000 rope_ratio */
    POSENC_FAMILY_QUERY_LLAMA4 = 32,   /* query scale of layers without rotation */
    POSENC_FAMILY_QUERY_BETA = 64,     /* query scale by llama_4_scaling_beta of the rope block */
    POSENC_FAMILY_OTHERS_LINEAR = 128, /* layers that are not full have no softmax attention */
    POSENC_FAMILY_LOCAL_PLAIN = 256    /* a flat rope block is not for sliding layers */
};

/* Zero means: no such rule, or the common default (base 10000, partial 1). */
struct posenc_family {
    const char *model_type;
    const char *refused;   /* scheme that is not supported yet; then nothing else is set */
    const char *block;     /* rope block of the class, as JSON, where the file has none */
    const char *layout_key; /* boolean key of the file: true is adjacent */
    const char *base_key;  /* older spelling of rope_theta */
    const char *local_base_key; /* base of sliding layers: they have a set of their own */
    const char *window_key;
    const char *period_key; /* layer i is full where (i + phase) % period == 0 */
    const char *pattern_key; /* list: 0 full, 1 sliding */
    const char *position_key; /* declared limit, before the common spellings */
    double base;
    double partial;
    double local_base;
    double softmax;
    int32_t layout;
    int32_t head_dim;
    int32_t kv_heads;
    int32_t rotary_dim;
    int32_t window;
    int32_t period;
    int32_t phase;
    uint32_t flags;
    enum posenc_kv_rule kv_rule;
    enum posenc_softmax_rule softmax_rule;
    enum posenc_window_rule window_rule;
};

/* The row of a model_type, or NULL. */
const struct posenc_family *posenc_family_find(const char *model_type);

/* Row by index, NULL past the end: for tests. */
const struct posenc_family *posenc_family_at(int32_t index);

#endif
