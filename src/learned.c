/* SPDX-License-Identifier: MIT */
/* Rows of learned tables, added to embeddings or copied, and the row numbers of token ids. */
#include <math.h>

#include "array.h"
#include "embeddings.h"
#include "error.h"
#include "float16.h"
#include "learned.h"
#include "sides.h"

enum {
    CHUNK = 2048, /* channels of a row that are widened at a time: 8 KiB in L1 */
    STRETCH = 8,  /* tokens of a batch row before those of the next */
    AHEAD = 4096, /* bytes to ask ahead, where that is faster */
    NEAR = 512    /* the same where a row goes to several batch rows */
};

/* One past the highest position. */
#define END (INT64_C(1) << 31)

/* One call. */
struct work {
    const struct posenc_kernels *kernels;
    const posenc_tensor *table, *x, *out; /* x: NULL for the row alone */
    const posenc_positions *positions;
    int64_t offset;
    double scale;
    int ahead;
};

int32_t posenc_table_check(struct posenc_view *view, const posenc_tensor *table, const char *name,
                           posenc_error *error)
{
    int32_t status = posenc_view_check(view, table, name, error);
    if (status)
        return status;
    if (table->shape[0] == 1 && table->shape[2] == 1)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.shape is [%d, %d, %d, %d]: must be [1, rows, 1, channels]", name,
                       table->shape[0], table->shape[1], table->shape[2], table->shape[3]);
}

float posenc_table_get(const posenc_tensor *table, int64_t row, int64_t channel)
{
    const void *at = posenc_element(table, 0, row, 0, channel);
    if (table->dtype == POSENC_F32)
        return *(const float *)at;
    const uint16_t half = *(const uint16_t *)at;
    return table->dtype == POSENC_F16 ? posenc_f16_to_f32(half) : posenc_bf16_to_f32(half);
}

void posenc_table_put(const posenc_tensor *table, int64_t row, int64_t channel, float value)
{
    void *at = posenc_element(table, 0, row, 0, channel);
    if (table->dtype == POSENC_F32)
        *(float *)at = value;
    else
        *(uint16_t *)at = table->dtype == POSENC_F16 ? posenc_f32_to_f16(value)
                                                     : posenc_f32_to_bf16(value);
}

static int64_t row_of(const struct work *w, int64_t b, int64_t t)
{
    return posenc_position(w->positions, 0, b, t) + w->offset;
}

/* F64: one plain loop on every ISA. */
static void add_wide(const struct work *w, int64_t b, int64_t t)
{
    const int64_t row = row_of(w, b, t), channels = w->table->shape[3];
    const double *x = w->x ? (void *)posenc_element(w->x, b, t, 0, 0) : NULL;
    double *y = (void *)posenc_element(w->out, b, t, 0, 0);
    for (int64_t c = 0; c < channels; c++) {
        const double value = (double)posenc_table_get(w->table, row, c);
        y[c] = x ? fma(x[c], w->scale, value) : value;
    }
}

static void copy_row(const struct work *w, int64_t b, int64_t t)
{
    const char *row = posenc_element(w->table, 0, row_of(w, b, t), 0, 0);
    char *y = posenc_element(w->out, b, t, 0, 0);
    const size_t channels = (size_t)w->table->shape[3];
    if (w->table->dtype == w->out->dtype)
        memcpy(y, row, channels * (size_t)posenc_dtype_size(w->out->dtype));
    else
        w->kernels->convert[w->table->dtype - 1][w->out->dtype - 1](row, y, channels);
}

/* Channels [first, first + count) of the row, as floats: where they lie or in scratch. */
static const float *floats_of(const struct work *w, int64_t row, int64_t first, size_t count,
                              float *scratch)
{
    const void *at = posenc_element(w->table, 0, row, 0, first);
    if (w->table->dtype == POSENC_F32)
        return at;
    w->kernels->convert[w->table->dtype - 1][0](at, scratch, count);
    return scratch;
}

/* Bytes from a token to what is asked for meanwhile: further on in its stretch, or where the next
 * stretch begins, in the next batch row, which no CPU foresees. */
static ptrdiff_t ahead_of(const struct work *w, int64_t b, int64_t t)
{
    const int64_t *shape = w->out->shape;
    const int last = (t + 1) % STRETCH == 0 || t + 1 == shape[1];
    const int64_t batch = b + 1 < shape[0] ? b + 1 : 0;
    const int64_t token = batch ? t - t % STRETCH : t + 1;
    if (!w->ahead)
        return 0;
    if (!last || token == shape[1])
        return AHEAD;
    return posenc_element(w->out, batch, token, 0, 0) - posenc_element(w->out, b, t, 0, 0);
}

static void add_row(const struct work *w, int64_t b, int64_t t, int64_t copies)
{
    float scratch[CHUNK];
    const int64_t row = row_of(w, b, t), channels = w->table->shape[3];
    posenc_add_kernel *const add = w->kernels->add[w->x->dtype - 1][w->out->dtype - 1];
    struct posenc_add_job job = {
        .x_copy = posenc_step(w->x, 0) * posenc_dtype_size(w->x->dtype),
        .y_copy = posenc_step(w->out, 0) * posenc_dtype_size(w->out->dtype),
        .tokens = 1,
        .copies = (size_t)copies,
        .scale = (float)w->scale,
        .ahead = copies > 1 ? w->ahead * NEAR : ahead_of(w, b, t),
    };
    for (int64_t first = 0; first < channels; first += CHUNK) {
        job.count = (size_t)(channels - first < CHUNK ? channels - first : CHUNK);
        job.x = posenc_element(w->x, b, t, 0, first);
        job.y = posenc_element(w->out, b, t, 0, first);
        job.row = floats_of(w, row, first, job.count, scratch);
        add(&job);
    }
}

