/* SPDX-License-Identifier: MIT */
/* Heads, widths, layers, limits and the pair layout of a model. */
#include "family.h"
#include "reader.h"

static const int64_t MAX_POSITION = INT64_C(1) << 53;

static int need_spelled(struct posenc_reader *reader, const char *const *keys, int64_t high,
                        int64_t *value)
{
    int found = posenc_get_spelled(reader, &reader->text, keys, 1, high, value, NULL);
    if (found == 0) {
        return posenc_refuse_missing(reader, &reader->text, keys[0], "every model needs it");
    }
    return found < 0 ? -1 : 0;
}

/* The head is nope then rope; the sum is what transformers computes, whatever qk_head_dim says. */
static int mla_width(struct posenc_reader *reader, int64_t *width)
{
    const struct posenc_node *text = &reader->text;
    int64_t nope = 0, rope = 0, stated = 0;
    if (posenc_get_integer(reader, text, "qk_nope_head_dim", 1, 32768, &nope) < 0 ||
        posenc_get_integer(reader, text, "qk_rope_head_dim", 2, 32768, &rope) < 0 ||
        posenc_get_integer(reader, text, "qk_head_dim", 1, 65536, &stated) < 0) {
        return -1;
    }
    if (!nope || !rope) {
        return posenc_refuse_missing(reader, text, nope ? "qk_rope_head_dim" : "qk_nope_head_dim",
                                     "latent attention needs it");
    }
    if (stated && stated != nope + rope) {
        posenc_fail(posenc_warning(reader, text, "qk_head_dim"), POSENC_OK,
                    "is %d but qk_nope_head_dim + qk_rope_head_dim is %d: the sum counts", stated,
                    nope + rope);
    }
    reader->common.params.rotary_offset = (int32_t)nope;
    *width = nope + rope;
    return 0;
}

/* hidden_size / heads, where no key and no class says it. */
static int divided_width(struct posenc_reader *reader, int64_t heads, int64_t *width)
{
    static const char *const keys[] = {"hidden_size", "n_embd", "n_embed", "d_model", "dim", NULL};
    int64_t hidden = 0;
    const char *used = NULL;
    int found = posenc_get_spelled(reader, &reader->text, keys, 1, INT32_MAX, &hidden, &used);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(reader, &reader->text, "head_dim",
                                                 "it needs this key or hidden_size");
    }
    *width = hidden / heads;
    if (hidden % heads != 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must be a multiple of the number of heads, %d", heads);
        return posenc_refuse(reader, &reader->text, used, rule.text);
    }
    if (*width < 2 || *width > 65536) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "gives %d channels a head: must be 2..65536", *width);
        return posenc_refuse(reader, &reader->text, used, rule.text);
    }
    return 0;
}

/* 1 if a key is written, even as null: transformers applies a class default only to absent ones. */
static int given(const struct posenc_reader *reader, const char *const *keys)
{
    while (*keys && !json_object_get(reader->text.json, *keys)) {
        keys++;
    }
    return *keys != NULL;
}

static int read_head_dim(struct posenc_reader *reader, int64_t heads)
{
    static const char *const keys[] = {"head_dim", "kv_channels", "d_kv", NULL};
    const struct posenc_family *family = reader->family;
    int64_t width = 0;
    int answer = 0;
    if (family->flags & POSENC_FAMILY_MLA) {
        answer = mla_width(reader, &width);
    } else if (family->flags & POSENC_FAMILY_DOUBLED) { /* whatever kv_channels says */
        answer = divided_width(reader, heads, &width);
        width *= 2;
        if (answer == 0 && width > 65536) {
            answer = posenc_refuse(reader, &reader->text, "hidden_size",
                                   "2 hidden_size / heads must be at most 65536");
        }
    } else if (posenc_get_spelled(reader, &reader->text, keys, 0, 65536, &width, NULL) < 0) {
        answer = -1;
    } else if (width == 0 && family->head_dim && !given(reader, keys)) {
        width = family->head_dim;
        posenc_assume_integer(reader, "head_dim", width, "the default of this model_type");
    } else if (width == 0) {
        answer = divided_width(reader, heads, &width);
    } else if (width == 1) {
        answer = posenc_refuse(reader, &reader->text, "head_dim", "must be at least 2");
    }
    reader->contract->facts.head_dim = width;
    reader->common.params.head_dim = (int32_t)width;
    return answer;
}

