/* SPDX-License-Identifier: MIT */
/* Resampling a learned table to another length or grid. */
#include "error.h"
#include "fma.h"
#include "learned.h"

/* Grids are at most this long, so that coordinates are quotients of 64-bit integers. */
#define LONGEST (INT64_C(1) << 30)

/* Where one output stands between two inputs. A weight of 0 takes the first alone. */
struct between {
    int64_t first, second;
    float weight; /* of the second */
};

/*
 * Corners aligned: i (n - 1) / (m - 1). Centres: (2 i + 1) n / 2 m - 1/2 = ((2 i + 1) n - m) / 2 m,
 * held within the table. Integers up to the one quotient, which is rounded to float.
 */
static struct between place(int64_t i, int64_t n, int64_t m, int32_t mode)
{
    int64_t above = i * (n - 1), below = m > 1 ? m - 1 : 1;
    if (mode == POSENC_RESAMPLE_LINEAR_CENTRES) {
        above = (2 * i + 1) * n - m;
        below = 2 * m;
    }
    if (above <= 0 || above / below >= n - 1)
        return (struct between){above <= 0 ? 0 : n - 1, above <= 0 ? 0 : n - 1, 0};
    return (struct between){above / below, above / below + 1,
                            (float)((double)(above % below) / (double)below)};
}

/* (1 - w) a + w b; a itself where w is 0, so that an equal size is a copy, whatever b. */
static float mix(float a, float b, float weight)
{
    return weight > 0 ? posenc_fmaf(weight, b, (1 - weight) * a) : a;
}

static float sample(const posenc_tensor *table, int64_t columns, const struct between *y,
                    const struct between *x, int64_t channel)
{
    float line[2];
    for (int i = 0; i < 2; i++) {
        const int64_t row = (i ? y->second : y->first) * columns;
        line[i] = mix(posenc_table_get(table, row + x->first, channel),
                      posenc_table_get(table, row + x->second, channel), x->weight);
    }
    return mix(line[0], line[1], y->weight);
}

static int32_t check_grid(const char *name, const posenc_tensor *table, const char *rows_name,
                          int64_t rows, int64_t columns, posenc_error *error)
{
    if (rows < 1 || columns < 1 || rows > LONGEST || columns > LONGEST)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%srows is %d, %scolumns %d: must be 1..2^30", rows_name, rows,
                           rows_name, columns);
    if (table->shape[1] == rows * columns)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.shape[1] is %d: must be %srows x %scolumns (%d)", name,
                       table->shape[1], rows_name, rows_name, rows * columns);
}

int32_t posenc_learned_resample(const posenc_tensor *table, int64_t rows, int64_t columns,
                                const posenc_tensor *out, int64_t out_rows, int64_t out_columns,
                                int32_t mode, posenc_error *error)
{
    struct posenc_view from, to;
    int32_t status = posenc_table_check(&from, table, "table", error);
    if (!status)
        status = posenc_table_check(&to, out, "out", error);
    if (!status)
        status = check_grid("table", table, "", rows, columns, error);
    if (!status)
        status = check_grid("out", out, "out_", out_rows, out_columns, error);
    if (!status && table->shape[3] != out->shape[3])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "out.shape[3] is %d: must be the channels of table (%d)", out->shape[3],
                           table->shape[3]);
    if (!status && mode != POSENC_RESAMPLE_LINEAR && mode != POSENC_RESAMPLE_LINEAR_CENTRES)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "mode is %d: must be POSENC_RESAMPLE_LINEAR or _LINEAR_CENTRES",
                           (int64_t)mode);
    if (!status)
        status = posenc_writable_check(&to, error);
    if (!status)
        status = posenc_disjoint_check(&to, &from, error);
    if (status)
        return status;
    for (int64_t i = 0; i < out_rows; i++) {
        const struct between y = place(i, rows, out_rows, mode);
        for (int64_t j = 0; j < out_columns; j++) {
            const struct between x = place(j, columns, out_columns, mode);
            for (int64_t c = 0; c < out->shape[3]; c++)
                posenc_table_put(out, i * out_columns + j, c, sample(table, columns, &y, &x, c));
        }
    }
    return POSENC_OK;
}
