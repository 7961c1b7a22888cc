/* SPDX-License-Identifier: MIT */
/* Typed look-ups in the metadata of a GGUF file, and what is said of its keys. */
#include "gguf.h"
#include "gguf_arch.h"

#include <math.h>
#include <stdlib.h>

/* Compares a text with PREFIX.SUFFIX (prefix may be empty), in the order of the sorted arrays. */
struct name {
    const char *prefix;
    const char *suffix;
};

static int compare_bytes(const struct posenc_gguf_text *text, size_t *at, const char *part)
{
    for (; *part; part++, (*at)++) {
        if (*at >= text->length) {
            return 1;
        }
        int order = (int)(uint8_t)*part - (int)text->bytes[*at];
        if (order) {
            return order;
        }
    }
    return 0;
}

static int compare_name(const void *a, const void *b)
{
    const struct name *name = a;
    const struct posenc_gguf_text *text = b; /* the first member of an entry and of a tensor */
    size_t at = 0;
    int order = compare_bytes(text, &at, name->prefix);
    if (!order && *name->prefix) {
        order = compare_bytes(text, &at, ".");
    }
    if (!order) {
        order = compare_bytes(text, &at, name->suffix);
    }
    return order ? order : at < text->length ? -1 : 0;
}

const struct posenc_gguf_entry *posenc_gguf_find(const struct posenc_gguf_reader *from,
                                                 const char *suffix)
{
    const struct name name = {from->arch ? from->arch->name : "", suffix};
    return bsearch(&name, from->gguf.entries, from->gguf.num_entries, sizeof *from->gguf.entries,
                   compare_name);
}

const struct posenc_gguf_tensor *posenc_gguf_find_tensor(const struct posenc_gguf_reader *from,
                                                         const char *name)
{
    const struct name whole = {"", name};
    return bsearch(&whole, from->gguf.tensors, from->gguf.num_tensors, sizeof *from->gguf.tensors,
                   compare_name);
}

void posenc_gguf_key(const struct posenc_gguf_reader *from, const char *suffix, posenc_error *text)
{
    posenc_fail(text, POSENC_OK, "%s%s%s", from->arch ? from->arch->name : "",
                from->arch ? "." : "", suffix);
}

/* The value as a text of at most some 60 characters. */
static void show(const struct posenc_gguf_reader *from, const struct posenc_gguf_entry *entry,
                 posenc_error *text)
{
    if (entry->array) {
        posenc_fail(text, POSENC_OK, "a list of %d", (int64_t)entry->count);
    } else if (entry->type == POSENC_GGUF_STRING) {
        char word[41];
        size_t length = (size_t)posenc_gguf_bits(entry->value, 8, from->gguf.swapped);
        length = length < sizeof word - 1 ? length : sizeof word - 1;
        memcpy(word, entry->value + 8, length);
        word[length] = '\0';
        posenc_fail(text, POSENC_OK, "\"%s\"", word);
    } else if (entry->type == POSENC_GGUF_BOOL) {
        posenc_fail(text, POSENC_OK, "%s", *entry->value ? "true" : "false");
    } else {
        posenc_fail(text, POSENC_OK, "%g", posenc_gguf_number(&from->gguf, entry, 0));
    }
}

int posenc_gguf_refuse(struct posenc_gguf_reader *from, const char *suffix, const char *rule)
{
    posenc_error key, value = {0};
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, suffix);
    posenc_gguf_key(from, suffix, &key);
    if (entry) {
        show(from, entry, &value);
    }
    from->reader->status =
        posenc_fail(from->reader->error, POSENC_ERROR_MODEL, "%s is %s: %s", key.text,
                    entry ? value.text : "absent", rule);
    return -1;
}

int posenc_gguf_refuse_missing(struct posenc_gguf_reader *from, const char *suffix,
                               const char *rule)
{
    posenc_error key;
    posenc_gguf_key(from, suffix, &key);
    from->reader->status = posenc_fail(from->reader->error, POSENC_ERROR_MODEL,
                                       "%s is missing: %s", key.text, rule);
    return -1;
}

