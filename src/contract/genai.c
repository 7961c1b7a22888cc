/* SPDX-License-Identifier: MIT */
/*
 * genai_config.json of onnxruntime-genai: the shape of the decoder and its limit. Base, scaling and
 * rotary width stand in the graph alone, so the class's are assumed, as for a config.json without
 * these keys, and the contract says so. Source: src/config.h and the model builder there.
 */
#include "json_files.h"

#include <string.h>

/* The names by which the builder shortens or joins classes. */
static const char *const names[][2] = {{"gptoss", "gpt_oss"},   {"phi3v", "phi3"},
                                       {"fara", "qwen2_5_vl"},  {"chatglm", "chatglm"},
                                       {"gemma3", "gemma3_text"}};

/* Keys of the decoder that config.json has too, and its name for each. */
static const char *const keys[][2] = {{"num_attention_heads", "num_attention_heads"},
                                      {"num_key_value_heads", "num_key_value_heads"},
                                      {"num_hidden_layers", "num_hidden_layers"},
                                      {"hidden_size", "hidden_size"},
                                      {"head_size", "head_dim"},
                                      {"layer_types", "layer_types"}};

int posenc_is_genai(const json_t *root)
{
    return json_is_object(json_object_get(json_object_get(root, "model"), "decoder"));
}

static const char *class_of(const char *type)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(type, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return type;
}

static int no_memory(struct posenc_reader *reader)
{
    reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY, "no memory to read the text");
    return -1;
}

/* A list of `count` layers that attend fully, and its entries at `layers` that slide. */
static int fill_types(struct posenc_reader *reader, const struct posenc_node *window,
                      const json_t *layers, int64_t count, json_t *types)
{
    for (int64_t i = 0; i < count; i++) {
        if (json_array_append_new(types, json_string("full_attention")) != 0) {
            return no_memory(reader);
        }
    }
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        int64_t index = json_is_integer(layer) ? json_integer_value(layer) : -1;
        if (index < 0 || index >= count) {
            return posenc_refuse(reader, window, "layers", "each must be the index of a layer");
        }
        if (json_array_set_new(types, (size_t)index, json_string("sliding_attention")) != 0) {
            return no_memory(reader);
        }
    }
    return 0;
}

/* A window counts for the layers that are listed; without a list it cuts prompts for a runtime. */
static int copy_window(struct posenc_reader *reader, const struct posenc_node *decoder,
                       json_t *config)
{
    struct posenc_node window = {0};
    json_t *layers = NULL;
    int64_t count = 0;
    int found = posenc_get_object(reader, decoder, "sliding_window", &window);
    if (found > 0) {
        found = posenc_get_array(reader, &window, "layers", &layers);
    }
    int has_count = posenc_get_integer(reader, decoder, "num_hidden_layers", 1,
                                       POSENC_CONTRACT_MAX_LAYERS, &count);
    if (found <= 0 || has_count <= 0 || json_array_size(layers) == 0) {
        return found < 0 || has_count < 0 ? -1 : 0;
    }
    json_t *length = json_object_get(window.json, "window_size"), *types = json_array();
    if (!types || json_object_set_new(config, "layer_types", types) != 0 ||
        (length && json_object_set(config, "sliding_window", length) != 0)) {
        return no_memory(reader);
    }
    return fill_types(reader, &window, layers, count, types);
}

/* What the class usually reaches by factors that this file does not have. */
static int refuse_factors(struct posenc_reader *reader, const struct posenc_node *model,
                          const char *class_name)
{
    int64_t length = 0;
    int found = posenc_get_integer(reader, model, "context_length", 1, INT64_C(1) << 53, &length);
    if (found > 0 && strcmp(class_name, "phi3") == 0 && length > 16384) {
        return posenc_refuse(reader, model, "context_length",
                             "phi3 reaches it by LongRoPE, whose factors only config.json has");
    }
    return found < 0 ? -1 : 0;
}

/* What config.json calls the same. 0, or -1 without memory. */
static int fill_config(json_t *config, const struct posenc_node *model,
                       const struct posenc_node *decoder, const char *class_name)
{
    json_t *length = json_object_get(model->json, "context_length");
    int failed = json_object_set_new(config, "model_type", json_string(class_name)) |
                 (length ? json_object_set(config, "max_position_embeddings", length) : 0);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_t *value = json_object_get(decoder->json, keys[i][0]);
        failed |= value ? json_object_set(config, keys[i][1], value) : 0;
    }
    return failed ? -1 : 0;
}

int posenc_read_genai(struct posenc_reader *reader)
{
    struct posenc_node model = {0}, decoder = {0};
    const char *type = NULL;
    if (posenc_get_object(reader, &reader->root, "model", &model) < 0 ||
        posenc_get_object(reader, &model, "decoder", &decoder) < 0) {
        return -1;
    }
    int found = posenc_get_string(reader, &model, "type", &type);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_refuse_missing(
                               reader, &model, "type",
                               "it decides the pair layout, which cannot be guessed");
    }
    const char *class_name = class_of(type);
    json_t *config = json_object();
    if (!config || fill_config(config, &model, &decoder, class_name) < 0) {
        json_decref(config);
        return no_memory(reader);
    }
    if (refuse_factors(reader, &model, class_name) < 0 ||
        copy_window(reader, &decoder, config) < 0) {
        json_decref(config);
        return -1;
    }
    posenc_fail(posenc_warning(reader, &model, "type"), POSENC_OK,
                "base, scaling and rotary width stand in the graph, not here: those of the class "
                "are assumed");
    json_t *whole = reader->root.json;
    reader->root = (struct posenc_node){.json = config};
    int answer = posenc_read_hf(reader);
    reader->root.json = whole;
    json_decref(config);
    if (answer == 0) {
        reader->contract->facts.source = "genai_config.json";
        reader->contract->facts.max_position_key = "context_length";
    }
    return answer;
}
