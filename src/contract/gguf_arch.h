/* SPDX-License-Identifier: MIT */
/* What general.architecture implies and no key of a GGUF file says: one row of data each. */
#ifndef POSENC_CONTRACT_GGUF_ARCH_H
#define POSENC_CONTRACT_GGUF_ARCH_H

#include <stddef.h>
#include <stdint.h>

enum posenc_gguf_axes {
    POSENC_GGUF_AXES_NONE,
    POSENC_GGUF_AXES_SECTIONS,    /* rope.dimension_sections, one section after another */
    POSENC_GGUF_AXES_INTERLEAVED, /* the same key, axes that alternate */
    POSENC_GGUF_AXES_OPTIONAL     /* SECTIONS where the key is given; split_half then */
};

enum posenc_gguf_kinds { /* which layers attend fully */
    POSENC_GGUF_KINDS_FULL,
    POSENC_GGUF_KINDS_LAST,  /* of every `period` layers the last; the others slide */
    POSENC_GGUF_KINDS_FIRST, /* the first */
    POSENC_GGUF_KINDS_LIST,  /* attention.sliding_window_pattern must say it */
    POSENC_GGUF_KINDS_LINEAR /* as LAST, by full_attention_interval; the others have no softmax */
};

enum posenc_gguf_softmax {
    POSENC_GGUF_SOFTMAX_HEAD,   /* attention.scale where it is given, else head_dim^-0.5 */
    POSENC_GGUF_SOFTMAX_GEMMA,  /* head_dim^-0.5; with wide_layers (embedding / heads)^-0.5 */
    POSENC_GGUF_SOFTMAX_ONE
};

enum { /* flags */
    POSENC_GGUF_MLA = 1,             /* a head is nope then rope; key_length_mla is its width */
    POSENC_GGUF_LOCAL_SET = 2,       /* sliding layers have their own base, 10000 unless given */
    POSENC_GGUF_LOCAL_PLAIN = 4,     /* the scaling is not for sliding layers */
    POSENC_GGUF_ROPE_ON_SLIDING = 8, /* other layers are not rotated */
    POSENC_GGUF_YARN_KEYS = 16,      /* the loader reads rope.scaling.yarn_beta_* */
    POSENC_GGUF_LOG_TENTH = 32,      /* yarn_log_multiplier is a tenth of mscale_all_dim */
    POSENC_GGUF_EXACT_RANGE = 64,    /* trained without rounding the range of YaRN */
    POSENC_GGUF_QUERY_LLAMA4 = 128,
    POSENC_GGUF_QUERY_BETA = 256,    /* attention.temperature_scale over the original length */
    POSENC_GGUF_WHOLE_HEAD = 512,    /* the loader refuses a rotary width other than the head's */
    POSENC_GGUF_UNREAD = 1024,       /* no loader of llama.cpp reads it */
    POSENC_GGUF_TWO_SIDES = 2048,    /* windows lie around the query */
    POSENC_GGUF_SINKS = 4096         /* each head has a learned sink */
};

/* Zero means: no such rule. */
struct posenc_gguf_arch {
    const char *name;
    const char *bias; /* ALiBi: the model's own form */
    double max_bias;  /* where no key gives it */
    uint32_t flags;
    int32_t layout; /* POSENC_ADJACENT or POSENC_SPLIT_HALF */
    int32_t scheme; /* POSENC_SCHEME_* */
    int32_t period;
    int32_t nope; /* one layer of so many, the last, is not rotated */
    int32_t nope_first; /* 1: the first of them */
    int32_t wide_layers;
    int32_t table_offset; /* learned tables: row = position + offset */
    enum posenc_gguf_axes axes;
    enum posenc_gguf_kinds kinds;
    enum posenc_gguf_softmax softmax;
};

/* The row of an architecture, or NULL. */
const struct posenc_gguf_arch *posenc_gguf_arch_find(const uint8_t *name, size_t length);

/* Row by index, NULL past the end: for tests. */
const struct posenc_gguf_arch *posenc_gguf_arch_at(int32_t index);

#endif
