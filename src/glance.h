/* SPDX-License-Identifier: MIT */
/* Plain calls, recognised at a glance: what decoding calls in every layer. */
#ifndef POSENC_GLANCE_H
#define POSENC_GLANCE_H

#include "plan.h"

/*
 * One token, forward, in place: the kernel takes some ten nanoseconds for a head and the full
 * checks several times that. What is accepted here they would accept; the rest is theirs to judge.
 *
 * What counts is the number of instructions and of registers: with more than a function has for
 * itself it must save others. Hence comparisons with what the plan knows beforehand, of several
 * fields with one another, and one comparison for two.
 */

/* NULL if the dtype is none of the three. */
static inline const struct posenc_in_place *posenc_in_place_of(const posenc_plan *plan,
                                                               const posenc_tensor *t)
{
    const uint32_t at = (uint32_t)t->dtype - POSENC_F32;
    return at <= POSENC_BF16 - POSENC_F32 ? &plan->in_place[at] : NULL;
}

/* Addresses that are there, multiples of 4 and with room above: 0 - 4 has the high bits. Sums of
 * 32-bit addresses could overflow unseen: there none is plain. */
static inline int posenc_are_plain(uintptr_t a, uintptr_t b, uintptr_t c)
{
    return sizeof(uintptr_t) >= 8 &&
           !(((a - 4) | (b - 4) | (c - 4)) & (3 | ~(UINTPTR_MAX >> 2)));
}

/* Ranges share a byte if -a_bytes < a - b < b_bytes; as unsigned numbers, moved up by a_bytes - 1,
 * that is one comparison. `a_last` is a_bytes - 1, `reach` is a_bytes + b_bytes - 1. */
static inline int posenc_lie_apart(uintptr_t a, uintptr_t a_last, uintptr_t b, uintptr_t reach)
{
    return a - b + a_last >= reach;
}

/*
 * One row; one token of a tensor (or of two: t and u) whose channels lie side by side. What must be
 * 1 is compared with one of its kind and that with 1 at the end, because comparing with a register
 * takes an instruction less than with a constant.
 */
static inline int posenc_is_one_token(const posenc_plan *plan, const posenc_tensor *rows,
                                      const posenc_tensor *t, const posenc_tensor *u)
{
    const int64_t one = rows->shape[0];
    return rows->shape[1] == one && rows->shape[2] == one && rows->stride[3] == one &&
           t->shape[0] == one && t->shape[1] == one && t->stride[3] == one &&
           u->shape[0] == one && u->shape[1] == one && u->stride[3] == one && one == 1 &&
           rows->dtype == POSENC_F32 && rows->shape[3] == plan->rotary_dim &&
           posenc_are_plain((uintptr_t)rows->data, (uintptr_t)t->data, (uintptr_t)u->data);
}

/* The rest is for one token. One whole head beside the row; its stride may be anything. */
static inline int posenc_is_one_head(const posenc_plan *plan, const posenc_tensor *rows,
                                     const posenc_tensor *t, const struct posenc_in_place *by)
{
    return t->shape[2] == 1 && t->shape[3] == plan->head_dim &&
           posenc_lie_apart((uintptr_t)t->data, by->last, (uintptr_t)rows->data, by->reach);
}

/*
 * Heads in memory order, or their windows alone, beside the row: from the first byte to behind the
 * last, or 0 where anything is less usual. At most 2^24 heads, strides of at least a head and less
 * than 2^32 more, addresses with room above: nothing here can overflow.
 */
static inline uintptr_t posenc_plain_bytes(const posenc_plan *plan, const posenc_tensor *rows,
                                           const posenc_tensor *t, const struct posenc_in_place *by)
{
    const uintptr_t row_bytes = (uintptr_t)plan->rotary_dim * sizeof(float);
    const uint64_t channels = (uint64_t)t->shape[3], more = (uint64_t)t->shape[2] - 1;
    uint64_t elements = channels;
    if (more >> 24 || (t->shape[3] != plan->head_dim && t->shape[3] != plan->rotary_dim))
        return 0;
    if (more) {
        if (((uint64_t)t->stride[2] - channels) >> 32)
            return 0;
        elements += more * (uint64_t)t->stride[2];
    }
    const uintptr_t bytes = (uintptr_t)elements * by->size;
    const uintptr_t reach = bytes + row_bytes - 1;
    return posenc_lie_apart((uintptr_t)t->data, bytes - 1, (uintptr_t)rows->data, reach) ? bytes
                                                                                         : 0;
}

#endif
