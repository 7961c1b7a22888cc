/* SPDX-License-Identifier: MIT */
/* Attention. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_ATTENTION_H
#define POSENC_POSENC_ATTENTION_H

#include <posenc/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Attention: small and exact, to check an engine against
 * --------------------------------------------------------------------------------------------- */

typedef struct posenc_attention_params {
    uint32_t struct_size; /* sizeof(posenc_attention_params) */
    int32_t causal;       /* 1: query i of Tq stands at key Tk - Tq + i and sees keys up to it */
    double scale;         /* multiplies q.k, finite; 0 = 1/sqrt(channels of q) */
    int32_t isa;          /* POSENC_ISA_* */
    int32_t reserved;     /* 0 */
} posenc_attention_params;

/* Sets every field to its default (struct_size included): not causal, scale by the rule. */
POSENC_API void posenc_attention_params_init(posenc_attention_params *params);

/*
 * out = softmax(scale q k^T) v. Shapes: q [B][Tq][Hq][D], k [B][Tk][Hk][D], v [B][Tk][Hk][E],
 * out [B][Tq][Hq][E], all F32, D and E 1..4096. Hq is a multiple of Hk: query head h reads key head
 * h / (Hq / Hk). A query that sees no key gives zeros. `out` shares no memory with the inputs.
 *
 *     for (b, i, h) {
 *         n = causal ? max(0, Tk - Tq + i + 1) : Tk
 *         out = sum_j<n exp(scale q.k_j - max) v_j / sum_j<n exp(scale q.k_j - max)
 *     }
 *
 * A row's bits depend on its own query and the keys it sees alone, so one prefill and decoding
 * token by token agree. docs/attention.md gives the arithmetic operation by operation.
 */
POSENC_API int32_t posenc_attention(const posenc_attention_params *params, const posenc_tensor *q,
                                    const posenc_tensor *k, const posenc_tensor *v,
                                    const posenc_tensor *out, posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
