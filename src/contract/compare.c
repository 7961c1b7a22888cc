/* SPDX-License-Identifier: MIT */
/* Comparing two contracts. */
#include "reader.h"

int32_t posenc_contract_compare(const posenc_contract *a, const posenc_contract *b,
                              posenc_contract_difference *differences, size_t capacity,
                              size_t *count, posenc_error *error)
{
    (void)a;
    (void)b;
    (void)differences;
    (void)capacity;
    (void)count;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_contract_fingerprint(const posenc_contract *contract, uint8_t *fingerprint,
                              posenc_error *error)
{
    (void)contract;
    (void)fingerprint;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
