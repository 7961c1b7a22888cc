/* SPDX-License-Identifier: MIT */
/*
 * One rotation into the other layout for every pair of dtypes, and the table of kernels.h.
 *
 * Template. Before the inclusion:
 *   KERNEL(name)                 the name of a kernel table of this ISA
 *   ACROSS(layout, from, to)     defines across_LAYOUT_FROM_TO, a posenc_rotate_kernel that reads
 *                                `layout` and writes the other one
 */
#define ACROSS_FROM(layout, from)                                                                  \
    ACROSS(layout, from, F32) ACROSS(layout, from, F16) ACROSS(layout, from, BF16)
#define ACROSS_ALL(layout)                                                                         \
    ACROSS_FROM(layout, F32) ACROSS_FROM(layout, F16) ACROSS_FROM(layout, BF16)
#define ROW(layout, from)                                                                          \
    {across_##layout##_##from##_F32, across_##layout##_##from##_F16,                               \
     across_##layout##_##from##_BF16}

ACROSS_ALL(ADJACENT)
ACROSS_ALL(SPLIT_HALF)

posenc_rotate_kernel *const KERNEL(rotate_across)[2][3][3] = {
    {ROW(ADJACENT, F32), ROW(ADJACENT, F16), ROW(ADJACENT, BF16)},
    {ROW(SPLIT_HALF, F32), ROW(SPLIT_HALF, F16), ROW(SPLIT_HALF, BF16)},
};

#undef ACROSS
#undef ACROSS_FROM
#undef ACROSS_ALL
#undef ROW