/* gpt_bigcode: one key head unless its switch is off. */
static int bigcode_kv_heads(struct posenc_reader *reader, int64_t heads, int64_t *kv)
{
    int multi = 1;
    if (posenc_get_bool(reader, &reader->text, "multi_query", &multi) < 0) {
        return -1;
    }
    *kv = multi ? 1 : heads;
    return 0;
}

/* Falcon and ChatGLM say by switches what others say by a number. */
static int switched_kv_heads(struct posenc_reader *reader, int64_t heads, int64_t *kv)
{
    const struct posenc_node *text = &reader->text;
    int falcon = reader->family->kv_rule == POSENC_KV_FALCON, newer = 0, multi = falcon;
    *kv = heads;
    if (falcon) {
        if (posenc_get_bool(reader, text, "new_decoder_architecture", &newer) < 0 ||
            posenc_get_bool(reader, text, "multi_query", &multi) < 0) {
            return -1;
        }
        if (newer) {
            return posenc_get_integer(reader, text, "num_kv_heads", 1, 65536, kv) < 0 ? -1 : 0;
        }
        *kv = multi ? 1 : heads;
        return 0;
    }
    if (posenc_get_bool(reader, text, "multi_query_attention", &multi) < 0) {
        return -1;
    }
    int found = multi ? posenc_get_integer(reader, text, "multi_query_group_num", 1, 65536, kv) : 1;
    return found != 0 ? (found < 0 ? -1 : 0)
                      : posenc_refuse_missing(reader, text, "multi_query_group_num",
                                              "multi_query_attention needs it");
}

/* DBRX: attn_config.kv_n_heads. */
static int nested_kv_heads(struct posenc_reader *reader, int64_t *kv)
{
    struct posenc_node config = {0};
    int found = posenc_get_object(reader, &reader->text, "attn_config", &config);
    *kv = reader->family->kv_heads;
    found = found > 0 ? posenc_get_integer(reader, &config, "kv_n_heads", 1, 65536, kv) : found;
    if (found == 0) {
        posenc_assume_integer(reader, "kv_n_heads", *kv, "the default of this model_type");
    }
    return found < 0 ? -1 : 0;
}

static int read_kv_heads(struct posenc_reader *reader, int64_t heads)
{
    static const char *const keys[] = {"num_key_value_heads", "num_kv_heads", "n_head_kv", NULL};
    const struct posenc_family *family = reader->family;
    const char *used = keys[0];
    int64_t kv = heads;
    if (family->kv_rule == POSENC_KV_BIGCODE) {
        if (bigcode_kv_heads(reader, heads, &kv) < 0) {
            return -1;
        }
    } else if (family->flags & POSENC_FAMILY_ATTN_CONFIG) {
        if (nested_kv_heads(reader, &kv) < 0) {
            return -1;
        }
    } else if (family->kv_rule == POSENC_KV_FALCON || family->kv_rule == POSENC_KV_CHATGLM) {
        if (switched_kv_heads(reader, heads, &kv) < 0) {
            return -1;
        }
    } else {
        int found = posenc_get_spelled(reader, &reader->text, keys, 1, 65536, &kv, &used);
        if (found < 0) {
            return -1;
        }
        if (!found) {
            int fixed = family->kv_rule == POSENC_KV_FIXED && !given(reader, keys);
            kv = fixed ? family->kv_heads : heads;
            posenc_assume_integer(reader, keys[0], kv,
                                  fixed ? "the default of this model_type"
                                        : "as many as there are query heads");
        }
    }
    if (heads % kv != 0) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "%d key heads must divide the number of query heads, %d", kv,
                    heads);
        return posenc_refuse(reader, &reader->text, used, rule.text);
    }
    reader->contract->facts.num_kv_heads = kv;
    reader->common.num_heads = (int32_t)heads;
    reader->common.num_kv_heads = (int32_t)kv;
    return 0;
}

static int read_limits(struct posenc_reader *reader)
{
    const char *const own = reader->family->position_key;
    const char *const keys[] = {own,
                                "max_position_embeddings",
                                "n_positions",
                                "max_sequence_length",
                                "seq_length",
                                "max_seq_len",
                                "n_ctx",
                                NULL};
    static const char *const trained[] = {"max_trained_positions",
                                          "original_max_position_embeddings",
                                          "initial_context_length", NULL};
    posenc_contract_facts *facts = &reader->contract->facts;
    const struct posenc_node *text = &reader->text;
    if (posenc_get_spelled(reader, text, own ? keys : keys + 1, 1, MAX_POSITION,
                           &facts->max_position, &facts->max_position_key) < 0 ||
        posenc_get_spelled(reader, text, trained, 1, MAX_POSITION, &facts->trained_position,
                           NULL) < 0) {
        return -1;
    }
    return 0;
}

