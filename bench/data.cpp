/* SPDX-License-Identifier: MIT */
/* Makes and checks the data that the benchmarks work on. */
#include "data.h"

#include <cmath>
#include <cstring>

#include <sys/mman.h>

namespace bench {
namespace {

/* A 64-bit linear congruential generator (Knuth's MMIX constants); its upper bits serve. */
uint32_t next_random(uint64_t &state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
}

} // namespace

std::string dtype_name(int32_t dtype) {
    return dtype == POSENC_F32 ? "f32" : dtype == POSENC_F16 ? "f16" : "bf16";
}

std::string layout_name(int32_t layout) {
    return layout == POSENC_ADJACENT ? "adjacent" : "split_half";
}

std::vector<int32_t> available_isas() {
    std::vector<int32_t> found;
    for (int32_t isa : {POSENC_ISA_AVX512, POSENC_ISA_AVX2, POSENC_ISA_NEON, POSENC_ISA_SCALAR})
        if (posenc_isa_available(isa))
            found.push_back(isa);
    return found;
}

plan_pointer make_plan(int32_t isa, int32_t layout, int64_t width, int32_t recipe) {
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    params.layout = layout;
    params.head_dim = params.rotary_dim = static_cast<int32_t>(width);
    params.base = frequency_base;
    params.isa = isa;
    params.recipe = recipe;
    posenc_plan *plan = nullptr;
    posenc_error error = {};
    require(posenc_plan_create(&plan, &params, &error), error);
    return plan_pointer(plan, &posenc_plan_free);
}

void fill(void *data, int32_t dtype, size_t count) {
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = next_random(state);
        const uint32_t sign = bits >> 31, above = bits % 3, fraction = bits >> 3;
        if (dtype == POSENC_F32) {
            const uint32_t value = sign << 31 | (126 + above) << 23 | (fraction & 0x7fffff);
            std::memcpy(static_cast<float *>(data) + i, &value, sizeof value);
        } else if (dtype == POSENC_F16) {
            static_cast<uint16_t *>(data)[i] =
                static_cast<uint16_t>(sign << 15 | (14 + above) << 10 | (fraction & 0x3ff));
        } else {
            static_cast<uint16_t *>(data)[i] =
                static_cast<uint16_t>(sign << 15 | (126 + above) << 7 | (fraction & 0x7f));
        }
    }
}

bool ordinary(const void *data, int32_t dtype, size_t count) {
    if (dtype != POSENC_F32)
        return true;
    const float *values = static_cast<const float *>(data);
    for (size_t i = 0; i < count; i++)
        if (!(std::isnormal(values[i]) || values[i] == 0) || std::fabs(values[i]) > 1e6f)
            return false;
    return true;
}

qk::qk(const shape &of, int32_t data_type, size_t number_of_copies)
    : dtype(data_type), copies(number_of_copies), bytes(of.elements() * element_size(data_type)),
      q_bytes(static_cast<size_t>(of.tokens * of.q_heads * of.width) * element_size(data_type)),
      arena(copies * bytes) {
    fill(arena.as<void>(), dtype, copies * of.elements());
    posenc_tensor_contiguous(&q, arena.as<void>(), dtype, 1, of.tokens, of.q_heads, of.width);
    posenc_tensor_contiguous(&k, arena.as<void>(q_bytes), dtype, 1, of.tokens, of.k_heads,
                             of.width);
}

buffer::buffer(size_t bytes, size_t page)
    : memory(std::aligned_alloc(page, (bytes + page - 1) / page * page), &std::free) {
    if (!memory)
        throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (page > 4096)
        madvise(memory.get(), (bytes + page - 1) / page * page, MADV_HUGEPAGE);
#endif
}

row_buffer::row_buffer(const posenc_plan *plan, int64_t tokens, int32_t dtype)
    : memory(static_cast<size_t>(tokens * 2 * posenc_plan_pairs(plan)) * sizeof(float)) {
    const int64_t pairs = posenc_plan_pairs(plan);
    posenc_tensor_contiguous(&tensor, memory.as<void>(), POSENC_F32, 1, tokens, 1, 2 * pairs);
    posenc_positions positions;
    posenc_positions_start(&positions, 1000);
    posenc_error error = {};
    require(posenc_rows(plan, &positions, &tensor, &error), error);
    if (dtype != POSENC_F32)
        for (int64_t i = 0; i < tokens * 2 * pairs; i++)
            memory.as<float>()[i] = i % (2 * pairs) < pairs ? 1.0f : 0.0f;
}

} // namespace bench
