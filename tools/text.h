/* SPDX-License-Identifier: MIT */
/* Text that is gathered in memory before the first byte of it goes out. */
#ifndef POSENC_TEXT_H
#define POSENC_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct tool_text {
    char *data;
    size_t length, room;
    int is_short; /* memory ended: what is here is not all */
};

/*
 * A stream into `text`, or NULL after saying why. Not open_memstream: where memory ends, glibc's
 * drops characters and reports no error from fclose or ferror.
 */
FILE *tool_text_open(struct tool_text *text);

/* Closes the stream. TOOL_OK with all of the text, or TOOL_SYSTEM after saying why. */
int tool_text_close(struct tool_text *text, FILE *stream);

void tool_text_free(struct tool_text *text);

#endif
