/* SPDX-License-Identifier: MIT */
/* Q, K, rows and plans for the benchmarks: ordinary numbers that stay ordinary when repeated. */
#ifndef POSENC_BENCH_DATA_H
#define POSENC_BENCH_DATA_H

#include <posenc/posenc.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

constexpr double frequency_base = 500000; /* as Llama 3 has it */
constexpr int64_t most_position = int64_t{1} << 20;

struct shape {
    int64_t tokens, q_heads, k_heads, width;
    int64_t heads() const { return q_heads + k_heads; }
    size_t elements() const { return static_cast<size_t>(tokens * heads() * width); }
};

/* The model shape of the gates. */
constexpr shape model_shape(int64_t tokens) { return {tokens, 32, 8, 128}; }

inline size_t element_size(int32_t dtype) { return dtype == POSENC_F32 ? 4 : 2; }

std::string dtype_name(int32_t dtype);
std::string layout_name(int32_t layout);

/* The ISAs of this machine, best first. */
std::vector<int32_t> available_isas();

/* Throws the text of a failed call; `status` is evaluated first and so `error` is filled. */
inline void require(int32_t status, const posenc_error &error) {
    if (status != POSENC_OK)
        throw std::runtime_error(error.text);
}

using plan_pointer = std::unique_ptr<posenc_plan, decltype(&posenc_plan_free)>;
plan_pointer make_plan(int32_t isa, int32_t layout, int64_t width,
                       int32_t recipe = POSENC_RECIPE_EXACT);

/* Memory aligned to a page. Nothing depends on it but the comparison between rows of the table. */
class buffer {
  public:
    /* Aligned to `page` bytes; 2 MiB ask the system for pages of that size. */
    explicit buffer(size_t bytes, size_t page = 4096);
    template <class T> T *as(size_t byte = 0) const {
        return reinterpret_cast<T *>(static_cast<char *>(memory.get()) + byte);
    }

  private:
    std::unique_ptr<void, decltype(&std::free)> memory;
};

/* Magnitudes from 1/2 to 4, both signs: far from every subnormal and overflow. */
void fill(void *data, int32_t dtype, size_t count);

/* True while every magnitude is far from subnormals and overflow (checked for f32 alone). */
bool ordinary(const void *data, int32_t dtype, size_t count);

/*
 * `copies` buffers in one arena, each with Q [1][tokens][q_heads][width] and then K. A call takes
 * the next copy: one token's copy stays in L1, 32 copies in L2, 1024 in L3, as the layers of an
 * engine's step would.
 */
class qk {
  public:
    qk(const shape &of, int32_t data_type, size_t number_of_copies);
    void next() {
        current = current + 1 < copies ? current + 1 : 0;
        q.data = arena.as<void>(current * bytes);
        k.data = arena.as<void>(current * bytes + q_bytes);
    }
    bool still_ordinary() const {
        return ordinary(arena.as<void>(), dtype, copies * bytes / element_size(dtype));
    }

    int32_t dtype;
    size_t copies, bytes, q_bytes, current = 0;
    buffer arena;
    posenc_tensor q, k;
};

/*
 * Rows [1][tokens][1][width] of positions 1000, 1001, ... For 16-bit data they are cosine 1 and
 * sine 0: rounding to 16 bits again and again would drive the data away from ordinary numbers.
 */
class row_buffer {
  public:
    row_buffer(const posenc_plan *plan, int64_t tokens, int32_t dtype);
    buffer memory;
    posenc_tensor tensor;
};

} // namespace bench

#endif
