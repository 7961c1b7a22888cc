/* SPDX-License-Identifier: MIT */
/*
 * libposenc: positional encodings for attention, exact and at memory speed.
 *
 * Data flows one way and each stage can be used alone:
 *
 *     parameters -> plan -> rows (cos/sin of this step) -> rotated Q, K -> attention
 *
 * Beside it stand rows that are added to embeddings (absolute.h) and to scores (biases.h).
 *
 * Conventions of every function here
 *
 *   Status    A function that can fail returns POSENC_OK (0) or a positive POSENC_ERROR_* code and,
 *             if its last argument is not NULL, describes the failure there. All arguments are
 *             checked before the first store: after an error nothing has been written.
 *   Threads   A plan or sinusoid never changes after its creation and may be shared by all threads.
 *             No function has hidden state; calls that write to different memory may run at once.
 *   Memory    Only posenc_plan_create* and posenc_sinusoid_create allocate, and only
 *             posenc_plan_free and posenc_sinusoid_free release. No alignment is demanded beyond
 *             that of the element type.
 *   Floats    Results assume round-to-nearest. Rotation, attention, sums and biases also assume
 *             that the caller did not switch on flush-to-zero. The floating-point environment is
 *             never changed.
 *   Bits      Equal input gives equal bits on every ISA, for every split of the work, in place or
 *             not, fused or in steps. NaNs appear in the same places; their payload is free.
 *   Units     Positions count tokens; angles are radians; strides count elements, not bytes.
 *
 * Types are fixed-width integers, size_t, double and pointers; f16 and bf16 are uint16_t bits.
 */
#ifndef POSENC_POSENC_H
#define POSENC_POSENC_H

#include <posenc/absolute.h>
#include <posenc/attention.h>
#include <posenc/base.h>
#include <posenc/biases.h>
#include <posenc/builders.h>
#include <posenc/cache.h>
#include <posenc/layouts.h>
#include <posenc/rope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Version
 * --------------------------------------------------------------------------------------------- */

#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0

/* The version of the library that is running, as "0.1.0". Never NULL, never freed. */
POSENC_API const char *posenc_version(void);

#ifdef __cplusplus
}
#endif

#endif
