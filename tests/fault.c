/* SPDX-License-Identifier: MIT */
/* Preloaded before libposenc: makes one function slightly wrong, to show that `posenc run` notices.
 */
#include <dlfcn.h>
#include <posenc/posenc.h>
#include <stdlib.h>
#include <string.h>

static int wanted(const char *name)
{
    const char *fault = getenv("FAULT");
    return fault && strcmp(fault, name) == 0;
}

/* The library's own function, as a pointer: C has no cast for that, POSIX has the bits. */
static void next(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* `steps` float32 further away from 0. */
static void move(float *x, uint32_t steps)
{
    uint32_t bits;
    memcpy(&bits, x, 4);
    bits += steps;
    memcpy(x, &bits, 4);
}

int32_t posenc_rows(const posenc_plan *plan, const posenc_positions *positions,
                    const posenc_tensor *rows, posenc_error *error)
{
    int32_t (*real)(const posenc_plan *, const posenc_positions *, const posenc_tensor *,
                    posenc_error *);
    next("posenc_rows", &real);
    int32_t status = real(plan, positions, rows, error);
    float *data = rows->data;
    if (!status && wanted("rows"))
        move(data, 2);
    if (!status && wanted("nan"))
        memset(data + 2, 0xff, 4);
    if (!status && wanted("isa_rows") && posenc_plan_isa(plan) != POSENC_ISA_SCALAR)
        move(data, 1);
    return status;
}

int32_t posenc_rotate(const posenc_plan *plan, int32_t direction, const posenc_tensor *rows,
                      const posenc_tensor *q, const posenc_tensor *q_out, const posenc_tensor *k,
                      const posenc_tensor *k_out, posenc_error *error)
{
    int32_t (*real)(const posenc_plan *, int32_t, const posenc_tensor *, const posenc_tensor *,
                    const posenc_tensor *, const posenc_tensor *, const posenc_tensor *,
                    posenc_error *);
    next("posenc_rotate", &real);
    int32_t status = real(plan, direction, rows, q, q_out, k, k_out, error);
    if (!status && q_out && wanted("rotate"))
        move(q_out->data, 16);
    if (!status && q_out && wanted("copy"))
        move((float *)q_out->data + q_out->shape[3] - 1, 1);
    if (!status && q_out && wanted("isa_rotate") && posenc_plan_isa(plan) != POSENC_ISA_SCALAR)
        move(q_out->data, 1);
    return status;
}

int32_t posenc_attention(const posenc_attention_params *params, const posenc_tensor *q,
                         const posenc_tensor *k, const posenc_tensor *v, const posenc_tensor *out,
                         posenc_error *error)
{
    int32_t (*real)(const posenc_attention_params *, const posenc_tensor *, const posenc_tensor *,
                    const posenc_tensor *, const posenc_tensor *, posenc_error *);
    next("posenc_attention", &real);
    int32_t status = real(params, q, k, v, out, error);
    float *last = (float *)out->data + out->shape[1] * out->shape[2] * out->shape[3] - 1;
    if (!status && wanted("attention"))
        *last += 1e-2f;
    if (!status && wanted("isa_attention") && params->isa != POSENC_ISA_SCALAR)
        move(last, 1);
    return status;
}
