/* SPDX-License-Identifier: MIT */
/* Strict JSON by jansson: limits for hostile text, then typed look-ups that refuse by name. */
#include "reader.h"

#include <locale.h>
#include <string.h>

/* Python's json and jansson both keep integers of this size exact as doubles. */
static const int64_t MAX_INTEGER = INT64_C(1) << 53;

/* jansson recurses once per level and would go to 2048. */
static int too_deep(const char *text, size_t length)
{
    int32_t depth = 0;
    int in_string = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '[' || c == '{') {
            if (++depth > POSENC_CONTRACT_MAX_DEPTH) {
                return 1;
            }
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return 0;
}

/* jansson reads numbers by strtod and knows only decimal points of one byte: give this thread the
 * C locale meanwhile. */
static json_t *parse(const char *text, size_t length, json_error_t *found, int *no_memory)
{
    json_t *root = NULL;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *no_memory = plain == (locale_t)0;
    if (plain != (locale_t)0) {
        locale_t before = uselocale(plain);
        root = json_loadb(text, length, JSON_REJECT_DUPLICATES, found);
        uselocale(before);
        freelocale(plain);
    }
    return root;
}

int32_t posenc_json_load(json_t **root, const char *text, size_t length, posenc_error *error)
{
    if (length > POSENC_CONTRACT_MAX_BYTES) {
        return posenc_fail(error, POSENC_ERROR_FORMAT, "the text has %d bytes: at most %d are read",
                           (int64_t)length, (int64_t)POSENC_CONTRACT_MAX_BYTES);
    }
    if (too_deep(text, length)) {
        return posenc_fail(error, POSENC_ERROR_FORMAT,
                           "the text nests deeper than %d levels: not a config.json",
                           (int64_t)POSENC_CONTRACT_MAX_DEPTH);
    }
    json_error_t found = {.line = -1};
    int no_memory = 0;
    *root = parse(text, length, &found, &no_memory);
    if (!*root) {
        /* Without memory for its own buffers jansson fails and says nothing. */
        if (no_memory || !found.text[0] || json_error_code(&found) == json_error_out_of_memory) {
            return posenc_fail(error, POSENC_ERROR_MEMORY, "no memory to read the text");
        }
        return posenc_fail(error, POSENC_ERROR_FORMAT, "not JSON: line %d, column %d: %s",
                           (int64_t)found.line, (int64_t)found.column, found.text);
    }
    if (!json_is_object(*root)) {
        json_decref(*root);
        *root = NULL;
        return posenc_fail(error, POSENC_ERROR_FORMAT,
                           "the text is a list: a config.json is an object");
    }
    return POSENC_OK;
}

/* "rope_scaling.factor", in a message; names of a hostile file are cut. */
static void full_name(const struct posenc_node *node, const char *key, posenc_error *name)
{
    posenc_fail(name, POSENC_OK, "%s%s%s", node->name, *node->name ? "." : "", key);
    name->text[100] = '\0';
}

int posenc_refuse_missing(struct posenc_reader *reader, const struct posenc_node *node,
                          const char *key, const char *rule)
{
    posenc_error name;
    full_name(node, key, &name);
    reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL, "%s is missing: %s", name.text,
                                 rule);
    return -1;
}

int posenc_refuse(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                  const char *rule)
{
    posenc_error name, value;
    const json_t *json = json_object_get(node->json, key);
    full_name(node, key, &name);
    switch (json ? json_typeof(json) : JSON_NULL) {
    case JSON_STRING: posenc_fail(&value, 0, "\"%s\"", json_string_value(json)); break;
    case JSON_INTEGER: posenc_fail(&value, 0, "%d", (int64_t)json_integer_value(json)); break;
    case JSON_REAL: posenc_fail(&value, 0, "%g", json_real_value(json)); break;
    case JSON_TRUE: posenc_fail(&value, 0, "true"); break;
    case JSON_FALSE: posenc_fail(&value, 0, "false"); break;
    case JSON_ARRAY: posenc_fail(&value, 0, "a list"); break;
    case JSON_OBJECT: posenc_fail(&value, 0, "an object"); break;
    default: posenc_fail(&value, 0, "null"); break;
    }
    value.text[60] = '\0';
    reader->status = posenc_fail(reader->error, POSENC_ERROR_MODEL, "%s is %s: %s", name.text,
                                 value.text, rule);
    return -1;
}

int posenc_refuse_unless(struct posenc_reader *reader, int holds, const struct posenc_node *node,
                         const char *key, const char *rule)
{
    return holds ? 0 : posenc_refuse(reader, node, key, rule);
}

/* NULL for absent and null alike: transformers treats them so. */
static json_t *look(const struct posenc_node *node, const char *key)
{
    json_t *json = json_object_get(node->json, key);
    return json_is_null(json) ? NULL : json;
}

