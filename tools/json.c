/* SPDX-License-Identifier: MIT */
/* Values of the JSON that subcommands print. */
#include "json.h"

#include <math.h>
#include <stdio.h>

void json_string(const char *text)
{
    if (!text) {
        printf("null");
        return;
    }
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 0x20)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('"');
}

void json_real(double value)
{
    if (isfinite(value))
        printf("%.17g", value);
    else
        printf("null");
}
