/* SPDX-License-Identifier: MIT */
/* FNV-1a 128 (Fowler, Noll, Vo) in 64-bit arithmetic, for machines without 128-bit integers. */
#include "hash.h"

struct posenc_hash posenc_hash_start(void)
{
    return (struct posenc_hash){UINT64_C(0x6c62272e07bb0142), UINT64_C(0x62b821756295c58d)};
}

/* hash x (2^88 + 0x13b) modulo 2^128. The low product is summed by 32-bit halves of `low`. */
static void multiply(struct posenc_hash *hash)
{
    const uint64_t small = 0x13b;
    uint64_t first = (hash->low & UINT32_MAX) * small;
    uint64_t second = (hash->low >> 32) * small + (first >> 32);
    hash->high = hash->high * small + (second >> 32) + (hash->low << 24);
    hash->low = (second << 32) | (first & UINT32_MAX);
}

void posenc_hash_bytes(struct posenc_hash *hash, const void *data, size_t count)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < count; i++) {
        hash->low ^= bytes[i];
        multiply(hash);
    }
}

static void add_word(struct posenc_hash *hash, uint64_t word)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(word >> (8 * i));
    posenc_hash_bytes(hash, bytes, sizeof bytes);
}

void posenc_hash_integer(struct posenc_hash *hash, int64_t value)
{
    add_word(hash, (uint64_t)value);
}

void posenc_hash_real(struct posenc_hash *hash, double value)
{
    add_word(hash, posenc_bits64(value == 0 ? 0.0 : value));
}

void posenc_hash_text(struct posenc_hash *hash, const char *text)
{
    add_word(hash, text ? strlen(text) : UINT64_MAX);
    if (text)
        posenc_hash_bytes(hash, text, strlen(text));
}

void posenc_hash_end(const struct posenc_hash *hash, uint8_t bytes[POSENC_HASH_BYTES])
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(hash->high >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)(hash->low >> (56 - 8 * i));
    }
}
