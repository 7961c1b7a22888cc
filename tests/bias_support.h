/* SPDX-License-Identifier: MIT */
/* Bits of a bias: on every ISA, in every memory order, for every split, between guard pages. */
#ifndef BIAS_SUPPORT_H
#define BIAS_SUPPORT_H

#include "support/view.h"

/* A bias whose part from a query, head and key on can be filled into any view. */
struct bias_maker {
    void *self;
    int by_keys; /* 1: a part may begin at any key */
    int32_t (*fill)(const struct bias_maker *maker, int32_t isa, int64_t query, int64_t head,
                    int64_t key, const posenc_tensor *bias, posenc_error *error);
};

/* Fills the whole [batch][queries][heads][keys] in `dtype` in all ways there are, and compares. */
void bias_check(const struct bias_maker *maker, int32_t dtype, int64_t batch, int64_t queries,
                int64_t heads, int64_t keys);

/* 1 if a view over `count` marked elements was left alone. */
int bias_untouched(const void *memory, size_t bytes);

/* Marks memory for bias_untouched. */
void bias_mark(void *memory, size_t bytes);

#endif
