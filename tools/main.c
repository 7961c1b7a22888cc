/* SPDX-License-Identifier: MIT */
/* The command posenc: a table of subcommands, and what holds for all of them. */
#include "output.h"
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", tool_run, "the whole path on a model's own shape, checked and measured"},
    {"inspect", tool_inspect, "what a model's files say about positions"},
    {"diff", tool_diff, "what two models do differently"},
    {"fingerprint", tool_fingerprint, "32 hex digits of what changes results"},
    {"rows", tool_rows, "cosine and sine rows, as text, CSV or an array"},
    {"bands", tool_bands, "frequency by frequency: wavelength, turns, scaling"},
    {"bias", tool_bias, "the bias of ALiBi or T5 as an array"},
    {"plot", tool_plot, "heat maps, bands and similarity, as text or SVG"},
    {"compare", tool_compare, "how far other systems' recipes are from exact rows"},
    {"rotate", tool_rotate, "rotate an array by its positions, or undo it"},
    {"attend", tool_attend, "attention over arrays, small and exact"},
    {"permute", tool_permute, "projection weights and keys into the other pair layout"},
    {"isa", tool_isa, "the instruction sets this machine offers, and which is used"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const char *const later[] = {"bench"};

static void print_help(void)
{
    printf("usage: posenc SUBCOMMAND [OPTIONS] ...\n\n"
           "Positions in attention, exact and at memory speed.\n\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    printf("\n'posenc SUBCOMMAND --help' tells its options and shows an example.\n"
           "POSENC_ISA=scalar|avx2|avx512|neon in the environment names the kernels to use.\n\n"
           "example:\n  posenc run config.json\n");
}

/* The library takes an unknown POSENC_ISA for "the best"; a command must not measure one thing
 * while its user asked for another. */
static int check_isa(void)
{
    const char *name = getenv("POSENC_ISA");
    if (!name || !*name)
        return TOOL_OK;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        if (strcmp(posenc_isa_name(isa), name) != 0)
            continue;
        if (posenc_isa_available(isa))
            return TOOL_OK;
        return tool_fail(TOOL_USAGE, "POSENC_ISA is %s: this CPU or build does not offer it", name);
    }
    return tool_fail(TOOL_USAGE, "POSENC_ISA is %s: must be scalar, avx2, avx512 or neon", name);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return tool_wrong_usage("a subcommand is missing");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return TOOL_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("posenc %s\n", posenc_version());
        return TOOL_OK;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        tool_command = commands[i].name;
        int code = check_isa();
        return code ? code : commands[i].run(argc - 1, argv + 1);
    }
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (strcmp(argv[1], later[i]) == 0)
            return tool_wrong_usage("subcommand %s is not offered yet", argv[1]);
    return tool_wrong_usage("%s is not a subcommand", argv[1]);
}

int main(int argc, char **argv)
{
    /* A file that grows past a limit shall fail as a write, so that it can be reported. */
    signal(SIGXFSZ, SIG_IGN);
    tool_output_guard();
    int code = dispatch(argc, argv);
    errno = 0;
    /* What was refused has printed nothing; what differs or failed a check has. */
    if ((fflush(stdout) || ferror(stdout)) && (code == TOOL_OK || code == TOOL_REFUSED))
        code = tool_fail(TOOL_SYSTEM, "standard output: %s", strerror(errno ? errno : EIO));
    return code;
}