posenc_error *posenc_gguf_warning(struct posenc_gguf_reader *from, const char *suffix)
{
    posenc_error key;
    posenc_gguf_key(from, suffix, &key);
    return posenc_warning(from->reader, NULL, key.text);
}

void posenc_gguf_assume(struct posenc_gguf_reader *from, const char *suffix, double value,
                        const char *why)
{
    posenc_error key;
    posenc_gguf_key(from, suffix, &key);
    posenc_assume_real(from->reader, key.text, value, why);
}

static int is_integer(uint32_t type)
{
    return posenc_gguf_type_size(type) > 0 && type != POSENC_GGUF_F32 &&
           type != POSENC_GGUF_BOOL && type != POSENC_GGUF_F64;
}

/* Element `index` of an entry of an integer type. */
static int element(struct posenc_gguf_reader *from, const char *suffix,
                   const struct posenc_gguf_entry *entry, uint64_t index, int64_t low,
                   int64_t high, int64_t *value)
{
    double number = posenc_gguf_number(&from->gguf, entry, index);
    if (!(number >= (double)low && number <= (double)high)) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "must be %d..%d", low, high);
        return posenc_gguf_refuse(from, suffix, rule.text);
    }
    *value = (int64_t)number;
    return 1;
}

int posenc_gguf_integer(struct posenc_gguf_reader *from, const char *suffix, int64_t low,
                        int64_t high, int64_t *value)
{
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, suffix);
    if (!entry) {
        return 0;
    }
    if (entry->array || !is_integer(entry->type)) {
        return posenc_gguf_refuse(from, suffix, "must be an integer");
    }
    return element(from, suffix, entry, 0, low, high, value);
}

int posenc_gguf_per_layer(struct posenc_gguf_reader *from, const char *suffix, int64_t low,
                          int64_t high, int64_t *values)
{
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, suffix);
    if (!entry) {
        return 0;
    }
    int list = entry->array;
    if (!is_integer(entry->type) && !(list && entry->type == POSENC_GGUF_BOOL)) {
        return posenc_gguf_refuse(from, suffix, "must be an integer, or a list of one a layer");
    }
    if (list && entry->count != (uint64_t)from->layers) {
        posenc_error rule;
        posenc_fail(&rule, POSENC_OK, "the model has %d layers", from->layers);
        return posenc_gguf_refuse(from, suffix, rule.text);
    }
    for (int64_t i = 0; i < from->layers; i++) {
        if (element(from, suffix, entry, list ? (uint64_t)i : 0, low, high, &values[i]) < 0) {
            return -1;
        }
    }
    return 1;
}

int posenc_gguf_real(struct posenc_gguf_reader *from, const char *suffix, double *value)
{
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, suffix);
    if (!entry) {
        return 0;
    }
    if (entry->array || entry->type == POSENC_GGUF_BOOL || !posenc_gguf_type_size(entry->type)) {
        return posenc_gguf_refuse(from, suffix, "must be a number");
    }
    double number = posenc_gguf_number(&from->gguf, entry, 0);
    if (!isfinite(number)) {
        return posenc_gguf_refuse(from, suffix, "must be finite");
    }
    *value = number;
    return 1;
}

int posenc_gguf_bool(struct posenc_gguf_reader *from, const char *suffix, int *value)
{
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, suffix);
    if (!entry) {
        return 0;
    }
    if (entry->array || entry->type != POSENC_GGUF_BOOL || *entry->value > 1) {
        return posenc_gguf_refuse(from, suffix, "must be a boolean");
    }
    *value = *entry->value;
    return 1;
}

int posenc_gguf_string(struct posenc_gguf_reader *from, const char *suffix,
                       struct posenc_gguf_text *value)
{
    const struct posenc_gguf_entry *entry = posenc_gguf_find(from, suffix);
    if (!entry) {
        return 0;
    }
    if (entry->array || entry->type != POSENC_GGUF_STRING) {
        return posenc_gguf_refuse(from, suffix, "must be a string");
    }
    value->length = (size_t)posenc_gguf_bits(entry->value, 8, from->gguf.swapped);
    value->bytes = entry->value + 8;
    return 1;
}
