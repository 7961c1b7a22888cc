/* SPDX-License-Identifier: MIT */
/* The contract in a few aligned lines of at most 80 columns. */
#include "inspect.h"

#include <stdarg.h>
#include <string.h>

enum { LABEL = 15, HANGING = 2, COLUMNS = 80 };

/* The column that the next character goes to. */
static int column;

static void put_label(const char *label)
{
    column = printf("%-*s", LABEL, label);
}

static void end_line(void)
{
    putchar('\n');
    column = 0;
}

/* Words; a line that grows too long goes on in the next one, with room left for a comma. */
static void put_words(const char *text)
{
    while (*text) {
        int space = *text == ' ';
        int length = (int)strcspn(text + space, " ");
        if (space && column + 1 + length >= COLUMNS) {
            end_line();
            column = printf("%*s", LABEL + HANGING, "");
        } else if (space) {
            column += printf(" ");
        }
        column += printf("%.*s", length, text + space);
        text += space + length;
    }
}

/* The same for numbers and short texts. */
static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put_words(text);
}

void inspect_line(const char *label, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    put_label(label ? label : "");
    put_words(text);
    end_line();
}

static void put_shape(const posenc_contract_facts *facts)
{
    put_label("model");
    put("%s, %lld layers", facts->model_type, (long long)facts->num_layers);
    if (facts->num_heads > 0) {
        put(", %lld query and %lld key heads of %lld channels", (long long)facts->num_heads,
            (long long)facts->num_kv_heads, (long long)facts->head_dim);
    }
    end_line();
    inspect_line("scheme", "%s", inspect_scheme(facts->scheme));
    put_label("positions");
    if (facts->max_position < 0) {
        put_words("no limit declared");
    } else {
        put("%lld declared (%s)", (long long)facts->max_position, facts->max_position_key);
    }
    if (facts->trained_position >= 0) {
        put(", trained on %lld", (long long)facts->trained_position);
    }
    end_line();
    if (facts->softmax_rule) {
        inspect_line("softmax scale", "%.9g = %s", facts->softmax_scale, facts->softmax_rule);
    }
    if (facts->logit_softcap > 0.0) {
        inspect_line("score cap", "%.9g", facts->logit_softcap);
    }
    if (facts->sliding_window >= 0) {
        put_label("window");
        put("%lld tokens", (long long)facts->sliding_window);
        end_line();
    }
    if (facts->attention_chunk >= 0) {
        inspect_line("chunks", "of %lld positions", (long long)facts->attention_chunk);
    }
    if (facts->sink_layers) {
        inspect_line("sinks", "a learned one for each head of %s layers", facts->sink_layers);
    }
    if (facts->query_scale_layers) {
        put_label("query scale");
        put("%s, in %s", facts->query_scale_rule,
            strcmp(facts->query_scale_layers, "all") == 0 ? "all layers"
                                                          : "layers without rotation");
        end_line();
        inspect_line(NULL, "= 1 + %.9g*ln(1 + floor((pos + %lld)/%lld))",
                     facts->query_scale_factor, (long long)facts->query_scale_offset,
                     (long long)facts->query_scale_floor);
    }
}

static void put_scaling(const posenc_rope_params *params)
{
    int32_t scaling = params->scaling;
    if (scaling == POSENC_SCALING_NONE) {
        return;
    }
    put(scaling == POSENC_SCALING_NTK ? ", alpha %.9g" : ", factor %.9g", params->factor);
    if (scaling == POSENC_SCALING_LLAMA3) {
        put(", low_freq_factor %.9g, high_freq_factor %.9g", params->low_freq_factor,
            params->high_freq_factor);
    }
    if (scaling == POSENC_SCALING_YARN) {
        put(", beta_fast %.9g, beta_slow %.9g%s", params->beta_fast, params->beta_slow,
            params->truncate ? "" : ", not truncated");
    }
    if (scaling == POSENC_SCALING_NTK_MIXED) {
        put(", mixed_b %.9g", params->mixed_exponent);
    }
    if (scaling == POSENC_SCALING_PROPORTIONAL) {
        put(", %d pairs move", params->rotating_pairs);
    }
    if (params->original_max_position > 0.0) {
        put(", original length %.9g", params->original_max_position);
    }
}

static void put_axes(const posenc_contract_set *set)
{
    if (set->num_sections < 1) {
        return;
    }
    put_label("");
    put("%d position axes of", set->axes);
    for (int32_t i = 0; i < set->num_sections; i++) {
        put("%s %d", i ? "," : "", set->sections[i]);
    }
    put(" pairs%s; text has the same position on each", set->interleaved ? ", alternating" : "");
    end_line();
}

