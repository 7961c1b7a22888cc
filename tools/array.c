/* SPDX-License-Identifier: MIT */
/* NPY arrays as tensors and positions of libposenc: which element types and ranks the command
 * takes. */
#include "array.h"

#include <stdio.h>
#include <string.h>

int array_take_dtype(int32_t *dtype, const char *option, const char *value)
{
    *dtype = tool_dtype(value);
    if (*dtype)
        return TOOL_OK;
    return tool_wrong_usage("--%s is %s: must be f32, f16 or bf16", option, value);
}

/* uint16 says nothing about its meaning, so bf16 must be announced; the others announce themselves.
 */
static int settle_dtype(const struct npy *array, const struct array_types *types, const char *path,
                        int32_t *dtype)
{
    int32_t said = types->in_dtype;
    switch (array->type) {
    case NPY_F32: *dtype = POSENC_F32; break;
    case NPY_F16: *dtype = POSENC_F16; break;
    case NPY_U16:
        *dtype = POSENC_BF16;
        if (!said)
            said = types->dtype;
        if (!said)
            return tool_fail(TOOL_REFUSED,
                             "%s: element type is uint16: say --in-dtype bf16 if it "
                             "holds bfloat16",
                             path);
        break;
    case NPY_F64:
        return tool_fail(TOOL_REFUSED,
                         "%s: element type is float64: not taken here; save "
                         "x.astype('float32')",
                         path);
    default:
        return tool_fail(TOOL_REFUSED,
                         "%s: element type is an integer: must be float32, float16, or "
                         "bfloat16 as uint16",
                         path);
    }
    if (!said || said == *dtype)
        return TOOL_OK;
    return tool_fail(TOOL_REFUSED, "%s: element type is %s, not %s as --%s says", path,
                     array->type == NPY_U16 ? "uint16 (bf16)" : tool_dtype_name(*dtype),
                     tool_dtype_name(said), types->in_dtype ? "in-dtype" : "dtype");
}

int array_read(struct npy *array, posenc_tensor *tensor, const char *path,
               const struct array_types *types)
{
    int32_t dtype = 0;
    int code = npy_read(array, path);
    if (code)
        return code;
    code = settle_dtype(array, types, path, &dtype);
    if (!code && array->rank != 3 && array->rank != 4)
        code = tool_fail(TOOL_REFUSED,
                         "%s: the array has %d dimensions: must be [batch, token, head, "
                         "channel] or [token, head, channel]",
                         path, array->rank);
    if (code) {
        npy_free(array);
        return code;
    }
    const int64_t *s = array->shape + array->rank - 3;
    posenc_tensor_contiguous(tensor, array->data, dtype, array->rank == 4 ? array->shape[0] : 1,
                             s[0], s[1], s[2]);
    return TOOL_OK;
}

int array_read_any(struct npy *array, int32_t *dtype, const char *path,
                   const struct array_types *types)
{
    struct array_types said = *types;
    int code = npy_read(array, path);
    if (code)
        return code;
    if (array->type != NPY_U16)
        said.in_dtype = said.dtype = 0;
    code = settle_dtype(array, &said, path, dtype);
    if (code)
        npy_free(array);
    return code;
}

int array_read_table(struct npy *array, posenc_tensor *tensor, const char *path,
                     const struct array_types *types)
{
    int32_t dtype = 0;
    struct array_types said = {0, types->in_dtype};
    int code = npy_read(array, path);
    if (code)
        return code;
    if (array->type == NPY_U16 && !said.in_dtype)
        said.in_dtype = types->dtype;
    code = settle_dtype(array, &said, path, &dtype);
    if (!code && array->rank != 2)
        code = tool_fail(TOOL_REFUSED, "%s: the array has %d dimensions: must be [row, column]",
                         path, array->rank);
    if (code) {
        npy_free(array);
        return code;
    }
    posenc_tensor_contiguous(tensor, array->data, dtype, 1, array->shape[0], 1, array->shape[1]);
    return TOOL_OK;
}

