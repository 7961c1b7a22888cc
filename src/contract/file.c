/* SPDX-License-Identifier: MIT */
/* A path to a model's file, or to the folder that holds one -> its bytes. */
#include "file.h"

#include "../error.h"

#include <errno.h>
#include <fcntl.h>
#include <posenc/contract.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* The first of the files that a model's folder may have; -1, and errno of the last one tried. */
static int open_in_folder(int folder)
{
    static const char *const names[] = {"config.json", "params.json", "genai_config.json"};
    int file = -1;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && file < 0; i++) {
        file = openat(folder, names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (file < 0 && errno != ENOENT) {
            break;
        }
    }
    return file;
}

static int32_t open_path(const char *path, struct posenc_file *file, struct stat *what,
                         posenc_error *error)
{
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file->descriptor >= 0 && fstat(file->descriptor, what) == 0 && S_ISDIR(what->st_mode)) {
        int folder = file->descriptor;
        file->descriptor = open_in_folder(folder);
        int number = errno;
        close(folder);
        if (file->descriptor < 0 && number == ENOENT) {
            return fail_io(error, path,
                           "the folder has no config.json, params.json or genai_config.json");
        }
        errno = number;
    }
    if (file->descriptor < 0 || fstat(file->descriptor, what) != 0) {
        return fail_io(error, path, reason(errno));
    }
    return POSENC_OK;
}

/* Reads to the end, but never more than one byte beyond the limit. */
static int32_t read_all(struct posenc_file *file, const char *path, posenc_error *error)
{
    size_t limit = (size_t)POSENC_CONTRACT_MAX_BYTES + 1, room = 0;
    char *bytes = NULL;
    for (;;) {
        if (file->length == room) {
            size_t more = room ? room * 4 : FIRST_BLOCK;
            more = more > limit ? limit : more;
            char *grown = realloc(bytes, more);
            if (!grown) {
                return posenc_fail(error, POSENC_ERROR_MEMORY, "%s: no memory to read it", path);
            }
            file->bytes = bytes = grown;
            room = more;
        }
        ssize_t got = read(file->descriptor, bytes + file->length, room - file->length);
        if (got < 0 && errno != EINTR) {
            return fail_io(error, path, reason(errno));
        }
        if (got == 0) {
            file->size = file->length;
            return POSENC_OK;
        }
        file->length += got > 0 ? (size_t)got : 0;
        if (file->length == limit) {
            return posenc_fail(error, POSENC_ERROR_FORMAT, "%s: longer than %d bytes", path,
                               (int64_t)POSENC_CONTRACT_MAX_BYTES);
        }
    }
}

/* fstat has told the size; a file that another process shortens while it is mapped ends this one
 * by SIGBUS, as contract.h says. */
static int32_t map(struct posenc_file *file, const char *path, posenc_error *error)
{
    size_t length = file->size < POSENC_CONTRACT_MAX_HEADER ? (size_t)file->size
                                                            : POSENC_CONTRACT_MAX_HEADER;
    void *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
    if (bytes == MAP_FAILED) {
        return fail_io(error, path, "the system could not map it");
    }
    file->bytes = bytes;
    file->length = length;
    file->mapped = 1;
    return POSENC_OK;
}

int posenc_file_is_gguf(const char *bytes, size_t length)
{
    return length >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

int posenc_file_read(const struct posenc_file *file, uint64_t offset, void *to, size_t size)
{
    if (offset <= file->length && size <= file->length - offset) {
        memcpy(to, file->bytes + offset, size);
        return 0;
    }
    if (file->descriptor < 0 || offset > file->size || size > file->size - offset) {
        return -1;
    }
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(file->descriptor, (char *)to + done, size - done,
                            (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return -1;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int32_t load(const char *path, struct posenc_file *file, posenc_error *error)
{
    struct stat what;
    char magic[4];
    int32_t status = open_path(path, file, &what, error);
    if (status != POSENC_OK) {
        return status;
    }
    if (S_ISREG(what.st_mode) && what.st_size >= (off_t)sizeof magic) {
        file->size = (uint64_t)what.st_size;
        if (posenc_file_read(file, 0, magic, sizeof magic) == 0 &&
            posenc_file_is_gguf(magic, sizeof magic)) {
            return map(file, path, error);
        }
    }
    return read_all(file, path, error);
}

int32_t posenc_file_open(const char *path, struct posenc_file *file, posenc_error *error)
{
    int saved = errno;
    *file = (struct posenc_file){.descriptor = -1};
    int32_t status = load(path, file, error);
    errno = saved;
    return status;
}

void posenc_file_close(struct posenc_file *file)
{
    int saved = errno;
    if (file->mapped) {
        munmap((void *)(uintptr_t)file->bytes, file->length);
    } else {
        free((void *)(uintptr_t)file->bytes);
    }
    if (file->descriptor >= 0) {
        close(file->descriptor);
    }
    *file = (struct posenc_file){.descriptor = -1};
    errno = saved;
}
