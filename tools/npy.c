/* SPDX-License-Identifier: MIT */
/* NPY arrays, after numpy/lib/format.py: a strict reader for files of any origin, and a writer. */
#include "npy.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    enum npy_type type;
    const char *descr;
    size_t size;
} types[] = {{NPY_F32, "<f4", 4}, {NPY_F16, "<f2", 2}, {NPY_U16, "<u2", 2},
             {NPY_F64, "<f8", 8}, {NPY_I32, "<i4", 4}, {NPY_I64, "<i8", 8}};

enum { TYPES = sizeof types / sizeof types[0], MAX_HEADER = 65536, MAGIC_BYTES = 6 };
static const char MAGIC[] = "\x93NUMPY";

size_t npy_type_size(enum npy_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type)
            return types[i].size;
    return 0;
}

/* The header is a Python dictionary; the cursor walks over its text, which ends with a NUL. */
static void skip_spaces(const char **at)
{
    while (**at == ' ')
        ++*at;
}

static int take(const char **at, char c)
{
    skip_spaces(at);
    if (**at != c)
        return 0;
    ++*at;
    return 1;
}

static int take_word(const char **at, const char *word)
{
    skip_spaces(at);
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return 0;
    *at += length;
    return 1;
}

static int take_string(const char **at, char *text, size_t size)
{
    skip_spaces(at);
    char quote = **at;
    if (quote != '\'' && quote != '"')
        return 0;
    size_t length = 0;
    for (++*at; **at && **at != quote; ++*at) {
        if (**at == '\\' || length + 1 >= size)
            return 0;
        text[length++] = **at;
    }
    text[length] = 0;
    return take(at, quote);
}

static int take_shape(const char **at, struct npy *array)
{
    if (!take(at, '('))
        return 0;
    while (!take(at, ')')) {
        skip_spaces(at);
        if (**at < '0' || **at > '9' || array->rank == NPY_MAX_RANK)
            return 0;
        int64_t extent = 0;
        for (; **at >= '0' && **at <= '9'; ++*at) {
            if (extent > (INT64_MAX - 9) / 10)
                return 0;
            extent = extent * 10 + (**at - '0');
        }
        array->shape[array->rank++] = extent;
        if (take(at, ','))
            continue;
        return array->rank > 1 && take(at, ')'); /* (3) is a number, not a shape */
    }
    return 1;
}

static int take_entry(const char **at, struct npy *array, struct npy_header *header)
{
    char key[32];
    if (!take_string(at, key, sizeof key) || !take(at, ':'))
        return 0;
    int bit = strcmp(key, "descr") == 0           ? 1
              : strcmp(key, "fortran_order") == 0 ? 2
              : strcmp(key, "shape") == 0         ? 4
                                                  : 0;
    if (!bit || header->seen & bit)
        return 0;
    header->seen |= bit;
    if (bit == 1)
        return take_string(at, header->descr, sizeof header->descr);
    if (bit == 4)
        return take_shape(at, array);
    header->fortran = take_word(at, "True");
    return header->fortran || take_word(at, "False");
}

static int take_header(const char *at, struct npy *array, struct npy_header *header)
{
    if (!take(&at, '{'))
        return 0;
    while (!take(&at, '}')) {
        if (!take_entry(&at, array, header))
            return 0;
        if (take(&at, ','))
            continue;
        if (!take(&at, '}'))
            return 0;
        break;
    }
    return header->seen == 7 && take(&at, '\n') && !*at;
}

static int wrong(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return 0;
}

static int check_type(struct npy *array, const char *descr, char *why, size_t size)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(descr, types[i].descr) == 0)
            array->type = types[i].type;
    if (array->type)
        return 1;
    snprintf(why, size, "element type is %.20s: %s", descr,
             descr[0] == '>'
                 ? "big-endian data are not read; save x.astype(x.dtype.newbyteorder('<'))"
             : strcmp(descr, "|b1") == 0
                 ? "not taken here; of a mask save numpy.where(x, 0, -numpy.inf).astype('float32')"
                 : "must be <f4, <f2 or <u2 (bf16); <i4 or <i8 for positions");
    return 0;
}

int npy_parse_header(struct npy *array, struct npy_header *header, const char *text, size_t length,
                     char *why, size_t size)
{
    char *copy = malloc(length + 1);
    if (!copy)
        return wrong(why, size, "no memory for the header");
    memcpy(copy, text, length);
    copy[length] = 0;
    *header = (struct npy_header){{0}, 0, 0};
    int good = strlen(copy) == length && take_header(copy, array, header);
    free(copy);
    if (!good)
        return wrong(why, size,
                     "the NPY header is malformed: must be {'descr': .., 'fortran_order': .., "
                     "'shape': (..), } and a newline");
    if (header->fortran)
        return wrong(why, size,
                     "fortran_order is True: must be C order; save numpy.ascontiguousarray(x)");
    return 1;
}

/* The header's text lies at `text` for `length` bytes. Fills all of `array` but the data. */
static int parse_header(struct npy *array, const char *text, size_t length, char *why, size_t size)
{
    struct npy_header header;
    return npy_parse_header(array, &header, text, length, why, size) &&
           check_type(array, header.descr, why, size);
}