/* A token of `copies` batch rows. */
static void add_token(const struct work *w, int64_t b, int64_t t, int64_t copies)
{
    if (w->x && w->out->dtype != POSENC_F64) {
        add_row(w, b, t, copies);
        return;
    }
    for (const int64_t end = b + copies; b < end; b++)
        if (w->out->dtype == POSENC_F64)
            add_wide(w, b, t);
        else
            copy_row(w, b, t);
}

static int same_rows(const struct work *w, int64_t a, int64_t b, int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++)
        if (row_of(w, a, t) != row_of(w, b, t))
            return 0;
    return 1;
}

/* Batch rows from b on whose tokens [first, end) read the same rows of the table. */
static int64_t copies_of(const struct work *w, int64_t b, int64_t first, int64_t end)
{
    const int64_t most = posenc_copies(w->out->shape[0] - b);
    int64_t copies = 1;
    while (copies < most && same_rows(w, b, b + copies, first, end))
        copies++;
    return copies;
}

/* A few tokens of every batch row before the next: mostly they read the same rows of the table. */
static void add_all(const struct work *w)
{
    const int64_t tokens = w->out->shape[1];
    for (int64_t first = 0; first < tokens; first += STRETCH) {
        const int64_t end = tokens - first < STRETCH ? tokens : first + STRETCH;
        for (int64_t b = 0, copies; b < w->out->shape[0]; b += copies) {
            copies = copies_of(w, b, first, end);
            for (int64_t t = first; t < end; t++)
                add_token(w, b, t, copies);
        }
    }
}

static int32_t check_positions(posenc_positions *copy, const posenc_positions *positions,
                               const posenc_tensor *table, int64_t offset,
                               const struct posenc_view *out, posenc_error *error)
{
    const posenc_plan reader = {
        .rows_by = POSENC_ROWS_TABLE,
        .range = {-offset, table->shape[1] - 1 - offset,
                  offset ? "rows of the table less offset" : "rows of the table"},
        .axes = 1,
        .num_sets = 1,
    };
    const int64_t *shape = out->tensor->shape;
    int32_t status = posenc_positions_check(copy, positions, &reader, shape[0], shape[1], error);
    return status ? status : posenc_positions_apart(copy, shape[0], shape[1], out, error);
}

static int32_t check_out(const struct posenc_view *out, const struct posenc_view *table,
                         posenc_error *error)
{
    const int64_t *shape = out->tensor->shape, channels = table->tensor->shape[3];
    if (shape[2] != 1 || shape[3] != channels)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.shape is [%d, %d, %d, %d]: must be [batch, tokens, 1, %d], the "
                           "table's channels",
                           out->name, shape[0], shape[1], shape[2], shape[3], channels);
    int32_t status = posenc_writable_check(out, error);
    return status ? status : posenc_disjoint_check(out, table, error);
}

int32_t posenc_learned_add(const posenc_tensor *table, int64_t offset,
                           const posenc_positions *positions, double embedding_scale,
                           const posenc_tensor *x, const posenc_tensor *out, int32_t isa,
                           posenc_error *error)
{
    struct posenc_view table_view;
    struct posenc_embeddings e = {.out = out};
    posenc_positions copy;
    struct work w = {.table = table, .x = x, .offset = offset, .scale = embedding_scale};
    int32_t status = posenc_table_check(&table_view, table, "table", error);
    if (!status && (offset < -END || offset > END))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "offset is %d: must be -2^31..2^31",
                           offset);
    if (!status)
        status = x ? posenc_embeddings_check(&e, embedding_scale, x, out, error)
                   : posenc_data_view_check(&e.out_view, out, "out", error);
    if (!status)
        status = check_out(&e.out_view, &table_view, error);
    if (!status)
        status = check_positions(&copy, positions, table, offset, &e.out_view, error);
    if (!status)
        status = posenc_kernels_choose(&w.kernels, isa, "isa", error);
    if (status || posenc_tensor_is_empty(e.out))
        return status;
    w.out = e.out;
    w.positions = &copy;
    w.ahead = posenc_asks_ahead(posenc_bytes_of(&e.out_view));
    add_all(&w);
    return POSENC_OK;
}

static int32_t check_tokens(size_t batch, size_t count, int64_t padding, int64_t past,
                            size_t *total, posenc_error *error)
{
    if (count > (size_t)END)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "count is %d: must be <= 2^31",
                           posenc_size(count));
    if (__builtin_mul_overflow(batch, count, total))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "batch is %d and count %d: the product must fit the address space",
                           posenc_size(batch), posenc_size(count));
    if (padding < 0 || padding >= END)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "padding is %d: must be 0..2^31 - 1",
                           padding);
    if (past < 0 || past >= END)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "past is %d: must be 0..2^31 - 1", past);
    return POSENC_OK;
}

int32_t posenc_learned_rows(const int64_t *tokens, size_t batch, size_t count, int64_t padding,
                            int64_t past, int64_t *rows, posenc_error *error)
{
    struct posenc_array arrays[2];
    size_t total = 0;
    int32_t status = check_tokens(batch, count, padding, past, &total, error);
    if (!status)
        status = posenc_array_check(&arrays[0], rows, total, sizeof(*rows), "rows", error);
    if (!status)
        status = posenc_array_check(&arrays[1], tokens, total, sizeof(*tokens), "tokens", error);
    if (!status && rows != tokens)
        status = posenc_arrays_apart(arrays, 1, 2, error);
    if (status || total == 0)
        return status;
    for (size_t b = 0; b < batch; b++, tokens += count, rows += count) {
        int64_t last = padding + past;
        for (size_t t = 0; t < count; t++)
            rows[t] = tokens[t] == padding ? padding : ++last;
    }
    return POSENC_OK;
}
