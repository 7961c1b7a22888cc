/* SPDX-License-Identifier: MIT */
/* A whole config.json of Hugging Face transformers, from its root to the contract. */
#include "family.h"
#include "reader.h"


/* Multimodal files keep the language model in a section of its own; the other sections are other
 * models, and their rope keys do not apply. */
static int find_text(struct posenc_reader *reader)
{
    static const char *const keys[] = {"text_config", "llm_config"};
    struct posenc_node thinker = {0};
    reader->text = reader->root;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int found = posenc_get_object(reader, &reader->root, keys[i], &reader->text);
        if (found != 0) {
            return found;
        }
    }
    int found = posenc_get_object(reader, &reader->root, "thinker_config", &thinker);
    return found > 0 ? posenc_get_object(reader, &thinker, "text_config", &reader->text) : found;
}

static int refuse_scheme(struct posenc_reader *reader, const struct posenc_node *node,
                         const char *key, const char *scheme)
{
    posenc_error rule;
    posenc_fail(&rule, POSENC_OK, "its scheme, %s, is not supported yet", scheme);
    return posenc_refuse(reader, node, key, rule.text);
}

/* The class fixes the pair layout, which no key states: an unknown class is refused. */
static int find_family(struct posenc_reader *reader)
{
    const char *type = NULL;
    const struct posenc_node *node = &reader->text;
    int found = posenc_get_string(reader, node, "model_type", &type);
    if (found == 0) {
        node = &reader->root;
        found = posenc_get_string(reader, node, "model_type", &type);
    }
    if (found == 0) {
        return posenc_refuse_missing(reader, node, "model_type",
                                     "it decides the pair layout, which cannot be guessed");
    }
    if (found < 0) {
        return -1;
    }
    reader->family = posenc_family_find(type);
    if (!reader->family) {
        return posenc_refuse(reader, node, "model_type",
                             "unknown, so its pair layout would be a guess");
    }
    reader->contract->facts.model_type = reader->family->model_type;
    return reader->family->refused
               ? refuse_scheme(reader, node, "model_type", reader->family->refused)
               : 0;
}

/* Keys by which a class that usually rotates plainly does something else. */
static int check_switches(struct posenc_reader *reader)
{
    static const char *const switches[][2] = {{"alibi", "alibi"},
                                              {"use_alibi", "alibi"},
                                              {"position_encoding_2d", "rope of two halves"}};
    static const char *const numbers[][2] = {{"rotary_scaling_factor", "dynamic"},
                                             {"rotary_emb_scale_base", "xpos"}};
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        int on = 0;
        if (posenc_get_bool(reader, &reader->text, switches[i][0], &on) < 0) {
            return -1;
        }
        if (on) {
            return refuse_scheme(reader, &reader->text, switches[i][0], switches[i][1]);
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = 0.0;
        int found = posenc_get_real(reader, &reader->text, numbers[i][0], &value);
        if (found != 0) {
            return found < 0 ? -1
                             : refuse_scheme(reader, &reader->text, numbers[i][0], numbers[i][1]);
        }
    }
    return 0;
}

static int make_layers(struct posenc_reader *reader)
{
    struct posenc_contract *contract = reader->contract;
    contract->layers =
        posenc_own(contract, (size_t)contract->facts.num_layers * sizeof *contract->layers);
    if (!contract->layers) {
        reader->status = posenc_fail(reader->error, POSENC_ERROR_MEMORY, "no memory for %d layers",
                                     contract->facts.num_layers);
        return -1;
    }
    return posenc_read_layer_kinds(reader);
}

/* Where nothing beside the block tells the trained length, the block's own does. */
static void trained_by_block(posenc_contract_facts *facts, const struct posenc_set *set,
                             const struct posenc_node *block)
{
    const json_t *stated = block->json
                               ? json_object_get(block->json, "original_max_position_embeddings")
                               : NULL;
    if (facts->trained_position < 0 && stated && !json_is_null(stated)) {
        facts->trained_position = set->original_max_position;
    }
}

int posenc_read_hf(struct posenc_reader *reader)
{
    struct posenc_node block = {0};
    if (find_text(reader) < 0 || find_family(reader) < 0 || check_switches(reader) < 0 ||
        posenc_read_shape(reader) < 0 || make_layers(reader) < 0 ||
        posenc_read_rope(reader, &block) < 0 || posenc_read_layer_sets(reader) < 0 ||
        posenc_read_window(reader) < 0 || posenc_read_softmax(reader) < 0 ||
        posenc_read_query_scale(reader, &block) < 0) {
        return -1;
    }
    trained_by_block(&reader->contract->facts, &reader->contract->sets[0], &block);
    reader->contract->facts.scheme = POSENC_SCHEME_ROPE;
    reader->contract->facts.source = "config.json";
    return 0;
}
