/* SPDX-License-Identifier: MIT */
/* Builders of position ids: padding masks, packed and split sequences, grids, chunks. */
#include "array.h"
#include "error.h"

/* One past the highest position. */
#define END (INT64_C(1) << 31)

static int32_t need(int holds, const char *name, int64_t value, const char *rule,
                    posenc_error *error)
{
    if (holds)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %s", name, value, rule);
}

static int32_t check_count(size_t count, const char *name, int64_t needed, const char *rule,
                           posenc_error *error)
{
    if (posenc_size(count) == needed)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be %s (%d)", name,
                       posenc_size(count), rule, needed);
}

int32_t posenc_ids_from_mask(const uint8_t *mask, size_t batch, size_t tokens, int64_t padding,
                             int64_t *ids, posenc_error *error)
{
    struct posenc_array arrays[2];
    size_t count;
    int32_t status = need(tokens <= (size_t)END, "tokens", posenc_size(tokens), "<= 2^31", error);
    if (!status && (padding < -END || padding >= END))
        return posenc_fail(error, POSENC_ERROR_POSITION,
                           "padding is %d: must be -2^31..2^31 - 1", padding);
    if (!status && __builtin_mul_overflow(batch, tokens, &count))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "batch is %d and tokens %d: the product must fit the address space",
                           posenc_size(batch), posenc_size(tokens));
    if (!status)
        status = posenc_array_check(&arrays[0], ids, count, sizeof(*ids), "ids", error);
    if (!status)
        status = posenc_array_check(&arrays[1], mask, count, sizeof(*mask), "mask", error);
    if (!status)
        status = posenc_arrays_apart(arrays, 1, 2, error);
    /* Without tokens nothing is to do, however many batch rows are said to be there. */
    if (status || count == 0)
        return status;
    for (size_t b = 0; b < batch; b++, mask += tokens, ids += tokens) {
        int64_t seen = 0;
        for (size_t t = 0; t < tokens; t++)
            ids[t] = mask[t] ? seen++ : padding;
    }
    return POSENC_OK;
}

/* Sequence s: its place among the tokens and its positions. */
static int32_t check_sequence(const int64_t *offsets, const int64_t *starts, size_t s,
                              posenc_error *error)
{
    int64_t first = offsets[s], end = offsets[s + 1], start = starts ? starts[s] : 0;
    if (end < first)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "offsets[%d] is %d: must be >= %d",
                           posenc_size(s + 1), end, first);
    if (start < -END || start >= END)
        return posenc_fail(error, POSENC_ERROR_POSITION,
                           "starts[%d] is %d: must be -2^31..2^31 - 1", posenc_size(s), start);
    if (end - first > END - start)
        return posenc_fail(error, POSENC_ERROR_POSITION,
                           "sequence %d has %d tokens from position %d: must end below 2^31",
                           posenc_size(s), end - first, start);
    return POSENC_OK;
}

int32_t posenc_ids_packed(const int64_t *offsets, size_t sequences, const int64_t *starts,
                          int64_t *ids, size_t tokens, posenc_error *error)
{
    struct posenc_array arrays[3];
    int32_t status = need(sequences < SIZE_MAX, "sequences", INT64_MAX, "below SIZE_MAX", error);
    if (!status)
        status = posenc_array_check(&arrays[0], ids, tokens, sizeof(*ids), "ids", error);
    if (!status)
        status = posenc_array_check(&arrays[1], offsets, sequences + 1, sizeof(*offsets),
                                    "offsets", error);
    if (!status)
        status = posenc_array_check(&arrays[2], starts, starts ? sequences : 0, sizeof(*starts),
                                    "starts", error);
    if (!status)
        status = posenc_arrays_apart(arrays, 1, 3, error);
    if (!status)
        status = need(offsets[0] == 0, "offsets[0]", offsets[0], "0", error);
    for (size_t s = 0; !status && s < sequences; s++)
        status = check_sequence(offsets, starts, s, error);
    if (!status)
        status = check_count(tokens, "tokens", offsets[sequences], "the last offset", error);
    for (size_t s = 0; !status && s < sequences; s++)
        for (int64_t t = offsets[s]; t < offsets[s + 1]; t++)
            ids[t] = t - offsets[s] + (starts ? starts[s] : 0);
    return status;
}

int32_t posenc_ids_context_parallel(int64_t tokens, int64_t rank, int64_t ranks, int64_t *ids,
                                    size_t count, posenc_error *error)
{
    struct posenc_array array;
    int32_t status = need(ranks >= 1 && ranks <= END, "ranks", ranks, "1..2^31", error);
    if (!status && (rank < 0 || rank >= ranks))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "rank is %d: must be 0..ranks - 1 (%d)",
                           rank, ranks - 1);
    if (!status && (tokens < 0 || tokens > END || tokens % (2 * ranks)))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "tokens is %d: must be a multiple of 2 ranks (%d) in 0..2^31", tokens,
                           2 * ranks);
    if (!status)
        status = check_count(count, "count", tokens / ranks, "tokens / ranks", error);
    if (!status)
        status = posenc_array_check(&array, ids, count, sizeof(*ids), "ids", error);
    if (status)
        return status;
    int64_t chunk = tokens / (2 * ranks);
    for (int64_t t = 0; t < chunk; t++) {
        ids[t] = rank * chunk + t;
        ids[chunk + t] = (2 * ranks - 1 - rank) * chunk + t;
    }
    return POSENC_OK;
}

