/* SPDX-License-Identifier: MIT */
/* posenc permute: what happens to a tensor of some shape, and streaming it through two windows. */
#include "permute.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 2 << 20 };

/* 0 if the product does not fit. Extents are >= 0. */
static int product(const int64_t *shape, int rank, uint64_t *result)
{
    *result = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(*result, (uint64_t)shape[i], result))
            return 0;
    return 1;
}

/* How many of the leading dimensions are the rows: [heads * head_dim][..] or [heads][head_dim][..];
 * 0 if none are. */
static int leading(const int64_t *shape, int rank, uint64_t heads, uint64_t head_dim)
{
    if ((uint64_t)shape[0] == heads * head_dim)
        return 1;
    return rank > 1 && (uint64_t)shape[0] == heads && (uint64_t)shape[1] == head_dim ? 2 : 0;
}

static int rows_of(struct permute_job *job, const struct permute_request *request, uint64_t heads,
                   int rank, const int64_t *shape, char *why, size_t size)
{
    const uint64_t first = (uint64_t)shape[0];
    if (!request->head_dim && first % heads) {
        snprintf(why, size, "has %llu rows: must be a multiple of %llu heads",
                 (unsigned long long)first, (unsigned long long)heads);
        return -1;
    }
    job->head_dim = request->head_dim ? (uint64_t)request->head_dim : first / heads;
    job->heads = heads;
    const uint64_t rows = heads * job->head_dim;
    const int k = request->packed ? first >= rows : leading(shape, rank, heads, job->head_dim);
    if (!k)
        snprintf(why, size, "has %llu rows: must be %s%llu (%llu heads x %llu)",
                 (unsigned long long)first, request->packed ? "at least " : "",
                 (unsigned long long)rows, (unsigned long long)heads,
                 (unsigned long long)job->head_dim);
    return k ? k : -1;
}

static int channels_of(struct permute_job *job, const struct permute_request *request,
                       uint64_t heads, int rank, const int64_t *shape, char *why, size_t size)
{
    const uint64_t last = (uint64_t)shape[rank - 1];
    uint64_t all;
    job->head_dim = request->head_dim ? (uint64_t)request->head_dim : last;
    if (last != job->head_dim && last != heads * job->head_dim) {
        snprintf(why, size, "has %llu channels: must be %llu or %llu heads x %llu",
                 (unsigned long long)last, (unsigned long long)job->head_dim,
                 (unsigned long long)heads, (unsigned long long)job->head_dim);
        return -1;
    }
    if (!product(shape, rank, &all))
        all = 0;
    job->heads = job->head_dim ? all / job->head_dim : 0;
    return rank;
}

int permute_job_of(struct permute_job *job, const struct permute_request *request, int64_t heads,
                   int rank, const int64_t *shape, size_t element, char *why, size_t size)
{
    if (rank < 1) {
        snprintf(why, size, "has no dimension");
        return 0;
    }
    const int k = request->channels
                      ? channels_of(job, request, (uint64_t)heads, rank, shape, why, size)
                      : rows_of(job, request, (uint64_t)heads, rank, shape, why, size);
    if (k < 0)
        return 0;
    if (job->head_dim < (uint64_t)(request->rotary + request->offset)) {
        snprintf(why, size, "has heads of %llu channels: must be at least rotary + offset (%lld)",
                 (unsigned long long)job->head_dim,
                 (long long)(request->rotary + request->offset));
        return 0;
    }
    if (product(shape + k, rank - k, &job->row_bytes) &&
        !__builtin_mul_overflow(job->row_bytes, element, &job->row_bytes))
        return 1;
    snprintf(why, size, "has a shape whose product is too large");
    return 0;
}

static int allocate(struct permute_stream *stream)
{
    stream->window = malloc(WINDOW_BYTES);
    stream->moved = malloc(WINDOW_BYTES);
    if (stream->window && stream->moved)
        return TOOL_OK;
    free(stream->window);
    free(stream->moved);
    return tool_fail(TOOL_SYSTEM, "%s: %s", stream->request->out, strerror(ENOMEM));
}

int permute_stream_open(struct permute_stream *stream, const struct permute_request *request,
                        int in, uint64_t size)
{
    *stream = (struct permute_stream){.request = request, .in = in, .size = size};
    int code = allocate(stream);
    if (code)
        return code;
    code = tool_output_open(&stream->output, request->out);
    if (code) {
        free(stream->window);
        free(stream->moved);
    }
    return code;
}

