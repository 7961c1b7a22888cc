/* SPDX-License-Identifier: MIT */
/* How every row is measured: two pieces of work in turn, and the median ratio of their times. */
#ifndef POSENC_BENCH_MEASURE_H
#define POSENC_BENCH_MEASURE_H

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <time.h>
#include <vector>

namespace bench {

/* What one call does, and the name of the counter that compares it with its reference. */
struct amount {
    double tokens;
    double bytes;
    double pairs;            /* cosine/sine pairs made, 0 where rows are not made */
    double reference_share;  /* work of a reference call / work of an own call, usually 1 */
    const char *ratio_name;
};

/* Medians over the rounds: seconds a call, and the ratio within a round with its quartiles. */
struct timing {
    double own;
    double ratio;
    double spread;
};

/* Samples of 2 ms make the clock's cost vanish; 21 rounds give steady quartiles; a round takes the
 * same moment of a shared machine for both sides. Slow work stops early, after 7 rounds or more. */
constexpr double sample_seconds = 2e-3;
constexpr size_t most_rounds = 21;
constexpr size_t least_rounds = 7;
constexpr double enough_seconds = 1.0;

/* Time that this thread ran: what other processes take of the CPU is not the row's cost. */
inline double thread_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/* Templates and not std::function: an indirect call would count as overhead of a one-head call. */
template <class Work> double seconds(Work &work, int64_t calls) {
    const double begin = thread_seconds();
    for (int64_t i = 0; i < calls; i++) {
        work();
        benchmark::ClobberMemory();
    }
    return thread_seconds() - begin;
}

/* Warms up, and returns how many calls fill a sample. */
template <class Work> int64_t calls_per_sample(Work &work) {
    seconds(work, 1);
    for (int64_t calls = 1;; calls *= 2) {
        const double time = seconds(work, calls);
        if (time >= sample_seconds / 4)
            return std::max<int64_t>(1, static_cast<int64_t>(
                                            static_cast<double>(calls) * sample_seconds / time));
    }
}

inline double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/* Both sides change places from round to round, so that neither always finds the other's caches. */
template <class Own, class Reference> timing interleave(Own &own, Reference &reference) {
    const int64_t own_calls = calls_per_sample(own);
    const int64_t reference_calls = calls_per_sample(reference);
    std::vector<double> own_times, ratios;
    double spent = 0;
    while (ratios.size() < least_rounds ||
           (ratios.size() < most_rounds && spent < enough_seconds)) {
        double own_time = 0, reference_time = 0;
        const bool own_first = ratios.size() % 2 != 0;
        if (own_first)
            own_time = seconds(own, own_calls);
        reference_time = seconds(reference, reference_calls);
        if (!own_first)
            own_time = seconds(own, own_calls);
        spent += own_time + reference_time;
        own_times.push_back(own_time / static_cast<double>(own_calls));
        ratios.push_back(reference_time / static_cast<double>(reference_calls) / own_times.back());
    }
    return {quantile(own_times, 0.5), quantile(ratios, 0.5),
            quantile(ratios, 0.75) - quantile(ratios, 0.25)};
}

/* One benchmark iteration is a whole interleaved group; its manual time is the median own call. */
template <class Own, class Reference>
void compare(benchmark::State &state, const amount &per_call, Own own, Reference reference) {
    for (auto _ : state) {
        const timing result = interleave(own, reference);
        state.SetIterationTime(result.own);
        state.counters["tokens_per_second"] = per_call.tokens / result.own;
        state.counters["bytes_per_second"] = per_call.bytes / result.own;
        state.counters[per_call.ratio_name] = result.ratio / per_call.reference_share;
        state.counters["spread"] = result.spread / per_call.reference_share;
        if (per_call.pairs > 0)
            state.counters["ns_per_pair"] = 1e9 * result.own / per_call.pairs;
    }
}

/* Registers a row. A failure (a refused call, no memory) becomes the row's error message. */
template <class Function> void add(const std::string &name, Function function) {
    const auto guarded = [function](benchmark::State &state) {
        try {
            function(state);
        } catch (const std::exception &failure) {
            state.SkipWithError(failure.what());
        }
    };
    benchmark::RegisterBenchmark(name.c_str(), guarded)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kNanosecond);
}

} // namespace bench

#endif
