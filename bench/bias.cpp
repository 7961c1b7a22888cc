/* SPDX-License-Identifier: MIT */
/* Filling biases against storing to the same bytes. */
#include "data.h"
#include "loops.h"
#include "measure.h"
#include "suites.h"

namespace bench {
namespace {

enum class scheme { alibi, alibi_key, t5 };

constexpr int64_t heads = 32;

/* Queries and keys of 32 heads; in f32 these are 1 MiB, 8 MiB, 128 MiB, and one query. */
struct state_of_memory {
    const char *name;
    int64_t queries, keys;
};
constexpr state_of_memory memory_states[] = {
    {"L2", 32, 256}, {"L3", 128, 512}, {"far", 512, 2048}, {"decode", 1, 4096}};

/* [heads][queries][keys], the last queries of a cache. */
void fill_bias(benchmark::State &state, int32_t isa, scheme which, int32_t dtype,
               const state_of_memory &where) {
    const size_t bytes =
        static_cast<size_t>(heads * where.queries * where.keys) * element_size(dtype);
    const buffer memory(bytes), weights(32 * heads * sizeof(float));
    fill(weights.as<void>(), POSENC_F32, 32 * heads);
    std::vector<double> slopes(heads);
    posenc_tensor bias, table;
    posenc_tensor_contiguous(&bias, memory.as<void>(), dtype, 1, where.queries, heads, where.keys);
    posenc_tensor_contiguous(&table, weights.as<void>(), POSENC_F32, 1, 32, 1, heads);
    bias.stride[1] = where.keys;
    bias.stride[2] = where.queries * where.keys;
    posenc_error error = {};
    require(posenc_alibi_slopes(slopes.data(), 0, heads, heads, 8, &error), error);
    posenc_alibi_params alibi;
    posenc_alibi_params_init(&alibi);
    alibi.form = which == scheme::alibi ? POSENC_ALIBI_DISTANCE : POSENC_ALIBI_KEY;
    alibi.slopes = slopes.data();
    alibi.query_offset = where.keys - where.queries;
    alibi.isa = isa;
    posenc_t5_params t5;
    posenc_t5_params_init(&t5);
    t5.query_offset = alibi.query_offset;
    t5.isa = isa;
    compare(
        state,
        {static_cast<double>(where.queries), static_cast<double>(bytes), 0, 1, "ratio_to_limit"},
        [&] {
            require(which == scheme::t5 ? posenc_t5_bias(&t5, &table, &bias, &error)
                                        : posenc_alibi_bias(&alibi, &bias, &error),
                    error);
        },
        [&] { widest_loops().store(memory.as<float>(), bytes / 4, 1.0f); });
}

void add_bias(const char *name, int32_t isa, scheme which, int32_t dtype) {
    for (const state_of_memory &where : memory_states)
        add(std::string("bias/") + name + "/" + dtype_name(dtype) + "/" + posenc_isa_name(isa) +
                "/" + where.name,
            [=](benchmark::State &s) { fill_bias(s, isa, which, dtype, where); });
}

} // namespace

void add_biases() {
    for (int32_t isa : available_isas()) {
        add_bias("alibi", isa, scheme::alibi, POSENC_F32);
        add_bias("alibi", isa, scheme::alibi, POSENC_F16);
        add_bias("alibi_key", isa, scheme::alibi_key, POSENC_F32);
        add_bias("t5", isa, scheme::t5, POSENC_F32);
    }
}

} // namespace bench
