/* SPDX-License-Identifier: MIT */
/* What else decides who is seen and how much: sides of the window, chunks, learned sinks. */
#include "family.h"
#include "gguf.h"
#include "gguf_arch.h"
#include "reader.h"

#include <stdio.h>
#include <string.h>

static const char *sink_name(int full, int sliding)
{
    return full && sliding ? "all" : full ? "full" : sliding ? "sliding" : NULL;
}

/* MiMo's keys; any class that writes them means the same. */
static int read_sinks(struct posenc_reader *reader)
{
    int full = reader->family->sinks, sliding = full;
    if (posenc_get_bool(reader, &reader->text, "add_full_attention_sink_bias", &full) < 0 ||
        posenc_get_bool(reader, &reader->text, "add_swa_attention_sink_bias", &sliding) < 0) {
        return -1;
    }
    reader->contract->facts.sink_layers = sink_name(full, sliding);
    return 0;
}

/* ModernBERT's window and that of encoders made of Gemma 3 lie around the query. */
static void read_sides(struct posenc_reader *reader)
{
    if (reader->contract->facts.sliding_window < 0) {
        return;
    }
    const char *key = reader->family->window_key;
    int both = key && strcmp(key, "local_attention") == 0;
    both |= strcmp(reader->family->model_type, "gemma3_text") == 0 &&
            json_is_true(json_object_get(reader->text.json, "use_bidirectional_attention"));
    reader->contract->facts.window_sides = both ? 2 : 1;
}

static int read_chunk(struct posenc_reader *reader, const struct posenc_node *node)
{
    return posenc_get_integer(reader, node, "attention_chunk_size", 1, INT64_C(1) << 53,
                              &reader->contract->facts.attention_chunk) < 0
               ? -1
               : 0;
}

int posenc_read_reach(struct posenc_reader *reader)
{
    read_sides(reader);
    int chunks = (reader->family->flags & POSENC_FAMILY_QUERY_LLAMA4) ||
                 posenc_any_layer(reader->contract, POSENC_LAYER_CHUNKED);
    if (chunks && read_chunk(reader, &reader->text) < 0) {
        return -1;
    }
    return read_sinks(reader);
}

int posenc_read_params_reach(struct posenc_reader *reader)
{
    posenc_contract_facts *facts = &reader->contract->facts;
    facts->window_sides = facts->sliding_window < 0 ? -1 : 1;
    return read_chunk(reader, &reader->root);
}

/* A tensor of sinks in a layer of each kind. */
void posenc_gguf_reach(struct posenc_gguf_reader *from)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    int every = (from->arch->flags & POSENC_GGUF_SINKS) != 0;
    int has[POSENC_LAYER_KINDS] = {0};
    for (int64_t i = 0; i < from->layers; i++) {
        char name[48];
        snprintf(name, sizeof name, "blk.%lld.attn_sinks.weight", (long long)i);
        if (posenc_gguf_find_tensor(from, name)) {
            has[from->reader->contract->layers[i].kind] = 1;
        }
    }
    int sliding = has[POSENC_LAYER_SLIDING];
    int none_slides = !posenc_any_layer(from->reader->contract, POSENC_LAYER_SLIDING);
    int full = has[POSENC_LAYER_FULL] || has[POSENC_LAYER_CHUNKED];
    facts->sink_layers = every ? "all" : sink_name(full, sliding || (full && none_slides));
    if (facts->sliding_window >= 0) {
        facts->window_sides = from->arch->flags & POSENC_GGUF_TWO_SIDES ? 2 : 1;
    }
    if (from->arch->flags & POSENC_GGUF_QUERY_LLAMA4) {
        facts->attention_chunk = 8192;
        posenc_gguf_assume(from, "attention.chunk_size", 8192,
                           "the constant of this architecture");
    }
}
