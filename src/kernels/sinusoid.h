/* SPDX-License-Identifier: MIT */
/*
 * Rows of a sinusoid made in registers and written, or added, where they belong. The products are
 * those of rows.h, and so are the bits.
 *
 * Template. Before the inclusion:
 *   vec.h, vecd.h of the ISA   and two ways to make two vectors of doubles one of POSENC_LANES
 *                              floats: narrow, one after the other, and narrow_zip, in turns
 *   KERNEL(name)               the name of a kernel of this ISA
 * It defines KERNEL(sinusoid) and KERNEL(sinusoid_run), which kernels.h describes.
 */
#include "base.h"
#include "channel.h"

#define N POSENC_LANES
#include "element.h"

/* The constants of an instantiation. */
struct posenc_form {
    int adds, halves, cosine_first;
};

/* Some pairs as doubles. */
struct posenc_doubles {
    f64s first[2], second[2];
};

/* N channels of one token, half of them from each vector; if `adds` the sum with what x holds. */
static POSENC_INLINE void put(const struct posenc_sinusoid_job *job, struct posenc_form form,
                              const char *x, char *y, f64s a, f64s b)
{
    float *to = (float *)(void *)y;
    if (job->ahead)
        __builtin_prefetch(y + job->ahead, 0, 2);
    prefetch_write(y + job->near);
    if (form.halves && !form.adds) {
        store_as_f32(to, a);
        store_as_f32(to + F64_LANES, b);
        return;
    }
    FLOATS value = form.halves ? narrow(a, b) : narrow_zip(a, b);
    if (form.adds)
        value = LANES(fma)(LANES(load_f32)((const float *)(const void *)x),
                           LANES(set1)(job->scale), value);
    LANES(store_f32)(to, value);
}

/* N pairs of one row, for every copy. */
static POSENC_INLINE void put_pairs(const struct posenc_sinusoid_job *job, struct posenc_form form,
                                    size_t at, ptrdiff_t run, struct posenc_doubles v)
{
    const char *x = job->x;
    if (form.adds)
        x += run * job->x_run;
    char *y = job->y + run * job->y_run;
    ptrdiff_t to_first = (ptrdiff_t)(at * sizeof(float)), to_second = to_first + job->second;
    if (!form.halves) {
        f64s swap = v.first[1];
        v.first[1] = v.second[0];
        v.second[0] = swap;
        to_first *= 2;
        to_second = to_first + (ptrdiff_t)sizeof(FLOATS);
    }
    for (size_t copies = job->copies;;) {
        put(job, form, form.adds ? x + to_first : NULL, y + to_first, v.first[0], v.first[1]);
        put(job, form, form.adds ? x + to_second : NULL, y + to_second, v.second[0], v.second[1]);
        if (!--copies)
            return;
        y += job->y_copy;
        if (form.adds)
            x += job->x_copy;
    }
}

/* N pairs of `runs` rows whose positions share the step: it is loaded once. */
static POSENC_INLINE void step_pairs(const struct posenc_sinusoid_job *job,
                                     struct posenc_form form, size_t at, ptrdiff_t run,
                                     ptrdiff_t runs)
{
    const struct posenc_row_block *block = &job->blocks[at / POSENC_ROW_BLOCK];
    const double *step_cos = &block->step_cos[job->step][at % POSENC_ROW_BLOCK];
    const double *step_sin = &block->step_sin[job->step][at % POSENC_ROW_BLOCK];
    const f64s c[2] = {load_f64(step_cos), load_f64(step_cos + F64_LANES)};
    const f64s s[2] = {load_f64(step_sin), load_f64(step_sin + F64_LANES)};
#pragma GCC unroll 4
    for (ptrdiff_t last = run + runs; run < last; run++) {
        const double *cos = job->base_cos + run * job->base_run + at;
        const double *sin = job->base_sin + run * job->base_run + at;
        struct posenc_doubles v;
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            f64s a = load_f64(cos + i * F64_LANES), b = load_f64(sin + i * F64_LANES);
            f64s row_c = sub_f64(mul_f64(a, c[i]), mul_f64(b, s[i]));
            f64s row_s = add_f64(mul_f64(b, c[i]), mul_f64(a, s[i]));
            v.first[i] = form.cosine_first ? row_c : row_s;
            v.second[i] = form.cosine_first ? row_s : row_c;
        }
        put_pairs(job, form, at, run, v);
    }
}