static int check_size(struct npy *array, size_t bytes, char *why, size_t size)
{
    size_t count = 1, element = npy_type_size(array->type);
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] == 0)
            count = 0;
    for (int i = 0; i < array->rank && count; i++) {
        if ((uint64_t)array->shape[i] > SIZE_MAX / 2 / element / count)
            return wrong(why, size, "the shape's product is too large for this machine");
        count *= (size_t)array->shape[i];
    }
    if (count * element != bytes) {
        snprintf(why, size, "the header promises %zu bytes of data, the file has %zu",
                 count * element, bytes);
        return 0;
    }
    array->count = count;
    return 1;
}

/* Little-endian to the order of this machine or back; does nothing on a little-endian one. */
static void swap_bytes(unsigned char *data, size_t count, size_t element)
{
    const uint16_t probe = 1;
    if (*(const unsigned char *)&probe)
        return;
    for (size_t i = 0; i < count; i++, data += element)
        for (size_t a = 0, b = element - 1; a < b; a++, b--) {
            unsigned char t = data[a];
            data[a] = data[b];
            data[b] = t;
        }
}

int npy_preamble(const unsigned char *bytes, size_t size, size_t room, size_t *start,
                 size_t *length, char *why, size_t why_size)
{
    if (size < 10 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return wrong(why, why_size, "not an NPY file: its first bytes must be \\x93NUMPY");
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        snprintf(why, why_size, "NPY version is %u.%u: must be 1.0, 2.0 or 3.0", major, minor);
        return 0;
    }
    *start = major == 1 ? 10 : 12;
    *length = bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1 && size >= 12)
        *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (room < *start || *length > room - *start || *length > MAX_HEADER) {
        snprintf(why, why_size, "the NPY header's length is %zu: longer than the file or %d",
                 *length, MAX_HEADER);
        return 0;
    }
    return 1;
}

int npy_parse(struct npy *array, unsigned char *bytes, size_t size, char *why, size_t why_size)
{
    size_t start, length;
    memset(array, 0, sizeof *array);
    if (!npy_preamble(bytes, size, size, &start, &length, why, why_size))
        return 0;
    if (!parse_header(array, (const char *)bytes + start, length, why, why_size))
        return 0;
    size_t data = size - start - length;
    if (!check_size(array, data, why, why_size))
        return 0;
    memmove(bytes, bytes + start + length, data); /* to where every element is aligned */
    array->data = bytes;
    swap_bytes(bytes, array->count, npy_type_size(array->type));
    return 1;
}

/* The bytes of a file of unknown length, in memory that grows with what really arrives. A stream
 * that does not begin as an array does is left at once, for it may have no end. */
static int read_all(int fd, size_t guess, unsigned char **bytes, size_t *size)
{
    size_t room = guess + 1;
    *size = 0;
    *bytes = malloc(room);
    while (*bytes) {
        ssize_t got = read(fd, *bytes + *size, room - *size < 1 << 30 ? room - *size : 1 << 30);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return 0;
        if (got == 0)
            return 1;
        *size += (size_t)got;
        if (*size >= MAGIC_BYTES && memcmp(*bytes, MAGIC, MAGIC_BYTES) != 0)
            return 1;
        if (*size < room)
            continue;
        if (room > SIZE_MAX / 2)
            break;
        unsigned char *more = realloc(*bytes, room * 2);
        if (!more)
            break;
        *bytes = more;
        room *= 2;
    }
    errno = ENOMEM;
    return 0;
}

int npy_read(struct npy *array, const char *path)
{
    memset(array, 0, sizeof *array);
    struct stat status;
    unsigned char *bytes = NULL;
    size_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int good =
        fd >= 0 && fstat(fd, &status) == 0 &&
        read_all(fd, S_ISREG(status.st_mode) ? (size_t)status.st_size : 65536, &bytes, &size);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (!good) {
        free(bytes);
        return tool_fail(TOOL_SYSTEM, "%s: %s", path, strerror(reason));
    }
    char why[256];
    if (npy_parse(array, bytes, size, why, sizeof why))
        return TOOL_OK;
    free(bytes);
    array->data = NULL;
    return tool_fail(TOOL_REFUSED, "%s: %s", path, why);
}

void npy_free(struct npy *array)
{
    free(array->data);
    array->data = NULL;
}

int npy_write_header(struct tool_output *output, const struct npy *array)
{
    char header[512];
    int type = 0;
    while (types[type].type != array->type)
        type++;
    int length =
        10 + snprintf(header + 10, sizeof header - 10,
                      "{'descr': '%s', 'fortran_order': False, 'shape': (", types[type].descr);
    for (int i = 0; i < array->rank; i++)
        length += snprintf(header + length, sizeof header - (size_t)length, "%lld,%s",
                           (long long)array->shape[i], i + 1 < array->rank ? " " : "");
    length += snprintf(header + length, sizeof header - (size_t)length, "), }");
    while ((length + 1) % 64)
        header[length++] = ' ';
    header[length++] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((length - 10) & 0xff);
    header[9] = (char)((length - 10) >> 8);
    return tool_output_write(output, header, (size_t)length);
}

int npy_write_data(struct tool_output *output, enum npy_type type, void *data, size_t count)
{
    size_t size = npy_type_size(type);
    swap_bytes(data, count, size);
    return tool_output_write(output, data, count * size);
}

int npy_write(struct tool_output *output, const struct npy *array)
{
    int code = npy_write_header(output, array);
    return code ? code : npy_write_data(output, array->type, array->data, array->count);
}
