/* SPDX-License-Identifier: MIT */
/* posenc permute on an NPY array of any element type: the header stays, the data are streamed. */
#include "npy.h"
#include "permute.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "<f4", "|u1", ">i8", ...: bytes of an element; 0 for records, strings of several and objects. */
static size_t element_size(const char *descr)
{
    if (!strchr("<>|=", descr[0]) || !descr[0] || !strchr("fiubcV", descr[1]) || !descr[1])
        return 0;
    int64_t bytes;
    if (!tool_integer(descr + 2, 1, 64, &bytes))
        return 0;
    return (size_t)bytes;
}

/* Reads the header; `start` is where the data begin. Returns an exit code. */
static int read_header(const struct permute_request *request, int in, uint64_t size,
                       struct npy *array, size_t *element, uint64_t *start)
{
    unsigned char front[12] = {0};
    char why[256] = "";
    struct npy_header header;
    size_t begin, length;
    const size_t have = size < sizeof front ? (size_t)size : sizeof front;
    int code = permute_read(request->in, in, front, have, 0);
    if (code)
        return code;
    if (!npy_preamble(front, have, size < SIZE_MAX ? (size_t)size : SIZE_MAX, &begin, &length, why,
                      sizeof why))
        return tool_fail(TOOL_REFUSED, "%s: %s", request->in, why);
    char *text = malloc(length + 1);
    if (!text)
        return tool_fail(TOOL_SYSTEM, "%s: %s", request->in, strerror(ENOMEM));
    code = permute_read(request->in, in, text, length, begin);
    int good = !code && npy_parse_header(array, &header, text, length, why, sizeof why);
    free(text);
    if (code)
        return code;
    if (!good)
        return tool_fail(TOOL_REFUSED, "%s: %s", request->in, why);
    *start = begin + length;
    *element = element_size(header.descr);
    if (!*element)
        return tool_fail(TOOL_REFUSED, "%s: element type is %.20s: must be a plain number",
                         request->in, header.descr);
    return TOOL_OK;
}

static int check_size(const struct permute_request *request, const struct npy *array,
                      size_t element, uint64_t have)
{
    uint64_t bytes = element;
    int fits = 1;
    for (int i = 0; i < array->rank; i++)
        fits = !__builtin_mul_overflow(bytes, (uint64_t)array->shape[i], &bytes) && fits;
    if (fits && bytes == have)
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED,
                     "%s: the file has %llu bytes of data: the header promises %s%llu",
                     request->in, (unsigned long long)have, fits ? "" : "more than ",
                     (unsigned long long)(fits ? bytes : UINT64_MAX));
}

int permute_npy(const struct permute_request *request, int in, uint64_t size)
{
    struct npy array = {0};
    struct permute_job job;
    struct permute_stream stream;
    size_t element = 0;
    uint64_t start = 0;
    char why[256] = "";
    if (request->patterns)
        return tool_fail(TOOL_USAGE, "--tensor is given, but %s is an NPY file", request->in);
    int code = read_header(request, in, size, &array, &element, &start);
    if (!code)
        code = check_size(request, &array, element, size - start);
    if (code)
        return code;
    if (!permute_job_of(&job, request, request->heads, array.rank, array.shape, element, why,
                        sizeof why))
        return tool_fail(TOOL_REFUSED, "%s: %s", request->in, why);
    code = permute_stream_open(&stream, request, in, size);
    if (code)
        return code;
    const uint64_t moved = job.heads * job.head_dim * job.row_bytes;
    code = permute_stream_copy(&stream, 0, start);
    if (!code)
        code = permute_stream_heads(&stream, start, &job);
    if (!code)
        code = permute_stream_copy(&stream, start + moved, size - start - moved);
    return code ? code : permute_stream_close(&stream);
}
