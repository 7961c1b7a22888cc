/* SPDX-License-Identifier: MIT */
/* The facts of the schemes that are not rotations. */
#include "reader.h"

/* A scheme that the model has, its struct_size set, into the caller's struct. */
static int32_t give_scheme(const posenc_contract *contract, const char *name, void *to,
                           const void *from, size_t size, uint32_t present, posenc_error *error)
{
    if (contract && to && !present) {
        return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "the model has no %s", name);
    }
    return posenc_give(contract, name, to, from, size, error);
}

int32_t posenc_contract_get_alibi(const posenc_contract *contract, posenc_contract_alibi *alibi,
                                  posenc_error *error)
{
    static const posenc_contract_alibi none;
    const posenc_contract_alibi *from = contract ? &contract->alibi : &none;
    return give_scheme(contract, "alibi", alibi, from, sizeof none, from->struct_size, error);
}

int32_t posenc_contract_get_t5(const posenc_contract *contract, posenc_contract_t5 *t5,
                               posenc_error *error)
{
    static const posenc_contract_t5 none;
    const posenc_contract_t5 *from = contract ? &contract->t5 : &none;
    return give_scheme(contract, "t5", t5, from, sizeof none, from->struct_size, error);
}

int32_t posenc_contract_get_deberta(const posenc_contract *contract,
                                    posenc_contract_deberta *deberta, posenc_error *error)
{
    static const posenc_contract_deberta none;
    const posenc_contract_deberta *from = contract ? &contract->deberta : &none;
    return give_scheme(contract, "deberta", deberta, from, sizeof none, from->struct_size, error);
}

int32_t posenc_contract_get_learned(const posenc_contract *contract,
                                    posenc_contract_learned *learned, posenc_error *error)
{
    static const posenc_contract_learned none;
    const posenc_contract_learned *from = contract ? &contract->learned : &none;
    return give_scheme(contract, "learned", learned, from, sizeof none, from->struct_size, error);
}

int32_t posenc_contract_get_sinusoidal(const posenc_contract *contract,
                                       posenc_contract_sinusoidal *sinusoidal, posenc_error *error)
{
    static const posenc_contract_sinusoidal none;
    const posenc_contract_sinusoidal *from = contract ? &contract->sinusoidal : &none;
    return give_scheme(contract, "sinusoidal", sinusoidal, from, sizeof none, from->struct_size,
                       error);
}
