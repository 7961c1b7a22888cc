/* SPDX-License-Identifier: MIT */
/* Competitors measured in interleaved rounds against the fastest of their limits. */
#ifndef POSENC_TOOL_MEASURE_H
#define POSENC_TOOL_MEASURE_H

#include "touch.h"

enum { MEASURE_ISAS = 4, MEASURE_TOUCHES = 3, MEASURE_MAX_ROUNDS = 21 };

/* One competitor of the measurement: a kernel table or a limit. */
struct measure_result {
    const char *name;
    double seconds; /* of one pass, median */
    double ratio;   /* to the limit, median over the rounds */
    double spread;  /* distance of its quartiles */
};

/* What is measured: one pass by ISA number `isa` (from 0), or by touch kernel where it is not
 * NULL. */
struct measure_work {
    const void *data;
    void (*pass)(const void *data, int isa, touch_kernel *touch);
    int isas;
    const int32_t *isa; /* [isas]: POSENC_ISA_* */
    int touches;
    touch_kernel *touch[MEASURE_TOUCHES];
    const char *touch_name[MEASURE_TOUCHES];
};

struct measurement {
    struct measure_result result[MEASURE_ISAS];
    struct measure_result touch[MEASURE_TOUCHES];
    int touches, limit; /* touch[limit] is the fastest */
    int rounds;
};

/* TOOL_OK or an exit code after saying why. */
int measure(const struct measure_work *work, struct measurement *found);

/* Time that this thread has computed: what others do with the processor meanwhile is not ours. */
double measure_now(void);

#endif
