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
void inspect_put_string(const char *text)
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

void inspect_put_count(int64_t value)
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
    printf("{\n  \"scheme\": \"%s\"", inspect_scheme(facts->scheme));
    put_key("model_type"), inspect_put_string(facts->model_type);
    put_key("num_heads"), inspect_put_count(facts->num_heads);
    put_key("num_kv_heads"), inspect_put_count(facts->num_kv_heads);
    put_key("head_dim"), inspect_put_count(facts->head_dim);
    put_key("num_layers"), inspect_put_count(facts->num_layers);
    put_key("max_position"), inspect_put_count(facts->max_position);
    put_key("max_position_key"), inspect_put_string(facts->max_position_key);
    put_key("trained_position"), inspect_put_count(facts->trained_position);
    put_key("softmax_scale");
    if (!facts->softmax_rule) {
        fputs("null", stdout);
        return;
    }
    printf("{\"value\": %.17g, \"rule\": ", facts->softmax_scale);
    inspect_put_string(facts->softmax_rule);
    putchar('}');
}

static void put_numbers(const int32_t *numbers, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        printf("%s%d", i ? ", " : "[", numbers[i]);
    }
    putchar(']');
}

static void put_axes(const posenc_contract_set *set)
{
    if (set->num_sections < 1) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"section\": ", stdout);
    put_numbers(set->sections, set->num_sections);
    printf(", \"interleaved\": %s,\n     \"axis_of_pair\": ", set->interleaved ? "true" : "false");
    put_numbers(set->axis_of_pair, set->rotary_dim / 2);
    putchar('}');
}

static void put_set(const struct inspected_set *set)
{
    int32_t pairs = posenc_plan_pairs(set->plan);
    fputs("    {\"id\": ", stdout);
    inspect_put_string(set->id);
    fputs(", \"rope_type\": ", stdout);
    inspect_put_string(set->facts.rope_type);
    printf(", \"theta\": %.17g, \"head_dim\": %d, \"num_heads\": %d, \"num_kv_heads\": %d,\n"
           "     \"rotary_dim\": %d, \"pairs\": %d, \"layout\": \"%s\", \"rotary_offset\": %d,\n"
           "     \"attention_factor\": %.17g, \"original_max_position\": ",
           set->facts.base, set->facts.head_dim, set->facts.num_heads, set->facts.num_kv_heads,
           set->facts.rotary_dim, pairs,
           set->facts.layout == POSENC_ADJACENT ? "adjacent" : "split_half",
           set->facts.rotary_offset, posenc_plan_attention_factor(set->plan));
    inspect_put_count(set->facts.original_max_position);
    fputs(", \"seq_len\": ", stdout);
    inspect_put_count(set->seq_len);
    fputs(", \"mrope\": ", stdout);
    put_axes(&set->facts);
    fputs(",\n     \"inv_freq\": [", stdout);
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

/* The layers of one group, with the comma or brace before it. */
static void put_named_group(const struct model *model, const char *group, const char **separator)
{
    printf("%s\"%s\": ", *separator, group);
    put_group(model, group);
    *separator = ", ";
}

/* Of several sets each is named, even one that no layer uses; else the kinds that occur. */
static void put_layer_sets(const struct inspection *inspection)
{
    static const char *const kinds[] = {"full", "sliding", "chunked"};
    const struct model *model = &inspection->model;
    const char *separator = "{";
    int32_t sets = 0;
    put_key("layer_sets");
    if (!inspect_layers_differ(model)) {
        fputs("null", stdout);
        return;
    }
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        const struct inspected_set *set = &inspection->sets[i];
        int counts = set->seq_len < 0 && !inspect_is_second(&set->facts, &set->params);
        sets += counts;
        if (counts && strcmp(set->facts.id, "main") != 0) {
            put_named_group(model, set->facts.id, &separator);
        }
    }
    for (size_t i = 0; sets < 2 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (has_group(model, kinds[i])) {
            put_named_group(model, kinds[i], &separator);
        }
    }
    fputs(*separator == '{' ? "{}" : "}", stdout);
}

/* Layers of one answer of posenc_contract_layer_set; null where there is none. */
static void put_layers(const struct model *model, const char *key, int32_t wanted)
{
    int found = 0;
    int plain = wanted == POSENC_LAYER_NOT_ROTATED && model->facts.scheme != POSENC_SCHEME_ROPE;
    put_key(key);
    if (plain) { /* another scheme is in force, or none at all */
        fputs(model->facts.scheme == POSENC_SCHEME_NONE ? "\"all\"" : "null", stdout);
        return;
    }
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
    inspect_put_string(facts->query_scale_layers);
    fputs(", \"rule\": ", stdout);
    inspect_put_string(facts->query_scale_rule);
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
        inspect_put_string(note.key);
        printf(", \"value\": %s, \"why\": ", note.value ? note.value : "null");
        inspect_put_string(note.text);
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
        inspect_put_string(note.key);
        fputs(", \"message\": ", stdout);
        inspect_put_string(note.text);
        putchar('}');
    }
    putchar(']');
}

void inspect_json(const struct inspection *inspection)
{
    const struct model *model = &inspection->model;
    put_facts(model);
    put_key("source"), inspect_put_string(model->facts.source);
    put_key("rope");
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        fputs(i ? ",\n" : "[\n", stdout);
        put_set(&inspection->sets[i]);
    }
    fputs(inspection->num_sets ? "]" : "[]", stdout);
    put_layer_sets(inspection);
    put_layers(model, "nope_layers", POSENC_LAYER_NOT_ROTATED);
    put_layers(model, "no_attention_layers", POSENC_LAYER_NO_ATTENTION);
    put_key("sliding_window"), inspect_put_count(model->facts.sliding_window);
    put_key("logit_softcap");
    if (model->facts.logit_softcap > 0.0) {
        printf("%.17g", model->facts.logit_softcap);
    } else {
        fputs("null", stdout);
    }
    put_key("window_sides"), inspect_put_count(model->facts.window_sides);
    put_key("attention_chunk"), inspect_put_count(model->facts.attention_chunk);
    put_key("sink_layers"), inspect_put_string(model->facts.sink_layers);
    put_query_scale(&model->facts);
    inspect_json_schemes(inspection);
    put_assumed(model);
    put_warnings(model);
    puts("\n}");
}