int posenc_get_object(struct posenc_reader *reader, const struct posenc_node *parent,
                      const char *key, struct posenc_node *node)
{
    json_t *json = look(parent, key);
    if (!json) {
        return 0;
    }
    if (!json_is_object(json)) {
        return posenc_refuse(reader, parent, key, "must be an object or null");
    }
    posenc_error name;
    full_name(parent, key, &name);
    node->json = json;
    name.text[sizeof node->name - 1] = '\0';
    memcpy(node->name, name.text, strlen(name.text) + 1);
    return 1;
}

/* A real with an integral value, or any integer; 0 otherwise. */
static int as_integer(const json_t *json, int64_t *value)
{
    if (json_is_integer(json)) {
        *value = json_integer_value(json);
        return *value >= -MAX_INTEGER && *value <= MAX_INTEGER;
    }
    double real = json_real_value(json);
    if (!json_is_real(json) || !(real >= -0x1p53 && real <= 0x1p53)) {
        return 0;
    }
    *value = (int64_t)real;
    return (double)*value == real;
}

int posenc_get_integer(struct posenc_reader *reader, const struct posenc_node *node,
                       const char *key, int64_t low, int64_t high, int64_t *value)
{
    const json_t *json = look(node, key);
    int64_t found;
    if (!json) {
        return 0;
    }
    if (!as_integer(json, &found) || found < low || found > high) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must be an integer in %d..%d", low, high);
        return posenc_refuse(reader, node, key, rule.text);
    }
    if (json_is_real(json)) {
        posenc_fail(posenc_warning(reader, node, key), POSENC_OK,
                    "written as a real number, taken as the integer %d", found);
    }
    *value = found;
    return 1;
}

int posenc_get_real(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                    double *value)
{
    const json_t *json = look(node, key);
    if (!json) {
        return 0;
    }
    if (json_is_integer(json)) {
        int64_t whole;
        if (!as_integer(json, &whole)) {
            return posenc_refuse(reader, node, key, "an integer must not exceed 2^53");
        }
        *value = (double)whole;
        return 1;
    }
    if (!json_is_real(json)) {
        return posenc_refuse(reader, node, key, "must be a number");
    }
    *value = json_real_value(json);
    return 1;
}

int posenc_get_bool(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                    int *value)
{
    const json_t *json = look(node, key);
    if (!json) {
        return 0;
    }
    if (!json_is_boolean(json)) {
        return posenc_refuse(reader, node, key, "must be true or false");
    }
    *value = json_is_true(json);
    return 1;
}

int posenc_get_string(struct posenc_reader *reader, const struct posenc_node *node,
                      const char *key, const char **value)
{
    const json_t *json = look(node, key);
    if (!json) {
        return 0;
    }
    if (!json_is_string(json)) {
        return posenc_refuse(reader, node, key, "must be a string");
    }
    *value = json_string_value(json);
    return 1;
}

int posenc_get_array(struct posenc_reader *reader, const struct posenc_node *node, const char *key,
                     json_t **value)
{
    json_t *json = look(node, key);
    if (!json) {
        return 0;
    }
    if (!json_is_array(json)) {
        return posenc_refuse(reader, node, key, "must be a list");
    }
    *value = json;
    return 1;
}

int posenc_get_spelled(struct posenc_reader *reader, const struct posenc_node *node,
                       const char *const *keys, int64_t low, int64_t high, int64_t *value,
                       const char **used)
{
    const char *first = NULL;
    for (; *keys; keys++) {
        int64_t other = 0;
        int found = posenc_get_integer(reader, node, *keys, low, high, &other);
        if (found < 0) {
            return -1;
        }
        if (found && !first) {
            first = *keys;
            *value = other;
        } else if (found && other != *value) {
            posenc_fail(posenc_warning(reader, node, *keys), POSENC_OK,
                        "is %d but %s is %d: the latter counts", other, first, *value);
        }
    }
    if (used && first) {
        *used = first;
    }
    return first != NULL;
}

int posenc_get_first(struct posenc_reader *reader, const struct posenc_place *places, size_t count,
                     double *value, const struct posenc_place **found)
{
    *found = NULL;
    for (const struct posenc_place *place = places; place < places + count; place++) {
        double other = 0.0;
        int got = place->key && place->node->json
                      ? posenc_get_real(reader, place->node, place->key, &other)
                      : 0;
        if (got < 0) {
            return -1;
        }
        if (got && !*found) {
            *found = place;
            *value = other;
        } else if (got && other != *value) {
            posenc_error first;
            full_name((*found)->node, (*found)->key, &first);
            posenc_fail(posenc_warning(reader, place->node, place->key), POSENC_OK,
                        "is %g but %s is %g: the latter counts", other, first.text, *value);
        }
    }
    return 0;
}
