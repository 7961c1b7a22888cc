/* SPDX-License-Identifier: MIT */
/* A GGUF header: its metadata and tensor descriptions, found in place and looked up by type. */
#ifndef POSENC_CONTRACT_GGUF_H
#define POSENC_CONTRACT_GGUF_H

#include "file.h"
#include "reader.h"

enum posenc_gguf_type {
    POSENC_GGUF_U8,
    POSENC_GGUF_I8,
    POSENC_GGUF_U16,
    POSENC_GGUF_I16,
    POSENC_GGUF_U32,
    POSENC_GGUF_I32,
    POSENC_GGUF_F32,
    POSENC_GGUF_BOOL,
    POSENC_GGUF_STRING,
    POSENC_GGUF_ARRAY,
    POSENC_GGUF_U64,
    POSENC_GGUF_I64,
    POSENC_GGUF_F64,
    POSENC_GGUF_TYPES
};

/* The types of tensor data that are read; all others are only skipped. */
enum { POSENC_GGUF_DATA_F32 = 0, POSENC_GGUF_DATA_F16 = 1 };

enum { POSENC_GGUF_MAX_DIMS = 4 };

/* Bytes of the file, without a NUL. */
struct posenc_gguf_text {
    const uint8_t *bytes;
    size_t length;
};

struct posenc_gguf_entry {
    struct posenc_gguf_text key;
    uint32_t type;  /* of the value, or of the elements of an array */
    int32_t array;  /* 1: `count` elements, one after another at `value` */
    uint64_t count; /* 1 for a value that is no array */
    const uint8_t *value;
};

struct posenc_gguf_tensor {
    struct posenc_gguf_text key;
    uint32_t type;
    uint32_t dims;
    uint64_t dim[POSENC_GGUF_MAX_DIMS];
    uint64_t offset; /* from the start of the file */
};

struct posenc_gguf {
    const struct posenc_file *file;
    int swapped; /* 1: the numbers of the file are big-endian */
    size_t num_entries;
    size_t num_tensors;
    struct posenc_gguf_entry *entries; /* sorted by key, no two alike */
    struct posenc_gguf_tensor *tensors; /* the same */
};

/* gguf.c: finds everything in the header; refuses what is malformed. Release with _free in any
 * case. Nothing outside file->bytes[0..length) is touched. */
int32_t posenc_gguf_load(struct posenc_gguf *gguf, const struct posenc_file *file,
                         posenc_error *error);
void posenc_gguf_free(struct posenc_gguf *gguf);

/* gguf_number.c: a number of the file; `type` is none of STRING and ARRAY. */
uint64_t posenc_gguf_bits(const uint8_t *at, size_t size, int swapped);
double posenc_gguf_number(const struct posenc_gguf *gguf, const struct posenc_gguf_entry *entry,
                          uint64_t index);
size_t posenc_gguf_type_size(uint32_t type); /* 0 for STRING, ARRAY and unknown ones */

/* gguf_number.c: the double that stands for a float32 of the metadata: writers convert the decimal
 * numbers of a JSON file, so it is the shortest decimal that rounds to this float (0.1f is 0.1). */
double posenc_gguf_decimal(float value);

/* One reading: the file, what its architecture implies, and where the facts go. */
struct posenc_gguf_reader {
    struct posenc_reader *reader;
    struct posenc_gguf gguf;
    const struct posenc_gguf_arch *arch;
    int64_t layers;
};

/* gguf_value.c: the entry ARCH.suffix, or NULL. */
const struct posenc_gguf_entry *posenc_gguf_find(const struct posenc_gguf_reader *from,
                                                 const char *suffix);
const struct posenc_gguf_tensor *posenc_gguf_find_tensor(const struct posenc_gguf_reader *from,
                                                         const char *name);

/* gguf_value.c: look-ups of ARCH.suffix answer 1 found, 0 absent (the value is untouched), -1
 * refused: another type, or out of range. */
int posenc_gguf_integer(struct posenc_gguf_reader *from, const char *suffix, int64_t low,
                        int64_t high, int64_t *value);
int posenc_gguf_real(struct posenc_gguf_reader *from, const char *suffix, double *value);
int posenc_gguf_bool(struct posenc_gguf_reader *from, const char *suffix, int *value);
int posenc_gguf_string(struct posenc_gguf_reader *from, const char *suffix,
                       struct posenc_gguf_text *value);

/* gguf_value.c: the same, where a list may give each of `from->layers` its own: values[layers]. */
int posenc_gguf_per_layer(struct posenc_gguf_reader *from, const char *suffix, int64_t low,
                          int64_t high, int64_t *values);

/* gguf_value.c: refusals of a key, as posenc_refuse and posenc_refuse_missing of a JSON key. */
int posenc_gguf_refuse(struct posenc_gguf_reader *from, const char *suffix, const char *rule);
int posenc_gguf_refuse_missing(struct posenc_gguf_reader *from, const char *suffix,
                               const char *rule);

/* gguf_value.c: ARCH.suffix as the key of a note or a text, cut to fit. */
void posenc_gguf_key(const struct posenc_gguf_reader *from, const char *suffix,
                     posenc_error *text);

/* gguf_value.c: notes under ARCH.suffix, as those of notes.c. */
posenc_error *posenc_gguf_warning(struct posenc_gguf_reader *from, const char *suffix);
void posenc_gguf_assume(struct posenc_gguf_reader *from, const char *suffix, double value,
                        const char *why);

/* gguf_tensor.c: the `count` values of a tensor of one dimension, in memory of the contract. 1, 0
 * without such a tensor, -1 refused: another shape or type, a value that is not > 0 and finite,
 * data beyond the end. */
int posenc_gguf_factors(struct posenc_gguf_reader *from, const char *name, int64_t count,
                        const double **values);

/* gguf_shape.c: heads, widths, layers and their kinds, limits. */
int posenc_gguf_shape(struct posenc_gguf_reader *from);
int posenc_gguf_layers(struct posenc_gguf_reader *from);

/* gguf_rope.c: frequency sets; gguf_yarn.c: the scaling of one. */
int posenc_gguf_rope(struct posenc_gguf_reader *from);
int posenc_gguf_scaling(struct posenc_gguf_reader *from, struct posenc_set *set);
int posenc_gguf_yarn(struct posenc_gguf_reader *from, struct posenc_set *set);

/* gguf_yarn.c: the length before extension, into the set. 0 or -1. */
int posenc_gguf_original(struct posenc_gguf_reader *from, struct posenc_set *set);

/* gguf_freqs.c: what tensors of factors say of a set. 1 if they do, else 0, or -1 refused. */
int posenc_gguf_longrope(struct posenc_gguf_reader *from, struct posenc_set *set);
int posenc_gguf_divisors(struct posenc_gguf_reader *from, struct posenc_set *set);

/* gguf_scale.c: softmax scale, cap and query scale. */
int posenc_gguf_scales(struct posenc_gguf_reader *from);

/* reach.c: sides of the window, chunks, learned sinks. After the layers. */
void posenc_gguf_reach(struct posenc_gguf_reader *from);

/* gguf_other.c: schemes that are no rotations. */
int posenc_gguf_other(struct posenc_gguf_reader *from);

/* gguf_model.c: reads a whole file into reader->contract. 0, or -1 refused. */
int posenc_read_gguf(struct posenc_reader *reader, const struct posenc_file *file);

#endif
