/* SPDX-License-Identifier: MIT */
/* Heads, widths, layers and limits of a GGUF model. */
#include "gguf.h"
#include "gguf_arch.h"

#include <stdlib.h>

static const int64_t MAX_POSITION = INT64_C(1) << 53;

static int need(struct posenc_gguf_reader *from, const char *suffix, int64_t high, int64_t *value)
{
    int found = posenc_gguf_integer(from, suffix, 1, high, value);
    return found == 0 ? posenc_gguf_refuse_missing(from, suffix, "every model needs it")
                      : found < 0 ? -1 : 0;
}

/* key_length_mla is the head before the key is compressed; older files have that in key_length. */
static int head_width(struct posenc_gguf_reader *from, int64_t heads, int64_t *width)
{
    int64_t embedding = 0;
    int mla = from->arch->flags & POSENC_GGUF_MLA
                  ? posenc_gguf_integer(from, "attention.key_length_mla", 2, 65536, width)
                  : 0;
    int found = mla ? mla : posenc_gguf_integer(from, "attention.key_length", 2, 65536, width);
    if (found != 0) {
        return found < 0 ? -1 : 0;
    }
    if (need(from, "embedding_length", INT32_MAX, &embedding) < 0) {
        return -1;
    }
    *width = embedding / heads;
    if (embedding % heads != 0 || *width < 2 || *width > 65536) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must be 2..65536 times the number of heads, %d", heads);
        return posenc_gguf_refuse(from, "embedding_length", rule.text);
    }
    return 0;
}

/* The first layer that attends gives the model's numbers; one without heads has no attention. */
static int count_heads(struct posenc_gguf_reader *from, int64_t *counts, const char *suffix,
                       int64_t *heads)
{
    int found = posenc_gguf_per_layer(from, suffix, 0, 65536, counts);
    *heads = 0;
    for (int64_t i = 0; found > 0 && i < from->layers; i++) {
        *heads = *heads ? *heads : counts[i];
    }
    return found;
}

/* A model without any attention has no heads. */
static void no_heads(struct posenc_gguf_reader *from)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    facts->num_heads = facts->num_kv_heads = facts->head_dim = -1;
    for (int64_t i = 0; i < from->layers; i++) {
        from->reader->contract->layers[i].set = POSENC_LAYER_NO_ATTENTION;
    }
}

static int read_heads(struct posenc_gguf_reader *from, int64_t *counts)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    struct posenc_layer *layers = from->reader->contract->layers;
    int found = count_heads(from, counts, "attention.head_count", &facts->num_heads);
    if (found >= 0 && facts->num_heads == 0 && from->arch->scheme == POSENC_SCHEME_NONE) {
        no_heads(from);
        return 0;
    }
    if (found == 0) {
        return posenc_gguf_refuse_missing(from, "attention.head_count", "every model needs it");
    }
    if (found < 0) {
        return -1;
    }
    if (facts->num_heads == 0) {
        return posenc_gguf_refuse(from, "attention.head_count", "some layer must have heads");
    }
    found = count_heads(from, counts, "attention.head_count_kv", &facts->num_kv_heads);
    if (found < 0) {
        return -1;
    }
    for (int64_t i = 0; found && i < from->layers; i++) {
        layers[i].set = counts[i] ? 0 : POSENC_LAYER_NO_ATTENTION;
    }
    if (!found || (from->arch->flags & POSENC_GGUF_MLA)) {
        facts->num_kv_heads = facts->num_heads;
        posenc_gguf_assume(from, "attention.head_count_kv", (double)facts->num_heads,
                           found ? "in latent attention every head has a key of its own"
                                 : "as many as there are query heads");
    }
    if (facts->num_kv_heads == 0 || facts->num_heads % facts->num_kv_heads != 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must divide the number of query heads, %d",
                    facts->num_heads);
        return posenc_gguf_refuse(from, "attention.head_count_kv", rule.text);
    }
    return 0;
}

static int read_limits(struct posenc_gguf_reader *from)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    int found = posenc_gguf_integer(from, "context_length", 1, MAX_POSITION, &facts->max_position);
    if (found > 0) {
        posenc_error key;
        posenc_gguf_key(from, "context_length", &key);
        char *name = posenc_own(from->reader->contract, sizeof key.text);
        if (!name) {
            from->reader->status =
                posenc_fail(from->reader->error, POSENC_ERROR_MEMORY, "no memory for a key");
            return -1;
        }
        memcpy(name, key.text, sizeof key.text);
        facts->max_position_key = name;
    }
    return found < 0 ? -1
                     : posenc_gguf_integer(from, "rope.scaling.original_context_length", 1,
                                           MAX_POSITION, &facts->trained_position);
}

static int make_layers(struct posenc_gguf_reader *from)
{
    static const char key[] = "block_count";
    struct posenc_contract *contract = from->reader->contract;
    from->layers = 1;
    int found = posenc_gguf_integer(from, key, 1, POSENC_CONTRACT_MAX_LAYERS, &from->layers);
    int64_t beside = 0; /* layers that only predict further tokens stand behind the model's own */
    if (found < 0 ||
        posenc_gguf_integer(from, "nextn_predict_layers", 0, from->layers - 1, &beside) < 0) {
        return -1;
    }
    contract->facts.num_layers = found ? from->layers - beside : -1;
    if (!found) {
        posenc_fail(posenc_gguf_warning(from, key), POSENC_OK,
                    "is missing: what its layers have in common is all that is known");
    }
    contract->layers = posenc_own(contract, (size_t)from->layers * sizeof *contract->layers);
    if (!contract->layers) {
        from->reader->status = posenc_fail(from->reader->error, POSENC_ERROR_MEMORY,
                                           "no memory for %d layers", from->layers);
        return -1;
    }
    return 0;
}

int posenc_gguf_shape(struct posenc_gguf_reader *from)
{
    struct posenc_set *common = &from->reader->common;
    posenc_contract_facts *facts = &from->reader->contract->facts;
    posenc_rope_params_init(&common->params);
    common->original_max_position = -1;
    common->layers = POSENC_EVERY_KIND;
    if (make_layers(from) < 0) {
        return -1;
    }
    int64_t *counts = malloc((size_t)from->layers * sizeof *counts);
    if (!counts) {
        from->reader->status =
            posenc_fail(from->reader->error, POSENC_ERROR_MEMORY, "no memory for layers");
        return -1;
    }
    int answer = read_heads(from, counts);
    free(counts);
    if (answer < 0 || read_limits(from) < 0) {
        return -1;
    }
    if (facts->num_heads < 0) {
        return 0;
    }
    if (head_width(from, facts->num_heads, &facts->head_dim) < 0) {
        return -1;
    }
    common->num_heads = (int32_t)facts->num_heads;
    common->num_kv_heads = (int32_t)facts->num_kv_heads;
    common->params.head_dim = (int32_t)facts->head_dim;
    return 0;
}