int posenc_read_layout(struct posenc_reader *reader)
{
    const struct posenc_family *family = reader->family;
    int adjacent = family->layout == POSENC_ADJACENT;
    int found = family->layout_key
                    ? posenc_get_bool(reader, &reader->text, family->layout_key, &adjacent)
                    : 0;
    if (found < 0) {
        return -1;
    }
    if (!found) {
        posenc_assume_text(reader, "layout", adjacent ? "\"adjacent\"" : "\"split_half\"",
                           "the pair order of this model_type: no key states it");
    }
    if (!family->layout_key && !adjacent &&
        json_is_true(json_object_get(reader->text.json, "rope_interleaved"))) {
        posenc_fail(posenc_warning(reader, &reader->text, "rope_interleaved"), POSENC_OK,
                    "is true, but this model_type pairs halves and does not read it");
    }
    reader->common.params.layout = adjacent ? POSENC_ADJACENT : POSENC_SPLIT_HALF;
    return 0;
}

/* Scores become cap*tanh(score/cap). The cap of the vocabulary's logits is none of ours. */
static int read_softcap(struct posenc_reader *reader)
{
    double cap = reader->family->softcap;
    int found = posenc_get_real(reader, &reader->text, "attn_logit_softcapping", &cap);
    if (found < 0) {
        return -1;
    }
    if (found && !(cap > 0.0 && cap <= 0x1p64)) {
        return posenc_refuse(reader, &reader->text, "attn_logit_softcapping",
                             "must be > 0 and <= 2^64");
    }
    if (!found && json_object_get(reader->text.json, "attn_logit_softcapping")) {
        cap = 0.0;
    } else if (!found && cap > 0.0) {
        posenc_assume_real(reader, "attn_logit_softcapping", cap, "the default of this model_type");
    }
    reader->contract->facts.logit_softcap = cap;
    return 0;
}

/* Keys that change positions in a way that no field of the contract holds yet. */
static void warn_of_others(struct posenc_reader *reader)
{
    static const char *const keys[][2] = {
        {"dual_chunk_attention_config",
         "engines with dual chunk attention remap positions beyond a chunk: this is plain rope"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *json = json_object_get(reader->text.json, keys[i][0]);
        if (json && !json_is_null(json)) {
            posenc_fail(posenc_warning(reader, &reader->text, keys[i][0]), POSENC_OK, "%s",
                        keys[i][1]);
        }
    }
    if (reader->family->flags & POSENC_FAMILY_TAIL) {
        posenc_fail(posenc_warning(reader, &reader->text, "compress_rates"), POSENC_OK,
                    "keys of full layers are made of several tokens; values are turned as keys "
                    "and the output is turned back by the position of the query");
    }
    if ((reader->family->flags & POSENC_FAMILY_QUERY_LLAMA4) &&
        json_is_integer(json_object_get(reader->text.json, "attention_chunk_size"))) {
        posenc_fail(posenc_warning(reader, &reader->text, "attention_chunk_size"), POSENC_OK,
                    "rotated layers attend within chunks of this many tokens only");
    }
}

int posenc_read_shape(struct posenc_reader *reader)
{
    static const char *const head_keys[] = {"num_attention_heads", "n_head", "n_heads",
                                            "num_heads", "encoder_attention_heads",
                                            "decoder_attention_heads", NULL};
    static const char *const layer_keys[] = {"num_hidden_layers", "n_layer", "n_layers",
                                             "num_layers", "encoder_layers", NULL};
    posenc_contract_facts *facts = &reader->contract->facts;
    posenc_rope_params_init(&reader->common.params);
    reader->common.original_max_position = -1;
    reader->common.layers = POSENC_EVERY_KIND;
    int heads = !(reader->family->flags & POSENC_FAMILY_RECURRENT);
    if ((heads && need_spelled(reader, head_keys, 65536, &facts->num_heads) < 0) ||
        need_spelled(reader, layer_keys, POSENC_CONTRACT_MAX_LAYERS, &facts->num_layers) < 0 ||
        (heads && (read_head_dim(reader, facts->num_heads) < 0 ||
                   read_kv_heads(reader, facts->num_heads) < 0)) ||
        read_limits(reader) < 0 || read_softcap(reader) < 0) {
        return -1;
    }
    warn_of_others(reader);
    return 0;
}
