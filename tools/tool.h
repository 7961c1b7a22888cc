/* SPDX-License-Identifier: MIT */
/* What every subcommand of posenc shares: exit codes, refusals in one line, numbers, options. */
#ifndef POSENC_TOOL_H
#define POSENC_TOOL_H

#include <posenc/posenc.h>
#include <stdint.h>

enum { /* exit codes of the command */
       TOOL_OK = 0,
       TOOL_REFUSED = 1, /* the input was refused or a check failed */
       TOOL_USAGE = 2,
       TOOL_SYSTEM = 3 /* I/O, memory */
};

/* The name of the running subcommand, for messages; set once by main. */
extern const char *tool_command;

/* Prints "posenc COMMAND: message" as one line of standard error, whatever the message contains,
 * and returns `code`. */
int tool_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a failure that the library reported about `subject` (a file or an argument). */
int tool_fail_library(const char *subject, const posenc_error *error);

/* "posenc COMMAND: warning: ..." in one line. Call only when nothing can be refused any more. */
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Strict numbers: the whole text, no space around it. 0 if it is none or outside [least, most]. */
int tool_integer(const char *text, int64_t least, int64_t most, int64_t *value);
int tool_real(const char *text, double *value);

/* "f32", "f16", "bf16" <-> POSENC_F32, ...; 0 or "?" for others. Bytes of one element. */
int32_t tool_dtype(const char *name);
const char *tool_dtype_name(int32_t dtype);
size_t tool_dtype_size(int32_t dtype);

/* One option; a name of one character is a short one. Without `argument` it takes none; without
 * `help` it is known but not offered yet. */
struct tool_option {
    int id; /* > 0 */
    const char *name;
    const char *argument;
    const char *help;
};

/* What --help prints and what the parser accepts. Option tables end with an id of 0. */
struct tool_usage {
    const char *usage;   /* after "posenc " */
    const char *summary; /* one or more whole lines */
    const struct tool_option *options;
    const struct tool_option *shared; /* further options, or NULL */
    const char *example;
};

/* Takes one option into a subcommand's request; an exit code if its value is refused. */
typedef int tool_take_option(void *request, int id, const char *value);

/* Takes all options. 1 if operands are to be read from optind on; 0 if the subcommand must return
 * *code at once. */
int tool_take_options(const struct tool_usage *usage, int argc, char **argv, tool_take_option *take,
                      void *request, int *code);

enum { TOOL_OPTION_END = 0, TOOL_OPTION_STOP = -1 };

/* The next option's id with its argument in `value`; END when only operands are left (from optind
 * on); STOP when the subcommand must return *code at once: --help was printed or wrong usage
 * reported. */
int tool_next_option(const struct tool_usage *usage, int argc, char **argv, const char **value,
                     int *code);

/* Wrong usage, with a pointer to --help. Returns TOOL_USAGE. */
int tool_wrong_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line on a terminal's standard error, once a second has passed; NULL clears it. */
void tool_progress(const char *what);

double tool_now(void); /* seconds */

/* Subcommands: argv[0] is the subcommand's name; the result is the exit code. */
int tool_run(int argc, char **argv);
int tool_inspect(int argc, char **argv);
int tool_rotate(int argc, char **argv);
int tool_attend(int argc, char **argv);
int tool_isa(int argc, char **argv);
int tool_diff(int argc, char **argv);
int tool_fingerprint(int argc, char **argv);
int tool_rows(int argc, char **argv);
int tool_bands(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_permute(int argc, char **argv);
int tool_plot(int argc, char **argv);
int tool_bias(int argc, char **argv);

#endif
