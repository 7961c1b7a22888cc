/* SPDX-License-Identifier: MIT */
/* posenc run for models that are not rotated: the formulas in long double, and equal bits. */
#include "float16.h"
#include "run.h"
#include "run_other.h"
#include "truth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 512, MOST_QUERIES = 64 };

static long double element(const posenc_tensor *t, int64_t index)
{
    if (t->dtype == POSENC_F32)
        return ((const float *)t->data)[index];
    uint16_t h = ((const uint16_t *)t->data)[index];
    return t->dtype == POSENC_F16 ? posenc_f16_to_f32(h) : posenc_bf16_to_f32(h);
}

/* A unit in the last place of a type at the magnitude of x. */
static long double ulp(int32_t dtype, long double x)
{
    int digits = dtype == POSENC_F32 ? 24 : dtype == POSENC_F16 ? 11 : 8;
    int least = dtype == POSENC_F16 ? -14 : -126;
    int exponent = x != 0 && ilogbl(x) > least ? ilogbl(x) : least;
    return ldexpl(1, exponent - digits + 1);
}

/* What a value may miss when float32 computed it within `error`, rounded to a float32 sum and then
 * to its own type; `value` is the truth. */
static long double stored_bound(long double error, int32_t dtype, long double value)
{
    long double bound = error + 0.5L * ulp(POSENC_F32, fabsl(value) + error);
    return dtype == POSENC_F32 ? bound : bound + 0.5L * ulp(dtype, fabsl(value) + bound);
}

static void note(struct work *w, long double got, long double truth, long double bound)
{
    /* What float16 cannot hold becomes infinite; from 65520 on rounding does. */
    if (w->dtype == POSENC_F16 && fabsl(truth) >= 65520)
        truth = got == (truth < 0 ? -HUGE_VALL : HUGE_VALL) ? got : 0;
    double share = got == truth ? 0 : (double)(fabsl(got - truth) / bound);
    run_note_error(&w->error, &w->bound, share, 1);
}

/* Sine and cosine of one frequency at one position, by the formula of the header. */
static void wave(const posenc_sinusoid_params *p, int64_t position, int64_t i, long double value[2])
{
    int64_t h = p->odd == POSENC_ODD_SINE ? (p->dim + 1) / 2 : p->dim / 2;
    long double over = (p->exponent_by_width ? p->dim / 2.0L : (long double)h) - p->shift;
    long double frequency = p->scale * powl(p->base, -(long double)i / over);
    truth_angle(position + p->position_offset, (double)frequency, &value[1], &value[0]);
}

static long double sinusoid_truth(const posenc_sinusoid_params *p, int64_t position, int64_t c)
{
    int64_t h = p->odd == POSENC_ODD_SINE ? (p->dim + 1) / 2 : p->dim / 2;
    int interleaved = p->arrangement == POSENC_SINUSOID_INTERLEAVED;
    long double value[2];
    if (c == p->dim - 1 && p->dim % 2 && p->odd == POSENC_ODD_ZERO)
        return 0;
    wave(p, position, interleaved ? c / 2 : c % h, value);
    int second = interleaved ? (int)(c % 2) : c >= h;
    return value[p->cosine_first ? !second : second];
}

static void check_rows(struct work *w, const posenc_tensor *y)
{
    int64_t d = w->x.shape[3], count = w->tokens < MOST_ROWS ? w->tokens : MOST_ROWS;
    long double row_error = w->kind == SCHEME_SINUSOID ? 0.501L * 0x1p-24L : 0;
    for (int64_t n = 0; n < count; n++) {
        int64_t t = count > 1 ? n * (w->tokens - 1) / (count - 1) : 0;
        for (int64_t c = 0; c < d; c++) {
            long double row = w->kind == SCHEME_SINUSOID
                                  ? sinusoid_truth(&w->sinusoid_params, w->start + t, c)
                                  : element(&w->table, (w->start + t + w->offset) * d + c);
            long double truth = element(&w->x, t * d + c) * work_scale + row;
            note(w, element(y, t * d + c), truth, stored_bound(row_error, w->dtype, truth));
        }
    }
}

