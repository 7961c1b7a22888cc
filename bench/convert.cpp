/* SPDX-License-Identifier: MIT */
/* Rounding f32 to bf16 with subnormals kept, against the instruction that flushes them. */
#include "bf16_native.h"
#include "data.h"
#include "kernels_cxx.h"
#include "measure.h"
#include "suites.h"

namespace bench {
namespace {

#if defined(__x86_64__)

void round_to_bf16(benchmark::State &state, int32_t isa, int64_t tokens) {
    const size_t count = model_shape(tokens).elements();
    const buffer source(4 * count), destination(2 * count);
    fill(source.as<void>(), POSENC_F32, count);
    posenc_convert_kernel *const kernel =
        posenc_kernels_get(isa)->convert[POSENC_F32 - 1][POSENC_BF16 - 1];
    compare(
        state,
        {static_cast<double>(tokens), 6 * static_cast<double>(count), 0, 1, "ratio_to_native"},
        [&] { kernel(source.as<void>(), destination.as<void>(), count); },
        [&] { bf16_native(source.as<void>(), destination.as<void>(), count); });
}

#endif

} // namespace

void add_conversion() {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512bf16") || !posenc_isa_available(POSENC_ISA_AVX512))
        return;
    for (int32_t isa : {POSENC_ISA_AVX512, POSENC_ISA_AVX2})
        for (int64_t tokens : {1, 512})
            add(std::string("bf16_rounding/") + posenc_isa_name(isa) +
                    (tokens == 1 ? "/L1" : "/512"),
                [=](benchmark::State &s) { round_to_bf16(s, isa, tokens); });
#endif
}

} // namespace bench
