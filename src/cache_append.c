/* SPDX-License-Identifier: MIT */
/* Append to a cache: tokens by runs of slots that lie one after the other. */
#include "cache_append.h"
#include "copy_channels.h"

void posenc_append_params_init(posenc_append_params *params)
{
    *params = (posenc_append_params){.struct_size = sizeof(*params)};
}

static ptrdiff_t bytes_of_step(const posenc_tensor *t, int d)
{
    return posenc_step(t, d) * (ptrdiff_t)posenc_dtype_size(t->dtype);
}

/* Heads, and tokens, whose channels lie side by side on both sides are one long head. */
static void join(struct posenc_copy *copy)
{
    const ptrdiff_t in = (ptrdiff_t)posenc_dtype_size(copy->from);
    const ptrdiff_t out = (ptrdiff_t)posenc_dtype_size(copy->to);
    if (copy->heads > 1 && (copy->src_head != (ptrdiff_t)copy->channels * in ||
                            copy->dst_head != (ptrdiff_t)copy->channels * out))
        return;
    copy->channels *= copy->heads;
    copy->heads = 1;
    if (copy->tokens > 1 && (copy->src_token != (ptrdiff_t)copy->channels * in ||
                             copy->dst_token != (ptrdiff_t)copy->channels * out))
        return;
    copy->channels *= copy->tokens;
    copy->tokens = 1;
}

/* The channels [from, to), unless they are there already. */
static void copy_run(const struct posenc_append *call, const struct posenc_append_run *run,
                     int64_t from, int64_t to)
{
    const posenc_tensor *in = call->src, *out = &call->map.cache.rows;
    if (from == to || call->in_place)
        return;
    struct posenc_copy copy = {
        .from = in->dtype,
        .to = out->dtype,
        .src_token = bytes_of_step(in, 1),
        .src_head = bytes_of_step(in, 2),
        .dst_token = bytes_of_step(out, 1),
        .dst_head = bytes_of_step(out, 2),
        .tokens = run->tokens,
        .heads = in->shape[2],
        .channels = to - from,
    };
    join(&copy);
    posenc_copy_channels(call->kernels, &copy,
                         posenc_element(in, run->batch, run->token, 0, from),
                         posenc_element(out, run->slot.block, run->slot.token, 0, from));
}

static void rotate_run(const struct posenc_append *call, const struct posenc_append_run *run)
{
    const posenc_plan *plan = call->params.rope;
    const posenc_tensor *in = call->src, *out = &call->map.cache.rows, *rows = call->params.rows;
    posenc_rotate_kernel *const(*kernels)[3][3] = plan->layout == plan->out_layout
                                                      ? call->kernels->rotate
                                                      : call->kernels->rotate_across;
    const int64_t row = rows->shape[0] > 1 ? run->batch : 0;
    struct posenc_rotate_job job;
    struct posenc_rotate_side *side = &job.side[0];
    job.cos = (const float *)(const void *)posenc_element(rows, row, run->token, 0, 0);
    job.sin = job.cos + plan->pairs;
    job.row_stride = posenc_step(rows, 1);
    job.tokens = (size_t)run->tokens;
    job.pairs = job.partner = (size_t)plan->pairs;
    job.ahead = call->ahead;
    job.sides = 1;
    side->src = posenc_element(in, run->batch, run->token, 0, call->window);
    side->dst = posenc_element(out, run->slot.block, run->slot.token, 0, call->window);
    side->src_token = bytes_of_step(in, 1);
    side->src_head = bytes_of_step(in, 2);
    side->dst_token = bytes_of_step(out, 1);
    side->dst_head = bytes_of_step(out, 2);
    side->heads = (size_t)in->shape[2];
    kernels[plan->layout - 1][in->dtype - 1][out->dtype - 1](&job);
}

static void append_run(const struct posenc_append *call, const struct posenc_append_run *run)
{
    if (call->computed) {
        posenc_append_token_by_token(call, run);
        return;
    }
    copy_run(call, run, 0, call->window);
    copy_run(call, run, call->window + call->turned, call->src->shape[3]);
    if (call->turned)
        rotate_run(call, run);
}

/* The tokens of a sequence from `token` on that become the keys of a stretch. */
static void append_stretch(const struct posenc_append *call, int64_t sequence, int64_t batch,
                           int64_t token, struct posenc_append_stretch stretch)
{
    while (stretch.count > 0) {
        const int64_t most = posenc_cache_run(&call->map, sequence, stretch.key);
        const struct posenc_append_run run = {
            .batch = batch,
            .token = token,
            .tokens = stretch.count < most ? stretch.count : most,
            .slot = posenc_cache_slot_of(&call->map, sequence, stretch.key),
        };
        append_run(call, &run);
        token += run.tokens;
        stretch.key += run.tokens;
        stretch.count -= run.tokens;
    }
}

/* By itself, so that a plain token needs none of its stack. */
static __attribute__((noinline)) int32_t append_after_checks(const posenc_append_params *params,
                                                             const posenc_tensor *src,
                                                             const posenc_cache *cache,
                                                             posenc_error *error)
{
    struct posenc_append call;
    int32_t status = posenc_append_check(&call, params, src, cache, error);
    if (status || posenc_tensor_is_empty(src))
        return status;
    for (int64_t n = 0; n < call.sequences; n++) {
        const struct posenc_append_sequence s = posenc_append_sequence_of(&call, n);
        struct posenc_append_stretch stretch;
        for (int64_t t = s.first; t < s.end; t += stretch.count) {
            stretch = posenc_append_stretch_of(&call, n, &s, t);
            if (stretch.key >= 0)
                append_stretch(&call, n, s.batch, t, stretch);
        }
    }
    if (call.params.stream)
        call.kernels->stream_end();
    return POSENC_OK;
}

int32_t posenc_cache_append(const posenc_append_params *params, const posenc_tensor *src,
                            const posenc_cache *cache, posenc_error *error)
{
    return posenc_append_glance(params, src, cache)
               ? POSENC_OK
               : append_after_checks(params, src, cache, error);
}
