/* SPDX-License-Identifier: MIT */
/* FNV-1a with 128 bits over a canonical byte serialisation: what fingerprints are made of. */
#ifndef POSENC_HASH_H
#define POSENC_HASH_H

#include "common.h"

enum { POSENC_HASH_BYTES = 16 };

struct posenc_hash {
    uint64_t high, low;
};

/* The offset basis of FNV-1a 128: the hash of nothing. */
struct posenc_hash posenc_hash_start(void);

void posenc_hash_bytes(struct posenc_hash *hash, const void *data, size_t count);

/* Numbers go in as their little-endian bytes, whatever the machine. */
void posenc_hash_integer(struct posenc_hash *hash, int64_t value);

/* -0 goes in as 0: no result tells a factor or a frequency of -0 from one of 0. */
void posenc_hash_real(struct posenc_hash *hash, double value);

/* Length first, so that texts side by side cannot be read in another way; NULL differs from "". */
void posenc_hash_text(struct posenc_hash *hash, const char *text);

/* The hash as it is usually printed: most significant byte first. */
void posenc_hash_end(const struct posenc_hash *hash, uint8_t bytes[POSENC_HASH_BYTES]);

#endif
