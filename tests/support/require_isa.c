/* SPDX-License-Identifier: MIT */
/* Part of each program that runs once per ISA: ends it as skipped where POSENC_ISA names another
 * CPU's, so that a pass always shows something. */
#include "cpu.h"

#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 }; /* what CTest is told to take for it */

/* Before main, and by posenc_cpu_features alone: test_threads wants the library untouched. */
__attribute__((constructor)) static void require_isa(void)
{
    const char *wanted = getenv("POSENC_ISA");
    for (int32_t isa = POSENC_ISA_SCALAR; wanted && isa <= POSENC_ISA_NEON; isa++)
        if (strcmp(posenc_isa_name(isa), wanted) == 0 && !(posenc_cpu_features() >> isa & 1)) {
            printf("this CPU has no %s\n", wanted);
            exit(SKIPPED);
        }
}
