/* SPDX-License-Identifier: MIT */
/* What the class behind a model_type implies and config.json does not say: one row of data each. */
#ifndef POSENC_CONTRACT_FAMILY_H
#define POSENC_CONTRACT_FAMILY_H

#include <stdint.h>

enum posenc_family_scheme {
    POSENC_FAMILY_ROPE,
    POSENC_FAMILY_NONE, /* attention without positions, or no attention */
    POSENC_FAMILY_ALIBI,
    POSENC_FAMILY_T5,
    POSENC_FAMILY_DEBERTA,
    POSENC_FAMILY_LEARNED,
    POSENC_FAMILY_SINUSOIDAL
};

enum posenc_kv_rule { /* how many key heads where no key says it */
    POSENC_KV_HEADS, /* as many as query heads */
    POSENC_KV_FIXED, /* family->kv_heads */
    POSENC_KV_FALCON,
    POSENC_KV_CHATGLM,
    POSENC_KV_BIGCODE
};

enum posenc_softmax_rule {
    POSENC_SOFTMAX_HEAD,      /* head_dim^-0.5 */
    POSENC_SOFTMAX_SCALAR,    /* query_pre_attn_scalar^-0.5 */
    POSENC_SOFTMAX_MULTIPLIER, /* attention_multiplier */
    POSENC_SOFTMAX_ONE,        /* scores are not scaled */
    POSENC_SOFTMAX_DEBERTA     /* (head_dim * (1 + entries of pos_att_type))^-0.5 */
};

enum posenc_window_rule {
    POSENC_WINDOW_NONE,
    POSENC_WINDOW_KEY,   /* window_key */
    POSENC_WINDOW_SWITCH, /* window_key, if use_sliding_window is true, from max_window_layers on */
    POSENC_WINDOW_LAYERS  /* window_key, if not null, from max_window_layers on */
};

enum { /* flags */
    POSENC_FAMILY_MLA = 1,             /* a head is nope then rope */
    POSENC_FAMILY_MROPE = 2,           /* three-axis positions always: sections are needed */
    POSENC_FAMILY_NOPE_LIST = 4,       /* no_rope_layers, no_rope_layer_interval */
    POSENC_FAMILY_ROPE_ON_SLIDING = 8, /* other layers are not rotated */
    POSENC_FAMILY_ROPE_RATIO = 16,     /* base is 10000 rope_ratio */
    POSENC_FAMILY_QUERY_LLAMA4 = 32,   /* query scale of layers without rotation */
    POSENC_FAMILY_QUERY_BETA = 64,     /* query scale by llama_4_scaling_beta of the rope block */
    POSENC_FAMILY_OTHERS_LINEAR = 128, /* layers that are not full have no softmax attention */
    POSENC_FAMILY_LOCAL_PLAIN = 256,   /* a flat rope block is not for sliding layers */
    POSENC_FAMILY_GLOBAL_WIDTHS = 512, /* full layers have global_head_dim */
    POSENC_FAMILY_PADDED = 1024,       /* positions start behind pad_token_id */
    POSENC_FAMILY_TYPED = 2048,        /* position_embedding_type chooses the scheme */
    POSENC_FAMILY_MSCALES = 4096,      /* short_mscale and long_mscale of LongRoPE */
    POSENC_FAMILY_PER_LAYER = 8192,    /* T5: a table in every layer */
    POSENC_FAMILY_ALTERNATE = 16384,   /* M-RoPE axes alternate from pair to pair */
    POSENC_FAMILY_ERNIE = 32768,       /* M-RoPE sections [h, w, t], h and w alternate */
    POSENC_FAMILY_RECURRENT = 65536,   /* no attention in any layer: heads are not read */
    POSENC_FAMILY_DECODER_TABLE = 131072, /* Whisper: a learned table in the decoder */
    POSENC_FAMILY_ROPE_BY_TYPE = 262144,  /* position_embedding_type "rope", else none */
    POSENC_FAMILY_BY_WIDTH = 524288,      /* Baichuan: rope if hidden_size is 4096, else alibi */
    POSENC_FAMILY_FREE_OF_WINDOW = 1048576, /* a window of null: all layers full and rotated */
    POSENC_FAMILY_NOPE_FIRST = 2097152,     /* of the layers without rotation, 0 is the first */
    POSENC_FAMILY_TAIL = 8388608,           /* the last qk_rope_head_dim channels turn */
    POSENC_FAMILY_BUCKETS = 4194304,        /* a learned table and T5's buckets, both sides */
    POSENC_FAMILY_NULL_BASE = 16777216,     /* a rope_theta of null: no layer is rotated */
    POSENC_FAMILY_ATTN_CONFIG = 33554432,   /* DBRX: key heads and base stand in attn_config */
    POSENC_FAMILY_CYCLE = 67108864,         /* block_types repeats over the layers */
    POSENC_FAMILY_LINEAR_CONFIG = 134217728, /* linear_attn_config lists the full layers */
    POSENC_FAMILY_CROSS = 268435456,        /* layers of cross_attention_layers do not rotate */
    POSENC_FAMILY_DOUBLED = 536870912       /* Zamba2: a head is 2 hidden_size / heads */
};

