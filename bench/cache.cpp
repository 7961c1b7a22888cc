/* SPDX-License-Identifier: MIT */
/* The cache: appending against a bare conversion, moving against touching, int8 against f16. */
#include "data.h"
#include "kernels_cxx.h"
#include "loops.h"
#include "measure.h"
#include "suites.h"

namespace bench {
namespace {

constexpr int64_t width = 128, key_heads = 8, query_heads = 32;

/* A contiguous cache of one sequence with memory of its own; I8 has a scale a head. */
class stored {
  public:
    stored(int32_t dtype, int64_t tokens, bool heads_first = false)
        : elements(static_cast<size_t>(tokens * key_heads * width)),
          memory(elements * bytes_of(dtype)),
          scale_memory(static_cast<size_t>(tokens * key_heads) * sizeof(float)) {
        posenc_tensor rows;
        posenc_tensor_contiguous(&rows, memory.as<void>(), dtype, 1, tokens, key_heads, width);
        if (heads_first) {
            rows.stride[1] = width;
            rows.stride[2] = tokens * width;
        }
        posenc_cache_plain(&cache, &rows);
        if (dtype != POSENC_I8) {
            fill(memory.as<void>(), dtype, elements);
            return;
        }
        posenc_tensor_contiguous(&cache.scales, scale_memory.as<void>(), POSENC_F16, 1, tokens,
                                 key_heads, 1);
        if (heads_first) {
            cache.scales.stride[1] = 1;
            cache.scales.stride[2] = tokens;
        }
        for (size_t i = 0; i < elements; i++)
            memory.as<int8_t>()[i] = static_cast<int8_t>(i * 37 % 251 - 125);
        for (int64_t i = 0; i < tokens * key_heads; i++)
            scale_memory.as<uint16_t>()[i] = 0x2000; /* 2^-7 */
    }

    static size_t bytes_of(int32_t dtype) { return dtype == POSENC_I8 ? 1 : element_size(dtype); }

