/* SPDX-License-Identifier: MIT */
/* posenc rows: making the rows of a run of tokens, and their three forms. */
#include "array.h"
#include "rows.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 }; /* tokens at a time */

static void *make_piece(const struct rows_job *job)
{
    void *memory = malloc((size_t)PIECE * (size_t)job->width * sizeof(double));
    if (!memory)
        tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    return memory;
}

/* The positions of tokens from `token` on in one batch row. */
static posenc_positions positions_from(const struct rows_job *job, int64_t row, int64_t token)
{
    posenc_positions p = job->positions;
    if (p.kind == POSENC_POSITIONS_START) {
        p.start += token;
        return p;
    }
    size_t size = p.dtype == POSENC_I32 ? 4 : 8;
    p.ids = (const char *)p.ids + (size_t)(row * p.stride[0] + token) * size;
    return p;
}

static int make(const struct rows_job *job, int64_t row, int64_t token, int64_t count, void *rows)
{
    posenc_error error = {0, ""};
    posenc_tensor tensor;
    posenc_positions positions = positions_from(job, row, token);
    posenc_tensor_contiguous(&tensor, rows, job->dtype, 1, count, 1, job->width);
    if (job->plan ? posenc_rows(job->plan, &positions, &tensor, &error)
                  : posenc_sinusoid_fill(job->sinusoid, &positions, &tensor, &error))
        return tool_fail_library(job->subject, &error);
    return TOOL_OK;
}

static int64_t piece_at(const struct rows_job *job, int64_t token)
{
    return job->tokens - token < PIECE ? job->tokens - token : PIECE;
}

/* Of a run the ends say all; ids are tried one after another. */
static int check_all(const struct rows_job *job, void *rows)
{
    int code = TOOL_OK;
    if (job->positions.kind == POSENC_POSITIONS_START) {
        code = make(job, 0, 0, 1, rows);
        return code ? code : make(job, 0, job->tokens - 1, 1, rows);
    }
    for (int64_t b = 0; b < job->batch && !code; b++)
        for (int64_t t = 0; t < job->tokens && !code; t += PIECE)
            code = make(job, b, t, piece_at(job, t), rows);
    return code;
}

int rows_check(const struct rows_job *job)
{
    if (job->batch < 1 || job->tokens < 1)
        return TOOL_OK;
    void *rows = make_piece(job);
    int code = rows ? check_all(job, rows) : TOOL_SYSTEM;
    free(rows);
    return code;
}

static double value_at(const struct rows_job *job, const void *rows, int64_t i)
{
    return job->dtype == POSENC_F64 ? ((const double *)rows)[i] : (double)((const float *)rows)[i];
}

/* Digits that give the same number when read again. */
static int digits(const struct rows_job *job)
{
    return job->dtype == POSENC_F64 ? 17 : 9;
}

static int axes_of(const struct rows_job *job)
{
    return job->positions.axes > 1 ? job->positions.axes : 1;
}

/* Where a token stands, the axes one after another. */
static void print_position(const struct rows_job *job, FILE *to, int64_t row, int64_t token,
                           const char *separator)
{
    const posenc_positions *p = &job->positions;
    if (p->kind == POSENC_POSITIONS_START) {
        fprintf(to, "%lld", (long long)(p->start + token));
        return;
    }
    for (int a = 0; a < axes_of(job); a++)
        fprintf(to, "%s%.17g", a ? separator : "",
                array_id(p, a * p->axis_stride + row * p->stride[0] + token));
}

static void print_csv_header(const struct rows_job *job, FILE *to)
{
    int32_t pairs = job->plan ? job->width / 2 : 0;
    if (job->has_batch)
        fputs("batch,", to);
    fputs("position", to);
    for (int a = 1; a < axes_of(job); a++)
        fprintf(to, ",position_%d", a);
    for (int32_t i = 0; i < pairs; i++)
        fprintf(to, ",cos_%d", (int)i);
    for (int32_t i = 0; i < pairs; i++)
        fprintf(to, ",sin_%d", (int)i);
    for (int32_t i = 2 * pairs; i < job->width; i++)
        fprintf(to, ",channel_%d", (int)i);
    fputc('\n', to);
}

