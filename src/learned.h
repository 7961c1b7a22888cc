/* SPDX-License-Identifier: MIT */
/* Learned tables: views [1][rows][1][channels], element by element. */
#ifndef POSENC_LEARNED_H
#define POSENC_LEARNED_H

#include "tensor.h"

/* Checks a table by itself. */
int32_t posenc_table_check(struct posenc_view *view, const posenc_tensor *table, const char *name,
                           posenc_error *error);

/* An element, widened exactly; rounded once. */
float posenc_table_get(const posenc_tensor *table, int64_t row, int64_t channel);
void posenc_table_put(const posenc_tensor *table, int64_t row, int64_t channel, float value);

#endif
