/* SPDX-License-Identifier: MIT */
/* Parameters of the rotations of image encoders. */
#include "array.h"
#include "dd.h"
#include "error.h"
#include "structs.h"

enum { MAX_HEAD_DIM = 65536, MAX_AXES = 4, Y = 0, X = 1 };
static const double USUAL_BASE = 10000;

/* How the frequencies of a form follow from j, the place of a pair in its block of D/4. */
enum rule {
    POWERS,      /* base^(-4j/D) */
    ALTERNATING, /* base^(-2i/D), even i for the first block, odd i for the second */
    TURNS,       /* 2 pi base^(-4j/D) */
    LINE         /* pi (1 + (base/2 - 1) j / (D/4 - 1)) */
};

/* One form. A block of pairs belongs to one axis. */
struct form {
    int32_t layout;
    int32_t first_axis;  /* of the first half of the pairs; the other half has the other */
    int32_t half; /* 1, 2: the plan is for that half of the head, its pairs of one axis */
    enum rule rule;
    double base;
};

static const struct form FORMS[] = {
    [POSENC_VISION_QWEN] = {POSENC_SPLIT_HALF, Y, 0, POWERS, 10000},
    [POSENC_VISION_PIXTRAL] = {POSENC_SPLIT_HALF, Y, 0, ALTERNATING, 10000},
    [POSENC_VISION_LLAMA4] = {POSENC_ADJACENT, X, 0, POWERS, 10000},
    [POSENC_VISION_GEMMA4_X] = {POSENC_SPLIT_HALF, X, 1, POWERS, 100},
    [POSENC_VISION_GEMMA4_Y] = {POSENC_SPLIT_HALF, Y, 2, POWERS, 100},
    [POSENC_VISION_DINOV3] = {POSENC_SPLIT_HALF, Y, 0, TURNS, 100},
    [POSENC_VISION_PIXEL] = {POSENC_ADJACENT, Y, 0, LINE, 10},
};

static int32_t check_base(double base, posenc_error *error)
{
    if (base == 0 || (base > 1 && base < 0x1p76))
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "base is %g: must be > 1 and < 2^76, or 0 for the usual one", base);
}

static int32_t check_numbers(int32_t form, int32_t head_dim, double base, posenc_error *error)
{
    if (form < POSENC_VISION_QWEN || form > POSENC_VISION_PIXEL)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "form is %d: must be a POSENC_VISION_* (1..%d)", (int64_t)form,
                           (int64_t)POSENC_VISION_PIXEL);
    if (head_dim < 4 || head_dim > MAX_HEAD_DIM || head_dim % 4)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "head_dim is %d: must be a multiple of 4 in 4..%d", (int64_t)head_dim,
                           (int64_t)MAX_HEAD_DIM);
    /* The last frequency is pi/2 base, and a plan's are below 2^76. */
    if (FORMS[form].rule == LINE && base >= 0x1p75)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "base is %g: must be below 2^75 for POSENC_VISION_PIXEL", base);
    return check_base(base, error);
}

/* `width` may be NULL: then it is no argument of the call. */
static int32_t check_memory(posenc_rope_params *params, size_t pairs, double *inv_freq,
                            int32_t *axis_of_pair, const int32_t *width, int32_t axes,
                            posenc_error *error)
{
    struct posenc_array arrays[4];
    posenc_rope_params copy;
    /* The oldest form has no axes. */
    int32_t status =
        posenc_struct_read(&copy, sizeof(copy), sizeof(copy), params, "params", error);
    if (!status)
        status = posenc_array_check(&arrays[0], params, copy.struct_size, 1, "params", error);
    if (!status)
        status = posenc_array_check(&arrays[1], inv_freq, pairs, sizeof(*inv_freq), "inv_freq",
                                    error);
    if (!status)
        status = posenc_array_check(&arrays[2], axis_of_pair, pairs, sizeof(*axis_of_pair),
                                    "axis_of_pair", error);
    if (!status)
        status = posenc_array_check(&arrays[3], width, width ? (size_t)axes : 0, sizeof(*width),
                                    "width", error);
    return status ? status : posenc_arrays_apart(arrays, 3, 4, error);
}

static void set_params(posenc_rope_params *params, int32_t layout, int32_t head_dim,
                       const double *inv_freq, const int32_t *axis_of_pair, int32_t axes)
{
    params->layout = layout;
    params->head_dim = head_dim;
    params->rotary_dim = head_dim;
    params->rotary_offset = 0;
    params->frequency_source = POSENC_FREQUENCIES_INVERSE;
    params->frequencies = inv_freq;
    params->axes = axes;
    params->axis_of_pair = axis_of_pair;
}

