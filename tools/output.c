/* SPDX-License-Identifier: MIT */
/* Output files that appear whole or not at all: written beside the target, then renamed. */
#include "output.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char unfinished[PATH_MAX];
static volatile sig_atomic_t is_unfinished;

static void remove_unfinished(int number)
{
    if (is_unfinished)
        unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number);
}

void tool_output_guard(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    action.sa_handler = remove_unfinished;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        /* nohup and shells ignore some of them on purpose */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

static int fail(struct tool_output *output)
{
    int code = tool_fail(TOOL_SYSTEM, "%s: %s", output->path, strerror(errno));
    tool_output_discard(output);
    return code;
}

static int open_beside(struct tool_output *output, mode_t mode)
{
    size_t length = strlen(output->target) + sizeof ".XXXXXX";
    if (length > sizeof unfinished) {
        errno = ENAMETOOLONG;
        return fail(output);
    }
    output->temporary = malloc(length);
    if (!output->temporary)
        return fail(output);
    snprintf(output->temporary, length, "%s.XXXXXX", output->target);

    /* No signal may come between the file's birth and the note of its name. */
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    output->fd = mkstemp(output->temporary);
    if (output->fd >= 0) {
        memcpy(unfinished, output->temporary, length);
        is_unfinished = 1;
    }
    int reason = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (output->fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        errno = reason;
        return fail(output);
    }
    if (fchmod(output->fd, mode))
        return fail(output);
    return TOOL_OK;
}

int tool_output_open(struct tool_output *output, const char *path)
{
    struct stat status;
    memset(output, 0, sizeof *output);
    output->fd = -1;
    output->path = path;
    int exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return fail(output);
    if (exists && !S_ISREG(status.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC);
        return output->fd < 0 ? fail(output) : TOOL_OK;
    }
    if (exists && access(path, W_OK))
        return fail(output);
    output->target = exists ? realpath(path, NULL) : strdup(path);
    if (!output->target)
        return fail(output);
    mode_t mask = umask(0);
    umask(mask);
    return open_beside(output, exists ? status.st_mode & 0777 : 0666 & ~mask);
}

void tool_output_standard(struct tool_output *output)
{
    memset(output, 0, sizeof *output);
    output->fd = STDOUT_FILENO;
    output->path = "standard output";
}

int tool_output_write(struct tool_output *output, const void *data, size_t bytes)
{
    const char *next = data;
    while (bytes > 0) {
        ssize_t written = write(output->fd, next, bytes < 1 << 30 ? bytes : 1 << 30);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail(output);
        next += written;
        bytes -= (size_t)written;
    }
    return TOOL_OK;
}

int tool_output_close(struct tool_output *output)
{
    int fd = output->fd;
    output->fd = -1;
    if (close(fd))
        return fail(output);
    if (output->target && rename(output->temporary, output->target))
        return fail(output);
    is_unfinished = 0;
    free(output->temporary);
    output->temporary = NULL;
    tool_output_discard(output);
    return TOOL_OK;
}

void tool_output_discard(struct tool_output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    if (output->temporary)
        unlink(output->temporary);
    is_unfinished = 0;
    free(output->temporary);
    free(output->target);
    output->temporary = output->target = NULL;
    output->fd = -1;
}
