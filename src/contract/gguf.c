/* SPDX-License-Identifier: MIT */
/*
 * Finds the entries of a GGUF header in place. Layout of versions 2 and 3, every number in the byte
 * order of the writer:
 *
 *     "GGUF", u32 version, u64 tensors, u64 entries,
 *     entries times { string key, u32 type, value },
 *     tensors times { string name, u32 dims, u64 dim[dims], u32 type, u64 offset },
 *     padding to general.alignment, tensor data
 *
 * A string is u64 length and bytes; an array u32 type of elements, u64 count and elements. Source:
 * the format's specification in the documents of ggml.
 */
#include "gguf.h"

#include <stdlib.h>

enum {
    MAX_KEY = 65535, /* the specification's limit */
    MAX_ALIGNMENT = 1 << 20,
    MIN_ENTRY = 13, /* bytes of an entry: an empty key, its type and one byte */
    MIN_TENSOR = 24
};

/* What is left to read, and how to say where reading failed. */
struct cursor {
    const uint8_t *at;
    size_t left;
    int swapped;
    posenc_error *error;
    const char *what; /* "entry" or "tensor" */
    int64_t index;
};

static int32_t malformed(const struct cursor *cursor, const char *rule)
{
    return posenc_fail(cursor->error, POSENC_ERROR_FORMAT, "GGUF: %s %d %s", cursor->what,
                       cursor->index, rule);
}

static int32_t take(struct cursor *cursor, uint64_t size, const uint8_t **at)
{
    if (size > cursor->left) {
        return malformed(cursor, "runs beyond the end of the header");
    }
    *at = cursor->at;
    cursor->at += size;
    cursor->left -= (size_t)size;
    return POSENC_OK;
}

static int32_t take_number(struct cursor *cursor, size_t size, uint64_t *value)
{
    const uint8_t *at = NULL;
    int32_t status = take(cursor, size, &at);
    if (status == POSENC_OK) {
        *value = posenc_gguf_bits(at, size, cursor->swapped);
    }
    return status;
}

static int32_t take_text(struct cursor *cursor, struct posenc_gguf_text *text)
{
    uint64_t length;
    int32_t status = take_number(cursor, 8, &length);
    if (status == POSENC_OK) {
        status = take(cursor, length, &text->bytes);
        text->length = (size_t)length;
    }
    return status;
}

static int32_t take_key(struct cursor *cursor, struct posenc_gguf_text *key)
{
    int32_t status = take_text(cursor, key);
    if (status == POSENC_OK && (key->length == 0 || key->length > MAX_KEY)) {
        return malformed(cursor, "has a name of no or more than 65535 bytes");
    }
    return status;
}

/* `count` values of one type; arrays in arrays are allowed, and skipped like all others. */
static int32_t skip(struct cursor *cursor, uint64_t type, uint64_t count, int depth)
{
    size_t size = type < POSENC_GGUF_TYPES ? posenc_gguf_type_size((uint32_t)type) : 0;
    const uint8_t *at;
    if (size) {
        return take(cursor, count <= cursor->left / size ? count * size : UINT64_MAX, &at);
    }
    if (type != POSENC_GGUF_STRING && type != POSENC_GGUF_ARRAY) {
        return malformed(cursor, "has a value of unknown type");
    }
    if (depth >= POSENC_CONTRACT_MAX_DEPTH) {
        return malformed(cursor, "has arrays nested too deeply");
    }
    int32_t status = POSENC_OK;
    while (status == POSENC_OK && count-- > 0) {
        struct posenc_gguf_text text;
        uint64_t inner, items;
        if (type == POSENC_GGUF_STRING) {
            status = take_text(cursor, &text);
        } else if ((status = take_number(cursor, 4, &inner)) == POSENC_OK &&
                   (status = take_number(cursor, 8, &items)) == POSENC_OK) {
            status = skip(cursor, inner, items, depth + 1);
        }
    }
    return status;
}

static int32_t take_entry(struct cursor *cursor, struct posenc_gguf_entry *entry)
{
    uint64_t type, count = 1;
    int32_t status = take_key(cursor, &entry->key);
    if (status != POSENC_OK || (status = take_number(cursor, 4, &type)) != POSENC_OK) {
        return status;
    }
    entry->array = type == POSENC_GGUF_ARRAY;
    if (entry->array && ((status = take_number(cursor, 4, &type)) != POSENC_OK ||
                         (status = take_number(cursor, 8, &count)) != POSENC_OK)) {
        return status;
    }
    entry->type = (uint32_t)type;
    entry->count = count;
    entry->value = cursor->at;
    return skip(cursor, type, count, entry->array);
}