    size_t elements;
    buffer memory, scale_memory;
    posenc_cache cache;
};

/*
 * K of a step or a prefill from f32, which has just been computed, into slots that were not touched
 * for long: a call goes on where the last one ended, in a cache of 64 MiB or more. The reference is
 * one conversion of the same memory to the same slots, without a rotation and without a check.
 */
void append(benchmark::State &state, int32_t isa, int32_t layout, int32_t dtype, int64_t tokens,
            bool stream) {
    constexpr int64_t slots = 32768;
    const plan_pointer plan = make_plan(isa, layout, width);
    const row_buffer rows(plan.get(), tokens, POSENC_F32);
    const size_t each = static_cast<size_t>(tokens * key_heads * width);
    const buffer source(each * sizeof(float));
    stored keys(dtype, slots);
    fill(source.as<void>(), POSENC_F32, each);
    posenc_tensor src;
    posenc_tensor_contiguous(&src, source.as<void>(), POSENC_F32, 1, tokens, key_heads, width);
    posenc_append_params params;
    posenc_append_params_init(&params);
    params.isa = isa;
    params.rope = plan.get();
    params.rows = &rows.tensor;
    params.stream = stream;
    posenc_convert_kernel *const convert =
        posenc_kernels_get(isa)->convert[POSENC_F32 - 1][dtype - 1];
    posenc_error error = {};
    const auto next = [&] {
        params.start = params.start + 2 * tokens <= slots ? params.start + tokens : 0;
    };
    compare(
        state,
        {static_cast<double>(tokens), 6 * static_cast<double>(each), 0, 1, "ratio_to_copy"},
        [&] {
            next();
            require(posenc_cache_append(&params, &src, &keys.cache, &error), error);
        },
        [&] {
            next();
            const size_t at = static_cast<size_t>(params.start * key_heads * width);
            convert(source.as<void>(), keys.memory.as<void>(at * element_size(dtype)), each);
        });
}

/* Q normalised by head and rotated, in place: one call, and two. The weights are 1, so that data
 * which goes through again and again stays what it is. */
void norm(benchmark::State &state, int32_t isa, int32_t layout, int64_t tokens) {
    const plan_pointer plan = make_plan(isa, layout, width);
    const row_buffer rows(plan.get(), tokens, POSENC_F32);
    const size_t elements = static_cast<size_t>(tokens * query_heads * width);
    const buffer memory(elements * sizeof(float));
    fill(memory.as<void>(), POSENC_F32, elements);
    std::vector<float> ones(width, 1.0f);
    posenc_tensor q, weight;
    posenc_tensor_contiguous(&q, memory.as<void>(), POSENC_F32, 1, tokens, query_heads, width);
    posenc_tensor_contiguous(&weight, ones.data(), POSENC_F32, 1, 1, 1, width);
    posenc_cache cache;
    posenc_cache_plain(&cache, &q);
    posenc_append_params once;
    posenc_append_params_init(&once);
    once.isa = isa;
    once.norm = POSENC_NORM_HEAD;
    once.eps = 1e-6;
    once.weight = &weight;
    posenc_append_params first = once;
    once.rope = plan.get();
    once.rows = &rows.tensor;
    posenc_error error = {};
    compare(
        state,
        {static_cast<double>(tokens), 8 * static_cast<double>(elements), 0, 1,
         "ratio_to_two_passes"},
        [&] { require(posenc_cache_append(&once, &q, &cache, &error), error); },
        [&] {
            require(posenc_cache_append(&first, &q, &cache, &error), error);
            require(posenc_rotate(plan.get(), POSENC_FORWARD, &rows.tensor, &q, nullptr, nullptr,
                                  nullptr, &error),
                    error);
        });
}

/* Context shift of all keys by one delta, against reading and writing them in place. */
void move(benchmark::State &state, int32_t isa, int32_t layout, int32_t dtype, int64_t tokens) {
    const plan_pointer plan = make_plan(isa, layout, width);
    stored keys(dtype, tokens);
    const int64_t delta = -7;
    posenc_positions deltas;
    posenc_positions_start(&deltas, 0);
    deltas.kind = POSENC_POSITIONS_IDS;
    deltas.dtype = POSENC_I64;
    deltas.ids = &delta;
    const loops &limit = widest_loops();
    const size_t bytes = keys.elements * stored::bytes_of(dtype);
    posenc_error error = {};
    compare(
        state,
        {static_cast<double>(tokens), 2 * static_cast<double>(bytes), 0, 1, "ratio_to_limit"},
        [&] {
            require(posenc_cache_move(plan.get(), &deltas, &keys.cache, -1, 0, tokens, &error),
                    error);
        },
        [&] {
            if (dtype == POSENC_F32)
                limit.scale(keys.memory.as<float>(), bytes / 4, 1.0f);
            else
                limit.flip(keys.memory.as<uint32_t>(), bytes / 4, 0);
        });
}

/* Decoding from int8 keys and values against decoding from f16. */
void decode(benchmark::State &state, int32_t isa, int64_t keys, int64_t heads, bool heads_first) {
    stored k8(POSENC_I8, keys, heads_first), v8(POSENC_I8, keys, heads_first);
    stored k16(POSENC_F16, keys, heads_first), v16(POSENC_F16, keys, heads_first);
    const buffer rows(static_cast<size_t>(2 * heads * width) * sizeof(float));
    fill(rows.as<void>(), POSENC_F16, static_cast<size_t>(heads * width));
    posenc_tensor q, out;
    posenc_tensor_contiguous(&q, rows.as<void>(), POSENC_F16, 1, 1, heads, width);
    posenc_tensor_contiguous(&out, rows.as<void>(static_cast<size_t>(heads * width) * 4),
                             POSENC_F16, 1, 1, heads, width);
    posenc_attention_params params;
    posenc_attention_params_init(&params);
    params.causal = 1;
    params.scale = 0.01;
    params.isa = isa;
    posenc_error error = {};
    const auto attend = [&](const stored &k, const stored &v) {
        require(posenc_attention_cached(&params, &q, &k.cache, &v.cache, &out, &error), error);
    };
    compare(
        state, {1, 2 * static_cast<double>(k8.elements), 0, 1, "ratio_to_f16"},
        [&] { attend(k8, v8); }, [&] { attend(k16, v16); });
}

void add_appends(int32_t isa, int32_t layout, const std::string &end) {
    for (int64_t tokens : {1, 512, 4096}) {
        const std::string last = end + "/" + std::to_string(tokens);
        for (int32_t dtype : {POSENC_F16, POSENC_BF16})
            for (bool stream : {false, true})
                add(std::string("cache/append") + (stream ? "_stream/" : "/") + dtype_name(dtype) +
                        last,
                    [=](benchmark::State &s) { append(s, isa, layout, dtype, tokens, stream); });
        add("cache/norm/f32" + last,
            [=](benchmark::State &s) { norm(s, isa, layout, tokens); });
    }
}

} // namespace

void add_cache() {
    for (int32_t isa : available_isas()) {
        if (isa == POSENC_ISA_SCALAR)
            continue;
        const std::string name = posenc_isa_name(isa);
        for (int32_t layout : {POSENC_SPLIT_HALF, POSENC_ADJACENT}) {
            const std::string end = "/" + layout_name(layout) + "/" + name;
            add_appends(isa, layout, end);
            for (int32_t dtype : {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_I8})
                add("cache/move/" + (dtype == POSENC_I8 ? "i8" : dtype_name(dtype)) + end + "/4096",
                    [=](benchmark::State &s) { move(s, isa, layout, dtype, 4096); });
        }
        for (int64_t keys : {4096, 32768})
            for (int64_t heads : {8, 32})
                for (bool heads_first : {true, false})
                    add("cache/decode_i8/" + std::to_string(heads) + "_8/" +
                            (heads_first ? "HTD" : "THD") + "/" + name + "/" + std::to_string(keys),
                        [=](benchmark::State &s) { decode(s, isa, keys, heads, heads_first); });
    }
}

} // namespace bench
