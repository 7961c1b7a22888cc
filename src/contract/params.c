/* SPDX-License-Identifier: MIT */
/*
 * params.json, which Meta and Mistral publish beside their own weights. Both order pairs
 * adjacently. Keys and defaults: ModelArgs of Meta's llama and llama-models, TransformerArgs of
 * mistral-inference.
 */
#include "json_files.h"

#include <math.h>
#include <stdlib.h>

static const char *const mistral_keys[] = {"yarn", "llama_4_scaling", "hidden_dim",
                                           "sliding_window", "_sliding_window", NULL};
static const char *const meta_keys[] = {"use_scaled_rope", "multiple_of", "ffn_dim_multiplier",
                                        "nope_layer_interval", NULL};

static int has(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return value && !json_is_null(value);
}

int posenc_is_params(const json_t *root)
{
    return !has(root, "model_type") && has(root, "dim") && has(root, "n_layers");
}

static const char *first_of(const json_t *root, const char *const *keys)
{
    while (*keys && !has(root, *keys)) {
        keys++;
    }
    return *keys;
}

/* The writer decides the base where no key states it, and the meaning of the scaling. */
static int whose(struct posenc_reader *reader, int *mistral)
{
    const char *one = first_of(reader->root.json, mistral_keys);
    const char *other = first_of(reader->root.json, meta_keys);
    if (one && other) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "a key of Mistral's beside Meta's %s", other);
        return posenc_refuse(reader, &reader->root, one, rule.text);
    }
    if (!one && !other && !has(reader->root.json, "rope_theta")) {
        return posenc_refuse_missing(reader, &reader->root, "rope_theta",
                                     "neither a key of Mistral's nor one of Meta's tells whose "
                                     "default counts");
    }
    *mistral = one != NULL;
    return 0;
}

static int need(struct posenc_reader *reader, const char *key, int64_t high, int64_t *value)
{
    int found = posenc_get_integer(reader, &reader->root, key, 1, high, value);
    return found == 0 ? posenc_refuse_missing(reader, &reader->root, key, "every model needs it")
                      : found < 0 ? -1 : 0;
}

/* Latent attention of Mistral's largest models: a head is nope then rope. */
static int latent_width(struct posenc_reader *reader, struct posenc_set *set, int64_t *width)
{
    int64_t nope = 0, rope = 0;
    int has_nope = posenc_get_integer(reader, &reader->root, "qk_nope_head_dim", 1, 32768, &nope);
    int has_rope = posenc_get_integer(reader, &reader->root, "qk_rope_head_dim", 2, 32768, &rope);
    if (has_nope < 0 || has_rope < 0) {
        return -1;
    }
    if (has_nope != has_rope) {
        return posenc_refuse_missing(reader, &reader->root,
                                     has_nope ? "qk_rope_head_dim" : "qk_nope_head_dim",
                                     "latent attention needs it");
    }
    if (has_nope) {
        *width = nope + rope;
        set->params.rotary_offset = (int32_t)nope;
    }
    return has_nope;
}

static int head_width(struct posenc_reader *reader, struct posenc_set *set, int64_t heads,
                      int64_t *width)
{
    int64_t dim = 0;
    int found = latent_width(reader, set, width);
    if (found == 0) {
        found = posenc_get_integer(reader, &reader->root, "head_dim", 2, 65536, width);
    }
    if (found == 0) {
        if (need(reader, "dim", INT32_MAX, &dim) < 0) {
            return -1;
        }
        *width = dim / heads;
        if (dim % heads != 0 || *width < 2 || *width > 65536) {
            return posenc_refuse(reader, &reader->root, "dim",
                                 "must be 2..65536 times the number of heads");
        }
    }
    set->params.head_dim = (int32_t)*width;
    set->params.rotary_dim = (int32_t)*width - set->params.rotary_offset;
    if (found >= 0 && set->params.rotary_dim % 2 != 0) {
        const char *key = set->params.rotary_offset ? "qk_rope_head_dim" : "head_dim";
        return posenc_refuse(reader, &reader->root, found ? key : "dim",
                             "an odd number of channels cannot turn in pairs");
    }
    return found < 0 ? -1 : 0;
}

static int read_heads(struct posenc_reader *reader, struct posenc_set *set)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    if (need(reader, "n_heads", 65536, &facts->num_heads) < 0 ||
        need(reader, "n_layers", POSENC_CONTRACT_MAX_LAYERS, &facts->num_layers) < 0 ||
        head_width(reader, set, facts->num_heads, &facts->head_dim) < 0) {
        return -1;
    }
    int found = posenc_get_integer(reader, &reader->root, "n_kv_heads", 1, 65536,
                                   &facts->num_kv_heads);
    if (found == 0) {
        facts->num_kv_heads = facts->num_heads;
        posenc_assume_integer(reader, "n_kv_heads", facts->num_heads,
                              "as many as there are query heads");
    }
    if (found >= 0 && facts->num_heads % facts->num_kv_heads != 0) {
        return posenc_refuse(reader, &reader->root, "n_kv_heads",
                             "must divide the number of query heads");
    }
    set->num_heads = (int32_t)facts->num_heads;
    set->num_kv_heads = (int32_t)facts->num_kv_heads;
    return found < 0 ? -1 : 0;
}

