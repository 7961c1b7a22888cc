/* SPDX-License-Identifier: MIT */
/* Values of the JSON that subcommands print. */
#ifndef POSENC_TOOL_JSON_H
#define POSENC_TOOL_JSON_H

/* With quotes, whatever the text contains; null for NULL. */
void json_string(const char *text);

/* 17 digits; null where the value is not finite. */
void json_real(double value);

#endif
