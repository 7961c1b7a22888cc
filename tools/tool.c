/* SPDX-License-Identifier: MIT */
/* Refusals in one line, strict numbers and the option parser that all subcommands share. */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tool_command = NULL;

/* One line whatever a file name or a key contains: control characters become '?'. */
static void print_line(const char *prefix, const char *format, va_list arguments,
                       const char *suffix)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, arguments);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    tool_progress(NULL); /* or the message would follow it on its line */
    fprintf(stderr, "posenc%s%s: %s%s%s\n", tool_command ? " " : "",
            tool_command ? tool_command : "", prefix, line, suffix);
}

int tool_fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments, "");
    va_end(arguments);
    return code;
}

int tool_fail_library(const char *subject, const posenc_error *error)
{
    int system = error->code == POSENC_ERROR_MEMORY || error->code == POSENC_ERROR_IO;
    int named = !*subject || strncmp(error->text, subject, strlen(subject)) == 0;
    return tool_fail(system ? TOOL_SYSTEM : TOOL_REFUSED, "%s%s%s", named ? "" : subject,
                     named ? "" : ": ", error->text);
}

void tool_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("warning: ", format, arguments, "");
    va_end(arguments);
}

int tool_wrong_usage(const char *format, ...)
{
    char hint[128];
    snprintf(hint, sizeof hint, " (see posenc %s%s--help)", tool_command ? tool_command : "",
             tool_command ? " " : "");
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments, hint);
    va_end(arguments);
    return TOOL_USAGE;
}

int tool_integer(const char *text, int64_t least, int64_t most, int64_t *value)
{
    char first = *text == '-' ? text[1] : *text;
    if (first < '0' || first > '9')
        return 0;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || *end || number < least || number > most)
        return 0;
    *value = number;
    return 1;
}

int tool_real(const char *text, double *value)
{
    char first = *text == '-' ? text[1] : *text;
    if ((first < '0' || first > '9') && first != '.')
        return 0;
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number))
        return 0;
    *value = number;
    return 1;
}

static const char *const dtype_names[] = {"f32", "f16", "bf16"};

int32_t tool_dtype(const char *name)
{
    for (int32_t d = POSENC_F32; d <= POSENC_BF16; d++)
        if (strcmp(name, dtype_names[d - POSENC_F32]) == 0)
            return d;
    return 0;
}

const char *tool_dtype_name(int32_t dtype)
{
    return dtype >= POSENC_F32 && dtype <= POSENC_BF16 ? dtype_names[dtype - POSENC_F32] : "?";
}

size_t tool_dtype_size(int32_t dtype)
{
    return dtype == POSENC_F32 || dtype == POSENC_I32 ? 4 : dtype == POSENC_I64 ? 8 : 2;
}

static void print_options(const struct tool_option *option)
{
    for (; option && option->id; option++) {
        if (!option->help)
            continue;
        char left[40];
        snprintf(left, sizeof left, "%s%s%s%s", option->name[1] ? "--" : "-", option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
        printf("  %-22s", left);
        if (strlen(left) > 21)
            printf("\n%24s", "");
        for (const char *c = option->help; *c; c++) {
            putchar(*c);
            if (*c == '\n')
                printf("%24s", "");
        }
        putchar('\n');
    }
}

static void print_help(const struct tool_usage *usage)
{
    printf("usage: posenc %s\n\n%s\n\noptions:\n", usage->usage, usage->summary);
    print_options(usage->options);
    print_options(usage->shared);
    printf("  %-22s%s\n\nexample:\n  %s\n", "--help, -h", "this text", usage->example);
}

enum { MAX_OPTIONS = 40, HELP = 1000 };

/* Lays out both tables for getopt, long names in `options`, short ones in `letters`; `known` keeps
 * the rows by index. */
static void collect(const struct tool_usage *usage, struct option *options, char *letters,
                    const struct tool_option **known)
{
    int count = 0, names = 0;
    const struct tool_option *const tables[2] = {usage->options, usage->shared};
    for (int t = 0; t < 2; t++)
        for (const struct tool_option *o = tables[t]; o && o->id && count < MAX_OPTIONS; o++) {
            known[count++] = o;
            if (!o->name[1]) {
                *letters++ = o->name[0];
                if (o->argument)
                    *letters++ = ':';
                continue;
            }
            options[names].name = o->name;
            options[names].has_arg = o->argument ? required_argument : no_argument;
            options[names++].val = HELP + count;
        }
    *letters = '\0';
    options[names].name = "help";
    options[names].val = HELP;
}

/* The row that getopt's answer means; NULL for --help and for mistakes. */
static const struct tool_option *find_option(const struct tool_option *const *known, int got)
{
    if (got > HELP)
        return known[got - HELP - 1];
    for (int i = 0; i < MAX_OPTIONS && known[i]; i++)
        if (!known[i]->name[1] && known[i]->name[0] == got)
            return known[i];
    return NULL;
}

int tool_next_option(const struct tool_usage *usage, int argc, char **argv, const char **value,
                     int *code)
{
    struct option options[MAX_OPTIONS + 2] = {{0}};
    const struct tool_option *known[MAX_OPTIONS + 1] = {NULL};
    char letters[2 * MAX_OPTIONS + 4] = ":h";
    collect(usage, options, letters + 2, known);
    opterr = 0;
    optopt = 0;
    int got = getopt_long(argc, argv, letters, options, NULL);
    if (got == -1)
        return TOOL_OPTION_END;
    if (got == HELP || got == 'h') {
        print_help(usage);
        *code = TOOL_OK;
        return TOOL_OPTION_STOP;
    }
    const struct tool_option *option = find_option(known, got);
    if (option) {
        *value = optarg;
        if (option->help)
            return option->id;
        *code = tool_wrong_usage("--%s is not offered yet", option->name);
        return TOOL_OPTION_STOP;
    }
    const char *text = optind > 0 ? argv[optind - 1] : "";
    *code = got == ':'                ? tool_wrong_usage("%s needs a value", text)
            : optopt && optopt < HELP ? tool_wrong_usage("-%c is unknown", optopt)
            : optopt >= HELP          ? tool_wrong_usage("%s takes no value", text)
                                      : tool_wrong_usage("%s is unknown or ambiguous", text);
    return TOOL_OPTION_STOP;
}

int tool_take_options(const struct tool_usage *usage, int argc, char **argv, tool_take_option *take,
                      void *request, int *code)
{
    const char *value = NULL;
    int id;
    while ((id = tool_next_option(usage, argc, argv, &value, code)) > 0) {
        *code = take(request, id, value);
        if (*code)
            return 0;
    }
    return id == TOOL_OPTION_END;
}