static void give_up(struct permute_stream *stream)
{
    tool_progress(NULL);
    free(stream->window);
    free(stream->moved);
    stream->window = stream->moved = NULL;
}

/* Both say what happened to the user; the output is gone after either. */
static int read_window(struct permute_stream *stream, void *to, size_t bytes, uint64_t at)
{
    int code = permute_read(stream->request->in, stream->in, to, bytes, at);
    if (code) {
        tool_output_discard(&stream->output);
        give_up(stream);
    }
    return code;
}

static int write_window(struct permute_stream *stream, const void *from, size_t bytes)
{
    char text[64];
    int code = tool_output_write(&stream->output, from, bytes);
    if (code) {
        give_up(stream);
        return code;
    }
    stream->done += bytes;
    snprintf(text, sizeof text, "%llu of %llu MiB",
             (unsigned long long)(stream->done >> 20), (unsigned long long)(stream->size >> 20));
    tool_progress(text);
    return TOOL_OK;
}

int permute_stream_copy(struct permute_stream *stream, uint64_t at, uint64_t bytes)
{
    while (bytes) {
        const size_t part = bytes < WINDOW_BYTES ? (size_t)bytes : WINDOW_BYTES;
        int code = read_window(stream, stream->window, part, at);
        if (!code)
            code = write_window(stream, stream->window, part);
        if (code)
            return code;
        at += part;
        bytes -= part;
    }
    return TOOL_OK;
}

/* Heads that fit the window, as many at a time as do. */
static int small_heads(struct permute_stream *stream, uint64_t at, const struct permute_job *job)
{
    const struct permute_request *request = stream->request;
    const size_t head = (size_t)(job->head_dim * job->row_bytes);
    posenc_error error = {0, ""};
    for (uint64_t left = job->heads; left;) {
        const size_t most = WINDOW_BYTES / head, heads = left < most ? (size_t)left : most;
        int code = read_window(stream, stream->window, heads * head, at);
        if (code)
            return code;
        if (posenc_permute_rows(stream->window, stream->moved, heads, (size_t)job->head_dim,
                                (size_t)request->rotary, (size_t)request->offset,
                                (size_t)job->row_bytes, request->to, &error)) {
            tool_output_discard(&stream->output);
            give_up(stream);
            return tool_fail_library(request->in, &error);
        }
        code = write_window(stream, stream->moved, heads * head);
        if (code)
            return code;
        at += heads * head;
        left -= heads;
    }
    return TOOL_OK;
}

/* Where row `row` of a head comes from. */
static uint64_t source_of(const struct permute_request *request, uint64_t row)
{
    const uint64_t offset = (uint64_t)request->offset, half = (uint64_t)request->rotary / 2;
    if (row < offset || row >= offset + 2 * half)
        return row;
    row -= offset;
    if (request->to == POSENC_ADJACENT)
        return offset + row % 2 * half + row / 2;
    return offset + (row < half ? 2 * row : 2 * (row - half) + 1);
}

/* Heads larger than the window, row by row: the window collects what will be written in order. */
static int large_heads(struct permute_stream *stream, uint64_t at, const struct permute_job *job)
{
    size_t fill = 0;
    for (uint64_t h = 0; h < job->heads; h++, at += job->head_dim * job->row_bytes)
        for (uint64_t row = 0; row < job->head_dim; row++) {
            uint64_t from = at + source_of(stream->request, row) * job->row_bytes;
            for (uint64_t left = job->row_bytes; left;) {
                const size_t room = WINDOW_BYTES - fill;
                const size_t part = left < room ? (size_t)left : room;
                int code = read_window(stream, stream->window + fill, part, from);
                fill += part;
                if (!code && fill == WINDOW_BYTES) {
                    code = write_window(stream, stream->window, fill);
                    fill = 0;
                }
                if (code)
                    return code;
                from += part;
                left -= part;
            }
        }
    return fill ? write_window(stream, stream->window, fill) : TOOL_OK;
}

int permute_stream_heads(struct permute_stream *stream, uint64_t at, const struct permute_job *job)
{
    if (!job->heads || !job->row_bytes)
        return TOOL_OK;
    return job->row_bytes <= WINDOW_BYTES / job->head_dim ? small_heads(stream, at, job)
                                                          : large_heads(stream, at, job);
}

int permute_stream_close(struct permute_stream *stream)
{
    give_up(stream);
    return tool_output_close(&stream->output);
}