/* What is wrong with an array of positions; NULL if nothing. */
static const char *position_fault(const struct npy *array)
{
    if (array->type != NPY_I32 && array->type != NPY_I64 && array->type != NPY_F64)
        return "positions must be int32, int64 or float64; save x.astype('int64')";
    if (array->rank < 1 || array->rank > 3)
        return "positions must have the shape [token], [batch, token] or [axes, batch, token]";
    if (array->rank == 3 && (array->shape[0] < 1 || array->shape[0] > 4))
        return "positions [axes, batch, token] must have 1 to 4 axes";
    return NULL;
}

int array_read_ids(struct npy *array, posenc_positions *positions, const char *path,
                   int64_t *batch, int64_t *tokens)
{
    int code = npy_read(array, path);
    if (code)
        return code;
    const char *fault = position_fault(array);
    if (fault) {
        npy_free(array);
        return tool_fail(TOOL_REFUSED, "%s: %s", path, fault);
    }
    *batch = array->rank > 1 ? array->shape[array->rank - 2] : 1;
    *tokens = array->shape[array->rank - 1];
    posenc_positions_start(positions, 0);
    positions->kind = POSENC_POSITIONS_IDS;
    positions->dtype = array->type == NPY_I32   ? POSENC_I32
                       : array->type == NPY_I64 ? POSENC_I64
                                                : POSENC_F64;
    positions->ids = array->data;
    positions->stride[0] = array->rank > 1 ? *tokens : 0;
    positions->stride[1] = 1;
    if (array->rank == 3) {
        positions->axes = (int32_t)array->shape[0];
        positions->axis_stride = (int64_t)(array->count / (size_t)array->shape[0]);
    }
    return TOOL_OK;
}

int array_read_positions(struct npy *array, posenc_positions *positions, const char *path,
                         int64_t batch, int64_t tokens)
{
    int64_t rows, columns;
    int code = array_read_ids(array, positions, path, &rows, &columns);
    if (code)
        return code;
    if (columns == tokens && (rows == batch || array->rank == 1))
        return TOOL_OK;
    npy_free(array);
    return tool_fail(TOOL_REFUSED,
                     "%s: positions must have the shape [%lld] or [%lld, %lld] of the array, "
                     "axes before them",
                     path, (long long)tokens, (long long)batch, (long long)tokens);
}

double array_id(const posenc_positions *positions, int64_t i)
{
    switch (positions->dtype) {
    case POSENC_I32: return ((const int32_t *)positions->ids)[i];
    case POSENC_I64: return (double)((const int64_t *)positions->ids)[i];
    default: return ((const double *)positions->ids)[i];
    }
}

int64_t array_last_position(const posenc_positions *positions, int64_t batch, int64_t tokens)
{
    int64_t last = INT64_MIN;
    if (batch < 1 || tokens < 1)
        return last;
    if (positions->kind == POSENC_POSITIONS_START)
        return __builtin_add_overflow(positions->start, tokens - 1, &last) ? INT64_MAX : last;
    int64_t rows = positions->stride[0] ? batch : 1;
    for (int64_t a = 0; a < (positions->axes > 1 ? positions->axes : 1); a++)
        for (int64_t i = 0; i < rows * tokens; i++) {
            /* A plan took them, so they lie within 32 bits. */
            int64_t id = (int64_t)array_id(positions, a * positions->axis_stride + i);
            if (id > last)
                last = id;
        }
    return last;
}

int array_write(const char *path, const struct npy *like, const posenc_tensor *data)
{
    struct npy array = *like;
    array.type = data->dtype == POSENC_F32   ? NPY_F32
                 : data->dtype == POSENC_F16 ? NPY_F16
                                             : NPY_U16;
    array.data = data->data;
    struct tool_output output;
    int code = tool_output_open(&output, path);
    if (!code)
        code = npy_write(&output, &array);
    if (!code)
        code = tool_output_close(&output);
    return code;
}