static void print_csv(const struct rows_job *job, FILE *to, int64_t row, int64_t token,
                      const void *rows, int64_t first)
{
    if (job->has_batch)
        fprintf(to, "%lld,", (long long)row);
    print_position(job, to, row, token, ",");
    for (int32_t i = 0; i < job->width; i++)
        fprintf(to, ",%.*g", digits(job), value_at(job, rows, first + i));
    fputc('\n', to);
}

static void print_text(const struct rows_job *job, FILE *to, int64_t row, int64_t token,
                       const void *rows, int64_t first)
{
    int32_t pairs = job->width / 2;
    int wide = digits(job) + 7;
    if (job->has_batch)
        fprintf(to, "batch %lld, ", (long long)row);
    fputs("position ", to);
    print_position(job, to, row, token, ", ");
    fprintf(to, job->plan ? "\n  pair  %*s  %*s\n" : "\nchannel %*s\n", wide,
            job->plan ? "cosine" : "value", wide, "sine");
    for (int32_t i = 0; !job->plan && i < job->width; i++)
        fprintf(to, "%6d  %*.*g\n", (int)i, wide, digits(job), value_at(job, rows, first + i));
    for (int32_t i = 0; job->plan && i < pairs; i++)
        fprintf(to, "%6d  %*.*g  %*.*g\n", (int)i, wide, digits(job),
                value_at(job, rows, first + i), wide, digits(job),
                value_at(job, rows, first + pairs + i));
}

/* One piece as text of either form. */
static int write_lines(const struct rows_job *job, enum rows_format format, int64_t row,
                       int64_t token, const void *rows, struct tool_output *output)
{
    struct tool_text text;
    FILE *to = tool_text_open(&text);
    if (!to)
        return TOOL_SYSTEM;
    if (format == ROWS_CSV && row == 0 && token == 0)
        print_csv_header(job, to);
    for (int64_t t = 0; t < piece_at(job, token); t++)
        (format == ROWS_CSV ? print_csv : print_text)(job, to, row, token + t, rows,
                                                      t * job->width);
    int code = tool_text_close(&text, to);
    if (!code)
        code = tool_output_write(output, text.data, text.length);
    tool_text_free(&text);
    return code;
}

static int write_header(const struct rows_job *job, struct tool_output *output)
{
    struct npy array = {.type = job->dtype == POSENC_F64 ? NPY_F64 : NPY_F32};
    if (job->has_batch)
        array.shape[array.rank++] = job->batch;
    array.shape[array.rank++] = job->tokens;
    array.shape[array.rank++] = job->width;
    return npy_write_header(output, &array);
}

static int write_piece(const struct rows_job *job, enum rows_format format, int64_t row,
                       int64_t token, void *rows, struct tool_output *output)
{
    char said[60];
    int64_t count = piece_at(job, token);
    snprintf(said, sizeof said, "rows: token %lld of %lld", (long long)(row * job->tokens + token),
             (long long)(job->batch * job->tokens));
    tool_progress(said);
    int code = make(job, row, token, count, rows);
    if (code)
        return code;
    if (format != ROWS_NPY)
        return write_lines(job, format, row, token, rows, output);
    return npy_write_data(output, job->dtype == POSENC_F64 ? NPY_F64 : NPY_F32, rows,
                          (size_t)count * (size_t)job->width);
}

int rows_write(const struct rows_job *job, enum rows_format format, struct tool_output *output)
{
    void *rows = make_piece(job);
    int code = rows ? TOOL_OK : TOOL_SYSTEM;
    if (!code && format == ROWS_NPY)
        code = write_header(job, output);
    for (int64_t b = 0; job->tokens && b < job->batch && !code; b++)
        for (int64_t t = 0; t < job->tokens && !code; t += PIECE)
            code = write_piece(job, format, b, t, rows, output);
    tool_progress(NULL);
    free(rows);
    return code;
}
