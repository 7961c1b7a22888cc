/* SPDX-License-Identifier: MIT */
/* One token for a contiguous cache, recognised at a glance: what decoding calls in every layer. */
#include "cache_append.h"
#include "copy_channels.h"
#include "glance.h"

/*
 * The full checks take as long as the work. What is accepted here they would accept, the rest is
 * theirs to judge. With these limits, and 1 to most_stride channels, no product of sizes and
 * strides comes near 2^58.
 */
enum { MOST_SLOTS = 1 << 26, MOST_HEADS = 1 << 24 };
static const uint64_t most_stride = UINT64_C(1) << 31;

/* A view of one batch row: bytes from the first to behind the last, 0 where anything is unusual.
 * Tokens hold heads or heads hold tokens, in memory order, so that no element lies twice. */
static inline uintptr_t bytes_of(const posenc_tensor *t, uintptr_t size)
{
    const uint64_t more_tokens = (uint64_t)t->shape[1] - 1, more_heads = (uint64_t)t->shape[2] - 1;
    const uint64_t channels = (uint64_t)t->shape[3];
    const uint64_t token = more_tokens ? (uint64_t)t->stride[1] : channels;
    const uint64_t head = more_heads ? (uint64_t)t->stride[2] : channels;
    if (t->shape[0] != 1 || t->stride[3] != 1 || more_tokens >= MOST_SLOTS ||
        more_heads >= MOST_HEADS || token - channels >= most_stride - channels ||
        head - channels >= most_stride - channels)
        return 0;
    const uint64_t tokens = more_tokens * token, heads = more_heads * head;
    if (more_tokens && more_heads && token < heads + channels && head < tokens + channels)
        return 0;
    return (uintptr_t)(tokens + heads + channels) * size;
}

static inline int are_default(const posenc_append_params *p)
{
    return !(p->norm | p->norm_after | p->weight_plus_one | p->stream) && !p->weight &&
           !p->starts && !p->token_starts && !p->keys &&
           !(p->sequences | p->key_stride[0] | p->key_stride[1]) && p->eps >= 0 && p->eps <= 1 &&
           (p->scale == 0 || p->scale == 1) && !p->rope == !p->rows;
}

static inline int is_simple(const posenc_cache *c)
{
    return c->kind == POSENC_CACHE_CONTIGUOUS && !c->scales.data && !c->first_keys && !c->turns &&
           !c->pages && !(c->keep | c->sequences | c->sequence_pages) && !c->header;
}

/* One row for a plan that turns whole heads in their layout, beside the cache. */
static inline int is_one_row(const posenc_append_params *p, const posenc_tensor *src,
                             uintptr_t cache, uintptr_t cache_bytes)
{
    const posenc_plan *plan = p->rope;
    if (!plan)
        return 1;
    const uintptr_t bytes = (uintptr_t)plan->rotary_dim * sizeof(float);
    return plan->rotary_dim == src->shape[3] && plan->layout == plan->out_layout &&
           posenc_is_one_token(plan, p->rows, src, src) &&
           posenc_lie_apart((uintptr_t)p->rows->data, bytes - 1, cache, bytes + cache_bytes - 1);
}

/* Both views, heads alike and one beside the other. */
static inline int are_views(const posenc_append_params *p, const posenc_tensor *src,
                            const posenc_tensor *rows)
{
    const uint32_t from = (uint32_t)src->dtype - POSENC_F32;
    const uint32_t to = (uint32_t)rows->dtype - POSENC_F32;
    const uintptr_t a = (uintptr_t)src->data, b = (uintptr_t)rows->data;
    if ((from | to) > POSENC_BF16 - POSENC_F32 || src->shape[1] != 1 ||
        src->shape[2] != rows->shape[2] || src->shape[3] != rows->shape[3] ||
        (uint64_t)src->shape[3] - 1 >= most_stride || !posenc_are_plain(a, b, a) ||
        (uint64_t)p->start >= (uint64_t)rows->shape[1])
        return 0;
    const uintptr_t src_bytes = bytes_of(src, from ? 2 : 4), bytes = bytes_of(rows, to ? 2 : 4);
    return src_bytes && bytes && posenc_lie_apart(a, src_bytes - 1, b, src_bytes + bytes - 1) &&
           is_one_row(p, src, b, bytes);
}

