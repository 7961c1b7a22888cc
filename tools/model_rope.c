/* SPDX-License-Identifier: MIT */
/* --rope WIDTH[,KEY=VALUE]...: a rotary scheme without a model. */
#include "model.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Keys whose value is a real number or an integer, and the field each sets. */
static const struct {
    const char *key;
    size_t real;    /* offset of a double, or 0 */
    size_t integer; /* offset of an int32_t, or 0 */
} keys[] = {
    {"base", offsetof(posenc_rope_params, base), 0},
    {"factor", offsetof(posenc_rope_params, factor), 0},
    {"original", offsetof(posenc_rope_params, original_max_position), 0},
    {"low", offsetof(posenc_rope_params, low_freq_factor), 0},
    {"high", offsetof(posenc_rope_params, high_freq_factor), 0},
    {"beta_fast", offsetof(posenc_rope_params, beta_fast), 0},
    {"beta_slow", offsetof(posenc_rope_params, beta_slow), 0},
    {"mscale", offsetof(posenc_rope_params, mscale), 0},
    {"mscale_all_dim", offsetof(posenc_rope_params, mscale_all_dim), 0},
    {"attention_factor", offsetof(posenc_rope_params, attention_factor), 0},
    {"slope", offsetof(posenc_rope_params, magnitude_slope), 0},
    {"exponent", offsetof(posenc_rope_params, mixed_exponent), 0},
    {"rotating", 0, offsetof(posenc_rope_params, rotating_pairs)},
    {"truncate", 0, offsetof(posenc_rope_params, truncate)},
    {"head", 0, offsetof(posenc_rope_params, head_dim)},
    {"offset", 0, offsetof(posenc_rope_params, rotary_offset)},
};

/* Keys whose value is a word. */
static const struct {
    const char *key, *name;
    size_t field;
    int32_t value;
} words[] = {
    {"layout", "adjacent", offsetof(posenc_rope_params, layout), POSENC_ADJACENT},
    {"layout", "split_half", offsetof(posenc_rope_params, layout), POSENC_SPLIT_HALF},
    {"blend", "linear", offsetof(posenc_rope_params, yarn_blend), POSENC_YARN_LINEAR},
    {"blend", "geometric", offsetof(posenc_rope_params, yarn_blend), POSENC_YARN_GEOMETRIC},
    {"scaling", "none", offsetof(posenc_rope_params, scaling), POSENC_SCALING_NONE},
    {"scaling", "linear", offsetof(posenc_rope_params, scaling), POSENC_SCALING_LINEAR},
    {"scaling", "llama3", offsetof(posenc_rope_params, scaling), POSENC_SCALING_LLAMA3},
    {"scaling", "yarn", offsetof(posenc_rope_params, scaling), POSENC_SCALING_YARN},
    {"scaling", "ntk", offsetof(posenc_rope_params, scaling), POSENC_SCALING_NTK},
    {"scaling", "ntk_scaled", offsetof(posenc_rope_params, scaling), POSENC_SCALING_NTK_SCALED},
    {"scaling", "ntk_mixed", offsetof(posenc_rope_params, scaling), POSENC_SCALING_NTK_MIXED},
    {"scaling", "dynamic", offsetof(posenc_rope_params, scaling), POSENC_SCALING_DYNAMIC_NTK},
    {"scaling", "proportional", offsetof(posenc_rope_params, scaling),
     POSENC_SCALING_PROPORTIONAL},
};

static int take_number(posenc_rope_params *params, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        int64_t integer;
        double real;
        char *field = (char *)params;
        if (keys[i].real && tool_real(value, &real)) {
            memcpy(field + keys[i].real, &real, sizeof real);
            return TOOL_OK;
        }
        if (!keys[i].real && tool_integer(value, 0, INT32_MAX, &integer)) {
            int32_t narrow = (int32_t)integer;
            memcpy(field + keys[i].integer, &narrow, sizeof narrow);
            return TOOL_OK;
        }
        return tool_wrong_usage("--rope: %s is '%s': must be %s", key, value,
                                keys[i].real ? "a number" : "an integer from 0 on");
    }
    return tool_wrong_usage("--rope: the key %s is unknown", key);
}

static int take_pair(posenc_rope_params *params, const char *key, const char *value)
{
    char names[160] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].key, key) != 0)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                 words[i].name);
        if (strcmp(words[i].name, value) != 0)
            continue;
        memcpy((char *)params + words[i].field, &words[i].value, sizeof words[i].value);
        return TOOL_OK;
    }
    if (!used)
        return take_number(params, key, value);
    return tool_wrong_usage("--rope: %s is '%s': must be one of %s", key, value, names);
}

/* Whether `,key=` stands in the first `length` characters of text. */
static int was_given(const char *text, const char *key, size_t length)
{
    size_t size = strlen(key);
    for (const char *p = text; (p = strchr(p, ',')) && (size_t)(p - text) + 1 < length; p++)
        if (strncmp(p + 1, key, size) == 0 && p[1 + size] == '=')
            return 1;
    return 0;
}

int model_parse_rope(posenc_rope_params *params, const char *text)
{
    char copy[512];
    if (strlen(text) >= sizeof copy)
        return tool_wrong_usage("--rope is longer than 511 characters");
    strcpy(copy, text);
    posenc_rope_params_init(params);
    params->layout = POSENC_SPLIT_HALF;
    params->base = 10000;

    char *rest = copy, *word = strsep(&rest, ",");
    int64_t width;
    if (!tool_integer(word, 2, 65536, &width))
        return tool_wrong_usage("--rope: WIDTH is '%s': must be an even integer from 2 to 65536",
                                word);
    params->rotary_dim = params->head_dim = (int32_t)width;
    while (rest) {
        word = strsep(&rest, ",");
        char *equals = strchr(word, '=');
        if (!equals)
            return tool_wrong_usage("--rope: '%s' must be KEY=VALUE", word);
        *equals = 0;
        if (was_given(text, word, (size_t)(word - copy)))
            return tool_wrong_usage("--rope: %s is given twice", word);
        int code = take_pair(params, word, equals + 1);
        if (code)
            return code;
    }
    return TOOL_OK;
}
