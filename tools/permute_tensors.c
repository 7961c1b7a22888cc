/* SPDX-License-Identifier: MIT */
/* posenc permute on a safetensors file: chosen tensors are permuted, all else stays as it is. */
#include "permute.h"
#include "safetensors.h"
#include "tool.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the header, then the header, then the data. */
enum { LENGTH_BYTES = 8 };

static int read_header(const struct permute_request *request, int in, uint64_t size,
                       struct safetensors *file, uint64_t *start)
{
    unsigned char bytes[LENGTH_BYTES];
    uint64_t length = 0;
    char why[320] = "";
    int code = permute_read(request->in, in, bytes, sizeof bytes, 0);
    if (code)
        return code;
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | bytes[i];
    if (length > SAFETENSORS_MAX_HEADER || length > size - LENGTH_BYTES)
        return tool_fail(TOOL_REFUSED,
                         "%s: the safetensors header's length is %llu: longer than the file or %d",
                         request->in, (unsigned long long)length, SAFETENSORS_MAX_HEADER);
    char *text = malloc((size_t)length + 1);
    if (!text)
        return tool_fail(TOOL_SYSTEM, "%s: %s", request->in, strerror(ENOMEM));
    code = permute_read(request->in, in, text, (size_t)length, LENGTH_BYTES);
    *start = LENGTH_BYTES + length;
    int good = !code && safetensors_parse(file, text, (size_t)length, size - *start, why,
                                          sizeof why);
    free(text);
    return code || good ? code : tool_fail(TOOL_REFUSED, "%s: %s", request->in, why);
}

/* Heads of the tensor, 0 if no pattern matches it, -1 after a refusal. Marks matching patterns. */
static int64_t heads_of(const struct permute_request *request, const char *name, int *used)
{
    int64_t heads = 0;
    for (int i = 0; i < request->patterns; i++) {
        const struct permute_pattern *pattern = &request->pattern[i];
        if (fnmatch(pattern->glob, name, 0) != 0)
            continue;
        const int64_t these = pattern->heads ? pattern->heads : request->heads;
        used[i] = 1;
        if (heads && heads != these) {
            tool_fail(TOOL_REFUSED, "%s: tensor %s: --tensor gives it %lld and %lld heads",
                      request->in, name, (long long)heads, (long long)these);
            return -1;
        }
        heads = these;
    }
    return heads;
}

/* A job for each chosen tensor; those with no heads are copied. */
static int choose(const struct permute_request *request, const struct safetensors *file,
                  struct permute_job *jobs)
{
    int used[PERMUTE_MAX_PATTERNS] = {0};
    char why[256] = "";
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensor *t = &file->tensor[i];
        int64_t heads = heads_of(request, t->name, used);
        if (heads < 0)
            return TOOL_REFUSED;
        if (!heads)
            continue;
        if (!t->element || t->rank > SAFETENSORS_MAX_RANK)
            return tool_fail(TOOL_REFUSED,
                             "%s: tensor %s: has dtype %.16s, rank %d: must be of a known type of "
                             "whole bytes and rank 1..%d",
                             request->in, t->name, t->dtype, t->rank, SAFETENSORS_MAX_RANK);
        if (!permute_job_of(&jobs[i], request, heads, t->rank, t->shape, t->element, why,
                            sizeof why))
            return tool_fail(TOOL_REFUSED, "%s: tensor %s: %s", request->in, t->name, why);
    }
    for (int i = 0; i < request->patterns; i++)
        if (!used[i])
            return tool_fail(TOOL_REFUSED, "%s: --tensor %s matches none of %zu tensors",
                             request->in, request->pattern[i].glob, file->count);
    return TOOL_OK;
}

static int stream_tensors(struct permute_stream *stream, uint64_t start,
                          const struct safetensors *file, const struct permute_job *jobs)
{
    int code = permute_stream_copy(stream, 0, start);
    for (size_t i = 0; !code && i < file->count; i++) {
        const struct safetensor *t = &file->tensor[i];
        const uint64_t moved = jobs[i].heads * jobs[i].head_dim * jobs[i].row_bytes;
        code = permute_stream_heads(stream, start + t->begin, &jobs[i]);
        if (!code)
            code = permute_stream_copy(stream, start + t->begin + moved,
                                       t->end - t->begin - moved);
    }
    return code;
}

/* What was done, one line for each tensor. */
static void print_list(const struct safetensors *file, const struct permute_job *jobs)
{
    for (size_t i = 0; i < file->count; i++) {
        if (!jobs[i].head_dim)
            continue;
        for (const char *c = file->tensor[i].name; *c; c++)
            putchar((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c);
        printf(" %s [", file->tensor[i].dtype);
        for (int d = 0; d < file->tensor[i].rank; d++)
            printf("%s%lld", d ? ", " : "", (long long)file->tensor[i].shape[d]);
        printf("]: %llu heads x %llu\n", (unsigned long long)jobs[i].heads,
               (unsigned long long)jobs[i].head_dim);
    }
}

static int permute_chosen(const struct permute_request *request, int in, uint64_t size,
                          uint64_t start, const struct safetensors *file)
{
    struct permute_stream stream;
    struct permute_job *jobs = calloc(file->count + 1, sizeof *jobs);
    if (!jobs)
        return tool_fail(TOOL_SYSTEM, "%s: %s", request->in, strerror(ENOMEM));
    int code = choose(request, file, jobs);
    if (!code)
        code = permute_stream_open(&stream, request, in, size);
    if (!code) {
        const int named = stream.output.target != NULL; /* not standard output, maybe */
        code = stream_tensors(&stream, start, file, jobs);
        if (!code)
            code = permute_stream_close(&stream);
        if (!code && named)
            print_list(file, jobs);
    }
    free(jobs);
    return code;
}

/* The first tensor that looks like a query projection, else the first of all: an example. */
static const char *example(const struct safetensors *file)
{
    for (size_t i = 0; i < file->count; i++)
        if (strstr(file->tensor[i].name, "q_proj"))
            return file->tensor[i].name;
    return file->count ? file->tensor[0].name : "?";
}

int permute_tensors(const struct permute_request *request, int in, uint64_t size)
{
    struct safetensors file;
    uint64_t start = 0;
    int code = read_header(request, in, size, &file, &start);
    if (code)
        return code;
    if (!request->patterns)
        code = tool_wrong_usage("%s has %zu tensors, such as %s: name them by --tensor",
                                request->in, file.count, example(&file));
    else
        code = permute_chosen(request, in, size, start, &file);
    safetensors_free(&file);
    return code;
}
