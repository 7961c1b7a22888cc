/* SPDX-License-Identifier: MIT */
/* The bytes behind a path. */
#ifndef POSENC_CONTRACT_FILE_H
#define POSENC_CONTRACT_FILE_H

#include <posenc/posenc.h>

/*
 * What a reader may look at: `bytes` in memory, and the rest of the file by posenc_file_read. A
 * GGUF file is mapped, read-only and at most POSENC_CONTRACT_MAX_HEADER bytes of it; everything
 * else is read into memory as a whole.
 */
struct posenc_file {
    const char *bytes;
    size_t length;
    uint64_t size;  /* of the whole file */
    int descriptor; /* -1: there are no more bytes than `length` */
    int mapped;
};

/* Opens a file, or the first known one of a folder. Close it in any case. Keeps errno. */
int32_t posenc_file_open(const char *path, struct posenc_file *file, posenc_error *error);
void posenc_file_close(struct posenc_file *file);

/* Copies file bytes [offset, offset + size). 0, or -1 if the file has fewer. */
int posenc_file_read(const struct posenc_file *file, uint64_t offset, void *to, size_t size);

/* 1 if the bytes begin as a GGUF file does. */
int posenc_file_is_gguf(const char *bytes, size_t length);

#endif
