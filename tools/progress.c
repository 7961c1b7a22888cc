/* SPDX-License-Identifier: MIT */
/* What long work says while it goes on. */
#include "tool.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double tool_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tool_progress(const char *what)
{
    static double start;
    static int shown;
    if (start == 0)
        start = tool_now();
    if (what && tool_now() - start > 1 && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%-60s", what);
        shown = 1;
    } else if (!what && shown) {
        fprintf(stderr, "\r%60s\r", "");
        shown = 0;
    }
}