static int32_t take_tensor(struct cursor *cursor, struct posenc_gguf_tensor *tensor)
{
    uint64_t dims, type;
    int32_t status = take_key(cursor, &tensor->key);
    if (status != POSENC_OK || (status = take_number(cursor, 4, &dims)) != POSENC_OK) {
        return status;
    }
    if (dims > POSENC_GGUF_MAX_DIMS) {
        return malformed(cursor, "has more than 4 dimensions");
    }
    tensor->dims = (uint32_t)dims;
    for (uint32_t i = 0; i < tensor->dims; i++) {
        if ((status = take_number(cursor, 8, &tensor->dim[i])) != POSENC_OK) {
            return status;
        }
    }
    if ((status = take_number(cursor, 4, &type)) == POSENC_OK) {
        tensor->type = (uint32_t)type;
        status = take_number(cursor, 8, &tensor->offset);
    }
    return status;
}

static int compare_texts(const void *a, const void *b)
{
    const struct posenc_gguf_text *x = a, *y = b; /* the first member of what is sorted */
    size_t common = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->bytes, y->bytes, common);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Two alike would make the answer depend on which one a reader happens to take. */
static int32_t refuse_twins(const struct cursor *cursor, const void *items, size_t count,
                            size_t size)
{
    for (size_t i = 1; i < count; i++) {
        const void *one = (const char *)items + (i - 1) * size;
        const struct posenc_gguf_text *two = (const void *)((const char *)items + i * size);
        if (compare_texts(one, two) == 0) {
            char name[64];
            size_t length = two->length < sizeof name - 1 ? two->length : sizeof name - 1;
            memcpy(name, two->bytes, length);
            name[length] = '\0';
            return posenc_fail(cursor->error, POSENC_ERROR_FORMAT,
                               "GGUF: the %s \"%s\" occurs twice", cursor->what, name);
        }
    }
    return POSENC_OK;
}

/* Room for `count` items, which the bytes that are left must be able to hold. */
static int32_t make_room(const struct cursor *cursor, uint64_t count, size_t smallest, size_t size,
                         void **items)
{
    if (count > POSENC_CONTRACT_MAX_ENTRIES || count > cursor->left / smallest) {
        return posenc_fail(cursor->error, POSENC_ERROR_FORMAT,
                           count > POSENC_CONTRACT_MAX_ENTRIES
                               ? "GGUF: says to have more than %d %s records"
                               : "GGUF: %d bytes are too few for its %s records",
                           count > POSENC_CONTRACT_MAX_ENTRIES ? POSENC_CONTRACT_MAX_ENTRIES
                                                               : (int64_t)cursor->left,
                           cursor->what);
    }
    *items = calloc((size_t)count + 1, size);
    return *items ? POSENC_OK
                  : posenc_fail(cursor->error, POSENC_ERROR_MEMORY, "no memory for a GGUF header");
}

static int32_t take_entries(struct posenc_gguf *gguf, struct cursor *cursor, uint64_t count)
{
    void *room = NULL;
    cursor->what = "entry";
    int32_t status = make_room(cursor, count, MIN_ENTRY, sizeof *gguf->entries, &room);
    gguf->entries = room;
    for (; status == POSENC_OK && gguf->num_entries < count; gguf->num_entries++) {
        cursor->index = (int64_t)gguf->num_entries;
        status = take_entry(cursor, &gguf->entries[gguf->num_entries]);
    }
    if (status == POSENC_OK) {
        qsort(gguf->entries, gguf->num_entries, sizeof *gguf->entries, compare_texts);
        status = refuse_twins(cursor, gguf->entries, gguf->num_entries, sizeof *gguf->entries);
    }
    return status;
}

static int32_t take_tensors(struct posenc_gguf *gguf, struct cursor *cursor, uint64_t count)
{
    void *room = NULL;
    cursor->what = "tensor";
    int32_t status = make_room(cursor, count, MIN_TENSOR, sizeof *gguf->tensors, &room);
    gguf->tensors = room;
    for (; status == POSENC_OK && gguf->num_tensors < count; gguf->num_tensors++) {
        cursor->index = (int64_t)gguf->num_tensors;
        status = take_tensor(cursor, &gguf->tensors[gguf->num_tensors]);
    }
    if (status == POSENC_OK) {
        qsort(gguf->tensors, gguf->num_tensors, sizeof *gguf->tensors, compare_texts);
        status = refuse_twins(cursor, gguf->tensors, gguf->num_tensors, sizeof *gguf->tensors);
    }
    return status;
}