/* Gemma 4 and MiMo: what the first line says of the whole model is not true of this set. */
static void put_set_shape(const posenc_contract_facts *facts, const posenc_contract_set *set)
{
    if (set->num_heads != facts->num_heads || set->num_kv_heads != facts->num_kv_heads ||
        set->head_dim != facts->head_dim) {
        inspect_line(NULL, "%d query and %d key heads of %d channels in these layers",
                     set->num_heads, set->num_kv_heads, set->head_dim);
    }
}

static void put_set(const posenc_contract_facts *facts, const struct inspected_set *set)
{
    char label[64];
    int32_t pairs = posenc_plan_pairs(set->plan);
    snprintf(label, sizeof label, strlen(set->id) < 9 ? "rope %s" : "%s", set->id);
    put_label(label);
    put("%s%s, base %.9g", strlen(label) < LABEL ? "" : " ", set->facts.rope_type, set->facts.base);
    put_scaling(&set->params);
    end_line();
    put_label("");
    put("channels %d..%d of %d turn in %d pairs, %s", set->facts.rotary_offset,
        set->facts.rotary_offset + set->facts.rotary_dim - 1, set->facts.head_dim, pairs,
        set->facts.layout == POSENC_ADJACENT ? "adjacent" : "split_half");
    end_line();
    put_label("");
    put("%.9g..%.9g radians a token, attention factor %.9g", set->inv_freq[0],
        set->inv_freq[pairs - 1], posenc_plan_attention_factor(set->plan));
    end_line();
    put_set_shape(facts, &set->facts);
    put_axes(&set->facts);
}

/* "0-4, 6-10": what a list of layers looks like to people. */
static void put_layers(const struct model *model, const char *label, const char *group)
{
    const char *separator = "";
    int64_t first = -1;
    for (int64_t i = 0; i <= model->facts.num_layers; i++) {
        int in = i < model->facts.num_layers &&
                 (strcmp(group, "nope") == 0
                      ? posenc_contract_layer_set(model->contract, i) == POSENC_LAYER_NOT_ROTATED
                      : strcmp(inspect_layer_group(model, i), group) == 0);
        if (in && first < 0) {
            first = i;
        }
        if (in || first < 0) {
            continue;
        }
        if (!*separator) {
            put_label(label);
        }
        put(i - 1 > first ? "%s%lld-%lld" : "%s%lld", separator, (long long)first,
            (long long)(i - 1));
        separator = ", ";
        first = -1;
    }
    if (*separator) {
        end_line();
    }
}

static void put_notes(const struct model *model)
{
    posenc_contract_note note = {.struct_size = sizeof note};
    for (int32_t i = 0; i < model->facts.num_assumed; i++) {
        posenc_contract_get_assumed(model->contract, i, &note, NULL);
        put_label(i ? "" : "assumed");
        put_words(note.key);
        put_words(" = ");
        put_words(note.value ? note.value : "?");
        put_words(": ");
        put_words(note.text);
        end_line();
    }
    for (int32_t i = 0; i < model->facts.num_warnings; i++) {
        posenc_contract_get_warning(model->contract, i, &note, NULL);
        put_label("warning");
        put_words(note.key);
        put_words(": ");
        put_words(note.text);
        end_line();
    }
}

/* By sets where layers have several, else by kinds. */
static void put_groups(const struct inspection *inspection)
{
    static const char *const kinds[] = {"full", "sliding", "chunked"};
    const struct model *model = &inspection->model;
    char label[64];
    for (int32_t i = 0; i < model->facts.num_sets; i++) {
        posenc_contract_set set = {.struct_size = sizeof set};
        if (!posenc_contract_get_set(model->contract, i, &set, NULL)) {
            snprintf(label, sizeof label, "%s layers", set.id);
            put_layers(model, label, set.id);
        }
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(label, sizeof label, "%s layers", kinds[i]);
        put_layers(model, label, kinds[i]);
    }
}

void inspect_text(const struct inspection *inspection)
{
    const struct model *model = &inspection->model;
    put_shape(&model->facts);
    for (int32_t i = 0; i < inspection->num_sets; i++) {
        put_set(&model->facts, &inspection->sets[i]);
    }
    inspect_text_schemes(model);
    if (inspect_layers_differ(model)) {
        put_groups(inspection);
    }
    if (model->facts.scheme == POSENC_SCHEME_ROPE) {
        put_layers(model, "not rotated", "nope");
    }
    put_layers(model, "no attention", "no_attention");
    inspect_text_watch(inspection);
    put_notes(model);
}
