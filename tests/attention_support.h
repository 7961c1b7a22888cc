/* SPDX-License-Identifier: MIT */
/* Attention problems with random data, and their truth. */
#ifndef ATTENTION_SUPPORT_H
#define ATTENTION_SUPPORT_H

#include <posenc/posenc.h>

struct shape {
    int64_t batch, queries, keys, q_heads, k_heads, channels, values;
    int32_t causal;
};

/* Contiguous memory of its own for each view; out starts as a pattern that no result has. */
struct problem {
    struct shape shape;
    posenc_attention_params params;
    posenc_tensor q, k, v, out;
};

enum { FILL_BYTE = 0x7b };

/* The same numbers on every machine: splitmix64, and sums of its bits that are exact in float. */
uint64_t random_bits(uint64_t *state);
int64_t random_between(uint64_t *state, int64_t low, int64_t high);
float random_float(uint64_t *state); /* bell-shaped, in (-4, 4), multiples of 2^-22 */

void problem_init(struct problem *p, struct shape shape, uint64_t seed);
void problem_free(struct problem *p);
int64_t tensor_count(const posenc_tensor *t);
size_t tensor_bytes(const posenc_tensor *t);
float *element(const posenc_tensor *t, int64_t b, int64_t token, int64_t head);
void run(struct problem *p, int32_t isa);

/* A view of `count` tokens from `first` on. */
posenc_tensor tokens_of(const posenc_tensor *t, int64_t first, int64_t count);

/* Truth and bound of one output row, [values] each. */
void true_row(const struct problem *p, int64_t b, int64_t i, int64_t h, long double *truth,
              long double *bound);

/* The largest |out - truth| / bound over a problem that has been run. */
long double worst_ratio(const struct problem *p);

uint64_t hash_bytes(const void *data, size_t size, uint64_t hash);

#endif
