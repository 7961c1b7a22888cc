/* SPDX-License-Identifier: MIT */
/* The facts of the schemes that are not rotations. */
#include "reader.h"

int32_t posenc_contract_get_alibi(const posenc_contract *contract, posenc_contract_alibi *alibi,
                              posenc_error *error)
{
    (void)contract;
    (void)alibi;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_contract_get_t5(const posenc_contract *contract, posenc_contract_t5 *t5,
                              posenc_error *error)
{
    (void)contract;
    (void)t5;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_contract_get_deberta(const posenc_contract *contract,
                              posenc_contract_deberta *deberta, posenc_error *error)
{
    (void)contract;
    (void)deberta;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_contract_get_learned(const posenc_contract *contract,
                              posenc_contract_learned *learned, posenc_error *error)
{
    (void)contract;
    (void)learned;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_contract_get_sinusoidal(const posenc_contract *contract,
                              posenc_contract_sinusoidal *sinusoidal, posenc_error *error)
{
    (void)contract;
    (void)sinusoidal;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
