/* SPDX-License-Identifier: MIT */
/* A strict reader of safetensors headers (huggingface/safetensors, format of version 0.4). */
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {{"BOOL", 8},    {"U8", 8},      {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8},
              {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
              {"I32", 32},    {"U32", 32},    {"F32", 32},    {"F64", 64},    {"I64", 64},
              {"U64", 64},    {"C64", 64},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}};

static unsigned bits_of(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, dtype) == 0)
            return dtypes[i].bits;
    return 0;
}

/* "tensor NAME: TEXT", long names cut. */
static int wrong(const char *name, const char *text, char *why, size_t size)
{
    snprintf(why, size, "tensor %.120s: %s", name, text);
    return 0;
}

/* An integer >= 0 at a place of a list. */
static int natural(const json_t *list, size_t i, uint64_t *value)
{
    const json_t *number = json_array_get(list, i);
    if (!json_is_integer(number) || json_integer_value(number) < 0)
        return 0;
    *value = (uint64_t)json_integer_value(number);
    return 1;
}

static int read_shape(struct safetensor *t, const json_t *shape, uint64_t *count)
{
    *count = 1;
    if (!json_is_array(shape) || json_array_size(shape) > INT32_MAX)
        return 0;
    t->rank = (int)json_array_size(shape);
    for (int i = 0; i < t->rank; i++) {
        uint64_t extent;
        if (!natural(shape, (size_t)i, &extent) || __builtin_mul_overflow(*count, extent, count))
            return 0;
        if (i < SAFETENSORS_MAX_RANK)
            t->shape[i] = (int64_t)extent;
    }
    return 1;
}

static int read_tensor(struct safetensor *t, const char *name, const json_t *value, char *why,
                       size_t size)
{
    const json_t *offsets = json_object_get(value, "data_offsets");
    uint64_t count, bits;
    t->name = name;
    t->dtype = json_string_value(json_object_get(value, "dtype"));
    if (!t->dtype)
        return wrong(name, "dtype must be a string", why, size);
    if (!read_shape(t, json_object_get(value, "shape"), &count))
        return wrong(name, "shape must be integers >= 0 whose product fits 64 bits", why, size);
    if (json_object_size(value) != 3)
        return wrong(name, "must have dtype, shape and data_offsets and no more", why, size);
    if (json_array_size(offsets) != 2 || !natural(offsets, 0, &t->begin) ||
        !natural(offsets, 1, &t->end) || t->begin > t->end)
        return wrong(name, "data_offsets must be two integers, 0 <= begin <= end", why, size);
    bits = bits_of(t->dtype);
    t->element = bits % 8 ? 0 : (size_t)(bits / 8);
    if (bits && (__builtin_mul_overflow(count, bits, &bits) || bits % 8 ||
                 bits / 8 != t->end - t->begin))
        return wrong(name, "data_offsets do not span what dtype and shape need", why, size);
    return 1;
}

static int by_place(const void *x, const void *y)
{
    const struct safetensor *a = x, *b = y;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static int check_places(const struct safetensors *file, uint64_t data, char *why, size_t size)
{
    uint64_t at = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensor *t = &file->tensor[i];
        if (t->end > data)
            return wrong(t->name, "data_offsets end beyond the file", why, size);
        if (t->begin != at)
            return wrong(t->name, "data_offsets leave a hole or overlap", why, size);
        at = t->end;
    }
    if (at == data)
        return 1;
    snprintf(why, size, "the file has %llu bytes of data: its tensors end at %llu",
             (unsigned long long)data, (unsigned long long)at);
    return 0;
}

static int check_metadata(const json_t *metadata, char *why, size_t size)
{
    const char *key;
    const json_t *value;
    int good = json_is_object(metadata);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
        good = good && json_is_string(value);
    if (!good)
        snprintf(why, size, "__metadata__ must be an object of strings");
    return good;
}

static int read_all(struct safetensors *file, uint64_t data, char *why, size_t size)
{
    const char *key;
    json_t *value;
    file->tensor = calloc(json_object_size(file->root) + 1, sizeof *file->tensor);
    if (!file->tensor) {
        snprintf(why, size, "no memory for %zu tensors", json_object_size(file->root));
        return 0;
    }
    json_object_foreach(file->root, key, value) {
        if (strcmp(key, "__metadata__") == 0) {
            if (!check_metadata(value, why, size))
                return 0;
        } else if (!read_tensor(&file->tensor[file->count++], key, value, why, size)) {
            return 0;
        }
    }
    qsort(file->tensor, file->count, sizeof *file->tensor, by_place);
    return check_places(file, data, why, size);
}

int safetensors_parse(struct safetensors *file, const char *text, size_t length, uint64_t data,
                      char *why, size_t size)
{
    json_error_t error;
    *file = (struct safetensors){NULL, NULL, 0};
    file->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!file->root || !json_is_object(file->root))
        snprintf(why, size, "the header is no JSON object: %.150s",
                 file->root ? "another value" : error.text);
    else if (read_all(file, data, why, size))
        return 1;
    safetensors_free(file);
    return 0;
}

void safetensors_free(struct safetensors *file)
{
    free(file->tensor);
    json_decref(file->root);
    *file = (struct safetensors){NULL, NULL, 0};
}