static int32_t check_grid(int64_t rows, int64_t columns, int64_t merge, int32_t coordinates,
                          posenc_error *error)
{
    int32_t status = need(rows >= 1 && rows <= END, "rows", rows, "1..2^31", error);
    if (!status)
        status = need(columns >= 1 && columns <= END, "columns", columns, "1..2^31", error);
    if (!status)
        status = need(merge >= 1, "merge", merge, ">= 1", error);
    if (!status && (rows % merge || columns % merge))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "merge is %d: rows (%d) and columns (%d) must be multiples of it",
                           merge, rows, columns);
    if (status)
        return status;
    return need(coordinates >= POSENC_GRID_INDEX && coordinates <= POSENC_GRID_EDGES,
                "coordinates", coordinates, "POSENC_GRID_INDEX, _CENTRES or _EDGES", error);
}

/* 2 (k + 0.5) / n - 1 = (2k + 1 - n) / n: a quotient of integers, rounded once. */
static double coordinate(int64_t k, int64_t n, int32_t coordinates)
{
    switch (coordinates) {
    case POSENC_GRID_CENTRES:
        return (double)(2 * k + 1 - n) / (double)n;
    case POSENC_GRID_EDGES:
        return n > 1 ? (double)(2 * k + 1 - n) / (double)(n - 1) : -1;
    default:
        return (double)k;
    }
}

int32_t posenc_ids_grid(int64_t rows, int64_t columns, int64_t merge, int32_t coordinates,
                        double *ids, size_t count, posenc_error *error)
{
    struct posenc_array array;
    int32_t status = check_grid(rows, columns, merge, coordinates, error);
    if (!status)
        status = check_count(count, "count", rows * columns, "rows x columns", error);
    if (!status)
        status = posenc_array_check(&array, ids, count, 2 * sizeof(*ids), "ids", error);
    if (status)
        return status;
    double *y = ids, *x = ids + count;
    for (int64_t top = 0; top < rows; top += merge)
        for (int64_t left = 0; left < columns; left += merge)
            for (int64_t i = 0; i < merge * merge; i++) {
                *y++ = coordinate(top + i / merge, rows, coordinates);
                *x++ = coordinate(left + i % merge, columns, coordinates);
            }
    return POSENC_OK;
}

static int64_t dual_chunk(int32_t kind, int64_t chunk, int64_t local, int64_t position)
{
    int64_t stride = chunk - local, inside = position % stride;
    switch (kind) {
    case POSENC_DUAL_CHUNK_SUCCESSIVE:
        return inside + stride < chunk ? inside + stride : chunk;
    case POSENC_DUAL_CHUNK_INTER:
        return 2 * stride - 1 < chunk ? 2 * stride - 1 : chunk;
    case POSENC_DUAL_CHUNK_SUCCESSIVE_CRITICAL:
        return inside + stride;
    case POSENC_DUAL_CHUNK_INTER_CRITICAL:
        return inside + chunk;
    default:
        return inside;
    }
}

int32_t posenc_ids_dual_chunk(int32_t kind, int64_t chunk, int64_t local,
                              const int64_t *positions, int64_t *ids, size_t count,
                              posenc_error *error)
{
    struct posenc_array arrays[2];
    int32_t status = need(kind >= POSENC_DUAL_CHUNK_INTRA &&
                              kind <= POSENC_DUAL_CHUNK_INTER_CRITICAL,
                          "kind", kind, "POSENC_DUAL_CHUNK_INTRA to _INTER_CRITICAL (1..5)", error);
    if (!status)
        status = need(chunk >= 1 && chunk <= END / 2, "chunk", chunk, "1..2^30", error);
    if (!status && (local < 0 || local >= chunk))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "local is %d: must be 0..chunk - 1 (%d)",
                           local, chunk - 1);
    if (!status)
        status = posenc_array_check(&arrays[0], ids, count, sizeof(*ids), "ids", error);
    if (!status)
        status = posenc_array_check(&arrays[1], positions, count, sizeof(*positions), "positions",
                                    error);
    if (!status && ids != positions)
        status = posenc_arrays_apart(arrays, 1, 2, error);
    for (size_t i = 0; !status && i < count; i++)
        if (positions[i] < 0 || positions[i] >= END)
            return posenc_fail(error, POSENC_ERROR_POSITION,
                               "positions[%d] is %d: must be 0..2^31 - 1", posenc_size(i),
                               positions[i]);
    for (size_t i = 0; !status && i < count; i++)
        ids[i] = dual_chunk(kind, chunk, local, positions[i]);
    return status;
}
