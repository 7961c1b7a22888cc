/* SPDX-License-Identifier: MIT */
/*
 * One addition of rows and one of pairs for every pair of dtypes, and the tables that hold them.
 *
 * Template. Before the inclusion:
 *   KERNEL(name)     the name of a kernel table of this ISA
 *   ADD(from, to)    defines add_FROM_TO and add_pairs_FROM_TO, posenc_add_kernels
 *   WRITE(to)        defines write_pairs_TO, a posenc_add_kernel
 */
#define ADD_FROM(from) ADD(from, F32) ADD(from, F16) ADD(from, BF16)
#define ROW(kind, from) {kind##_##from##_F32, kind##_##from##_F16, kind##_##from##_BF16}

ADD_FROM(F32)
ADD_FROM(F16)
ADD_FROM(BF16)
WRITE(F32)
WRITE(F16)
WRITE(BF16)

posenc_add_kernel *const KERNEL(add)[3][3] = {ROW(add, F32), ROW(add, F16), ROW(add, BF16)};

posenc_add_kernel *const KERNEL(add_pairs)[3][3] = {ROW(add_pairs, F32), ROW(add_pairs, F16),
                                                    ROW(add_pairs, BF16)};

posenc_add_kernel *const KERNEL(write_pairs)[3] = {write_pairs_F32, write_pairs_F16,
                                                   write_pairs_BF16};

#undef ADD
#undef ADD_FROM
#undef WRITE
#undef ROW
