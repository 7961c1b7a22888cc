/* SPDX-License-Identifier: MIT */
/* posenc_bench: every row is a Google Benchmark; see docs/performance.md for names and method. */
#include "suites.h"

#include <benchmark/benchmark.h>

#include <vector>

int main(int argc, char **argv) {
    char tabular[] = "--benchmark_counters_tabular=true";
    std::vector<char *> arguments(argv, argv + argc);
    arguments.insert(arguments.begin() + 1, tabular);
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
        return 1;
    bench::add_rotation();
    bench::add_rows();
    bench::add_conversion();
    bench::add_biases();
    bench::add_permutation();
    bench::add_absolute();
    bench::add_attention();
    bench::add_cache();
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
