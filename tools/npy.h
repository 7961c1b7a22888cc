/* SPDX-License-Identifier: MIT */
/* NPY arrays (versions 1.0 to 3.0), little-endian, C order: read whole, written whole. */
#ifndef POSENC_NPY_H
#define POSENC_NPY_H

#include "output.h"

#include <stddef.h>
#include <stdint.h>

enum { NPY_MAX_RANK = 8 };

/* Element types that a header can name here. */
enum npy_type { NPY_F32 = 1, NPY_F16, NPY_U16, NPY_F64, NPY_I32, NPY_I64 };

struct npy {
    enum npy_type type;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    size_t count; /* of elements */
    void *data;   /* in the byte order of this machine, aligned for any element */
};

/* Reads the file; TOOL_OK, or an exit code after saying what is wrong with it. */
int npy_read(struct npy *array, const char *path);
void npy_free(struct npy *array);

/*
 * Reads `size` bytes as an array; on success data points into them. Otherwise returns 0 and writes
 * what is wrong into `why`. Any bytes may be given.
 */
int npy_parse(struct npy *array, unsigned char *bytes, size_t size, char *why, size_t why_size);

/* The fixed bytes at the front of a file: where the header's text begins and how long it is. `size`
 * bytes are there, of at least 12 where the file has them; `room` is what the header may fill. */
int npy_preamble(const unsigned char *bytes, size_t size, size_t room, size_t *start,
                 size_t *length, char *why, size_t why_size);

/* What the text of a header says, whatever the element type. */
struct npy_header {
    char descr[64];
    int fortran;
    int seen; /* one bit for each key */
};

/* Fills rank and shape of an array that is all zero, and `header`. */
int npy_parse_header(struct npy *array, struct npy_header *header, const char *text, size_t length,
                     char *why, size_t why_size);

size_t npy_type_size(enum npy_type type);

/* The two parts of npy_write, for data that are made piece by piece: a header of the array's type
 * and shape, then elements, as many as it announced. */
int npy_write_header(struct tool_output *output, const struct npy *array);
int npy_write_data(struct tool_output *output, enum npy_type type, void *data, size_t count);

/* Writes a header and the data (which lose this machine's byte order: do not use them again). */
int npy_write(struct tool_output *output, const struct npy *array);

#endif
