/* SPDX-License-Identifier: MIT */
/* What all of libposenc shares: errors, element types, tensors, positions, ISA. See posenc.h. */
#ifndef POSENC_POSENC_BASE_H
#define POSENC_POSENC_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifndef POSENC_API
#define POSENC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Errors
 * --------------------------------------------------------------------------------------------- */

enum {
    POSENC_OK = 0,
    POSENC_ERROR_ARGUMENT = 1,    /* an argument breaks its rule */
    POSENC_ERROR_POSITION = 2,    /* a position is outside the table, the limit or the range */
    POSENC_ERROR_OVERLAP = 3,     /* memory of two arguments overlaps where it must not */
    POSENC_ERROR_UNSUPPORTED = 4, /* this build or CPU does not offer what was asked for */
    POSENC_ERROR_MEMORY = 5,      /* the system has no memory left */
    POSENC_ERROR_IO = 6,          /* a file could not be read (libposenc-contract) */
    POSENC_ERROR_FORMAT = 7,      /* a file is malformed (libposenc-contract) */
    POSENC_ERROR_MODEL = 8        /* a model's description is refused (libposenc-contract) */
};

/* What went wrong, in memory of the caller. `text` names the argument, its value and the rule, is
 * one line of ASCII and always ends with a NUL. Written only when a function fails. */
typedef struct posenc_error {
    int32_t code;
    char text[252];
} posenc_error;

/* A short name for a status: "ok", "argument", "position", ... or "unknown". Never freed. */
POSENC_API const char *posenc_status_name(int32_t status);

/* ------------------------------------------------------------------------------------------------
 * Element types. 0 is never a valid dtype or layout, so that a forgotten field is noticed.
 * --------------------------------------------------------------------------------------------- */

enum { /* dtype */
    POSENC_F32 = 1,
    POSENC_F16 = 2,  /* IEEE binary16, as uint16_t */
    POSENC_BF16 = 3, /* upper half of a binary32, as uint16_t */
    POSENC_I32 = 4,
    POSENC_I64 = 5,
    POSENC_F64 = 6,
    POSENC_I8 = 7 /* caches alone: an integer -127..127 times a scale */
};

/* ------------------------------------------------------------------------------------------------
 * Tensors and positions
 * --------------------------------------------------------------------------------------------- */

/*
 * A strided view of rank 4, [batch][token][head][channel]. Element (b, t, h, c) lies at
 * data + b*stride[0] + t*stride[1] + h*stride[2] + c, counted in elements of dtype; stride[3] is 1.
 * Any memory order and any packing is a choice of strides; a stride may be negative, and its value
 * is ignored where the dimension has one element. This struct is frozen: it will never change.
 */
typedef struct posenc_tensor {
    void *data;
    int32_t dtype;
    int64_t shape[4];
    int64_t stride[4];
} posenc_tensor;

/* Fills `tensor` as a contiguous view. No argument is checked here; the call that uses it does. */
POSENC_API void posenc_tensor_contiguous(posenc_tensor *tensor, void *data, int32_t dtype,
                                         int64_t batch, int64_t tokens, int64_t heads,
                                         int64_t channels);

enum { /* kind of positions */
    POSENC_POSITIONS_START = 0,  /* start, start+1, ... in every batch row */
    POSENC_POSITIONS_STARTS = 1, /* a start of its own for each batch row */
    POSENC_POSITIONS_IDS = 2     /* an id of its own for each token */
};

/*
 * Where the tokens stand. Positions lie in [-2^31, 2^31); negative ones are legal where rows are
 * computed and refused where a table is read. Fields from `axes` on are 0 (NULL) in common use.
 *
 *     START:   position(b, t) = start + t
 *     STARTS:  position(b, t) = ids[b*stride[0]] + t
 *     IDS:     position(b, t) = ids[b*stride[0] + t*stride[1]]     // stride[0] = 0 shares one row
 *
 * Axes: a plan may have up to four (image rows and columns, time). With `axes` >= 2, which must be
 * the plan's number and goes with IDS alone, axis a stands at ids[a*axis_stride + b*stride[0] +
 * t*stride[1]]; with 0 or 1 every axis of the plan stands at the same position (text).
 *
 * Lengths: dynamic and LongRoPE frequencies depend on the number of positions in use, the running
 * length. It is lengths[b] of batch row b, or `length` where lengths is NULL; plans that need it
 * refuse 0, others ignore it. Rows of equal length have equal bits.
 *
 * Sets: a plan with several linear factors turns token (b, t) by factor
 * sets[b*set_stride[0] + t*set_stride[1]]; by factor 0 where sets is NULL.
 */
typedef struct posenc_positions {
    uint32_t struct_size; /* sizeof(posenc_positions) */
    int32_t kind;         /* POSENC_POSITIONS_* */
    int32_t dtype;        /* of ids: POSENC_I32, POSENC_I64; with IDS also POSENC_F64, finite */
    int32_t reserved;     /* 0 */
    int64_t start;
    const void *ids;
    int64_t stride[2];
    int32_t axes;         /* of ids: 0 or 1, or the plan's 2..4 */
    int32_t reserved2;    /* 0 */
    int64_t axis_stride;
    int64_t length;       /* running length, > 0; 0 = not given */
    const int64_t *lengths; /* [batch], each > 0 */
    const int32_t *sets;
    int64_t set_stride[2];
} posenc_positions;

/* Sets `positions` to START at `start`. */
POSENC_API void posenc_positions_start(posenc_positions *positions, int64_t start);

/* ------------------------------------------------------------------------------------------------
 * ISA
 * --------------------------------------------------------------------------------------------- */

enum { /* isa: the kernels that do the work; they give equal bits */
    POSENC_ISA_DEFAULT = 0, /* the best of this CPU, or what POSENC_ISA in the environment names */
    POSENC_ISA_SCALAR = 1,
    POSENC_ISA_AVX2 = 2,   /* AVX2, FMA and F16C */
    POSENC_ISA_AVX512 = 3, /* AVX-512 F, BW, DQ, VL */
    POSENC_ISA_NEON = 4
};

/* 1 if this build and this CPU (its operating system included) can run `isa`, else 0. */
POSENC_API int32_t posenc_isa_available(int32_t isa);

/* What POSENC_ISA_DEFAULT means in this process: the best available, or the available one that the
 * environment variable POSENC_ISA names. The variable is read at the first use, once. */
POSENC_API int32_t posenc_isa_default(void);

/* "scalar", "avx2", "avx512", "neon", "default", or NULL for an unknown value. Never freed. */
POSENC_API const char *posenc_isa_name(int32_t isa);

#ifdef __cplusplus
}
#endif

#endif
