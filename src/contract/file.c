/* SPDX-License-Identifier: MIT */
/* A path to a config.json, or to the folder that holds one -> its text. */
#include "file.h"

#include "../error.h"

#include <errno.h>
#include <fcntl.h>
#include <posenc/contract.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BLOCK = 65536 };

static int32_t fail_io(posenc_error *error, const char *path, const char *what)
{
    return posenc_fail(error, POSENC_ERROR_IO, "%s: %s", path, what);
}

static const char *reason(int number)
{
    switch (number) {
    case ENOENT: return "no such file";
    case EACCES: return "permission denied";
    case ENOTDIR: return "a part of the path is not a folder";
    case EISDIR: return "is a folder";
    case ENAMETOOLONG: return "the path is too long";
    case ELOOP: return "too many symbolic links";
    default: return "the system could not read it";
    }
}

static int32_t open_file(const char *path, int *file, posenc_error *error)
{
    struct stat what;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (*file >= 0 && fstat(*file, &what) == 0 && S_ISDIR(what.st_mode)) {
        int folder = *file;
        *file = openat(folder, "config.json", O_RDONLY | O_CLOEXEC | O_NOCTTY);
        int number = errno;
        close(folder);
        if (*file < 0 && number == ENOENT) {
            return fail_io(error, path, "the folder has no config.json");
        }
        errno = number;
    }
    return *file < 0 ? fail_io(error, path, reason(errno)) : POSENC_OK;
}

/* Reads to the end, but never more than one byte beyond the limit. */
static int32_t read_all(int file, const char *path, struct posenc_text *text, posenc_error *error)
{
    size_t limit = (size_t)POSENC_CONTRACT_MAX_BYTES + 1, room = 0;
    for (;;) {
        if (text->length == room) {
            size_t more = room ? room * 4 : FIRST_BLOCK;
            more = more > limit ? limit : more;
            char *bytes = realloc(text->bytes, more);
            if (!bytes) {
                return posenc_fail(error, POSENC_ERROR_MEMORY, "%s: no memory to read it", path);
            }
            text->bytes = bytes;
            room = more;
        }
        ssize_t got = read(file, text->bytes + text->length, room - text->length);
        if (got < 0 && errno != EINTR) {
            return fail_io(error, path, reason(errno));
        }
        if (got == 0) {
            return POSENC_OK;
        }
        text->length += got > 0 ? (size_t)got : 0;
        if (text->length == limit) {
            return posenc_fail(error, POSENC_ERROR_FORMAT, "%s: longer than %d bytes", path,
                               (int64_t)POSENC_CONTRACT_MAX_BYTES);
        }
    }
}

int32_t posenc_text_read(const char *path, struct posenc_text *text, posenc_error *error)
{
    int saved = errno, file = -1;
    *text = (struct posenc_text){0};
    int32_t status = open_file(path, &file, error);
    if (status == POSENC_OK) {
        status = read_all(file, path, text, error);
        close(file);
    }
    if (status != POSENC_OK) {
        free(text->bytes);
        text->bytes = NULL;
    }
    errno = saved;
    return status;
}
