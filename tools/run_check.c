/* SPDX-License-Identifier: MIT */
/* posenc run, second step: rows and rotation against the truth, every ISA against the scalar bits.
 */
#include "float16.h"
#include "run.h"
#include "truth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 512, MOST_ROTATED = 64 }; /* tokens compared with the truth, evenly spread */

static int no_memory(void)
{
    return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

/* Token `index` of `count` that are spread over 0 .. tokens-1, both ends included. */
static int64_t spread(int64_t index, int64_t count, int64_t tokens)
{
    return count > 1 ? index * (tokens - 1) / (count - 1) : 0;
}

void run_note_error(double *worst, double *worst_bound, double error, double bound)
{
    if (isnan(*worst) || (*worst_bound > 0 && error * *worst_bound <= *worst * bound))
        return;
    *worst = error;
    *worst_bound = bound;
}

static void check_rows_truth(struct run *run, const struct run_set *set)
{
    int64_t tokens = run->options.tokens, count = tokens < MOST_ROWS ? tokens : MOST_ROWS;
    int64_t pairs = set->facts.rotary_dim / 2;
    double unit = 0x1p-24, bound = truth_row_bound(set->attention_factor) / unit;
    struct run_check *check = &run->check;
    for (int64_t n = 0; n < count; n++) {
        int64_t t = spread(n, count, tokens);
        const float *row = (const float *)set->rows.data + 2 * pairs * t;
        for (int64_t i = 0; i < pairs; i++) {
            long double c, s;
            truth_angle(run->options.start + t, set->inv_freq[i], &c, &s);
            double ec = (double)fabsl(row[i] - c * set->attention_factor) / unit;
            double es = (double)fabsl(row[pairs + i] - s * set->attention_factor) / unit;
            run_note_error(&check->row_error, &check->row_bound, ec, bound);
            run_note_error(&check->row_error, &check->row_bound, es, bound);
        }
    }
}

static float element(const posenc_tensor *t, int64_t index)
{
    if (t->dtype == POSENC_F32)
        return ((const float *)t->data)[index];
    uint16_t h = ((const uint16_t *)t->data)[index];
    return t->dtype == POSENC_F16 ? posenc_f16_to_f32(h) : posenc_bf16_to_f32(h);
}

/* The angles of one token, with the attention factor. */
struct angles {
    long double *cosine, *sine;
    int64_t pairs;
};

/* Notes the error of channel `at`, and by how much its bound allows it to miss `truth`. */
static void note_rotated(struct run_check *check, double factor, float a, float b,
                         const posenc_tensor *y, int64_t at, long double truth)
{
    long double bound = truth_rotation_bound(factor, a, b, y->dtype, truth);
    double share = (double)(fabsl(element(y, at) - truth) / bound);
    double one = 1;
    run_note_error(&check->rotation_error, &one, share, 1);
}

/* One head before and after, from element `at` on; channels outside the window must be copies. */
static void check_head(struct run_check *check, const struct run_set *set, const struct angles *a,
                       const posenc_tensor *x, const posenc_tensor *y, int64_t at)
{
    const posenc_contract_set *f = &set->facts;
    int64_t offset = x->shape[3] == f->head_dim ? f->rotary_offset : 0, window = at + offset;
    for (int64_t i = 0; i < a->pairs; i++) {
        int64_t p = window + (f->layout == POSENC_ADJACENT ? 2 * i : i);
        int64_t q = f->layout == POSENC_ADJACENT ? p + 1 : p + a->pairs;
        float xp = element(x, p), xq = element(x, q);
        note_rotated(check, set->attention_factor, xp, xq, y, p,
                     xp * a->cosine[i] - xq * a->sine[i]);
        note_rotated(check, set->attention_factor, xp, xq, y, q,
                     xq * a->cosine[i] + xp * a->sine[i]);
    }
    for (int64_t c = 0; c < x->shape[3]; c++)
        if ((c < offset || c >= offset + f->rotary_dim) && element(x, at + c) != element(y, at + c))
            check->rotation_error = HUGE_VAL;
}

static int check_rotation_truth(struct run *run, const struct run_set *set, const posenc_tensor *x,
                                const posenc_tensor *y)
{
    int64_t tokens = run->options.tokens, count = tokens < MOST_ROTATED ? tokens : MOST_ROTATED;
    struct angles a = {.pairs = set->facts.rotary_dim / 2};
    a.cosine = malloc((size_t)a.pairs * 2 * sizeof *a.cosine);
    if (!a.cosine)
        return no_memory();
    a.sine = a.cosine + a.pairs;
    for (int64_t n = 0; n < count; n++) {
        int64_t t = spread(n, count, tokens);
        for (int64_t i = 0; i < a.pairs; i++) {
            truth_angle(run->options.start + t, set->inv_freq[i], &a.cosine[i], &a.sine[i]);
            a.cosine[i] *= set->attention_factor;
            a.sine[i] *= set->attention_factor;
        }
        for (int64_t h = 0; h < x->shape[2]; h++)
            check_head(&run->check, set, &a, x, y, (t * x->shape[2] + h) * x->shape[3]);
    }
    free(a.cosine);
    return TOOL_OK;
}

static size_t bytes_of(const posenc_tensor *t)
{
    return (size_t)(t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3]) *
           tool_dtype_size(t->dtype);
}

