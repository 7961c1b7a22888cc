/* SPDX-License-Identifier: MIT */
/* What comparing and fingerprints look at: the facts that change results, each with its key. */
#ifndef POSENC_CONTRACT_COMPARED_H
#define POSENC_CONTRACT_COMPARED_H

#include "reader.h"

enum posenc_value_kind {
    POSENC_VALUE_ABSENT,
    POSENC_VALUE_INTEGER,
    POSENC_VALUE_REAL,
    POSENC_VALUE_TEXT
};

struct posenc_value {
    enum posenc_value_kind kind;
    int64_t integer;
    double real;
    const char *text;
};

/* 1 if no result can tell them apart. */
int posenc_value_same(const struct posenc_value *a, const struct posenc_value *b);

/* Facts of the model outside its frequency sets: index 0, 1, ... until the answer is 0. `key` is as
 * inspect --json spells it. */
int posenc_fact(const posenc_contract *contract, int index, const char **key,
                struct posenc_value *value);

/* Parameters of a frequency set, the same way; arrays are not among them. ABSENT where the set's
 * scaling does not use the parameter. */
int posenc_set_fact(const struct posenc_set *set, int index, const char **key,
                    struct posenc_value *value);

/* The arrays of a set, the same way. `count` is 0 where the set has none. */
int posenc_set_array(const struct posenc_set *set, int index, const char **key, int32_t *count);

/* Element `i` of the array `index`. */
double posenc_set_element(const struct posenc_set *set, int index, int32_t i);

#endif
