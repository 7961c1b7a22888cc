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
        const char *why = posenc_family_refusal(type);
        return posenc_refuse(reader, node, "model_type",
                             why ? why : "unknown, so its pair layout would be a guess");
    }
    reader->contract->facts.model_type = reader->family->model_type;
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

static int read_rotation(struct posenc_reader *reader)
{
    struct posenc_node block = {0};
    if (posenc_read_layout(reader) < 0 || posenc_read_rope(reader, &block) < 0 ||
        posenc_read_layer_sets(reader) < 0 || posenc_read_window(reader) < 0 ||
        posenc_read_softmax(reader) < 0 || posenc_read_query_scale(reader, &block) < 0 ||
        posenc_read_reach(reader) < 0) {
        return -1;
    }
    trained_by_block(&reader->contract->facts, &reader->contract->sets[0], &block);
    int rotates = reader->contract->facts.num_sets > 0; /* not if every kind's block is null */
    reader->contract->facts.scheme = rotates ? POSENC_SCHEME_ROPE : POSENC_SCHEME_NONE;
    return 0;
}

static int read_no_rotation(struct posenc_reader *reader)
{
    return posenc_read_other(reader) < 0 || posenc_read_layer_sets(reader) < 0 ||
                   posenc_read_window(reader) < 0 || posenc_read_softmax(reader) < 0
               ? -1
               : 0;
}

int posenc_read_hf(struct posenc_reader *reader)
{
    if (find_text(reader) < 0 || find_family(reader) < 0 || posenc_read_scheme(reader) < 0 ||
        posenc_read_shape(reader) < 0 || make_layers(reader) < 0) {
        return -1;
    }
    reader->contract->facts.source = "config.json";
    return reader->scheme == POSENC_FAMILY_ROPE ? read_rotation(reader) : read_no_rotation(reader);
}
