/* SPDX-License-Identifier: MIT */
/* The frequencies of a set, before and after scaling, and the length that training showed. */
#ifndef POSENC_TOOL_BANDS_H
#define POSENC_TOOL_BANDS_H

#include "model.h"

struct bands {
    const char *id;
    posenc_rope_params params;
    int32_t pairs;
    int64_t trained;              /* -1 unknown */
    double *frequency, *unscaled; /* `unscaled` is NULL where no formula stands behind */
    double *memory;
};

/* Reads them from plans; `trained` < 1: the model's own. Refuses a layer that is not rotated. */
int bands_read(struct bands *bands, const struct model *model, const struct model_set *set,
               int64_t trained);
void bands_free(struct bands *bands);

#endif
