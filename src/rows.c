/* SPDX-License-Identifier: MIT */
/* Cosine and sine rows of a step: exact, as transformers makes them, or from tables. */
#include "rows.h"

#include "angle.h"
#include "error.h"
#include "float16.h"
#include "plan.h"
#include "tensor.h"

enum { RUN = 64 }; /* tokens per kernel call; any number gives the same bits */

void posenc_row_block_init(struct posenc_row_block *block, const double *inv_freq, int count)
{
    for (int i = 0; i < POSENC_ROW_BLOCK; i++) {
        struct posenc_turns w = posenc_turns_of(i < count ? inv_freq[i] : 0);
        block->w[2][i] = (uint32_t)(w.high >> 32);
        block->w[1][i] = (uint32_t)w.high;
        block->w[0][i] = w.low;
        for (uint32_t j = 0; j < POSENC_ROW_STEPS; j++)
            posenc_sincos(posenc_turns_times(w, j), &block->step_sin[j][i], &block->step_cos[j][i]);
    }
}

/* A destination and what is left to fill: the three ways to make rows share it. */
struct target {
    float *cos, *sin;
    ptrdiff_t stride;
    size_t first, count; /* pairs */
};

/* Token by token into runs of one sign and one block of 16 positions, which share the base row. */
static void fill_exact(const posenc_plan *plan, const posenc_positions *positions, int64_t b,
                       int64_t token, size_t tokens, const struct target *to)
{
    uint8_t steps[RUN];
    struct posenc_rows_job job = {
        .blocks = plan->sets->blocks + to->first / POSENC_ROW_BLOCK,
        .steps = steps,
        .pairs = to->count,
        .factor = plan->sets->attention_factor,
        .stride = to->stride,
    };
    for (size_t t = 0; t < tokens; t += job.count) {
        job.count = 0;
        while (job.count < RUN && t + job.count < tokens) {
            int64_t p = posenc_position(positions, b, token + (int64_t)(t + job.count));
            uint32_t size = (uint32_t)(p < 0 ? -p : p), base = size - size % POSENC_ROW_STEPS;
            uint64_t sign = p < 0 ? UINT64_C(1) << 63 : 0;
            if (job.count && (base != job.base || sign != job.sine_sign))
                break;
            job.base = base;
            job.sine_sign = sign;
            steps[job.count++] = (uint8_t)(size % POSENC_ROW_STEPS);
        }
        job.cos = to->cos + (ptrdiff_t)t * to->stride;
        job.sin = to->sin + (ptrdiff_t)t * to->stride;
        plan->kernels->rows(&job);
    }
}

static float round_to(float x, int32_t dtype)
{
    if (dtype == POSENC_F16)
        return posenc_f16_to_f32(posenc_f32_to_f16(x));
    return dtype == POSENC_BF16 ? posenc_bf16_to_f32(posenc_f32_to_bf16(x)) : x;
}

/* The angle is a float here and not a count of turns, so its own turns are taken. */
static void fill_hf_f32(const posenc_plan *plan, int64_t position, const struct target *to)
{
    float p = (float)(position < 0 ? -position : position);
    float factor = (float)plan->sets->attention_factor;
    for (size_t i = 0; i < to->count; i++) {
        float angle = p * plan->sets->inv_freq_f32[to->first + i];
        double s = (double)angle, c = 1;
        /* Smaller angles leave too few of the 96 places, and their sine x - x^3/6 rounds to x. */
        if (angle >= 0x1p-13f)
            posenc_sincos(posenc_turns_of((double)angle), &s, &c);
        float sine = (float)s * factor;
        to->cos[i] = round_to((float)c * factor, plan->row_dtype);
        to->sin[i] = round_to(position < 0 ? -sine : sine, plan->row_dtype);
    }
}

static void fill_table(const posenc_plan *plan, int64_t position, const struct target *to)
{
    size_t at = (size_t)position * (size_t)plan->pairs + to->first;
    memcpy(to->cos, plan->params.cos_table + at, to->count * sizeof(float));
    memcpy(to->sin, plan->params.sin_table + at, to->count * sizeof(float));
}

void posenc_rows_fill(const posenc_plan *plan, const posenc_positions *positions, int64_t batch,
                      int64_t token, size_t tokens, size_t first, size_t count, float *cos,
                      float *sin, ptrdiff_t stride)
{
    struct target to = {cos, sin, stride, first, count};
    if (plan->rows_by == POSENC_ROWS_EXACT) {
        fill_exact(plan, positions, batch, token, tokens, &to);
        return;
    }
    for (size_t t = 0; t < tokens; t++, to.cos += stride, to.sin += stride) {
        int64_t position = posenc_position(positions, batch, token + (int64_t)t);
        if (plan->rows_by == POSENC_ROWS_TABLE)
            fill_table(plan, position, &to);
        else
            fill_hf_f32(plan, position, &to);
    }
}

static int32_t check_shape(const posenc_plan *plan, const posenc_tensor *rows, posenc_error *error)
{
    if (rows->dtype != POSENC_F32)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "rows.dtype is %d: must be POSENC_F32",
                           (int64_t)rows->dtype);
    if (rows->shape[2] != 1 || rows->shape[3] != plan->rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "rows.shape is [%d, %d, %d, %d]: must be [batch, tokens, 1, %d]",
                           rows->shape[0], rows->shape[1], rows->shape[2], rows->shape[3],
                           (int64_t)plan->rotary_dim);
    return POSENC_OK;
}

int32_t posenc_rows(const posenc_plan *plan, const posenc_positions *positions,
                    const posenc_tensor *rows, posenc_error *error)
{
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    struct posenc_view view;
    int32_t status = posenc_view_check(&view, rows, "rows", error);
    if (!status)
        status = posenc_writable_check(&view, error);
    if (!status)
        status = check_shape(plan, rows, error);
    if (!status)
        status = posenc_positions_check(positions, rows->shape[0], rows->shape[1], &plan->range,
                                        error);
    if (!status)
        status = posenc_positions_apart(positions, rows->shape[0], rows->shape[1], &view, error);
    /* Without tokens nothing is to do, however many batch rows are said to be there. */
    if (status || posenc_tensor_is_empty(rows))
        return status;
    for (int64_t b = 0; b < rows->shape[0]; b++) {
        float *cos = (float *)rows->data + (b ? b * rows->stride[0] : 0);
        posenc_rows_fill(plan, positions, b, 0, (size_t)rows->shape[1], 0, (size_t)plan->pairs, cos,
                         cos + plan->pairs, rows->shape[1] > 1 ? (ptrdiff_t)rows->stride[1] : 0);
    }
    return POSENC_OK;
}
