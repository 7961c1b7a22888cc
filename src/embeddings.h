/* SPDX-License-Identifier: MIT */
/* Embeddings that rows are added to: what sinusoids and learned tables check alike. */
#ifndef POSENC_EMBEDDINGS_H
#define POSENC_EMBEDDINGS_H

#include "tensor.h"

/* Checked embeddings and where their sum goes: the same view, or one that lies apart. */
struct posenc_embeddings {
    const posenc_tensor *out;
    struct posenc_view x_view, out_view;
};

static inline int64_t posenc_bytes_of(const struct posenc_view *view)
{
    return (int64_t)(view->end - view->begin);
}

/* 1 for memory larger than the caches next to a core. */
static inline int posenc_is_large(const struct posenc_view *view)
{
    return posenc_bytes_of(view) > 1 << 20;
}

/* Of `left` batch rows, those that one row is added to at a time: up to 8, streams that the CPU
 * follows by itself, and never one behind several. */
static inline int64_t posenc_copies(int64_t left)
{
    return left <= 8 ? left : left / ((left + 7) / 8);
}

/* Checks x, out (NULL: in place) and the scale, but not the number of heads and channels. */
int32_t posenc_embeddings_check(struct posenc_embeddings *embeddings, double scale,
                                const posenc_tensor *x, const posenc_tensor *out,
                                posenc_error *error);

#endif
