/* SPDX-License-Identifier: MIT */
/* The header of a safetensors file: names, types, shapes and places of its tensors. */
#ifndef POSENC_SAFETENSORS_H
#define POSENC_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_MAX_RANK = 8, SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000 };

struct safetensor {
    const char *name, *dtype;
    int rank;                            /* as stated; of more than 8 no shape is kept */
    int64_t shape[SAFETENSORS_MAX_RANK];
    size_t element;                      /* bytes; 0 if the type is unknown or has part of a byte */
    uint64_t begin, end;                 /* in the data */
};

struct safetensors {
    json_t *root; /* owns the texts */
    struct safetensor *tensor; /* in the order of the data */
    size_t count;
};

/*
 * Reads the JSON text of a header, for `data` bytes of data behind it. Strict: tensors lie side by
 * side from the first byte to the last, and known types fill their shape. Otherwise returns 0 and
 * writes what is wrong into `why`. Any bytes may be given.
 */
int safetensors_parse(struct safetensors *file, const char *text, size_t length, uint64_t data,
                      char *why, size_t size);
void safetensors_free(struct safetensors *file);

#endif