static double point_on_line(double base, int32_t block, int32_t j)
{
    posenc_dd rise = posenc_dd_sum(0.5 * base, -1.0), one = posenc_dd_from(1.0);
    if (j > 0)
        one = posenc_dd_add(one, posenc_dd_div(posenc_dd_mul(rise, posenc_dd_from((double)j)),
                                               posenc_dd_from((double)(block - 1))));
    return posenc_dd_mul(posenc_dd_pi, one).hi;
}

/* Pair j of a block; `second` tells which of the two. `step` is base^(-1/block), of which the
 * ALTERNATING rule needs the square root. */
static double frequency(enum rule rule, double base, posenc_dd step, int32_t block, int32_t j,
                        int32_t second)
{
    switch (rule) {
    case LINE:
        return point_on_line(base, block, j);
    case ALTERNATING:
        return posenc_dd_power(step, 2 * j + second).hi;
    case TURNS:
        return posenc_dd_mul(posenc_dd_power(step, j), posenc_dd_two_pi).hi;
    default:
        return posenc_dd_power(step, j).hi;
    }
}

static void fill(const struct form *form, double base, int32_t block, double *inv_freq,
                 int32_t *axis_of_pair)
{
    int32_t root = form->rule == ALTERNATING ? 2 * block : block;
    posenc_dd step = posenc_dd_inverse_root(posenc_dd_from(base), root);
    for (int32_t i = 0; i < 2 * block; i++) {
        int32_t second = i >= block;
        inv_freq[i] = frequency(form->rule, base, step, block, i - second * block, second);
        axis_of_pair[i] = !second ? form->first_axis : Y + X - form->first_axis;
    }
}

int32_t posenc_vision_params(posenc_rope_params *params, int32_t form, int32_t head_dim,
                             double base, double *inv_freq, int32_t *axis_of_pair,
                             posenc_error *error)
{
    int32_t status = check_numbers(form, head_dim, base, error);
    if (!status)
        status = check_memory(params, (size_t)head_dim / 2, inv_freq, axis_of_pair, NULL, 0,
                              error);
    if (status)
        return status;
    const struct form *rule = &FORMS[form];
    fill(rule, base != 0 ? base : rule->base, head_dim / 4, inv_freq, axis_of_pair);
    set_params(params, rule->layout, head_dim, inv_freq, axis_of_pair, 2);
    if (rule->half) {
        params->rotary_dim = head_dim / 2;
        params->rotary_offset = rule->half == 2 ? head_dim / 2 : 0;
    }
    return POSENC_OK;
}

static int32_t check_widths(const int32_t *width, int32_t axes, int32_t *sum, posenc_error *error)
{
    *sum = 0;
    for (int32_t a = 0; a < axes; a++) {
        if (width[a] < 2 || width[a] % 2 || width[a] > MAX_HEAD_DIM - *sum)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "width[%d] is %d: must be even, >= 2, and the sum <= %d",
                               (int64_t)a, (int64_t)width[a], (int64_t)MAX_HEAD_DIM);
        *sum += width[a];
    }
    return POSENC_OK;
}

int32_t posenc_axial_params(posenc_rope_params *params, int32_t layout, const int32_t *width,
                            int32_t axes, double base, double *inv_freq, int32_t *axis_of_pair,
                            posenc_error *error)
{
    struct posenc_array array;
    int32_t head_dim = 0;
    if (layout != POSENC_ADJACENT && layout != POSENC_SPLIT_HALF)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "layout is %d: must be POSENC_ADJACENT or POSENC_SPLIT_HALF",
                           (int64_t)layout);
    if (axes < 1 || axes > MAX_AXES)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "axes is %d: must be 1..%d",
                           (int64_t)axes, (int64_t)MAX_AXES);
    int32_t status = check_base(base, error);
    if (!status)
        status =
            posenc_array_check(&array, width, (size_t)axes, sizeof(*width), "width", error);
    if (!status)
        status = check_widths(width, axes, &head_dim, error);
    if (!status)
        status = check_memory(params, (size_t)head_dim / 2, inv_freq, axis_of_pair, width, axes,
                              error);
    if (status)
        return status;
    posenc_dd root_of = posenc_dd_from(base != 0 ? base : USUAL_BASE);
    for (int32_t a = 0, i = 0; a < axes; a++) {
        posenc_dd step = posenc_dd_inverse_root(root_of, width[a] / 2);
        for (int32_t j = 0; j < width[a] / 2; j++, i++) {
            inv_freq[i] = posenc_dd_power(step, j).hi;
            axis_of_pair[i] = a;
        }
    }
    set_params(params, layout, head_dim, inv_freq, axis_of_pair, axes);
    return POSENC_OK;
}
