/* SPDX-License-Identifier: MIT */
/* Cosine and sine in double-double, for rows of doubles and rows with a decay. */
#ifndef POSENC_ANGLE_DD_H
#define POSENC_ANGLE_DD_H

#include "angle.h"
#include "dd.h"

/* Within 2^-60 of the truth, absolutely. */
void posenc_sincos_dd(struct posenc_turns a, posenc_dd *sine, posenc_dd *cosine);

#endif
