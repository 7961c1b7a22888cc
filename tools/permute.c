/* SPDX-License-Identifier: MIT */
/* posenc permute: rows and channels of stored tensors into the other pair layout. */
#include "permute.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TO = 1, HEADS, ROTARY, HEAD_DIM, OFFSET, TENSOR, AXIS, PACKED };

static const struct tool_option options[] = {
    {TO, "to", "LAYOUT", "adjacent or split_half: what the result has"},
    {HEADS, "heads", "H", "heads of a tensor"},
    {ROTARY, "rotary", "R", "channels of a head that turn, an even number"},
    {HEAD_DIM, "head-dim", "D", "channels of a head; default: rows / heads"},
    {OFFSET, "offset", "O", "first channel that turns; default 0"},
    {TENSOR, "tensor", "PATTERN[=H]",
     "safetensors: which tensors, with * and ?; repeatable.\n"
     "=H gives these another number of heads"},
    {AXIS, "axis", "AXIS",
     "rows (weights, biases, norms; the default), or\nchannels (cached keys: the last dimension)"},
    {PACKED, "packed", NULL,
     "only the first H x D rows, as Q and K before V in a\npacked projection (needs --head-dim)"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "permute --to adjacent|split_half --heads H --rotary R [OPTIONS] IN OUT",
    "Reorders projection weights, biases, norm weights, LoRA B factors or cached keys\n"
    "from one pair layout to the other, in NPY or safetensors files of any size and\n"
    "element type. All else is copied byte for byte. Which layout IN has, no file\n"
    "says: permuting twice spoils it. OUT appears whole or not at all.",
    options, NULL,
    "posenc permute --to adjacent --heads 32 --rotary 128 \\\n"
    "    --tensor '*.q_proj.weight' --tensor '*.k_proj.weight=8' in.safetensors out.safetensors"};

static int take_number(int64_t *to, const char *option, const char *value, int64_t least,
                       int64_t most)
{
    if (tool_integer(value, least, most, to))
        return TOOL_OK;
    return tool_wrong_usage("--%s is %s: must be an integer, %lld..%lld", option, value,
                            (long long)least, (long long)most);
}

static int take_layout(int32_t *to, const char *value)
{
    *to = strcmp(value, "adjacent") == 0     ? POSENC_ADJACENT
          : strcmp(value, "split_half") == 0 ? POSENC_SPLIT_HALF
                                             : 0;
    return *to ? TOOL_OK : tool_wrong_usage("--to is %s: must be adjacent or split_half", value);
}

/* The number behind the last '=' is the heads'; `value` lives as long as the process. */
static int take_pattern(struct permute_request *request, const char *value)
{
    if (request->patterns == PERMUTE_MAX_PATTERNS)
        return tool_wrong_usage("--tensor is given more than %d times", PERMUTE_MAX_PATTERNS);
    struct permute_pattern *pattern = &request->pattern[request->patterns++];
    char *equals = strrchr(value, '=');
    pattern->glob = value;
    pattern->heads = 0;
    if (!equals)
        return TOOL_OK;
    if (!tool_integer(equals + 1, 1, INT32_MAX, &pattern->heads))
        return tool_wrong_usage("--tensor is %s: behind = must be a number of heads", value);
    *equals = 0;
    return TOOL_OK;
}

static int take_option(void *to, int id, const char *value)
{
    struct permute_request *request = to;
    switch (id) {
    case TO: return take_layout(&request->to, value);
    case HEADS: return take_number(&request->heads, "heads", value, 1, INT32_MAX);
    case ROTARY:
        if (tool_integer(value, 2, 65536, &request->rotary) && request->rotary % 2 == 0)
            return TOOL_OK;
        return tool_wrong_usage("--rotary is %s: must be an even integer, 2..65536", value);
    case HEAD_DIM: return take_number(&request->head_dim, "head-dim", value, 2, INT32_MAX);
    case OFFSET: return take_number(&request->offset, "offset", value, 0, INT32_MAX);
    case TENSOR: return take_pattern(request, value);
    case AXIS:
        request->channels = strcmp(value, "channels") == 0;
        if (request->channels || strcmp(value, "rows") == 0)
            return TOOL_OK;
        return tool_wrong_usage("--axis is %s: must be rows or channels", value);
    default: request->packed = 1; return TOOL_OK;
    }
}

static int check_request(const struct permute_request *request, int operands)
{
    if (!request->to || !request->heads || !request->rotary)
        return tool_wrong_usage("needs --%s", !request->to      ? "to"
                                              : !request->heads ? "heads"
                                                                : "rotary");
    if (operands != 2)
        return tool_wrong_usage("needs two files, IN and OUT: got %d", operands);
    if (request->packed && (request->channels || !request->head_dim))
        return tool_wrong_usage("--packed needs --head-dim and rows");
    if (request->channels && request->heads > 1 && !request->head_dim)
        return tool_wrong_usage("--axis channels with more than one head needs --head-dim");
    return TOOL_OK;
}

int permute_read(const char *path, int in, void *data, size_t bytes, uint64_t at)
{
    for (char *to = data; bytes;) {
        ssize_t got = pread(in, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tool_fail(TOOL_SYSTEM, "%s: %s", path,
                             got ? strerror(errno) : "became shorter while it was read");
        to += got;
        at += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return TOOL_OK;
}

/* By what is inside: names of files say nothing. */
static int permute_file(const struct permute_request *request, int in)
{
    struct stat status;
    unsigned char front[9] = {0};
    if (fstat(in, &status))
        return tool_fail(TOOL_SYSTEM, "%s: %s", request->in, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return tool_fail(TOOL_REFUSED, "%s: is no regular file: rows are read out of order",
                         request->in);
    uint64_t size = (uint64_t)status.st_size;
    int code = permute_read(request->in, in, front, size < 9 ? (size_t)size : 9, 0);
    if (code)
        return code;
    if (memcmp(front, "\x93NUMPY", 6) == 0)
        return permute_npy(request, in, size);
    if (front[8] == '{')
        return permute_tensors(request, in, size);
    return tool_fail(TOOL_REFUSED, "%s: %s", request->in,
                     memcmp(front, "GGUF", 4) == 0
                         ? "is a GGUF file: permute its source before it is converted"
                         : "is neither an NPY nor a safetensors file");
}

int tool_permute(int argc, char **argv)
{
    struct permute_request request = {0};
    int code;
    if (!tool_take_options(&usage, argc, argv, take_option, &request, &code))
        return code;
    code = check_request(&request, argc - optind);
    if (code)
        return code;
    request.in = argv[optind];
    request.out = argv[optind + 1];
    /* A FIFO is refused, not waited for. */
    int in = open(request.in, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0)
        return tool_fail(TOOL_SYSTEM, "%s: %s", request.in, strerror(errno));
    code = permute_file(&request, in);
    close(in);
    return code;
}
