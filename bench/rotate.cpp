/* SPDX-License-Identifier: MIT */
/* Rotation against touching the same bytes, against itself at width 128, and its overhead. */
#include "data.h"
#include "kernels_cxx.h"
#include "loops.h"
#include "measure.h"
#include "suites.h"

namespace bench {
namespace {

struct state_of_memory {
    const char *name;
    int64_t tokens;
    size_t copies;
};

constexpr state_of_memory memory_states[] = {
    {"L1", 1, 1}, {"L2", 1, 32}, {"L3", 1, 1024}, {"512", 512, 1}, {"4096", 4096, 1}};

/* The limit: reads and writes each byte of the current copy once, in the same order. */
void touch(const loops &limit, const qk &data) {
    if (data.dtype == POSENC_F32)
        limit.scale(static_cast<float *>(data.q.data), data.bytes / 4, 1.0f);
    else
        limit.flip(static_cast<uint32_t *>(data.q.data), data.bytes / 4, 0);
}

/* Compares `own`, a call on the current copy of `data`, with the limit. */
template <class Own>
void against_limit(benchmark::State &state, qk &data, int64_t tokens, Own own) {
    const loops &limit = widest_loops();
    auto call = [&] {
        data.next();
        own();
    };
    auto reference = [&] {
        data.next();
        touch(limit, data);
    };
    const double bytes = 2 * static_cast<double>(data.bytes);
    compare(state, {static_cast<double>(tokens), bytes, 0, 1, "ratio_to_limit"}, call, reference);
    if (!data.still_ordinary())
        state.SkipWithError("the data drifted away from ordinary numbers");
}

void rotate_in_place(benchmark::State &state, int32_t isa, int32_t layout, int32_t dtype,
                     const state_of_memory &where) {
    const shape of = model_shape(where.tokens);
    const plan_pointer plan = make_plan(isa, layout, of.width);
    const row_buffer rows(plan.get(), of.tokens, dtype);
    qk data(of, dtype, where.copies);
    posenc_error error = {};
    against_limit(state, data, of.tokens, [&] {
        require(posenc_rotate(plan.get(), POSENC_FORWARD, &rows.tensor, &data.q, nullptr, &data.k,
                              nullptr, &error),
                error);
    });
}

void fused(benchmark::State &state, int32_t isa, int32_t layout, const state_of_memory &where) {
    const shape of = model_shape(where.tokens);
    const plan_pointer plan = make_plan(isa, layout, of.width);
    qk data(of, POSENC_F32, where.copies);
    posenc_positions positions;
    posenc_positions_start(&positions, 1000);
    posenc_error error = {};
    against_limit(state, data, of.tokens, [&] {
        require(posenc_rope(plan.get(), POSENC_FORWARD, &positions, &data.q, nullptr, &data.k,
                            nullptr, &error),
                error);
    });
}

/* What a compiler makes of the loop in the header's comment. */
void plain_loop(benchmark::State &state, const loops &of_isa, int32_t layout,
                const state_of_memory &where) {
    const shape of = model_shape(where.tokens);
    const plan_pointer plan = make_plan(POSENC_ISA_DEFAULT, layout, of.width);
    const row_buffer rows(plan.get(), of.tokens, POSENC_F32);
    qk data(of, POSENC_F32, where.copies);
    const auto loop =
        layout == POSENC_ADJACENT ? of_isa.rotate_adjacent : of_isa.rotate_split_half;
    const size_t pairs = static_cast<size_t>(of.width / 2);
    const auto heads = [&](const posenc_tensor &tensor) {
        for (int64_t t = 0; t < of.tokens; t++)
            loop(static_cast<float *>(tensor.data) + t * tensor.stride[1],
                 rows.memory.as<float>() + t * of.width, static_cast<size_t>(tensor.shape[2]),
                 pairs);
    };
    against_limit(state, data, of.tokens, [&] {
        heads(data.q);
        heads(data.k);
    });
}

/* A rotation of f32 Q and K with all it needs; nearly 40 x 128 channels a token for any width. */
class width_case {
  public:
    width_case(int32_t isa, int32_t layout, int64_t width, int64_t tokens)
        : of{tokens, 4 * (1024 / width), 1024 / width, width}, plan(make_plan(isa, layout, width)),
          rows(plan.get(), tokens, POSENC_F32), data(of, POSENC_F32, 1) {}
    void operator()() {
        require(posenc_rotate(plan.get(), POSENC_FORWARD, &rows.tensor, &data.q, nullptr, &data.k,
                              nullptr, &error),
                error);
    }
    double bytes() const { return 2 * static_cast<double>(data.bytes); }

