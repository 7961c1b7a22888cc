/* SPDX-License-Identifier: MIT */
/* Keys copied between caches of any kinds: the call and its checks. */
#include "cache_copy.h"
#include "error.h"

static int32_t check_sequence(const char *name, int64_t sequence,
                              const struct posenc_cache_map *map, posenc_error *error)
{
    if (sequence >= -1 && sequence < map->sequences)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be -1..%d", name, sequence,
                       map->sequences - 1);
}

static int32_t check_sequences(struct posenc_key_copy *copy, posenc_error *error)
{
    int32_t status = check_sequence("from_sequence", copy->from_sequence, &copy->from, error);
    if (!status)
        status = check_sequence("to_sequence", copy->to_sequence, &copy->to, error);
    if (status)
        return status;
    const int all = copy->to_sequence < 0;
    if ((copy->from_sequence < 0) != all)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "from_sequence is %d, to_sequence %d: both must be -1, or neither",
                           copy->from_sequence, copy->to_sequence);
    if (all && copy->from.sequences != copy->to.sequences)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "from has %d sequences, to has %d: must be the same number for all (-1)",
                           copy->from.sequences, copy->to.sequences);
    copy->sequences = all ? copy->to.sequences : 1;
    if (all)
        copy->from_sequence = copy->to_sequence = 0;
    return POSENC_OK;
}

static int32_t check_shapes(const struct posenc_key_copy *copy, posenc_error *error)
{
    if (copy->from.heads != copy->to.heads || copy->from.channels != copy->to.channels)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "from has %d heads of %d channels, to has %d of %d: must be the same",
                           copy->from.heads, copy->from.channels, copy->to.heads,
                           copy->to.channels);
    if (!posenc_copy_is_plain(copy) && (copy->from.groups || copy->to.groups) &&
        copy->to.channels > POSENC_COPY_CHANNELS)
        return posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                           "to.rows.shape[3] is %d: must be %d at most where POSENC_I8 is "
                           "converted",
                           copy->to.channels, (int64_t)POSENC_COPY_CHANNELS);
    return POSENC_OK;
}

/* The keys that are read and those that are written. */
static int32_t check_keys(const struct posenc_key_copy *copy, posenc_error *error)
{
    int32_t status = POSENC_OK;
    const int64_t of_from = posenc_cache_unlike(&copy->from, copy->sequences);
    const int64_t of_to = posenc_cache_unlike(&copy->to, copy->sequences);
    for (int64_t b = 0; !status && b < (of_from > of_to ? of_from : of_to); b++) {
        const int64_t from = copy->from_sequence + b;
        status = posenc_cache_keys_check(&copy->to, copy->to_sequence + b, copy->first, copy->count,
                                         error);
        if (!status && !copy->keys)
            status = posenc_cache_keys_check(&copy->from, from, copy->from_first, copy->count,
                                             error);
        for (int64_t t = 0; !status && copy->keys && t < copy->count; t++)
            status = posenc_cache_keys_check(&copy->from, from, copy->keys[t], 1, error);
    }
    return status;
}

/* What is read beside the keys must not be written. */
static int32_t check_arrays(const struct posenc_key_copy *copy, posenc_error *error)
{
    const struct posenc_cache_map *from = &copy->from;
    struct posenc_array keys;
    int32_t status = POSENC_OK;
    if (copy->keys)
        status = posenc_array_check(&keys, copy->keys, (size_t)copy->count, sizeof(*copy->keys),
                                    "keys", error);
    if (!status && copy->keys)
        status = posenc_cache_apart_array(&copy->to, &keys, error);
    for (int i = 0; !status && i < from->arrays; i++)
        status = posenc_cache_apart_array(&copy->to, &from->array[i], error);
    if (!status && from->cache.header) {
        const uintptr_t begin = (uintptr_t)from->cache.header;
        const struct posenc_array header = {"from.header", begin,
                                            begin + sizeof(*from->cache.header)};
        status = posenc_cache_apart_array(&copy->to, &header, error);
    }
    return status;
}

static int32_t check(struct posenc_key_copy *copy, posenc_error *error)
{
    int32_t status = check_shapes(copy, error);
    if (!status)
        status = posenc_cache_writable(&copy->to, error);
    if (!status)
        status = posenc_cache_headers_agree(&copy->from, &copy->to, error);
    if (!status)
        status = check_sequences(copy, error);
    if (!status && copy->count < 0)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "count is %d: must be >= 0",
                             copy->count);
    if (!status && copy->keys && copy->from_first)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "from_first is %d: must be 0 where keys are given", copy->from_first);
    if (!status)
        status = check_arrays(copy, error);
    if (!status)
        status = check_keys(copy, error);
    return status ? status : posenc_copy_apart(copy, error);
}

int32_t posenc_cache_copy(const posenc_cache *from, int64_t from_sequence, int64_t from_first,
                          const int64_t *keys, const posenc_cache *to, int64_t to_sequence,
                          int64_t first, int64_t count, posenc_error *error)
{
    struct posenc_key_copy copy = {
        .from_sequence = from_sequence,
        .to_sequence = to_sequence,
        .keys = keys,
        .from_first = from_first,
        .first = first,
        .count = count,
    };
    int32_t status = posenc_cache_read(&copy.from, from, "from", error);
    if (!status)
        status = posenc_cache_read(&copy.to, to, "to", error);
    if (!status)
        status = posenc_kernels_choose(&copy.kernels, POSENC_ISA_DEFAULT, "isa", error);
    if (!status)
        status = check(&copy, error);
    if (!status)
        posenc_copy_keys(&copy);
    return status;
}
