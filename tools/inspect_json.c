/* SPDX-License-Identifier: MIT */
/* The contract as one JSON object, with the names and nesting that scripts rely on. */
#include "inspect.h"

#include <string.h>

/* A value; the key's colon and comma come from here too, so that no list can lack one. */
static void put_key(const char *key)
{
    printf(",\n  \"%s\": ", key);
}

/* Texts from the library are one line of ASCII. */
static void put_string(const char *text)
{
    if (!text) {
        fputs("null", stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('"');
}

static void put_count(int64_t value)
{
    if (value < 0) {
        fputs("null", stdout);
    } else {
        printf("%lld", (long long)value);
    }
}

static void put_facts(const struct model *model)
{
    const posenc_contract_facts *facts = &model->facts;
    printf("{\n  \"scheme\": \"%s\"", facts->scheme == POSENC_SCHEME_ROPE ? "rope" : "none");
    put_key("model_type"), put_string(facts->model_type);
    put_key("num_heads"), put_count(facts->num_heads);
    put_key("num_kv_heads"), put_count(facts->num_kv_heads);
    put_key("head_dim"), put_count(facts->head_dim);
    put_key("num_layers"), put_count(facts->num_layers);
    put_key("max_position"), put_count(facts->max_position);
    put_key("max_position_key"), put_string(facts->max_position_key);
    put_key("trained_position"), put_count(facts->trained_position);
    put_key("softmax_scale");
    printf("{\"value\": %.17g, \"rule\": ", facts->softmax_scale);
    put_string(facts->softmax_rule);
    putchar('}');
}

static void put_set(const struct inspected_set *set)
{
    int32_t pairs = posenc_plan_pairs(set->plan);
    fputs("    {\"id\": ", stdout);
    put_string(set->facts.id);
    fputs(", \"rope_type\": ", stdout);
    put_string(set->facts.rope_type);
    printf(", \"theta\": %.17g, \"head_dim\": %d, \"num_heads\": %d, \"num_kv_heads\": %d,\n"
           "     \"rotary_dim\": %d, \"pairs\": %d, \"layout\": \"%s\", \"rotary_offset\": %d,\n"
           "     \"attention_factor\": %.17g, \"original_max_position\": ",
           set->facts.base, set->facts.head_dim, set->facts.num_heads, set->facts.num_kv_heads,
           set->facts.rotary_dim, pairs,
           set->facts.layout == POSENC_ADJACENT ? "adjacent" : "split_half",
           set->facts.rotary_offset, posenc_plan_attention_factor(set->plan));
    put_count(set->facts.original_max_position);
    fputs(", \"seq_len\": null, \"mrope\": null,\n     \"inv_freq\": [", stdout);
    for (int32_t i = 0; i < pairs; i++) {
        printf("%s%.17g", i ? ", " : "", set->inv_freq[i]);
    }
    fputs("]}", stdout);
}

/* The layers of one group, as a list. */
static void put_group(const struct model *model, const char *group)
{
    const char *separator = "";
    putchar('[');
    for (int64_t i = 0; i < model->facts.num_layers; i++) {
        if (strcmp(inspect_layer_group(model, i), group) == 0) {
            printf("%s%lld", separator, (long long)i);
            separator = ", ";
        }
    }
    putchar(']');
}

static int has_group(const struct model *model, const char *group)
{
    for (int64_t i = 0; i < model->facts.num_layers; i++) {
        if (strcmp(inspect_layer_group(model, i), group) == 0) {
            return 1;
        }
    }
    return 0;
}

static void put_layer_sets(const struct model *model)
{
    static const char *const groups[] = {"global", "local", "full", "sliding", "chunked"};
    const char *separator = "{";
    put_key("layer_sets");
    if (!inspect_layers_differ(model)) {
        fputs("null", stdout);
        return;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        /* Of two sets each is named, even one that no layer uses. */
        if (has_group(model, groups[i]) || (model->facts.num_sets > 1 && i < 2)) {
            printf("%s\"%s\": ", separator, groups[i]);
            put_group(model, groups[i]);
            separator = ", ";
        }
    }
    putchar('}');
}

/* Layers of one answer of posenc_contract_layer_set; null where there is none. */
static void put_layers(const struct model *model, const char *key, int32_t wanted)
{
    int found = 0;
    put_key(key);
    for (int64_t i = 0; i < model->facts.num_layers; i++) {
        if (posenc_contract_layer_set(model->contract, i) == wanted) {
            printf("%s%lld", found ? ", " : "[", (long long)i);
            found = 1;
        }
    }
    fputs(found ? "]" : "null", stdout);
}

static void put_query_scale(const posenc_contract_facts *facts)
{
    put_key("query_scale");
    if (!facts->query_scale_layers) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"applies_to\": ", stdout);
    put_string(facts->query_scale_layers);
    fputs(", \"rule\": ", stdout);
    put_string(facts->query_scale_rule);
    printf(", \"factor\": %.17g, \"floor\": %lld, \"offset\": %lld}", facts->query_scale_factor,
           (long long)facts->query_scale_floor, (long long)facts->query_scale_offset);
}

static void put_assumed(const struct model *model)
{
    put_key("assumed");
    putchar('[');
    for (int32_t i = 0; i < model->facts.num_assumed; i++) {
        posenc_contract_note note = {.struct_size = sizeof note};
        posenc_contract_get_assumed(model->contract, i, &note, NULL);
        fputs(i ? ",\n    {\"key\": " : "\n    {\"key\": ", stdout);
        put_string(note.key);
        printf(", \"value\": %s, \"why\": ", note.value ? note.value : "null");
        put_string(note.text);
        putchar('}');
    }
    putchar(']');
}

static void put_warnings(const struct model *model)
{
    put_key("warnings");
    putchar('[');
    for (int32_t i = 0; i < model->facts.num_warnings; i++) {
        posenc_contract_note note = {.struct_size = sizeof note};
        posenc_contract_get_warning(model->contract, i, &note, NULL);
        fputs(i ? ",\n    {\"key\": " : "\n    {\"key\": ", stdout);
        put_string(note.key);
        fputs(", \"message\": ", stdout);
        put_string(note.text);
        putchar('}');
    }
    putchar(']');
}

void inspect_json(const struct inspection *inspection)
{
    const struct model *model = &inspection->model;
    put_facts(model);
    put_key("rope");
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        fputs(i ? ",\n" : "[\n", stdout);
        put_set(&inspection->sets[i]);
    }
    putchar(']');
    put_layer_sets(model);
    put_layers(model, "nope_layers", POSENC_LAYER_NOT_ROTATED);
    put_layers(model, "no_attention_layers", POSENC_LAYER_NO_ATTENTION);
    put_key("sliding_window"), put_count(model->facts.sliding_window);
    put_query_scale(&model->facts);
    fputs(",\n  \"alibi\": null, \"t5\": null, \"learned\": null, \"sinusoidal\": null,"
          " \"deberta\": null",
          stdout);
    put_assumed(model);
    put_warnings(model);
    puts("\n}");
}
