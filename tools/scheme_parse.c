/* SPDX-License-Identifier: MIT */
/* --sinusoid, --alibi and --t5: schemes without a model, as NUMBER[,KEY=VALUE]... */
#include "scheme.h"

#include <stdio.h>
#include <string.h>

/* Takes one word after the first number. TOOL_OK or wrong usage after saying so; -1: unknown. */
typedef int take_word(void *params, const char *key, const char *value);

/* Splits `text`: its first word into `first`, every other one to `take`, with "" for the value of
 * a word without an equals sign. */
static int split(const char *option, const char *text, char *first, size_t size, take_word *take,
                 void *params)
{
    char copy[256];
    const char *seen[16];
    size_t count = 0;
    if (strlen(text) >= sizeof copy)
        return tool_wrong_usage("%s is longer than 255 characters", option);
    strcpy(copy, text);
    char *rest = copy, *word = strsep(&rest, ",");
    snprintf(first, size, "%s", word);
    while (rest) {
        word = strsep(&rest, ",");
        char *equals = strchr(word, '=');
        if (equals)
            *equals = 0;
        for (size_t i = 0; i < count; i++)
            if (strcmp(seen[i], word) == 0)
                return tool_wrong_usage("%s: %s is given twice", option, word);
        if (count < sizeof seen / sizeof seen[0])
            seen[count++] = word;
        int code = take(params, word, equals ? equals + 1 : "");
        if (code < 0)
            return tool_wrong_usage("%s: '%s' is unknown", option, word);
        if (code)
            return code;
    }
    return TOOL_OK;
}

static const struct {
    const char *name;
    int32_t arrangement, by_width, cosine_first, odd;
    double shift;
} forms[] = {
    {"interleaved", POSENC_SINUSOID_INTERLEAVED, 1, 0, POSENC_ODD_REFUSED, 0},
    {"halves", POSENC_SINUSOID_HALVES, 0, 0, POSENC_ODD_ZERO, 1},
    {"halves_vaswani", POSENC_SINUSOID_HALVES, 1, 0, POSENC_ODD_SINE, 0},
    {"timestep", POSENC_SINUSOID_HALVES, 0, 0, POSENC_ODD_ZERO, 1},
    {"ggml", POSENC_SINUSOID_HALVES, 0, 1, POSENC_ODD_ZERO, 0},
};

int scheme_set_form(posenc_sinusoid_params *params, const char *form)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(forms[i].name, form) != 0)
            continue;
        params->arrangement = forms[i].arrangement;
        params->exponent_by_width = forms[i].by_width;
        params->cosine_first = forms[i].cosine_first;
        params->odd = forms[i].odd;
        params->shift = forms[i].shift;
        return 1;
    }
    return 0;
}

/* A real number of a sinusoid; NULL for an unknown key. */
static double *real_field(posenc_sinusoid_params *params, const char *key)
{
    return strcmp(key, "base") == 0    ? &params->base
           : strcmp(key, "shift") == 0 ? &params->shift
           : strcmp(key, "scale") == 0 ? &params->scale
                                       : NULL;
}

static int take_sinusoid(void *to, const char *key, const char *value)
{
    posenc_sinusoid_params *params = to;
    int64_t integer;
    double *real = real_field(params, key);
    if (real)
        return tool_real(value, real)
                   ? TOOL_OK
                   : tool_wrong_usage("--sinusoid: %s is '%s': must be a number", key, value);
    if (strcmp(key, "form") == 0)
        return TOOL_OK; /* taken first, so that the order of the keys does not matter */
    if (strcmp(key, "cosine_first") == 0 && tool_integer(value, 0, 1, &integer))
        params->cosine_first = (int32_t)integer;
    else if (strcmp(key, "cosine_first") == 0)
        return tool_wrong_usage("--sinusoid: cosine_first is '%s': must be 0 or 1", value);
    else if (strcmp(key, "offset") == 0)
        return tool_integer(value, INT32_MIN, INT32_MAX, &params->position_offset)
                   ? TOOL_OK
                   : tool_wrong_usage("--sinusoid: offset is '%s': must be an integer", value);
    else if (strcmp(key, "odd") == 0 && strcmp(value, "zero") == 0)
        params->odd = POSENC_ODD_ZERO;
    else if (strcmp(key, "odd") == 0 && strcmp(value, "sine") == 0)
        params->odd = POSENC_ODD_SINE;
    else if (strcmp(key, "odd") == 0)
        return tool_wrong_usage("--sinusoid: odd is '%s': must be zero or sine", value);
    else
        return -1;
    return TOOL_OK;
}

static int take_form(void *to, const char *key, const char *value)
{
    if (strcmp(key, "form") != 0 || scheme_set_form(to, value))
        return TOOL_OK;
    return tool_wrong_usage("--sinusoid: form is '%s': must be one of interleaved, halves, "
                            "halves_vaswani, timestep, ggml",
                            value);
}

int scheme_parse_sinusoid(posenc_sinusoid_params *params, const char *text)
{
    char first[32];
    int64_t width;
    posenc_sinusoid_params_init(params);
    scheme_set_form(params, "interleaved");
    int code = split("--sinusoid", text, first, sizeof first, take_form, params);
    if (!code)
        code = split("--sinusoid", text, first, sizeof first, take_sinusoid, params);
    if (!code && !tool_integer(first, 1, 65536, &width))
        code = tool_wrong_usage("--sinusoid: WIDTH is '%s': must be an integer from 1 to 65536",
                                first);
    if (!code)
        params->dim = (int32_t)width;
    return code;
}

static int take_alibi(void *to, const char *key, const char *value)
{
    posenc_alibi_params *params = to;
    if (strcmp(key, "max") != 0)
        return -1;
    if (tool_real(value, &params->max_bias))
        return TOOL_OK;
    return tool_wrong_usage("--alibi: max is '%s': must be a number", value);
}

int scheme_parse_alibi(posenc_alibi_params *params, const char *text)
{
    char first[32];
    posenc_alibi_params_init(params);
    params->form = POSENC_ALIBI_DISTANCE;
    int code = split("--alibi", text, first, sizeof first, take_alibi, params);
    if (!code && !tool_integer(first, 1, 65536, &params->heads))
        code =
            tool_wrong_usage("--alibi: HEADS is '%s': must be an integer from 1 to 65536", first);
    return code;
}

/* The second number stands where others have keys. */
static int take_t5(void *to, const char *key, const char *value)
{
    posenc_t5_params *params = to;
    if (*value)
        return -1;
    if (strcmp(key, "causal") == 0) {
        params->bidirectional = 0;
        return TOOL_OK;
    }
    return params->max_distance == 0 && tool_integer(key, 1, INT32_MAX, &params->max_distance)
               ? TOOL_OK
               : -1;
}

int scheme_parse_t5(posenc_t5_params *params, const char *text)
{
    char first[32];
    int64_t buckets = 0;
    posenc_t5_params_init(params);
    params->max_distance = 0;
    params->bidirectional = 1;
    int code = split("--t5", text, first, sizeof first, take_t5, params);
    if (!code && (!tool_integer(first, 2, 65536, &buckets) || params->max_distance == 0))
        code = tool_wrong_usage("--t5 is '%s': must be BUCKETS,MAX[,causal], 2 to 65536 buckets",
                                text);
    params->num_buckets = (int32_t)buckets;
    return code;
}