/* A tensor of the same shape with memory of its own. */
static int make_like(posenc_tensor *copy, const posenc_tensor *t)
{
    *copy = *t;
    copy->data = malloc(bytes_of(t));
    return copy->data ? TOOL_OK : no_memory();
}

static int check_isa_rows(struct run *run, const struct run_set *set)
{
    posenc_tensor scalar, other;
    posenc_positions positions;
    posenc_error error = {0, ""};
    posenc_positions_start(&positions, run->options.start);
    int code = make_like(&scalar, &set->rows);
    if (make_like(&other, &set->rows))
        code = TOOL_SYSTEM;
    for (int i = 0; i < run->isas && !code; i++) {
        const posenc_tensor *to = i ? &other : &scalar;
        if (posenc_rows(set->plan[i], &positions, to, &error))
            code = tool_fail_library(run->model.name, &error);
        else if (memcmp(to->data, scalar.data, bytes_of(to)) != 0)
            run->check.isa_rows[i] = 0;
    }
    /* the rows in use come from the default ISA */
    if (!code && memcmp(scalar.data, set->rows.data, bytes_of(&scalar)) != 0)
        run->check.isa_rows[run_default_isa(run)] = 0;
    free(scalar.data);
    free(other.data);
    return code;
}

/* Q or K of one layer, rotated by every ISA to other memory. */
static int check_isa_rotation(struct run *run, const struct run_set *set, const posenc_tensor *x)
{
    posenc_tensor scalar, other;
    posenc_error error = {0, ""};
    int code = make_like(&scalar, x);
    if (make_like(&other, x))
        code = TOOL_SYSTEM;
    for (int i = 0; i < run->isas && !code; i++) {
        const posenc_tensor *to = i ? &other : &scalar;
        if (posenc_rotate(set->plan[i], POSENC_FORWARD, &set->rows, x, to, NULL, NULL, &error))
            code = tool_fail_library(run->model.name, &error);
        else if (memcmp(to->data, scalar.data, bytes_of(to)) != 0)
            run->check.isa_rotation[i] = 0;
    }
    if (!code)
        code = check_rotation_truth(run, set, x, &scalar);
    free(scalar.data);
    free(other.data);
    return code;
}

static int check_set(struct run *run, int32_t index)
{
    const struct run_set *set = &run->sets[index];
    tool_progress("checking rows");
    check_rows_truth(run, set);
    int code = check_isa_rows(run, set);
    for (int64_t l = 0; l < run->num_layers && !code; l++) {
        if (run->layers[l].set != index)
            continue;
        tool_progress("checking rotation");
        code = check_isa_rotation(run, set, &run->layers[l].q);
        if (!code)
            code = check_isa_rotation(run, set, &run->layers[l].k);
        break;
    }
    if (!code)
        tool_progress("checking attention");
    return code ? code : run_check_attention(run, set);
}

int run_check(struct run *run)
{
    for (int i = 0; i < run->isas; i++)
        run->check.isa_rows[i] = run->check.isa_rotation[i] = run->check.isa_attention[i] = 1;
    for (int32_t s = 0; s < run->num_sets; s++) {
        int code = check_set(run, s);
        if (code)
            return code;
    }
    return TOOL_OK;
}

int run_isas_equal(const struct run *run)
{
    for (int i = 0; i < run->isas; i++)
        if (!run->check.isa_rows[i] || !run->check.isa_rotation[i] || !run->check.isa_attention[i])
            return 0;
    return 1;
}

int run_passed(const struct run *run)
{
    const struct run_check *c = &run->check;
    return c->row_error <= c->row_bound && c->rotation_error <= 1 &&
           c->attention_error <= c->attention_bound && run_isas_equal(run);
}
