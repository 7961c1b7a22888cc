/* SPDX-License-Identifier: MIT */
/* The text behind a path. */
#ifndef POSENC_CONTRACT_FILE_H
#define POSENC_CONTRACT_FILE_H

#include <posenc/posenc.h>

struct posenc_text {
    char *bytes; /* freed by the caller */
    size_t length;
};

/* Reads a file, or config.json of a folder; at most POSENC_CONTRACT_MAX_BYTES. Keeps errno. */
int32_t posenc_text_read(const char *path, struct posenc_text *text, posenc_error *error);

#endif
