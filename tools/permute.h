/* SPDX-License-Identifier: MIT */
/* posenc permute: what its parts share. */
#ifndef POSENC_PERMUTE_TOOL_H
#define POSENC_PERMUTE_TOOL_H

#include "output.h"

#include <stddef.h>
#include <stdint.h>

enum { PERMUTE_MAX_PATTERNS = 64 };

/* --tensor PATTERN[=HEADS]. */
struct permute_pattern {
    const char *glob;
    int64_t heads;
};

struct permute_request {
    int32_t to; /* POSENC_ADJACENT, POSENC_SPLIT_HALF; 0: not given */
    int64_t heads, rotary, head_dim, offset; /* head_dim 0: from the shape */
    int channels, packed;
    struct permute_pattern pattern[PERMUTE_MAX_PATTERNS];
    int patterns;
    const char *in, *out;
};

/* What is done to one tensor: `heads` heads in a row are permuted, the rest stays. */
struct permute_job {
    uint64_t heads, head_dim, row_bytes;
};

/* How the request applies to a tensor of this shape and element size; a text in `why` and 0 if it
 * does not. */
int permute_job_of(struct permute_job *job, const struct permute_request *request, int64_t heads,
                   int rank, const int64_t *shape, size_t element, char *why, size_t size);

/* From a file to an output in order, through two windows of fixed size. */
struct permute_stream {
    const struct permute_request *request;
    int in;
    uint64_t size, done; /* of the input */
    struct tool_output output;
    unsigned char *window, *moved;
};

/* Each returns TOOL_OK, or an exit code after saying why; the output is discarded then. */
int permute_stream_open(struct permute_stream *stream, const struct permute_request *request,
                        int in, uint64_t size);
int permute_stream_copy(struct permute_stream *stream, uint64_t at, uint64_t bytes);
int permute_stream_heads(struct permute_stream *stream, uint64_t at, const struct permute_job *job);
int permute_stream_close(struct permute_stream *stream);

/* Reads exactly `bytes` bytes at `at`. */
int permute_read(const char *path, int in, void *data, size_t bytes, uint64_t at);

/* Whole files: an exit code. `in` is open, a regular file of `size` bytes. */
int permute_npy(const struct permute_request *request, int in, uint64_t size);
int permute_tensors(const struct permute_request *request, int in, uint64_t size);

#endif