static int32_t read_alignment(const struct posenc_gguf *gguf, uint64_t *alignment,
                              posenc_error *error)
{
    static const char name[] = "general.alignment";
    const struct posenc_gguf_text key = {(const uint8_t *)name, sizeof name - 1};
    const struct posenc_gguf_entry *entry =
        bsearch(&key, gguf->entries, gguf->num_entries, sizeof *gguf->entries, compare_texts);
    *alignment = 32;
    if (entry && entry->type == POSENC_GGUF_U32 && !entry->array) {
        *alignment = posenc_gguf_bits(entry->value, 4, gguf->swapped);
    }
    if ((entry && (entry->type != POSENC_GGUF_U32 || entry->array)) || *alignment == 0 ||
        (*alignment & (*alignment - 1)) || *alignment > MAX_ALIGNMENT) {
        return posenc_fail(error, POSENC_ERROR_FORMAT,
                           "GGUF: general.alignment must be an uint32, a power of two up to %d",
                           (int64_t)MAX_ALIGNMENT);
    }
    return POSENC_OK;
}

/* Offsets count from the start of the data; they become offsets in the file. */
static int32_t place_tensors(struct posenc_gguf *gguf, const struct cursor *cursor)
{
    uint64_t alignment;
    int32_t status = read_alignment(gguf, &alignment, cursor->error);
    uint64_t data = gguf->file->length - cursor->left;
    for (size_t i = 0; status == POSENC_OK && i < gguf->num_tensors; i++) {
        struct posenc_gguf_tensor *tensor = &gguf->tensors[i];
        uint64_t start = (data + alignment - 1) & ~(alignment - 1);
        if (tensor->offset % alignment || tensor->offset > (UINT64_MAX >> 1)) {
            return posenc_fail(cursor->error, POSENC_ERROR_FORMAT,
                               "GGUF: a tensor's offset is no multiple of the alignment, %d",
                               (int64_t)alignment);
        }
        tensor->offset += start;
    }
    return status;
}

/* Only a version whose upper half is not zero can be of the other byte order. */
static int32_t read_version(struct posenc_gguf *gguf, posenc_error *error)
{
    const uint8_t *bytes = (const uint8_t *)gguf->file->bytes;
    if (gguf->file->length < 24) {
        return posenc_fail(error, POSENC_ERROR_FORMAT, "GGUF: %d bytes are too few for a header",
                           (int64_t)gguf->file->length);
    }
    uint64_t version = posenc_gguf_bits(bytes + 4, 4, 0);
    if ((version & 0xffff) == 0) {
        gguf->swapped = 1;
        version = posenc_gguf_bits(bytes + 4, 4, 1);
    }
    if (version != 2 && version != 3) {
        return posenc_fail(error, POSENC_ERROR_FORMAT, "GGUF: version %d: must be 2 or 3",
                           (int64_t)version);
    }
    return POSENC_OK;
}

int32_t posenc_gguf_load(struct posenc_gguf *gguf, const struct posenc_file *file,
                         posenc_error *error)
{
    *gguf = (struct posenc_gguf){.file = file};
    int32_t status = read_version(gguf, error);
    if (status != POSENC_OK) {
        return status;
    }
    const uint8_t *bytes = (const uint8_t *)file->bytes;
    struct cursor cursor = {bytes + 24, file->length - 24, gguf->swapped, error, "entry", 0};
    uint64_t tensors = posenc_gguf_bits(bytes + 8, 8, gguf->swapped);
    uint64_t entries = posenc_gguf_bits(bytes + 16, 8, gguf->swapped);
    status = take_entries(gguf, &cursor, entries);
    if (status == POSENC_OK) {
        status = take_tensors(gguf, &cursor, tensors);
    }
    return status == POSENC_OK ? place_tensors(gguf, &cursor) : status;
}

void posenc_gguf_free(struct posenc_gguf *gguf)
{
    free(gguf->entries);
    free(gguf->tensors);
    gguf->entries = NULL;
    gguf->tensors = NULL;
}
