/* SPDX-License-Identifier: MIT */
/* posenc bias: the bias of ALiBi or T5 as an array, or the buckets of T5. */
#include "array.h"
#include "npy.h"
#include "scheme.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ALIBI = 1, T5, PART, QUERIES, KEYS, OFFSET, MASK, FORM, TABLE, DTYPE, IN_DTYPE, OUT,
    MOST = 1 << 24,       /* queries, keys */
    PIECE_BYTES = 1 << 24 /* of the result, made and written at a time */
};

static const struct tool_option options[] = {
    {ALIBI, "alibi", scheme_alibi_argument, scheme_alibi_help},
    {T5, "t5", scheme_t5_argument, scheme_t5_help},
    {PART, "part", "P", scheme_part_help},
    {QUERIES, "queries", "N", "how many queries"},
    {KEYS, "keys", "M", "how many keys"},
    {OFFSET, "offset", "K", "the key at which query 0 stands; default M - N"},
    {MASK, "mask", NULL, "-inf for keys after the query"},
    {FORM, "form", "F", "of ALiBi: distance (default), key, last, abs, falcon"},
    {TABLE, "table", "F.npy", "trained values of T5, [buckets, heads]; without it the\n"
                              "buckets themselves"},
    {DTYPE, "dtype", "T", "f32, f16 or bf16; default f32, or that of the table"},
    {IN_DTYPE, "in-dtype", "T", "what a uint16 table holds: bf16"},
    {OUT, "o", "FILE", "where to; default standard output"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "bias (--model M | --alibi A | --t5 T) --queries N --keys M -o FILE",
    "What ALiBi or T5 adds to the scores: an NPY array [head, query, key]. Of T5\n"
    "without a table the bucket of each query and key, int32 [query, key].",
    options, model_options,
    "posenc bias --alibi 8 --queries 1 --keys 512 --mask -o bias.npy"};

struct request {
    struct scheme_choice choice;
    struct array_types types;
    int64_t queries, keys, offset;
    int32_t form;
    int mask, has_offset;
    const char *table, *out;
};

static int take_form(struct request *r, const char *value)
{
    static const char *const forms[] = {"distance", "key", "last", "abs", "falcon"};
    for (int32_t i = 0; i < (int32_t)(sizeof forms / sizeof forms[0]); i++)
        if (strcmp(value, forms[i]) == 0)
            r->form = POSENC_ALIBI_DISTANCE + i;
    return r->form ? TOOL_OK
                   : tool_wrong_usage("--form is %s: must be distance, key, last, abs or falcon",
                                      value);
}

static int take_count(const char *name, const char *value, int64_t *to)
{
    if (tool_integer(value, 1, MOST, to))
        return TOOL_OK;
    return tool_wrong_usage("--%s is %s: must be an integer from 1 to %d", name, value, MOST);
}

static int take_option(void *to, int id, const char *value)
{
    struct request *r = to;
    switch (id) {
    case ALIBI: r->choice.alibi = value; return TOOL_OK;
    case T5: r->choice.t5 = value; return TOOL_OK;
    case PART: return scheme_take_part(&r->choice, value);
    case QUERIES: return take_count("queries", value, &r->queries);
    case KEYS: return take_count("keys", value, &r->keys);
    case OFFSET:
        r->has_offset = 1;
        if (tool_integer(value, -INT32_MAX / 2, INT32_MAX / 2, &r->offset))
            return TOOL_OK;
        return tool_wrong_usage("--offset is %s: must be an integer within 31 bits", value);
    case MASK: r->mask = 1; return TOOL_OK;
    case FORM: return take_form(r, value);
    case TABLE: r->table = value; return TOOL_OK;
    case DTYPE: return array_take_dtype(&r->types.dtype, "dtype", value);
    case IN_DTYPE: return array_take_dtype(&r->types.in_dtype, "in-dtype", value);
    case OUT: r->out = value; return TOOL_OK;
    default: return model_take_option(&r->choice.model, id, value);
    }
}

static int parse(struct request *r, int argc, char **argv, int *code)
{
    if (!tool_take_options(&usage, argc, argv, take_option, r, code))
        return 0;
    *code = TOOL_USAGE;
    if (argc > optind)
        tool_wrong_usage("%s is one operand too many", argv[optind]);
    else if (r->choice.model.rope)
        tool_wrong_usage("--rope has no bias");
    else if (!scheme_is_named(&r->choice))
        tool_wrong_usage("needs --model, --alibi or --t5");
    else if (!r->queries || !r->keys)
        tool_wrong_usage("needs --queries and --keys");
    else if (!r->out && isatty(STDOUT_FILENO))
        tool_wrong_usage("an array is not for a terminal: name a file with -o");
    else
        *code = TOOL_OK;
    if (!r->has_offset)
        r->offset = r->keys - r->queries;
    return *code == TOOL_OK;
}

/* What is being made: a slab of queries of one head at a time. */
struct job {
    const struct request *request;
    struct scheme scheme;
    struct npy array, table;
    posenc_tensor table_view; /* all heads */
    int32_t dtype;            /* POSENC_I32: buckets */
    int64_t heads;
    void *piece;
    int32_t *relative; /* of one query, for buckets */
    int64_t queries;   /* of a piece */
};

static int read_table(struct job *job)
{
    const struct request *r = job->request;
    int code = array_read_table(&job->table, &job->table_view, r->table, &r->types);
    if (code)
        return code;
    if (job->table_view.shape[1] != job->scheme.t5.num_buckets)
        return tool_fail(TOOL_REFUSED, "%s: has %lld rows: must be %d, one a bucket", r->table,
                         (long long)job->table_view.shape[1], (int)job->scheme.t5.num_buckets);
    job->heads = job->table_view.shape[3];
    job->dtype = r->types.dtype ? r->types.dtype : job->table_view.dtype;
    return TOOL_OK;
}

/* Settles what the result is, and refuses options that do not go with it. */
static int settle(struct job *job)
{
    const struct request *r = job->request;
    int is_t5 = job->scheme.kind == SCHEME_T5;
    job->dtype = r->types.dtype ? r->types.dtype : POSENC_F32;
    job->heads = job->scheme.heads;
    if (!is_t5 && (r->table || r->types.in_dtype))
        return tool_fail(TOOL_REFUSED, "%s: --table and --in-dtype are for T5",
                         job->scheme.model.name);
    if (is_t5 && r->form)
        return tool_fail(TOOL_REFUSED, "%s: --form is for ALiBi", job->scheme.model.name);
    job->scheme.alibi.causal = job->scheme.t5.causal = r->mask;
    if (r->form)
        job->scheme.alibi.form = r->form;
    if (!is_t5)
        return TOOL_OK;
    if (r->table)
        return read_table(job);
    if (r->mask || r->types.dtype || r->types.in_dtype)
        return tool_fail(TOOL_REFUSED, "%s: --mask, --dtype and --in-dtype need --table: buckets "
                                       "are int32",
                         job->scheme.model.name);
    job->dtype = POSENC_I32;
    job->heads = 1;
    return TOOL_OK;
}

static int make_buckets(const struct job *job, int64_t first, int64_t count, posenc_error *error)
{
    int64_t keys = job->request->keys;
    int32_t *buckets = job->piece, *relative = job->relative;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < keys; j++)
            relative[j] = (int32_t)(j - (job->request->offset + first + i));
        int32_t status =
            posenc_t5_buckets(&job->scheme.t5, relative, (size_t)keys, buckets + i * keys, error);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* Queries [first, first + count) of one head. */
static int make(struct job *job, int64_t head, int64_t first, int64_t count)
{
    posenc_error error = {0, ""};
    posenc_tensor bias;
    int32_t status;
    int64_t offset = job->request->offset + first;
    posenc_tensor_contiguous(&bias, job->piece, job->dtype, 1, count, 1, job->request->keys);
    if (job->dtype == POSENC_I32) {
        status = make_buckets(job, first, count, &error);
    } else if (job->scheme.kind == SCHEME_T5) {
        posenc_tensor table = job->table_view;
        table.data = (char *)table.data + (size_t)head * tool_dtype_size(table.dtype);
        table.shape[3] = 1;
        job->scheme.t5.query_offset = offset;
        status = posenc_t5_bias(&job->scheme.t5, &table, &bias, &error);
    } else {
        job->scheme.alibi.query_offset = offset;
        job->scheme.alibi.first_head = head;
        status = posenc_alibi_bias(&job->scheme.alibi, &bias, &error);
    }
    const char *name = job->request->table ? job->request->table : job->scheme.model.name;
    return status ? tool_fail_library(name, &error) : TOOL_OK;
}

static int make_piece(struct job *job)
{
    const struct request *r = job->request;
    int64_t row = r->keys * (int64_t)tool_dtype_size(job->dtype);
    job->queries = row < PIECE_BYTES ? PIECE_BYTES / row : 1;
    if (job->queries > r->queries)
        job->queries = r->queries;
    job->array.type = job->dtype == POSENC_I32   ? NPY_I32
                      : job->dtype == POSENC_F32 ? NPY_F32
                      : job->dtype == POSENC_F16 ? NPY_F16
                                                 : NPY_U16;
    if (job->dtype != POSENC_I32)
        job->array.shape[job->array.rank++] = job->heads;
    job->array.shape[job->array.rank++] = r->queries;
    job->array.shape[job->array.rank++] = r->keys;
    job->piece = malloc((size_t)(row * job->queries));
    job->relative = malloc((size_t)r->keys * sizeof *job->relative);
    if (job->piece && job->relative)
        return TOOL_OK;
    return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

static int write_bias(struct job *job, struct tool_output *output)
{
    const struct request *r = job->request;
    char said[60];
    int code = npy_write_header(output, &job->array);
    for (int64_t h = 0; h < job->heads && !code; h++)
        for (int64_t q = 0, count; q < r->queries && !code; q += count) {
            count = r->queries - q < job->queries ? r->queries - q : job->queries;
            snprintf(said, sizeof said, "bias: head %lld of %lld", (long long)h,
                     (long long)job->heads);
            tool_progress(said);
            code = make(job, h, q, count);
            if (!code)
                code = npy_write_data(output, job->array.type, job->piece,
                                      (size_t)(count * r->keys));
        }
    tool_progress(NULL);
    return code;
}

/* The first piece tells what the library refuses, before a file is opened. */
static int bias(struct job *job)
{
    struct tool_output output;
    int code = settle(job);
    if (!code)
        code = make_piece(job);
    if (!code)
        code = make(job, 0, 0, 1);
    if (!code && job->request->out)
        code = tool_output_open(&output, job->request->out);
    else
        tool_output_standard(&output);
    if (code)
        return code;
    code = write_bias(job, &output);
    if (!code && job->request->out)
        return tool_output_close(&output);
    if (code && job->request->out)
        tool_output_discard(&output);
    return code;
}

int tool_bias(int argc, char **argv)
{
    struct request request = {.choice = scheme_no_choice};
    struct job job = {.request = &request};
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    code = scheme_choose(&job.scheme, &request.choice, SCHEME_ALIBI | SCHEME_T5);
    if (code)
        return code;
    code = bias(&job);
    if (!code)
        model_warn_notes(&job.scheme.model);
    npy_free(&job.table);
    free(job.piece);
    free(job.relative);
    scheme_close(&job.scheme);
    return code;
}
