/* SPDX-License-Identifier: MIT */
/* Which position axis turns which pair. */
#include "array.h"
#include "error.h"

enum { MAX_PAIRS = 32768, MAX_AXES = 4 };

/* The sections with zeros up to four, and how many are left without zeros at the end. */
struct sections {
    int64_t size[MAX_AXES];
    size_t used;
};

static int32_t read_sections(struct sections *to, const int32_t *section, size_t count,
                             size_t pairs, posenc_error *error)
{
    int64_t sum = 0;
    *to = (struct sections){{0}, 0};
    for (size_t a = 0; a < count; a++) {
        if (section[a] < 0)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT, "section[%d] is %d: must be >= 0",
                               posenc_size(a), (int64_t)section[a]);
        to->size[a] = section[a];
        to->used = section[a] ? a + 1 : to->used;
        sum += section[a];
    }
    if (sum != posenc_size(pairs))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "section sums to %d: must be pairs (%d)",
                           sum, posenc_size(pairs));
    return POSENC_OK;
}

/* The rules of single patterns. */
static int32_t check_pattern(const struct sections *s, int32_t pattern, size_t count,
                             posenc_error *error)
{
    if (pattern == POSENC_AXES_SECTIONS)
        return POSENC_OK;
    if (count < 3 || s->used > 3)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "sections is %d: must be 3 for this pattern, or 4 with the last 0",
                           posenc_size(count));
    if (pattern == POSENC_AXES_ERNIE && s->size[0] != s->size[1])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "section[0] is %d: must be section[1] (%d) for POSENC_AXES_ERNIE",
                           s->size[0], s->size[1]);
    return POSENC_OK;
}

static int32_t axis_by_sections(const struct sections *s, int64_t pair)
{
    int32_t axis = 0;
    for (int64_t end = s->size[0]; pair >= end; end += s->size[axis])
        axis++;
    return axis;
}

/* `rest` is the axis of the pairs whose turn comes after their axis has had its share. */
static int32_t axis_interleaved(const struct sections *s, int64_t pair, int32_t rest)
{
    int32_t axis = (int32_t)(pair % 3);
    return pair < 3 * s->size[axis] ? axis : rest;
}

static int32_t axis_of(const struct sections *s, int32_t pattern, int64_t pair)
{
    switch (pattern) {
    case POSENC_AXES_INTERLEAVED:
        return axis_interleaved(s, pair, 0);
    case POSENC_AXES_INTERLEAVED_GGML:
        return axis_interleaved(s, pair, 3);
    case POSENC_AXES_ERNIE:
        return pair < s->size[0] + s->size[1] ? 1 + (int32_t)(pair % 2) : 0;
    default:
        return axis_by_sections(s, pair);
    }
}

int32_t posenc_axis_map(int32_t *axis_of_pair, size_t pairs, int32_t pattern,
                        const int32_t *section, size_t sections, posenc_error *error)
{
    struct posenc_array arrays[2];
    struct sections read;
    if (pairs < 1 || pairs > MAX_PAIRS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "pairs is %d: must be 1..%d",
                           posenc_size(pairs), (int64_t)MAX_PAIRS);
    if (pattern < POSENC_AXES_SECTIONS || pattern > POSENC_AXES_ERNIE)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "pattern is %d: must be POSENC_AXES_SECTIONS, _INTERLEAVED, "
                           "_INTERLEAVED_GGML or _ERNIE",
                           (int64_t)pattern);
    if (sections < 1 || sections > MAX_AXES)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "sections is %d: must be 1..%d",
                           posenc_size(sections), (int64_t)MAX_AXES);
    int32_t status = posenc_array_check(&arrays[0], axis_of_pair, pairs, sizeof(*axis_of_pair),
                                        "axis_of_pair", error);
    if (!status)
        status = posenc_array_check(&arrays[1], section, sections, sizeof(*section), "section",
                                    error);
    if (!status)
        status = posenc_arrays_apart(arrays, 1, 2, error);
    if (!status)
        status = read_sections(&read, section, sections, pairs, error);
    if (!status)
        status = check_pattern(&read, pattern, sections, error);
    for (size_t i = 0; !status && i < pairs; i++)
        axis_of_pair[i] = axis_of(&read, pattern, (int64_t)i);
    return status;
}
