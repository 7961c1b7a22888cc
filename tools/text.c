/* SPDX-License-Identifier: MIT */
/* Text that is gathered in memory before the first byte of it goes out. */
#include "text.h"

#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096 };

static int make_room(struct tool_text *text, size_t more)
{
    size_t room = text->room ? text->room : FIRST_ROOM;
    while (room - text->length < more) {
        if (room > SIZE_MAX / 2)
            return 0;
        room *= 2;
    }
    char *data = room > text->room ? realloc(text->data, room) : text->data;
    if (!data)
        return 0;
    text->data = data;
    text->room = room;
    return 1;
}

/* Once something is lost, all that follows is. */
static ssize_t append(void *to, const char *from, size_t size)
{
    struct tool_text *text = to;
    if (text->is_short || !make_room(text, size)) {
        text->is_short = 1;
        return 0;
    }
    memcpy(text->data + text->length, from, size);
    text->length += size;
    return (ssize_t)size;
}

FILE *tool_text_open(struct tool_text *text)
{
    *text = (struct tool_text){0};
    FILE *stream = fopencookie(text, "w", (cookie_io_functions_t){.write = append});
    if (!stream)
        tool_fail(TOOL_SYSTEM, "%s", strerror(errno));
    return stream;
}

int tool_text_close(struct tool_text *text, FILE *stream)
{
    int failed = ferror(stream);
    failed |= fclose(stream);
    if (!failed && !text->is_short)
        return TOOL_OK;
    return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

void tool_text_free(struct tool_text *text)
{
    free(text->data);
}
