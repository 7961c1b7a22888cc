/* SPDX-License-Identifier: MIT */
/* How each layer of a GGUF model attends, its window, and whether it is rotated. */
#include "gguf.h"
#include "gguf_arch.h"

#include <stdlib.h>

static const char PATTERN[] = "attention.sliding_window_pattern";

static void by_period(struct posenc_gguf_reader *from, int64_t period, enum posenc_layer_kind other)
{
    int64_t phase = from->arch->kinds == POSENC_GGUF_KINDS_FIRST ? 0 : 1;
    for (int64_t i = 0; i < from->layers; i++) {
        int full = period > 0 && (i + phase) % period == 0;
        from->reader->contract->layers[i].kind = (uint8_t)(full ? POSENC_LAYER_FULL : other);
    }
}

static int by_list(struct posenc_gguf_reader *from)
{
    int64_t *slides = malloc((size_t)from->layers * sizeof *slides);
    if (!slides) {
        from->reader->status =
            posenc_fail(from->reader->error, POSENC_ERROR_MEMORY, "no memory for layers");
        return -1;
    }
    int found = posenc_gguf_per_layer(from, PATTERN, 0, 1, slides);
    for (int64_t i = 0; found > 0 && i < from->layers; i++) {
        from->reader->contract->layers[i].kind =
            slides[i] ? POSENC_LAYER_SLIDING : POSENC_LAYER_FULL;
    }
    free(slides);
    return found < 0 ? -1 : 0;
}

/* The key is a period or a list. */
static int sliding_kinds(struct posenc_gguf_reader *from)
{
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, PATTERN);
    int64_t period = from->arch->period;
    if (entry && entry->array) {
        return by_list(from);
    }
    if (!entry && from->arch->kinds == POSENC_GGUF_KINDS_LIST) {
        return posenc_gguf_refuse_missing(from, PATTERN, "it says which layers slide");
    }
    if (posenc_gguf_integer(from, PATTERN, 0, 65536, &period) < 0) {
        return -1;
    }
    if (!entry) {
        posenc_gguf_assume(from, PATTERN, (double)period,
                           "one layer of so many is full, by this architecture");
    }
    by_period(from, period, POSENC_LAYER_SLIDING);
    return 0;
}

static int linear_kinds(struct posenc_gguf_reader *from)
{
    static const char key[] = "full_attention_interval";
    int64_t period = from->arch->period;
    int found = posenc_gguf_integer(from, key, 1, 65536, &period);
    if (found < 0) {
        return -1;
    }
    if (!found) {
        posenc_gguf_assume(from, key, (double)period,
                           "one layer of so many attends, by this architecture");
    }
    by_period(from, period, POSENC_LAYER_LINEAR);
    return 0;
}

/* A window of 0 is how writers say that there is none. */
static int read_window(struct posenc_gguf_reader *from, int64_t *window)
{
    *window = 0;
    return posenc_gguf_integer(from, "attention.sliding_window", 0, INT64_C(1) << 53, window);
}

/* Layers that slide make the window matter; Phi-3 and StarCoder 2 have it on all. */
static int read_kinds(struct posenc_gguf_reader *from)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    int64_t window;
    int found = read_window(from, &window);
    if (found < 0) {
        return -1;
    }
    if (window > 0) {
        facts->sliding_window = window;
    }
    switch (from->arch->kinds) {
    case POSENC_GGUF_KINDS_LINEAR: return linear_kinds(from);
    case POSENC_GGUF_KINDS_FULL: return 0;
    default: break;
    }
    if (window > 0) {
        return sliding_kinds(from);
    }
    if (!found) {
        posenc_gguf_assume(from, "attention.sliding_window", 0, "without it no layer slides");
    }
    return 0;
}

static int is_turned(const struct posenc_gguf_arch *arch, const struct posenc_layer *layer,
                     int64_t index)
{
    if ((arch->flags & POSENC_GGUF_ROPE_ON_SLIDING) && layer->kind != POSENC_LAYER_SLIDING) {
        return 0;
    }
    return !arch->nope || (index + (arch->nope_first ? 0 : 1)) % arch->nope != 0;
}

int posenc_gguf_layers(struct posenc_gguf_reader *from)
{
    const struct posenc_gguf_arch *arch = from->arch;
    if (read_kinds(from) < 0) {
        return -1;
    }
    for (int64_t i = 0; i < from->layers; i++) {
        struct posenc_layer *layer = &from->reader->contract->layers[i];
        if (layer->kind == POSENC_LAYER_LINEAR || layer->set == POSENC_LAYER_NO_ATTENTION) {
            layer->kind = POSENC_LAYER_LINEAR;
            layer->set = POSENC_LAYER_NO_ATTENTION;
        } else if (layer->set == 0 && (arch->scheme != POSENC_SCHEME_ROPE ||
                                       !is_turned(arch, layer, i))) {
            layer->set = POSENC_LAYER_NOT_ROTATED;
        }
    }
    if (arch->nope) {
        posenc_gguf_assume(from, "no_rope_layer_step", arch->nope,
                           "one layer of so many is not rotated, by this architecture");
    }
    return 0;
}