/* The heads of a token, all channels, from src to the slot at `dst`. */
static inline void copy_heads(const struct posenc_kernels *kernels, const posenc_tensor *src,
                              const posenc_tensor *rows, char *dst)
{
    const ptrdiff_t in = (ptrdiff_t)posenc_dtype_size(src->dtype);
    const ptrdiff_t out = (ptrdiff_t)posenc_dtype_size(rows->dtype);
    const int apart = src->shape[2] > 1 && (src->stride[2] != src->shape[3] ||
                                            rows->stride[2] != src->shape[3]);
    const struct posenc_copy copy = {
        .from = src->dtype,
        .to = rows->dtype,
        .src_head = posenc_step(src, 2) * in,
        .dst_head = posenc_step(rows, 2) * out,
        .tokens = 1,
        .heads = apart ? src->shape[2] : 1,
        .channels = apart ? src->shape[3] : src->shape[2] * src->shape[3],
    };
    posenc_copy_channels(kernels, &copy, src->data, dst);
}

/* The full call's description takes some fifty stores, which wait in the same queue as those to a
 * slot that is in no cache: here is nothing but what the kernel reads. */
static inline void turn_heads(const struct posenc_kernels *kernels, const posenc_append_params *p,
                              const posenc_tensor *src, const posenc_tensor *rows, char *dst)
{
    const posenc_plan *plan = p->rope;
    struct posenc_rotate_job job;
    job.cos = p->rows->data;
    job.pairs = job.partner = (size_t)plan->pairs;
    job.sin = job.cos + job.pairs;
    job.tokens = 1;
    job.ahead = 0;
    job.sides = 1;
    job.side[0].src = src->data;
    job.side[0].dst = dst;
    job.side[0].heads = (size_t)src->shape[2];
    job.side[0].src_head =
        posenc_step(src, 2) * (ptrdiff_t)posenc_dtype_size(src->dtype);
    job.side[0].dst_head =
        posenc_step(rows, 2) * (ptrdiff_t)posenc_dtype_size(rows->dtype);
    kernels->rotate[plan->layout - 1][src->dtype - 1][rows->dtype - 1](&job);
}

/*
 * A slot was last touched long ago, if ever: its lines are asked for before anything is checked, so
 * that they come meanwhile. No address can do harm here. GCC drops calls of functions that do
 * nothing but this; the empty asm is something.
 */
static inline void ask_for_slot(const posenc_tensor *rows, int64_t slot)
{
    enum { LINE = 64, MOST = 4096 };
    const uint64_t size = rows->dtype == POSENC_F32 ? 4 : 2;
    const uint64_t bytes = (uint64_t)rows->shape[2] * (uint64_t)rows->shape[3] * size;
    const uintptr_t at =
        (uintptr_t)rows->data + (uintptr_t)((uint64_t)slot * (uint64_t)rows->stride[1] * size);
    if (bytes > MOST || rows->stride[2] != rows->shape[3])
        return;
    for (uint64_t line = 0; line < bytes; line += LINE) {
        __builtin_prefetch((const void *)(at + (uintptr_t)line), 1, 3);
        __asm__ volatile("");
    }
}

int posenc_append_glance(const posenc_append_params *params, const posenc_tensor *src,
                         const posenc_cache *cache)
{
    if (!params || !src || !cache || params->struct_size != sizeof(*params) ||
        cache->struct_size != sizeof(*cache))
        return 0;
    ask_for_slot(&cache->rows, params->start);
    if (!are_default(params) || !is_simple(cache) ||
        !are_views(params, src, &cache->rows))
        return 0;
    const struct posenc_kernels *kernels = posenc_kernels_get(params->isa);
    if (!kernels)
        return 0;
    char *dst = posenc_element(&cache->rows, 0, params->start, 0, 0);
    if (params->rope)
        turn_heads(kernels, params, src, &cache->rows, dst);
    else
        copy_heads(kernels, src, &cache->rows, dst);
    return 1;
}