  private:
    shape of;
    plan_pointer plan;
    row_buffer rows;
    qk data;
    posenc_error error = {};
};

void head_width(benchmark::State &state, int32_t isa, int32_t layout, int64_t width,
                int64_t tokens) {
    width_case own(isa, layout, width, tokens), reference(isa, layout, 128, tokens);
    compare(
        state,
        {static_cast<double>(tokens), own.bytes(), 0, reference.bytes() / own.bytes(),
         "ratio_to_128"},
        [&] { own(); }, [&] { reference(); });
}

/* What posenc_rotate hands to its kernel for a contiguous tensor in place. */
posenc_rotate_job job_of(const posenc_tensor &tensor, const row_buffer &rows) {
    const int64_t size = tensor.dtype == POSENC_F32 ? 4 : 2;
    posenc_rotate_job job = {};
    posenc_rotate_side &side = job.side[0];
    side.dst = static_cast<char *>(tensor.data);
    side.src = side.dst;
    side.src_token = side.dst_token = tensor.stride[1] * size;
    side.src_head = side.dst_head = tensor.stride[2] * size;
    side.heads = static_cast<size_t>(tensor.shape[2]);
    job.sides = 1;
    job.tokens = static_cast<size_t>(tensor.shape[1]);
    job.pairs = job.partner = static_cast<size_t>(tensor.shape[3] / 2);
    job.cos = rows.memory.as<float>();
    job.sin = job.cos + job.pairs;
    job.row_stride = tensor.shape[3];
    return job;
}

posenc_rotate_kernel *kernel_of(int32_t isa, int32_t layout, int32_t dtype) {
    return posenc_kernels_get(isa)->rotate[layout - 1][dtype - 1][dtype - 1];
}

/* The kernel without the call around it: what L1 rows lose to their checks. */
void bare_kernel(benchmark::State &state, int32_t isa, int32_t layout, int32_t dtype) {
    const shape of = model_shape(1);
    const plan_pointer plan = make_plan(isa, layout, of.width);
    const row_buffer rows(plan.get(), 1, dtype);
    qk data(of, dtype, 1);
    const posenc_rotate_job q = job_of(data.q, rows), k = job_of(data.k, rows);
    posenc_rotate_kernel *const kernel = kernel_of(isa, layout, dtype);
    against_limit(state, data, 1, [&] {
        posenc_rotate_job once = q;
        kernel(&once);
        once = k;
        kernel(&once);
    });
}

/* One token, one head of 128: the whole call with its checks against the kernel that it calls. */
void call_overhead(benchmark::State &state, int32_t isa, int32_t layout) {
    const shape of = {1, 1, 0, 128};
    const plan_pointer plan = make_plan(isa, layout, of.width);
    const row_buffer rows(plan.get(), 1, POSENC_F32);
    qk data(of, POSENC_F32, 1);
    posenc_rotate_job job = job_of(data.q, rows);
    posenc_rotate_kernel *const kernel = kernel_of(isa, layout, POSENC_F32);
    posenc_error error = {};
    compare(
        state,
        {1, 2 * static_cast<double>(data.bytes), 0, 1, "ratio_to_kernel"},
        [&] {
            require(posenc_rotate(plan.get(), POSENC_FORWARD, &rows.tensor, &data.q, nullptr,
                                  nullptr, nullptr, &error),
                    error);
        },
        [&] {
            job.tokens = 1;
            kernel(&job);
        });
}

/* Calls `add_one(isa, layout, "/layout/isa")` for every kernel of this machine. */
template <class Function> void for_each_kernel(Function add_one) {
    for (int32_t layout : {POSENC_SPLIT_HALF, POSENC_ADJACENT})
        for (int32_t isa : available_isas())
            add_one(isa, layout, "/" + layout_name(layout) + "/" + posenc_isa_name(isa));
}

void add_plain_loops(int32_t layout, const loops &of_isa) {
    for (const state_of_memory &where : {memory_states[0], memory_states[3]})
        add("plain/f32/" + layout_name(layout) + "/" + of_isa.name + "/" + where.name,
            [=, &of_isa](benchmark::State &s) { plain_loop(s, of_isa, layout, where); });
}

} // namespace

const loops &widest_loops() {
#if defined(__x86_64__)
    if (posenc_isa_available(POSENC_ISA_AVX512))
        return loops_avx512;
    if (posenc_isa_available(POSENC_ISA_AVX2))
        return loops_avx2;
#endif
    return loops_baseline;
}

void add_rotation() {
    for (int32_t dtype : {POSENC_F32, POSENC_F16, POSENC_BF16})
        for_each_kernel([=](int32_t isa, int32_t layout, const std::string &end) {
            for (const state_of_memory &where : memory_states)
                add("rotate/" + dtype_name(dtype) + end + "/" + where.name,
                    [=](benchmark::State &s) { rotate_in_place(s, isa, layout, dtype, where); });
            add("kernel/" + dtype_name(dtype) + end + "/L1",
                [=](benchmark::State &s) { bare_kernel(s, isa, layout, dtype); });
        });
    for_each_kernel([](int32_t isa, int32_t layout, const std::string &end) {
        add("rope/f32" + end + "/512",
            [=](benchmark::State &s) { fused(s, isa, layout, memory_states[3]); });
    });
    for (int32_t layout : {POSENC_SPLIT_HALF, POSENC_ADJACENT}) {
        add_plain_loops(layout, loops_baseline);
        if (&widest_loops() != &loops_baseline)
            add_plain_loops(layout, widest_loops());
    }
    for_each_kernel([](int32_t isa, int32_t layout, const std::string &end) {
        add("call/f32" + end, [=](benchmark::State &s) { call_overhead(s, isa, layout); });
    });
    for (int64_t width : {64, 80, 96, 112, 128, 192, 256})
        for_each_kernel([=](int32_t isa, int32_t layout, const std::string &end) {
            for (int64_t tokens : {1, 512})
                add("width/" + std::to_string(width) + end + (tokens == 1 ? "/L1" : "/512"),
                    [=](benchmark::State &s) { head_width(s, isa, layout, width, tokens); });
        });
}

} // namespace bench