/* Zero means: no such rule, or the common default (base 10000, partial 1). */
struct posenc_family {
    const char *model_type;
    const char *block;     /* rope block of the class, as JSON, where the file has none */
    const char *layout_key; /* boolean key of the file: true is adjacent */
    const char *base_key;  /* older spelling of rope_theta */
    const char *global_base_key; /* instead of rope_theta, for layers that do not slide */
    const char *labels[2];   /* names of the blocks of full and of sliding layers, if special */
    const char *local_base_key; /* base of sliding layers: they have a set of their own */
    const char *window_key;
    const char *period_key; /* layer i is full where (i + phase) % period == 0 */
    const char *pattern_key; /* list: 0 full, 1 sliding */
    const char *index_key;   /* list: indices of layers with attention, the others have none */
    const char *letters_key; /* string, a letter a layer: * is attention */
    const char *nope_key;    /* list like no_rope_layers, under another name */
    const char *position_key; /* declared limit, before the common spellings */
    const char *offset_key;   /* layer i is full where i % period == this */
    const char *bias;         /* ALiBi: the model's own form */
    const char *kind;         /* sinusoids: see posenc_contract_sinusoidal */
    const char *divisor;
    double base;
    double partial;
    double local_base;
    double softmax;
    double softcap;
    int32_t layout;
    int32_t head_dim;
    int32_t kv_heads;
    int32_t rotary_dim;
    int32_t window;
    int32_t window_from; /* max_window_layers where no key gives it; 0: 28 */
    int32_t period;
    int32_t phase;
    int32_t offset;   /* tables: row = position + offset */
    int32_t extra;    /* tables: rows beyond the declared limit */
    int32_t sinks;    /* 1: each head has a learned sink */
    int32_t sections[4]; /* M-RoPE: where no key gives them */
    uint32_t flags;
    enum posenc_family_scheme scheme;
    enum posenc_kv_rule kv_rule;
    enum posenc_softmax_rule softmax_rule;
    enum posenc_window_rule window_rule;
};

/* The row of a model_type, or NULL. */
const struct posenc_family *posenc_family_find(const char *model_type);

/* Why a model_type is known and not read, or NULL. */
const char *posenc_family_refusal(const char *model_type);

/* Row by index, NULL past the end: for tests. */
const struct posenc_family *posenc_family_at(int32_t index);

/* The tables that these search: families_rope.c, families_axes.c, families_other.c. */
struct posenc_family_table {
    const struct posenc_family *rows;
    int32_t count;
};

extern const struct posenc_family_table posenc_families_rope;
extern const struct posenc_family_table posenc_families_axes;
extern const struct posenc_family_table posenc_families_other;

#endif
