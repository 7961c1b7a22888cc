/* SPDX-License-Identifier: MIT */
/* GGUF models whose positions are no rotations: biases, buckets, tables, or nothing. */
#include "gguf.h"
#include "gguf_arch.h"

static int read_learned(struct posenc_gguf_reader *from)
{
    posenc_contract_learned *learned = &from->reader->contract->learned;
    const struct posenc_gguf_tensor *table = posenc_gguf_find_tensor(from, "position_embd.weight");
    int64_t dim = 0, rows = from->reader->contract->facts.max_position;
    int found = posenc_gguf_integer(from, "embedding_length", 1, INT32_MAX, &dim);
    if (found <= 0) {
        return found < 0 ? -1
                         : posenc_gguf_refuse_missing(from, "embedding_length",
                                                      "it is the width of the table");
    }
    if (table && (table->dims != 2 || table->dim[0] != (uint64_t)dim || table->dim[1] < 1 ||
                  table->dim[1] > INT32_MAX)) {
        from->reader->status = posenc_fail(from->reader->error, POSENC_ERROR_MODEL,
                                           "tensor position_embd.weight: must have a row of %d "
                                           "for each position",
                                           dim);
        return -1;
    }
    if (!table && rows < 1) {
        return posenc_gguf_refuse_missing(from, "context_length",
                                          "without the table it says how many rows there are");
    }
    rows = table ? (int64_t)table->dim[1] : rows;
    /* Converters drop the rows that a class keeps for padding. */
    *learned = (posenc_contract_learned){.struct_size = sizeof *learned, .dim = (int32_t)dim,
                                         .table_rows = rows, .usable_positions = rows,
                                         .position_offset = 0};
    return 0;
}

static int read_alibi(struct posenc_gguf_reader *from)
{
    static const char key[] = "attention.max_alibi_bias";
    posenc_contract_alibi *alibi = &from->reader->contract->alibi;
    double bias = from->arch->max_bias;
    int found = posenc_gguf_real(from, key, &bias);
    if (found < 0 || !(bias >= 0.0 && bias <= 64.0)) {
        return found < 0 ? -1 : posenc_gguf_refuse(from, key, "must be >= 0 and <= 64");
    }
    if (bias == 0.0) { /* MPT without biases has a table */
        from->reader->contract->facts.scheme = POSENC_SCHEME_LEARNED;
        return read_learned(from);
    }
    if (!found) {
        posenc_gguf_assume(from, key, bias, "the constant of this architecture");
    }
    *alibi = (posenc_contract_alibi){.struct_size = sizeof *alibi, .max_bias = bias,
                                     .bias = from->arch->bias};
    return 0;
}

static int read_t5(struct posenc_gguf_reader *from)
{
    static const char key[] = "attention.relative_buckets_count";
    posenc_contract_t5 *t5 = &from->reader->contract->t5;
    int64_t buckets = 0;
    int found = posenc_gguf_integer(from, key, 2, 65536, &buckets);
    if (found <= 0) {
        return found < 0 ? -1 : posenc_gguf_refuse_missing(from, key, "T5 needs it");
    }
    *t5 = (posenc_contract_t5){.struct_size = sizeof *t5, .num_buckets = (int32_t)buckets,
                               .max_distance = 128, .encoder = 1,
                               .decoder = strcmp(from->arch->name, "t5") == 0};
    t5->per_layer = posenc_gguf_find_tensor(from, "enc.blk.1.attn_rel_b.weight") != NULL;
    posenc_gguf_assume(from, "attention.relative_max_distance", 128,
                       "that of llama.cpp: no key states it");
    return 0;
}

int posenc_gguf_other(struct posenc_gguf_reader *from)
{
    switch (from->arch->scheme) {
    case POSENC_SCHEME_ALIBI: return read_alibi(from);
    case POSENC_SCHEME_T5: return read_t5(from);
    case POSENC_SCHEME_LEARNED: return read_learned(from);
    default: return 0;
    }
}
