/* SPDX-License-Identifier: MIT */
/* Permutation of weights and cached keys between the pair layouts, against memcpy of the bytes. */
#include "data.h"
#include "measure.h"
#include "suites.h"

#include <cstring>

namespace bench {
namespace {

constexpr int64_t head_width = 128;

/* Bytes that are permuted; out of place the same again is written. */
struct permute_state {
    const char *name;
    size_t bytes;
};

constexpr permute_state states[] = {
    {"L2", size_t{512} << 10}, {"L3", size_t{8} << 20}, {"memory", size_t{128} << 20}};

template <class Own>
void against_copy(benchmark::State &state, const permute_state &where, double units,
                  const buffer &from, const buffer &to, Own own) {
    compare(state, {units, 2 * static_cast<double>(where.bytes), 0, 1, "ratio_to_copy"}, own,
            [&] { std::memcpy(to.as<void>(), from.as<void>(), where.bytes); });
}

/* Rows of a projection with 4096 columns of f16. Where the cache has no room for a head of 128
 * rows, the heads are half as wide. */
void permute_rows(benchmark::State &state, int32_t to, bool in_place, const permute_state &where) {
    constexpr size_t row_bytes = 2 * 4096;
    const size_t rows = where.bytes / row_bytes;
    const size_t width = std::min<size_t>(rows, head_width);
    const buffer from(where.bytes), onto(where.bytes);
    fill(from.as<void>(), POSENC_F16, where.bytes / 2);
    fill(onto.as<void>(), POSENC_F16, where.bytes / 2);
    posenc_error error = {};
    against_copy(state, where, static_cast<double>(rows), from, onto, [&] {
        require(posenc_permute_rows(from.as<void>(), in_place ? nullptr : onto.as<void>(),
                                    rows / width, width, width, 0, row_bytes, to, &error),
                error);
    });
}

/* Cached keys [1][tokens][8][128]. */
void permute_keys(benchmark::State &state, int32_t dtype, int32_t to, bool in_place,
                  const permute_state &where) {
    const auto tokens =
        static_cast<int64_t>(where.bytes / (8 * head_width * element_size(dtype)));
    const buffer from(where.bytes), onto(where.bytes);
    fill(from.as<void>(), dtype, where.bytes / element_size(dtype));
    fill(onto.as<void>(), dtype, where.bytes / element_size(dtype));
    posenc_tensor in, out;
    posenc_tensor_contiguous(&in, from.as<void>(), dtype, 1, tokens, 8, head_width);
    posenc_tensor_contiguous(&out, onto.as<void>(), dtype, 1, tokens, 8, head_width);
    posenc_error error = {};
    against_copy(state, where, static_cast<double>(tokens), from, onto, [&] {
        require(posenc_permute_channels(&in, in_place ? nullptr : &out, head_width, 0, to, &error),
                error);
    });
}

} // namespace

/* permute/WHAT/to_LAYOUT[/in_place]/ISA/STATE; the ISA is the default of the process. */
void add_permutation() {
    const std::string isa = std::string("/") + posenc_isa_name(posenc_isa_default()) + "/";
    for (int32_t to : {POSENC_ADJACENT, POSENC_SPLIT_HALF})
        for (bool in_place : {false, true})
            for (const permute_state &where : states) {
                const std::string tail =
                    "/to_" + layout_name(to) + (in_place ? "/in_place" : "") + isa + where.name;
                add("permute/rows/f16" + tail, [=](benchmark::State &s) {
                    permute_rows(s, to, in_place, where);
                });
                for (int32_t dtype : {POSENC_F32, POSENC_F16})
                    add("permute/keys/" + dtype_name(dtype) + tail, [=](benchmark::State &s) {
                        permute_keys(s, dtype, to, in_place, where);
                    });
            }
}

} // namespace bench