/* Mistral's window is a number for all layers, or a list that repeats over them, null for none. */
static int read_window(struct posenc_reader *reader, const char *key)
{
    posenc_contract *contract = reader->contract;
    const json_t *json = json_object_get(reader->root.json, key);
    size_t count = json_array_size(json);
    if (!json_is_array(json)) {
        return posenc_get_integer(reader, &reader->root, key, 1, INT64_C(1) << 53,
                                  &contract->facts.sliding_window);
    }
    for (int64_t i = 0; i < contract->facts.num_layers && count; i++) {
        const json_t *entry = json_array_get(json, (size_t)i % count);
        int64_t window = json_is_integer(entry) ? json_integer_value(entry) : -1;
        int64_t *known = &contract->facts.sliding_window;
        if (!json_is_null(entry) && (window < 1 || (*known > 0 && *known != window))) {
            return posenc_refuse(reader, &reader->root, key,
                                 "each must be null or the same length > 0");
        }
        if (!json_is_null(entry)) {
            *known = window;
            contract->layers[i].kind = POSENC_LAYER_SLIDING;
        }
    }
    return count ? 1 : posenc_refuse(reader, &reader->root, key, "must not be empty");
}

/* Meta's Llama 4 leaves every so-manieth layer unrotated. */
static int read_layers(struct posenc_reader *reader)
{
    posenc_contract *contract = reader->contract;
    int64_t interval = 0;
    contract->layers =
        posenc_own(contract, (size_t)contract->facts.num_layers * sizeof *contract->layers);
    if (!contract->layers) {
        reader->status =
            posenc_fail(reader->error, POSENC_ERROR_MEMORY, "no memory for layers");
        return -1;
    }
    if (posenc_get_integer(reader, &reader->root, "nope_layer_interval", 1, 65536, &interval) <
        0) {
        return -1;
    }
    for (int64_t i = 0; interval && i < contract->facts.num_layers; i++) {
        contract->layers[i].set = (i + 1) % interval ? 0 : POSENC_LAYER_NOT_ROTATED;
    }
    if (has(reader->root.json, "attention_chunk_size")) {
        posenc_fail(posenc_warning(reader, &reader->root, "attention_chunk_size"), POSENC_OK,
                    "rotated layers attend within chunks of this many tokens only");
    }
    const char *key = has(reader->root.json, "sliding_window") ? "sliding_window"
                                                               : "_sliding_window";
    return read_window(reader, key) < 0 || posenc_read_params_reach(reader) < 0 ? -1 : 0;
}

static int read_base(struct posenc_reader *reader, struct posenc_set *set, int mistral)
{
    double *base = &set->params.base;
    int found = posenc_get_real(reader, &reader->root, "rope_theta", base);
    if (found < 0) {
        return -1;
    }
    if (found && !(*base > 1.0 && *base < 0x1p76)) {
        return posenc_refuse(reader, &reader->root, "rope_theta", "must be > 1 and < 2^76");
    }
    if (!found) {
        int window = reader->contract->facts.sliding_window > 0;
        int scaled = has(reader->root.json, "use_scaled_rope");
        *base = mistral ? (window ? 10000.0 : 1000000.0) : scaled ? 500000.0 : 10000.0;
        posenc_assume_real(reader, "rope_theta", *base,
                           mistral  ? "Mistral's, which depends on whether there is a window"
                           : scaled ? "Llama 3's"
                                    : "that of Llama 1 and 2, whose files lack the key");
    }
    return 0;
}

static int read_limits(struct posenc_reader *reader)
{
    static const char *const keys[] = {"max_position_embeddings", "max_seq_len", NULL};
    posenc_contract_facts *facts = &reader->contract->facts;
    return posenc_get_spelled(reader, &reader->root, keys, 1, INT64_C(1) << 53,
                              &facts->max_position, &facts->max_position_key) < 0
               ? -1
               : 0;
}

int posenc_read_params(struct posenc_reader *reader)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    struct posenc_set *set = &reader->contract->sets[0];
    int mistral = 0;
    posenc_rope_params_init(&set->params);
    set->id = "main";
    set->rope_type = "default";
    set->layers = POSENC_EVERY_KIND;
    set->original_max_position = -1;
    set->params.layout = POSENC_ADJACENT;
    if (whose(reader, &mistral) < 0 || read_heads(reader, set) < 0 || read_layers(reader) < 0 ||
        read_base(reader, set, mistral) < 0 || read_limits(reader) < 0) {
        return -1;
    }
    posenc_assume_text(reader, "layout", "\"adjacent\"",
                       "the pair order of the writer's own weights: no key states it");
    facts->scheme = POSENC_SCHEME_ROPE;
    facts->model_type = mistral ? "mistral" : "llama";
    facts->source = "params.json";
    facts->num_sets = 1;
    facts->softmax_scale = 1.0 / sqrt((double)facts->head_dim);
    facts->softmax_rule = "head_dim^-0.5";
    if (posenc_read_params_scaling(reader, set, mistral) < 0) {
        return -1;
    }
    facts->trained_position = set->original_max_position;
    return posenc_read_params_query(reader, mistral);
}
