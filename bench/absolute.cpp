/* SPDX-License-Identifier: MIT */
/* Sinusoids and learned tables against storing to, or touching, the same bytes. */
#include "data.h"
#include "loops.h"
#include "measure.h"
#include "suites.h"

namespace bench {
namespace {

constexpr int64_t width = 1024;
constexpr int64_t table_rows = 512;

/* Tokens of 1024 channels; in f32 these are 16 KiB, 1 MiB, 10 MiB and 80 MiB. */
struct state_of_memory {
    const char *name;
    int64_t tokens;
};
constexpr state_of_memory memory_states[] = {
    {"L1", 4}, {"L2", 256}, {"L3", 2560}, {"far", 20480}};

using sinusoid_pointer = std::unique_ptr<posenc_sinusoid, decltype(&posenc_sinusoid_free)>;

sinusoid_pointer make_sinusoid(int32_t isa, int32_t arrangement) {
    posenc_sinusoid_params params;
    posenc_sinusoid_params_init(&params);
    params.dim = static_cast<int32_t>(width);
    params.arrangement = arrangement;
    params.isa = isa;
    posenc_sinusoid *sinusoid = nullptr;
    posenc_error error = {};
    require(posenc_sinusoid_create(&sinusoid, &params, &error), error);
    return sinusoid_pointer(sinusoid, &posenc_sinusoid_free);
}

/* Embeddings [batch][tokens][1][1024] in memory of their own. */
class embeddings {
  public:
    embeddings(int64_t batch, int64_t tokens, int32_t data_type)
        : dtype(data_type), count(static_cast<size_t>(batch * tokens * width)),
          bytes(count * element_size(data_type)), memory(bytes) {
        fill(memory.as<void>(), dtype, count);
        posenc_tensor_contiguous(&tensor, memory.as<void>(), dtype, batch, tokens, 1, width);
    }
    /* The limits: each byte is read and written once, or written once. */
    void touch(const loops &limit) const {
        if (dtype == POSENC_F32)
            limit.scale(memory.as<float>(), count, 1.0f);
        else
            limit.flip(memory.as<uint32_t>(), bytes / 4, 0);
    }
    void store(const loops &limit) const { limit.store(memory.as<float>(), bytes / 4, 1.0f); }
    void check(benchmark::State &state) const {
        if (!ordinary(memory.as<void>(), dtype, count))
            state.SkipWithError("the data drifted away from ordinary numbers");
    }

    int32_t dtype;
    size_t count, bytes;
    buffer memory;
    posenc_tensor tensor;
};

void fill_rows(benchmark::State &state, int32_t isa, int32_t arrangement, int32_t dtype,
               const state_of_memory &where) {
    const sinusoid_pointer sinusoid = make_sinusoid(isa, arrangement);
    const embeddings data(1, where.tokens, dtype);
    posenc_positions positions;
    posenc_positions_start(&positions, 1000);
    posenc_error error = {};
    compare(
        state,
        {static_cast<double>(where.tokens), static_cast<double>(data.bytes), 0, 1,
         "ratio_to_limit"},
        [&] {
            require(posenc_sinusoid_fill(sinusoid.get(), &positions, &data.tensor, &error), error);
        },
        [&] { data.store(widest_loops()); });
}

/* Half of what was there is kept: the sum stays ordinary however often it is taken. */
void add_sinusoid(benchmark::State &state, int32_t isa, int32_t arrangement, int32_t dtype,
                  int64_t batch, const state_of_memory &where) {
    const sinusoid_pointer sinusoid = make_sinusoid(isa, arrangement);
    const embeddings data(batch, where.tokens / batch, dtype);
    posenc_positions positions;
    posenc_positions_start(&positions, 1000);
    posenc_error error = {};
    compare(
        state,
        {static_cast<double>(where.tokens), 2 * static_cast<double>(data.bytes), 0, 1,
         "ratio_to_limit"},
        [&] {
            require(posenc_sinusoid_add(sinusoid.get(), &positions, 0.5, &data.tensor, nullptr,
                                        &error),
                    error);
        },
        [&] { data.touch(widest_loops()); });
    data.check(state);
}

/* A table of 512 rows, read by batches of up to 512 tokens, one after another or at random. */
void add_learned(benchmark::State &state, int32_t isa, int32_t dtype, bool scattered,
                 const state_of_memory &where) {
    const embeddings table(1, table_rows, dtype);
    const int64_t tokens = std::min(where.tokens, table_rows);
    const embeddings data(where.tokens / tokens, tokens, dtype);
    std::vector<int32_t> ids(static_cast<size_t>(where.tokens));
    for (size_t i = 0; i < ids.size(); i++)
        ids[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(table_rows));
    posenc_positions positions;
    posenc_positions_start(&positions, 0);
    if (scattered) {
        positions.kind = POSENC_POSITIONS_IDS;
        positions.dtype = POSENC_I32;
        positions.ids = ids.data();
        positions.stride[0] = tokens;
        positions.stride[1] = 1;
    }
    posenc_error error = {};
    compare(
        state,
        {static_cast<double>(where.tokens), 2 * static_cast<double>(data.bytes), 0, 1,
         "ratio_to_limit"},
        [&] {
            require(posenc_learned_add(&table.tensor, 0, &positions, 0.5, &data.tensor, nullptr,
                                       isa, &error),
                    error);
        },
        [&] { data.touch(widest_loops()); });
    data.check(state);
}

void add_sinusoids(int32_t isa, int32_t dtype, const state_of_memory &where) {
    for (int32_t arrangement : {POSENC_SINUSOID_INTERLEAVED, POSENC_SINUSOID_HALVES}) {
        const std::string end =
            "/" + dtype_name(dtype) +
            (arrangement == POSENC_SINUSOID_HALVES ? "/halves/" : "/interleaved/") +
            posenc_isa_name(isa) + "/" + where.name;
        add("sinusoid_fill" + end,
            [=](benchmark::State &s) { fill_rows(s, isa, arrangement, dtype, where); });
        add("sinusoid_add" + end,
            [=](benchmark::State &s) { add_sinusoid(s, isa, arrangement, dtype, 1, where); });
        if (where.tokens > 512)
            add("sinusoid_add_batch" + end,
                [=](benchmark::State &s) { add_sinusoid(s, isa, arrangement, dtype, 8, where); });
    }
}

} // namespace

void add_absolute() {
    for (int32_t dtype : {POSENC_F32, POSENC_F16, POSENC_BF16})
        for (int32_t isa : available_isas())
            for (const state_of_memory &where : memory_states) {
                add_sinusoids(isa, dtype, where);
                for (bool scattered : {false, true})
                    add("learned_add/" + dtype_name(dtype) +
                            (scattered ? "/scattered/" : "/consecutive/") +
                            posenc_isa_name(isa) + "/" + where.name,
                        [=](benchmark::State &s) { add_learned(s, isa, dtype, scattered, where); });
            }
}

} // namespace bench
