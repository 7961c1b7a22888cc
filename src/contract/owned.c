/* SPDX-License-Identifier: MIT */
/* The memory of a contract, and answers into structs of the caller. */
#include "reader.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct posenc_owned {
    struct posenc_owned *next;
    alignas(max_align_t) char bytes[];
};

void *posenc_own(struct posenc_contract *contract, size_t size)
{
    struct posenc_owned *owned = calloc(1, sizeof *owned + size);
    if (!owned) {
        return NULL;
    }
    owned->next = contract->owned;
    contract->owned = owned;
    return owned->bytes;
}

void posenc_disown(struct posenc_contract *contract)
{
    while (contract->owned) {
        struct posenc_owned *next = contract->owned->next;
        free(contract->owned);
        contract->owned = next;
    }
}

struct posenc_contract *posenc_contract_new(void)
{
    struct posenc_contract *contract = calloc(1, sizeof *contract);
    if (contract) {
        posenc_contract_facts *facts = &contract->facts;
        facts->num_heads = facts->num_kv_heads = facts->head_dim = facts->num_layers = -1;
        facts->max_position = facts->trained_position = facts->sliding_window = -1;
        facts->query_scale_floor = facts->query_scale_offset = -1;
        facts->attention_chunk = facts->window_sides = -1;
    }
    return contract;
}

/*
 * Copies an answer into a caller's struct of `room` bytes. A larger struct comes from a newer
 * header: its tail is cleared. No release had smaller ones, so those are refused.
 */
int32_t posenc_give(const struct posenc_contract *contract, const char *name, void *to,
                    const void *from, size_t size, posenc_error *error)
{
    uint32_t room;
    if (!contract) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "contract is NULL: must be given");
    }
    if (!to) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", name);
    }
    memcpy(&room, to, sizeof room);
    if (room < size || room > 65536) {
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s->struct_size is %d: must be %d, the size of the struct", name,
                           (int64_t)room, (int64_t)size);
    }
    memset((char *)to + size, 0, room - size);
    memcpy(to, from, size);
    memcpy(to, &room, sizeof room);
    return POSENC_OK;
}
