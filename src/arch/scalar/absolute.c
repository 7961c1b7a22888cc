/* SPDX-License-Identifier: MIT */
/* Absolute positions in plain C: the fallback everywhere, and the oracle of the other kernels. */
#include "../../fma.h"
#include "../../kernels.h"
#include "element.h"

static inline void add(const struct posenc_add_job *job, int from, int to)
{
    for (ptrdiff_t t = 0; t < (ptrdiff_t)job->tokens; t++)
        for (ptrdiff_t c = 0; c < (ptrdiff_t)job->copies; c++) {
            const char *x = job->x + t * job->x_token + c * job->x_copy;
            const float *row = job->row + t * job->row_token;
            char *y = job->y + t * job->y_token + c * job->y_copy;
            for (ptrdiff_t i = 0; i < (ptrdiff_t)job->count; i++)
                put(y, i, to, posenc_fmaf(get(x, i, from), job->scale, row[i]));
        }
}

static inline void add_pairs(const struct posenc_add_job *job, int from, int to)
{
    for (ptrdiff_t t = 0; t < (ptrdiff_t)job->tokens; t++) {
        const char *x = job->x + t * job->x_token;
        const float *even = job->row + t * job->row_token, *odd = job->odd + t * job->row_token;
        char *y = job->y + t * job->y_token;
        for (ptrdiff_t i = 0; i < (ptrdiff_t)job->count; i++) {
            put(y, 2 * i, to, posenc_fmaf(get(x, 2 * i, from), job->scale, even[i]));
            put(y, 2 * i + 1, to, posenc_fmaf(get(x, 2 * i + 1, from), job->scale, odd[i]));
        }
    }
}

static inline void write_pairs(const struct posenc_add_job *job, int to)
{
    for (ptrdiff_t t = 0; t < (ptrdiff_t)job->tokens; t++)
        for (ptrdiff_t i = 0; i < (ptrdiff_t)job->count; i++) {
            put(job->y + t * job->y_token, 2 * i, to, job->row[t * job->row_token + i]);
            put(job->y + t * job->y_token, 2 * i + 1, to, job->odd[t * job->row_token + i]);
        }
}

#define ADD(from, to)                                                                          \
    static void add_##from##_##to(const struct posenc_add_job *job)                            \
    {                                                                                          \
        add(job, POSENC_##from, POSENC_##to);                                                  \
    }                                                                                          \
    static void add_pairs_##from##_##to(const struct posenc_add_job *job)                      \
    {                                                                                          \
        add_pairs(job, POSENC_##from, POSENC_##to);                                            \
    }
#define WRITE(to)                                                                              \
    static void write_pairs_##to(const struct posenc_add_job *job)                             \
    {                                                                                          \
        write_pairs(job, POSENC_##to);                                                         \
    }

#define KERNEL(name) posenc_##name##_scalar
#include "../../kernels/absolute_instances.h"
