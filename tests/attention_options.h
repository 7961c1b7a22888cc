/* SPDX-License-Identifier: MIT */
/* Random calls of attention with chosen options, and everything that they point to. */
#ifndef ATTENTION_OPTIONS_H
#define ATTENTION_OPTIONS_H

#include "attention_truth.h"

#include <stddef.h>

enum { /* which options a call has */
    WITH_CAUSAL = 1 << 0,
    WITH_WINDOW = 1 << 1,
    WITH_PLACES = 1 << 2, /* align, query offsets, first keys */
    WITH_COUNTS = 1 << 3,
    WITH_PACKED = 1 << 4,
    WITH_HALF = 1 << 5, /* dtypes of 16 bits */
    WITH_BIAS = 1 << 6, /* a tensor, some keys hidden */
    WITH_ALIBI = 1 << 7,
    WITH_T5 = 1 << 8,
    WITH_DEBERTA = 1 << 9,
    WITH_SOFTCAP = 1 << 10,
    WITH_SINKS = 1 << 11,
    WITH_TEMPERATURE = 1 << 12,
    WITH_ROPE = 1 << 13,
    WITH_OUTPUT_ROWS = 1 << 14,
    WITH_LSE = 1 << 15,
    WITH_WEIGHTS = 1 << 16,
    WITH_SCALES = 1 << 17, /* scale, multiplier, interleaved heads */
    WITH_LONG = 1 << 18,   /* more than 1024 keys */
    WITH_HEADS_FIRST = 1 << 19, /* [B][H][T][D] in memory */
    WITH_CHUNK = 1 << 20,
    WITH_KEEP = 1 << 21, /* with a window or chunks */
    OPTION_COUNT = 22,
    /* not chosen by chance */
    WITH_GROUPS = 1 << OPTION_COUNT, /* widths are multiples of 32 */
    WITH_DECODING = 2 << OPTION_COUNT /* mostly one query, 128 wide, 16 bits */
};

struct options {
    struct attention_call call;
    unsigned with;
    uint64_t seed;
    posenc_rope_params rope;
    posenc_plan *plan;
    posenc_alibi_params alibi;
    posenc_t5_params t5;
    posenc_attention_deberta deberta;
    posenc_tensor bias, temperature, t5_table, position_keys, position_queries;
    posenc_tensor query_rows, key_rows, output_rows, lse, weights;
    void *owned[40];
    int owners;
};

void options_init(struct options *o, unsigned with, uint64_t seed);
void options_free(struct options *o);

/* A random choice of options that go together. */
unsigned options_choose(uint64_t *seed);

/* "causal|alibi|..." */
const char *options_text(unsigned with, char *text, size_t size);

/* Fills the results with a pattern and calls posenc_attention. */
void options_run(struct options *o, int32_t isa);

/* Bytes of out, lse and weights, and a copy of them one after the other. */
size_t options_result_bytes(const struct options *o);
void options_results(const struct options *o, void *to);

/* A view of memory of its own, filled with random numbers of the dtype or left to be written. */
void options_tensor(struct options *o, posenc_tensor *t, int32_t dtype, int64_t batch,
                    int64_t tokens, int64_t heads, int64_t channels);
void options_fill(struct options *o, posenc_tensor *t, float by);

#endif
