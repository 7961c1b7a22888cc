/* SPDX-License-Identifier: MIT */
/* posenc plot: the numbers of its pictures, as the library computes them. */
#include "plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELLS = 1 << 22 };

static int make_matrix(struct plot_matrix *matrix, int64_t rows, int64_t columns)
{
    if (rows * columns > MOST_CELLS)
        return tool_fail(TOOL_REFUSED, "--count is %lld: rows of %lld make more than %d values",
                         (long long)rows, (long long)columns, MOST_CELLS);
    matrix->rows = rows;
    matrix->columns = columns;
    matrix->value = malloc((size_t)(rows * columns) * sizeof(double));
    return matrix->value ? TOOL_OK : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

static int fill_rotation(struct plot_matrix *matrix, const struct scheme *scheme, int64_t start,
                         int64_t count)
{
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor tensor;
    posenc_positions_start(&positions, start);
    if (!scheme->set.rotated)
        return tool_fail(TOOL_REFUSED, "%s: the layer is not rotated", scheme->model.name);
    if (posenc_plan_create(&plan, &scheme->set.params, &error))
        return tool_fail_library(scheme->model.name, &error);
    int code = make_matrix(matrix, count, 2 * posenc_plan_pairs(plan));
    posenc_tensor_contiguous(&tensor, matrix->value, POSENC_F64, 1, count, 1, matrix->columns);
    if (!code && posenc_rows(plan, &positions, &tensor, &error))
        code = tool_fail_library(scheme->model.name, &error);
    posenc_plan_free(plan);
    return code;
}

static int fill_sinusoid(struct plot_matrix *matrix, const struct scheme *scheme, int64_t start,
                         int64_t count)
{
    posenc_sinusoid *sinusoid = NULL;
    posenc_error error = {0, ""};
    posenc_positions positions;
    posenc_tensor tensor;
    posenc_positions_start(&positions, start);
    if (posenc_sinusoid_create(&sinusoid, &scheme->sinusoid, &error))
        return tool_fail_library(scheme->model.name, &error);
    int code = make_matrix(matrix, count, scheme->sinusoid.dim);
    posenc_tensor_contiguous(&tensor, matrix->value, POSENC_F64, 1, count, 1, matrix->columns);
    if (!code && posenc_sinusoid_fill(sinusoid, &positions, &tensor, &error))
        code = tool_fail_library(scheme->model.name, &error);
    posenc_sinusoid_free(sinusoid);
    return code;
}

int plot_make_rows(struct plot_matrix *matrix, const struct scheme *scheme, int64_t start,
                   int64_t count)
{
    *matrix = (struct plot_matrix){0, 0, NULL};
    int code = scheme->kind == SCHEME_ROPE ? fill_rotation(matrix, scheme, start, count)
                                           : fill_sinusoid(matrix, scheme, start, count);
    if (code)
        free(matrix->value);
    return code;
}

static int fill_alibi(struct plot_matrix *matrix, const struct scheme *scheme, int64_t head)
{
    posenc_alibi_params params = scheme->alibi;
    posenc_tensor bias;
    posenc_error error = {0, ""};
    int64_t keys = matrix->columns;
    float *values = malloc((size_t)(matrix->rows * keys) * sizeof *values);
    if (!values)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    params.first_head = head;
    params.query_offset = keys - matrix->rows;
    posenc_tensor_contiguous(&bias, values, POSENC_F32, 1, matrix->rows, 1, keys);
    int code = posenc_alibi_bias(&params, &bias, &error)
                   ? tool_fail_library(scheme->model.name, &error)
                   : TOOL_OK;
    for (int64_t i = 0; i < matrix->rows * keys && !code; i++)
        matrix->value[i] = values[i];
    free(values);
    return code;
}

static int fill_t5(struct plot_matrix *matrix, const struct scheme *scheme)
{
    posenc_error error = {0, ""};
    int64_t keys = matrix->columns;
    int32_t *distance = malloc((size_t)keys * 2 * sizeof *distance);
    if (!distance)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    int code = TOOL_OK;
    for (int64_t i = 0; i < matrix->rows && !code; i++) {
        for (int64_t j = 0; j < keys; j++)
            distance[j] = (int32_t)(j - i - (keys - matrix->rows));
        if (posenc_t5_buckets(&scheme->t5, distance, (size_t)keys, distance + keys, &error))
            code = tool_fail_library(scheme->model.name, &error);
        for (int64_t j = 0; j < keys && !code; j++)
            matrix->value[i * keys + j] = distance[keys + j];
    }
    free(distance);
    return code;
}

int plot_make_bias(struct plot_matrix *matrix, const struct scheme *scheme, int64_t head,
                   int64_t count)
{
    *matrix = (struct plot_matrix){0, 0, NULL};
    if (scheme->kind == SCHEME_ALIBI && head >= scheme->heads)
        return tool_fail(TOOL_REFUSED, "%s: --head is %lld: must be below %lld",
                         scheme->model.name, (long long)head, (long long)scheme->heads);
    int code = make_matrix(matrix, count, count);
    if (!code)
        code = scheme->kind == SCHEME_ALIBI ? fill_alibi(matrix, scheme, head)
                                            : fill_t5(matrix, scheme);
    if (code)
        free(matrix->value);
    return code;
}
