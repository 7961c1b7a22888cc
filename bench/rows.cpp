/* SPDX-License-Identifier: MIT */
/* Making rows against SLEEF's double sine and cosine of the same angles on the same ISA. */
#include "data.h"
#include "measure.h"
#include "sleef.h"
#include "suites.h"

#include <algorithm>

namespace bench {
namespace {

enum class order { consecutive, scattered };

/* SLEEF has no AVX2 or AVX-512 name on other machines: such an ISA is not available there. */
sleef_rows *peer_of(int32_t isa) {
#if defined(__x86_64__)
    if (isa == POSENC_ISA_AVX512)
        return sleef_rows_avx512;
    if (isa == POSENC_ISA_AVX2)
        return sleef_rows_avx2;
#elif defined(__aarch64__)
    if (isa == POSENC_ISA_NEON)
        return sleef_rows_neon;
#endif
    return sleef_rows_scalar;
}

/*
 * A walk through the positions below 2^20: `tokens` ids a call, from one of 64 prepared steps. A
 * step is a run that starts anywhere, or ids that all stand anywhere: multiples of a large prime.
 */
class steps {
  public:
    static constexpr size_t count = 64;
    steps(int64_t step_tokens, order how) : tokens(step_tokens) {
        for (size_t i = 0; i < count; i++)
            for (int64_t t = 0; t < tokens; t++) {
                const int64_t n = static_cast<int64_t>(i) * (how == order::scattered ? tokens : 1);
                const int64_t at = how == order::scattered
                                       ? (n + t) * 611953 % most_position
                                       : n * 611953 % (most_position - tokens) + t;
                ids.push_back(static_cast<int32_t>(at));
            }
        reals.assign(ids.begin(), ids.end());
    }
    size_t next() { return current = (current + 1) % count; }

    int64_t tokens;
    size_t current = 0;
    std::vector<int32_t> ids;
    std::vector<double> reals;
};

void make_rows(benchmark::State &state, int32_t isa, int32_t recipe, order how, int64_t tokens) {
    const int64_t width = 128, pairs = width / 2;
    const plan_pointer plan = make_plan(isa, POSENC_SPLIT_HALF, width, recipe);
    const buffer memory(static_cast<size_t>(tokens * width) * sizeof(float));
    posenc_tensor rows;
    posenc_tensor_contiguous(&rows, memory.as<void>(), POSENC_F32, 1, tokens, 1, width);
    std::vector<double> frequencies(static_cast<size_t>(pairs));
    posenc_error error = {};
    require(posenc_plan_inv_freq(plan.get(), frequencies.data(), frequencies.size(), &error),
            error);

    steps walk(tokens, how);
    const size_t step = static_cast<size_t>(tokens);
    posenc_positions positions;
    posenc_positions_start(&positions, 0);
    if (how == order::scattered) {
        positions.kind = POSENC_POSITIONS_IDS;
        positions.dtype = POSENC_I32;
        positions.stride[1] = 1;
    }
    auto own = [&] {
        const int32_t *ids = walk.ids.data() + walk.next() * step;
        if (how == order::scattered)
            positions.ids = ids;
        else
            positions.start = ids[0];
        require(posenc_rows(plan.get(), &positions, &rows, &error), error);
    };
    sleef_rows *const peer = peer_of(isa);
    auto reference = [&] {
        peer(walk.reals.data() + walk.next() * step, step, frequencies.data(),
             static_cast<size_t>(pairs), memory.as<float>());
    };
    const double made = static_cast<double>(tokens * pairs);
    compare(state,
            {static_cast<double>(tokens), 2 * made * sizeof(float), made, 1, "ratio_to_sleef"}, own,
            reference);
}

void add_row(const std::string &name, int32_t isa, int32_t recipe, order how, int64_t tokens) {
    add("rows/" + name + "/" + posenc_isa_name(isa) + "/" + std::to_string(tokens),
        [=](benchmark::State &s) { make_rows(s, isa, recipe, how, tokens); });
}

} // namespace

void add_rows() {
    for (int32_t isa : available_isas()) {
        for (int64_t tokens : {128, 512}) {
            add_row("consecutive", isa, POSENC_RECIPE_EXACT, order::consecutive, tokens);
            add_row("scattered", isa, POSENC_RECIPE_EXACT, order::scattered, tokens);
        }
        add_row("one", isa, POSENC_RECIPE_EXACT, order::scattered, 1);
        add_row("hf_f32", isa, POSENC_RECIPE_HF_F32, order::consecutive, 128);
    }
}

} // namespace bench
