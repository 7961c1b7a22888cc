/* SPDX-License-Identifier: MIT */
/* Output files that appear whole or not at all. */
#ifndef POSENC_OUTPUT_H
#define POSENC_OUTPUT_H

#include <stddef.h>

struct tool_output {
    int fd;
    const char *path; /* as the user named it */
    char *target;     /* where the file goes, symbolic links followed; NULL for a device or pipe */
    char *temporary;  /* beside it */
};

/* Installs the handlers that remove an unfinished file when a signal ends the process. Call once.
 */
void tool_output_guard(void);

/* Each returns TOOL_OK, or TOOL_SYSTEM after saying why; after a failure nothing is left behind.
 * What is no regular file (a device, a pipe) is written to directly. */
int tool_output_open(struct tool_output *output, const char *path);
void tool_output_standard(struct tool_output *output); /* standard output instead of a file */
int tool_output_write(struct tool_output *output, const void *data, size_t bytes);
int tool_output_close(struct tool_output *output); /* makes the file appear under its name */
void tool_output_discard(struct tool_output *output);

#endif
