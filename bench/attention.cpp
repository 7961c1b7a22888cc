/* SPDX-License-Identifier: MIT */
/* Attention: decoding against reading K and V once, prefill against multiplying. */
#include "data.h"
#include "measure.h"
#include "products.h"
#include "suites.h"

namespace bench {

const products &widest_products() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        return products_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return products_avx2;
#endif
    return products_baseline;
}

namespace {

constexpr int64_t width = 128, key_heads = 8;
volatile float sink;

struct shape_of_call {
    int64_t queries, keys, heads;
    bool heads_first; /* of the cache: [H][T][D], else [T][H][D] */
    size_t page;
};

/* Views of one call, with the workspace that it asks for. */
class problem {
  public:
    problem(int32_t isa, int32_t dtype, const shape_of_call &of)
        : cache_bytes(static_cast<size_t>(of.keys * key_heads * width) * element_size(dtype)),
          row_elements(static_cast<size_t>(of.queries * of.heads * width)),
          cache(2 * cache_bytes, of.page),
          rows(2 * row_elements * sizeof(float), of.page) {
        fill(cache.as<void>(), dtype, 2 * cache_bytes / element_size(dtype));
        fill(rows.as<void>(), dtype, row_elements);
        posenc_tensor_contiguous(&q, rows.as<void>(), dtype, 1, of.queries, of.heads, width);
        posenc_tensor_contiguous(&out, rows.as<void>(row_elements * sizeof(float)), dtype, 1,
                                 of.queries, of.heads, width);
        posenc_tensor_contiguous(&k, cache.as<void>(), dtype, 1, of.keys, key_heads, width);
        posenc_tensor_contiguous(&v, cache.as<void>(cache_bytes), dtype, 1, of.keys, key_heads,
                                 width);
        for (posenc_tensor *t : {&k, &v})
            if (of.heads_first) {
                t->stride[1] = width;
                t->stride[2] = of.keys * width;
            }
        posenc_attention_params_init(&params);
        params.causal = 1;
        params.scale = 0.01; /* as of a trained model: no weight is all of a row */
        params.isa = isa;
        posenc_error error = {};
        size_t bytes = 0;
        require(posenc_attention_workspace(of.queries, of.heads, key_heads, width, width, &bytes,
                                           &error),
                error);
        workspace = std::make_unique<buffer>(bytes + 1, of.page);
        params.workspace = bytes ? workspace->as<void>() : nullptr;
        params.workspace_size = bytes;
    }

    void run() {
        posenc_error error = {};
        require(posenc_attention(&params, &q, &k, &v, &out, &error), error);
    }

    size_t cache_bytes, row_elements;
    buffer cache, rows;
    std::unique_ptr<buffer> workspace;
    posenc_tensor q, k, v, out;
    posenc_attention_params params;
};

void decode(benchmark::State &state, int32_t isa, int32_t dtype, const shape_of_call &of) {
    problem p(isa, dtype, of);
    compare(
        state,
        {1, static_cast<double>(2 * p.cache_bytes), 0, 1, "ratio_to_read"}, [&] { p.run(); },
        [&] { sink = widest_products().read(p.cache.as<float>(), 2 * p.cache_bytes / 4); });
}

/* Operations of visible keys alone; a fused multiplication is one. */
double useful(const shape_of_call &of) {
    const double n = static_cast<double>(of.queries);
    return n * (n + 1) / 2 * 2 * static_cast<double>(width * of.heads);
}

void prefill(benchmark::State &state, int32_t isa, int32_t dtype, const shape_of_call &of,
             bool fed) {
    problem p(isa, dtype, of);
    constexpr size_t rounds = 8 * depth; /* `fed` makes `depth` of them at a time */
    const products &limit = widest_products();
    const buffer memory((6 + 4 * limit.lanes) * depth * sizeof(float));
    fill(memory.as<void>(), POSENC_F32, (6 + 4 * limit.lanes) * depth);
    const double done = static_cast<double>(rounds * sums * limit.lanes);
    const float *rows = memory.as<float>(4 * limit.lanes * depth * sizeof(float));
    compare(
        state,
        {static_cast<double>(of.queries), 0, 0, done / useful(of),
         fed ? "ratio_to_fed" : "ratio_to_peak"},
        [&] { p.run(); },
        [&] {
            sink = fed ? limit.fed(rows, memory.as<float>(), rounds / depth)
                       : limit.peak(rounds);
        });
}

void add_decode(int32_t isa, int32_t dtype, int64_t keys, int64_t heads, bool heads_first) {
    const shape_of_call of = {1, keys, heads, heads_first, 4096};
    add("attention/decode/" + std::to_string(heads) + "_8/" + dtype_name(dtype) + "/" +
            (heads_first ? "HTD" : "THD") + "/" + posenc_isa_name(isa) + "/" +
            std::to_string(keys),
        [=](benchmark::State &s) { decode(s, isa, dtype, of); });
}

void add_prefill(int32_t isa, int32_t dtype, int64_t tokens, bool fed, size_t page) {
    add(std::string("attention/prefill_") + (fed ? "fed" : "peak") +
            (page > 4096 ? "_2MiB/" : "/") + dtype_name(dtype) + "/" + posenc_isa_name(isa) + "/" +
            std::to_string(tokens),
        [=](benchmark::State &s) {
            prefill(s, isa, dtype, {tokens, tokens, 8, true, page}, fed);
        });
}

} // namespace

void add_attention() {
    for (int32_t isa : available_isas()) {
        if (isa == POSENC_ISA_SCALAR)
            continue;
        for (int32_t dtype : {POSENC_F32, POSENC_F16, POSENC_BF16}) {
            for (int64_t keys : {4096, 32768})
                for (int64_t heads : {8, 32})
                    for (bool heads_first : {true, false})
                        add_decode(isa, dtype, keys, heads, heads_first);
            for (int64_t tokens : {512, 2048})
                for (bool fed : {false, true})
                    for (size_t page : {size_t{4096}, size_t{2} << 20})
                        add_prefill(isa, dtype, tokens, fed, page);
        }
    }
}

} // namespace bench