static long double slope(const posenc_alibi_params *p, int64_t head)
{
    int64_t n = 1;
    while (2 * n <= p->heads)
        n *= 2;
    long double power = head < n ? p->max_bias * (long double)(head + 1) / (long double)n
                                 : p->max_bias / 2 * (long double)(2 * (head - n) + 1) /
                                       (long double)n;
    return exp2l(-power);
}

static long double alibi_truth(const posenc_alibi_params *p, int64_t query, int64_t head,
                               int64_t key)
{
    int64_t distance = query + p->query_offset - key;
    if (distance < 0)
        distance = p->form == POSENC_ALIBI_ABS ? -distance : 0;
    return -slope(p, head) * p->scale * (long double)distance;
}

/* The formula in real arithmetic; the little that is added stands for what a logarithm rounds where
 * a boundary is a whole distance. */
static int64_t t5_bucket(const posenc_t5_params *p, int64_t relative)
{
    int64_t n = p->bidirectional ? p->num_buckets / 2 : p->num_buckets, e = n / 2;
    int64_t side = p->bidirectional && relative > 0 ? n : 0;
    int64_t d = p->bidirectional ? llabs(relative) : relative < 0 ? -relative : 0;
    if (d < e)
        return side + d;
    long double most = (long double)p->max_distance / (long double)e;
    long double far = logl((long double)d / (long double)e) / logl(most);
    int64_t bucket = e + (int64_t)floorl(far * (long double)(n - e) + 1e-13L);
    return side + (bucket < n - 1 ? bucket : n - 1);
}

static void check_bias(struct work *w, const posenc_tensor *y)
{
    int64_t heads = y->shape[2], keys = y->shape[3], queries = w->tokens;
    int64_t count = queries < MOST_QUERIES ? queries : MOST_QUERIES;
    for (int64_t n = 0; n < count; n++) {
        int64_t q = count > 1 ? n * (queries - 1) / (count - 1) : 0;
        for (int64_t k = 0; k < keys; k++) {
            int64_t bucket = w->kind == SCHEME_T5
                                 ? t5_bucket(&w->t5, k - q - w->t5.query_offset)
                                 : 0;
            for (int64_t h = 0; h < heads; h++) {
                long double got = element(y, (q * heads + h) * keys + k), truth, bound;
                if (w->kind == SCHEME_T5) {
                    truth = element(&w->table, bucket * heads + h);
                    bound = 0x1p-149L; /* a table's values are copied */
                } else {
                    truth = alibi_truth(&w->alibi, q, h, k);
                    bound = 0.51L * ulp(POSENC_F32, truth);
                    if (w->dtype != POSENC_F32)
                        bound += 0.5L * ulp(w->dtype, fabsl(truth) + bound);
                }
                note(w, got, truth, bound);
            }
        }
    }
}

int work_check(struct work *w, const char *name)
{
    posenc_error error = {0, ""};
    posenc_tensor scalar = w->x, other = w->x;
    size_t bytes = work_bytes_of(&w->x);
    scalar.data = malloc(bytes);
    other.data = malloc(bytes);
    int code = scalar.data && other.data ? TOOL_OK : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    tool_progress("checking");
    w->bound = 1;
    for (int i = 0; i < w->isas && !code; i++) {
        const posenc_tensor *to = i ? &other : &scalar;
        if (work_pass(w, i, to, &error))
            code = tool_fail_library(name, &error);
        else
            w->isa_same[i] = memcmp(to->data, scalar.data, bytes) == 0;
    }
    if (!code && (w->kind == SCHEME_SINUSOID || w->kind == SCHEME_LEARNED))
        check_rows(w, &scalar);
    else if (!code)
        check_bias(w, &scalar);
    free(scalar.data);
    free(other.data);
    return code;
}

int work_isas_equal(const struct work *w)
{
    for (int i = 0; i < w->isas; i++)
        if (!w->isa_same[i])
            return 0;
    return 1;
}

int work_passed(const struct work *w)
{
    return w->error <= w->bound && work_isas_equal(w);
}
