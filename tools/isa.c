/* SPDX-License-Identifier: MIT */
/* posenc isa: what the CPU has, what was chosen and why. */
#include "tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const struct tool_option options[] = {{0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "isa",
    "Lists the instruction sets that libposenc has kernels for, whether this CPU and\n"
    "its operating system offer them, which one is used and why. All give equal bits.",
    options, NULL, "POSENC_ISA=avx2 posenc isa"};

static const char *needs(int32_t isa)
{
    switch (isa) {
    case POSENC_ISA_AVX2: return "AVX2, FMA, F16C";
    case POSENC_ISA_AVX512: return "AVX-512 F, BW, DQ, VL";
    case POSENC_ISA_NEON: return "aarch64";
    default: return "nothing";
    }
}

int tool_isa(int argc, char **argv)
{
    const char *value;
    int code;
    if (tool_next_option(&usage, argc, argv, &value, &code) == TOOL_OPTION_STOP)
        return code;
    if (optind < argc)
        return tool_wrong_usage("%s is one operand too many", argv[optind]);

    const char *wish = getenv("POSENC_ISA");
    int32_t chosen = posenc_isa_default();
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        printf("%c %-7s %-14s needs %s\n", isa == chosen ? '*' : ' ', posenc_isa_name(isa),
               posenc_isa_available(isa) ? "available" : "not available", needs(isa));
    printf("\n%s is used: %s\n", posenc_isa_name(chosen),
           wish && *wish ? "POSENC_ISA names it" : "the best that is available");
    return TOOL_OK;
}
