/* SPDX-License-Identifier: MIT */
/* The groups of benchmarks; each function registers one. */
#ifndef POSENC_BENCH_SUITES_H
#define POSENC_BENCH_SUITES_H

namespace bench {

void add_rotation();
void add_rows();
void add_conversion();
void add_biases();
void add_permutation();
void add_absolute();
void add_attention();
void add_cache();

} // namespace bench

#endif
