/* SPDX-License-Identifier: MIT */
/*
 * One norm for every layout and pair of dtypes, one sum of squares for every dtype, and the tables
 * of kernels.h that hold them.
 *
 * Template. Before the inclusion:
 *   KERNEL(name)                     the name of a kernel table of this ISA
 *   squares(job, from)               the body of a posenc_squares_kernel for a dtype
 *   norm_rotate(job, layout, from, to), norm_scale(job, from, to)
 *                                    those of posenc_norm_kernels
 *   NORM_TURN(layout, from, to)      defines norm_turn_LAYOUT_FROM_TO, a posenc_norm_turn_kernel;
 *                                    an ISA may go without
 */
#define SQUARES(from)                                                                          \
    static void squares_##from(const struct posenc_squares_job *job)                           \
    {                                                                                          \
        squares(job, POSENC_##from);                                                           \
    }
#define NORM_ROTATE(layout, from, to)                                                          \
    static void norm_rotate_##layout##_##from##_##to(const struct posenc_norm_job *job)        \
    {                                                                                          \
        norm_rotate(job, POSENC_##layout, POSENC_##from, POSENC_##to);                         \
    }
#define NORM_SCALE(from, to)                                                                   \
    static void norm_scale_##from##_##to(const struct posenc_norm_job *job)                    \
    {                                                                                          \
        norm_scale(job, POSENC_##from, POSENC_##to);                                           \
    }
#define NORM_FROM(layout, from)                                                                    \
    NORM_ROTATE(layout, from, F32) NORM_ROTATE(layout, from, F16) NORM_ROTATE(layout, from, BF16)
#define NORM_ALL(layout) NORM_FROM(layout, F32) NORM_FROM(layout, F16) NORM_FROM(layout, BF16)
#define SCALE_FROM(from) NORM_SCALE(from, F32) NORM_SCALE(from, F16) NORM_SCALE(from, BF16)
#define ROW(name, from) {name##_##from##_F32, name##_##from##_F16, name##_##from##_BF16}

SQUARES(F32)
SQUARES(F16)
SQUARES(BF16)
NORM_ALL(ADJACENT)
NORM_ALL(SPLIT_HALF)
SCALE_FROM(F32)
SCALE_FROM(F16)
SCALE_FROM(BF16)

posenc_squares_kernel *const KERNEL(squares)[3] = {squares_F32, squares_F16, squares_BF16};

posenc_norm_kernel *const KERNEL(norm_rotate)[2][3][3] = {
    {ROW(norm_rotate_ADJACENT, F32), ROW(norm_rotate_ADJACENT, F16),
     ROW(norm_rotate_ADJACENT, BF16)},
    {ROW(norm_rotate_SPLIT_HALF, F32), ROW(norm_rotate_SPLIT_HALF, F16),
     ROW(norm_rotate_SPLIT_HALF, BF16)},
};

posenc_norm_kernel *const KERNEL(norm_scale)[3][3] = {
    ROW(norm_scale, F32),
    ROW(norm_scale, F16),
    ROW(norm_scale, BF16),
};

#ifdef NORM_TURN
#define TURN_FROM(layout, from)                                                                    \
    NORM_TURN(layout, from, F32) NORM_TURN(layout, from, F16) NORM_TURN(layout, from, BF16)
#define TURN_ALL(layout) TURN_FROM(layout, F32) TURN_FROM(layout, F16) TURN_FROM(layout, BF16)

TURN_ALL(ADJACENT)
TURN_ALL(SPLIT_HALF)

posenc_norm_turn_kernel *const KERNEL(norm_turn)[2][3][3] = {
    {ROW(norm_turn_ADJACENT, F32), ROW(norm_turn_ADJACENT, F16), ROW(norm_turn_ADJACENT, BF16)},
    {ROW(norm_turn_SPLIT_HALF, F32), ROW(norm_turn_SPLIT_HALF, F16),
     ROW(norm_turn_SPLIT_HALF, BF16)},
};

#undef NORM_TURN
#undef TURN_FROM
#undef TURN_ALL
#else
posenc_norm_turn_kernel *const KERNEL(norm_turn)[2][3][3] = {{{NULL}}};
#endif

posenc_fold_kernel *const KERNEL(fold)[2] = {fold_ADJACENT, fold_SPLIT_HALF};

#undef SQUARES
#undef NORM_ROTATE
#undef NORM_SCALE
#undef NORM_FROM
#undef NORM_ALL
#undef SCALE_FROM
#undef ROW