static POSENC_INLINE void all_pairs(const struct posenc_sinusoid_job *job, struct posenc_form form)
{
    if (job->runs == 4) {
        for (size_t at = 0; at < job->pairs; at += N)
            step_pairs(job, form, at, 0, 4);
        return;
    }
    for (size_t run = 0; run < job->runs; run++)
        for (size_t at = 0; at < job->pairs; at += N)
            step_pairs(job, form, at, (ptrdiff_t)run, 1);
}

void KERNEL(sinusoid)(const struct posenc_sinusoid_job *job)
{
#define FORM(adds, halves, cosine_first)                                                       \
    case 4 * adds + 2 * halves + cosine_first:                                                 \
        all_pairs(job, (struct posenc_form){adds, halves, cosine_first});                      \
        break
    switch (4 * (job->x != NULL) + 2 * (job->second != 0) + (job->cosine_first != 0)) {
        FORM(0, 0, 0);
        FORM(0, 0, 1);
        FORM(0, 1, 0);
        FORM(0, 1, 1);
        FORM(1, 0, 0);
        FORM(1, 0, 1);
        FORM(1, 1, 0);
        FORM(1, 1, 1);
    default:
        break;
    }
#undef FORM
}

/* One block of pairs of one row. In the order of the text a vector is stored before the next is
 * made: stores side by side fill what waits for memory and leave it empty by turns. */
static POSENC_INLINE void block_row(const struct posenc_sinusoid_run_job *job,
                                    struct posenc_form form, const struct posenc_base *base,
                                    const double *step_cos, const double *step_sin,
                                    const char *x, char *y)
{
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++, x += sizeof(FLOATS), y += sizeof(FLOATS)) {
        f64s a = base->cos[v], b = base->sin[v];
        f64s c = load_f64(step_cos + v * F64_LANES), s = load_f64(step_sin + v * F64_LANES);
        f64s row_c = sub_f64(mul_f64(a, c), mul_f64(b, s));
        f64s row_s = add_f64(mul_f64(b, c), mul_f64(a, s));
        FLOATS value = form.cosine_first ? narrow_zip(row_c, row_s) : narrow_zip(row_s, row_c);
        if (form.adds)
            value = LANES(fma)(LANES(load_f32)((const float *)(const void *)x),
                               LANES(set1)(job->scale), value);
        LANES(store_f32)((float *)(void *)y, value);
    }
}

/* Block after block through all tokens: its base row stays in registers, its steps in the first
 * cache, and each row grows without a jump, which the CPU follows by itself for 16 rows. */
static POSENC_INLINE void run_rows(const struct posenc_sinusoid_run_job *job,
                                   struct posenc_form form)
{
    const size_t bytes = 2 * POSENC_ROW_BLOCK * sizeof(float);
    for (size_t i = 0; i < job->pairs / POSENC_ROW_BLOCK; i++) {
        const struct posenc_row_block *block = &job->blocks[i];
        struct posenc_base base;
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            base_row(block, job->base, v, &base.cos[v], &base.sin[v]);
        const char *x = form.adds ? job->x + i * bytes : NULL;
        char *y = job->y + i * bytes;
        const double *step_cos = block->step_cos[job->step], *step_sin = block->step_sin[job->step];
        for (size_t t = job->tokens; t; t--, y += job->y_token) {
            block_row(job, form, &base, step_cos, step_sin, form.adds ? x : y, y);
            step_cos += POSENC_ROW_BLOCK;
            step_sin += POSENC_ROW_BLOCK;
            if (form.adds)
                x += job->x_token;
        }
    }
}

void KERNEL(sinusoid_run)(const struct posenc_sinusoid_run_job *job)
{
    if (job->x && job->cosine_first)
        run_rows(job, (struct posenc_form){.adds = 1, .cosine_first = 1});
    else if (job->x)
        run_rows(job, (struct posenc_form){.adds = 1});
    else if (job->cosine_first)
        run_rows(job, (struct posenc_form){.cosine_first = 1});
    else
        run_rows(job, (struct posenc_form){0});
}
