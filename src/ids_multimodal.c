/* SPDX-License-Identifier: MIT */
/* Three-axis position ids of text with images and videos. */
#include "array.h"
#include "error.h"

/* One past the highest position. */
#define END (INT64_C(1) << 31)

/* What a segment takes, counted from the position at which it starts. */
struct extent {
    int64_t tokens;
    int64_t advance; /* to the start of what follows */
    int64_t reach;   /* one past its largest id */
};

/* The first position of a frame. Systems multiply in float32, and where the product is close to an
 * integer the other roundings lead to the other side of it. */
static int64_t frame_start(const posenc_segment *s, int64_t frame)
{
    return (int64_t)((float)frame * (float)s->frame_step);
}

static int32_t check_field(int holds, size_t number, const char *name, int64_t value,
                           const char *rule, posenc_error *error)
{
    if (holds)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "segments[%d].%s is %d: must be %s",
                       posenc_size(number), name, value, rule);
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int32_t measure_grid(const posenc_segment *s, size_t n, struct extent *extent,
                            posenc_error *error)
{
    int32_t status = check_field(s->frames >= 1 && s->frames <= END, n, "frames", s->frames,
                                 "1..2^31", error);
    if (!status)
        status = check_field(s->rows >= 1 && s->rows <= END, n, "rows", s->rows, "1..2^31", error);
    if (!status)
        status = check_field(s->columns >= 1 && s->columns <= END, n, "columns", s->columns,
                             "1..2^31", error);
    if (!status && !(s->frame_step >= 0 && s->frame_step <= 0x1p31))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "segments[%d].frame_step is %g: must be 0..2^31", posenc_size(n),
                           s->frame_step);
    if (!status && (__builtin_mul_overflow(s->frames, s->rows, &extent->tokens) ||
                    __builtin_mul_overflow(extent->tokens, s->columns, &extent->tokens)))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "segments[%d] has %d x %d x %d tokens: must fit the address space",
                           posenc_size(n), s->frames, s->rows, s->columns);
    if (status)
        return status;
    int64_t side = largest(s->rows, s->columns);
    extent->reach = largest(side, frame_start(s, s->frames - 1) + 1);
    extent->advance = s->kind == POSENC_SEGMENT_GRID ? extent->reach : side;
    return POSENC_OK;
}

static int32_t measure(const posenc_segment *s, size_t n, struct extent *extent,
                       posenc_error *error)
{
    int32_t status = check_field(
        s->kind >= POSENC_SEGMENT_TEXT && s->kind <= POSENC_SEGMENT_GRID_PLANE, n, "kind",
        s->kind, "POSENC_SEGMENT_TEXT, _GRID or _GRID_PLANE", error);
    if (!status)
        status = check_field(s->reserved == 0, n, "reserved", s->reserved, "0", error);
    if (status || s->kind != POSENC_SEGMENT_TEXT)
        return status ? status : measure_grid(s, n, extent, error);
    *extent = (struct extent){s->tokens, s->tokens, s->tokens};
    return check_field(s->tokens >= 0, n, "tokens", s->tokens, ">= 0", error);
}

/* All segments: their tokens, and one past the largest id. */
static int32_t measure_all(const posenc_segment *segments, size_t count, int64_t first,
                           int64_t *tokens, int64_t *next, posenc_error *error)
{
    int64_t at = first;
    *tokens = 0;
    *next = first;
    for (size_t n = 0; n < count; n++) {
        struct extent extent;
        int32_t status = measure(&segments[n], n, &extent, error);
        if (status)
            return status;
        if (__builtin_add_overflow(*tokens, extent.tokens, tokens))
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "segments[%d] has %d tokens: the sum must fit the address space",
                               posenc_size(n), extent.tokens);
        if (extent.reach > END - at)
            return posenc_fail(error, POSENC_ERROR_POSITION,
                               "segments[%d] takes %d positions from %d on: must end below 2^31",
                               posenc_size(n), extent.reach, at);
        *next = largest(*next, at + extent.reach);
        at += extent.advance;
    }
    return POSENC_OK;
}

/* Ids are [3][plane]; `at` is where the segment begins. */
static void write_grid(const posenc_segment *s, int64_t position, int64_t *at, size_t plane)
{
    for (int64_t f = 0; f < s->frames; f++)
        for (int64_t y = 0; y < s->rows; y++)
            for (int64_t x = 0; x < s->columns; x++, at++) {
                at[0] = position + frame_start(s, f);
                at[plane] = position + y;
                at[2 * plane] = position + x;
            }
}

static void write_all(const posenc_segment *segments, size_t count, int64_t position, int64_t *at,
                      size_t plane)
{
    for (size_t n = 0; n < count; n++) {
        struct extent extent;
        measure(&segments[n], n, &extent, NULL);
        if (segments[n].kind != POSENC_SEGMENT_TEXT)
            write_grid(&segments[n], position, at, plane);
        else
            for (int64_t t = 0; t < extent.tokens; t++)
                at[t] = at[plane + (size_t)t] = at[2 * plane + (size_t)t] = position + t;
        position += extent.advance;
        at += extent.tokens;
    }
}

int32_t posenc_ids_multimodal(const posenc_segment *segments, size_t count, int64_t first,
                              int64_t *ids, size_t tokens, int64_t *next, int64_t *delta,
                              posenc_error *error)
{
    struct posenc_array arrays[4];
    int64_t total, end;
    int32_t status = posenc_array_check(&arrays[0], ids, tokens, 3 * sizeof(*ids), "ids", error);
    if (!status)
        status = posenc_array_check(&arrays[1], next, next != NULL, sizeof(*next), "next", error);
    if (!status)
        status =
            posenc_array_check(&arrays[2], delta, delta != NULL, sizeof(*delta), "delta", error);
    if (!status)
        status = posenc_array_check(&arrays[3], segments, count, sizeof(*segments), "segments",
                                    error);
    if (!status)
        status = posenc_arrays_apart(arrays, 3, 4, error);
    if (!status && (first < -END || first >= END))
        return posenc_fail(error, POSENC_ERROR_POSITION, "first is %d: must be -2^31..2^31 - 1",
                           first);
    if (!status)
        status = measure_all(segments, count, first, &total, &end, error);
    if (!status && total != posenc_size(tokens))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "tokens is %d: must be the sum over the segments (%d)",
                           posenc_size(tokens), total);
    if (status)
        return status;
    write_all(segments, count, first, ids, tokens);
    if (next)
        *next = end;
    if (delta)
        *delta = end - first - total;
    return POSENC_OK;
}
