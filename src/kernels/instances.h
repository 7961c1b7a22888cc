/* SPDX-License-Identifier: MIT */
/*
 * One rotation for every layout and pair of dtypes, one conversion for every pair, and the tables
 * of kernels.h that hold them. Whole names, so that a debugger and grep find them.
 *
 * Template. Before the inclusion:
 *   KERNEL(name)                 the name of a kernel table of this ISA
 *   ROTATE(layout, from, to)     defines rotate_LAYOUT_FROM_TO, a posenc_rotate_kernel
 *   CONVERT(from, to)            defines convert_FROM_TO, a posenc_convert_kernel
 */
#define ROTATE_FROM(layout, from)                                                                  \
    ROTATE(layout, from, F32) ROTATE(layout, from, F16) ROTATE(layout, from, BF16)
#define ROTATE_ALL(layout)                                                                         \
    ROTATE_FROM(layout, F32) ROTATE_FROM(layout, F16) ROTATE_FROM(layout, BF16)
#define ROW(layout, from)                                                                          \
    {rotate_##layout##_##from##_F32, rotate_##layout##_##from##_F16,                               \
     rotate_##layout##_##from##_BF16}

ROTATE_ALL(ADJACENT)
ROTATE_ALL(SPLIT_HALF)
CONVERT(F32, F16)
CONVERT(F32, BF16)
CONVERT(F16, F32)
CONVERT(F16, BF16)
CONVERT(BF16, F32)
CONVERT(BF16, F16)

posenc_rotate_kernel *const KERNEL(rotate)[2][3][3] = {
    {ROW(ADJACENT, F32), ROW(ADJACENT, F16), ROW(ADJACENT, BF16)},
    {ROW(SPLIT_HALF, F32), ROW(SPLIT_HALF, F16), ROW(SPLIT_HALF, BF16)},
};

posenc_convert_kernel *const KERNEL(convert)[3][3] = {
    {NULL, convert_F32_F16, convert_F32_BF16},
    {convert_F16_F32, NULL, convert_F16_BF16},
    {convert_BF16_F32, convert_BF16_F16, NULL},
};

#undef ROTATE
#undef ROTATE_FROM
#undef ROTATE_ALL
#undef ROW
#undef CONVERT
