/* SPDX-License-Identifier: MIT */
/* The short way of a sinusoid: rows of float32 made where they belong. */
#ifndef POSENC_SINUSOID_DIRECT_H
#define POSENC_SINUSOID_DIRECT_H

#include "sinusoid_rows.h"

/* What a call brings along. */
struct posenc_sinusoid_direct {
    const posenc_sinusoid *sinusoid;
    const posenc_tensor *x; /* NULL: rows are written, not added */
    const posenc_tensor *out;
    double scale;
    int ahead;         /* 1: memory of one sequence is asked for before it is written */
    int copies_ahead;  /* the same of several: posenc_asks_ahead */
    int64_t batch_end; /* of the batch rows that a stretch serves */
};

/* 1 where that way is open: float32, whole blocks of pairs, positions one after another. */
int posenc_sinusoid_is_direct(const struct posenc_sinusoid_direct *call,
                              const struct posenc_sinusoid_axis *axis,
                              const struct posenc_sinusoid_stretch *stretch);

/* Writes, or adds, the rows of the stretch. */
void posenc_sinusoid_put(const struct posenc_sinusoid_direct *call,
                         const struct posenc_sinusoid_axis *axis,
                         const struct posenc_sinusoid_stretch *stretch);

#endif
