/* SPDX-License-Identifier: MIT */
/* Checks on the plain arrays of a call: their pointers, sizes, and which memory they share. */
#include "array.h"

#include "error.h"

/* That of the elements or, for a struct, of its widest member; 32-bit x86 aligns 8 bytes to 4. */
static size_t alignment_of(size_t size)
{
    return size % _Alignof(int64_t) ? size : _Alignof(int64_t);
}

int32_t posenc_array_check(struct posenc_array *array, const void *data, size_t count, size_t size,
                           const char *name, posenc_error *error)
{
    uintptr_t begin = (uintptr_t)data;
    *array = (struct posenc_array){name, begin, begin};
    if (count == 0)
        return POSENC_OK;
    if (!data)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", name);
    if (begin % alignment_of(size))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s is not aligned to its elements: must be a multiple of %d bytes",
                           name, posenc_size(alignment_of(size)));
    if (count > PTRDIFF_MAX / size || count * size > UINTPTR_MAX - begin)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s has %d elements of %d bytes: must fit the address space", name,
                           posenc_size(count), posenc_size(size));
    array->end = begin + count * size;
    return POSENC_OK;
}

int32_t posenc_arrays_apart(const struct posenc_array *arrays, int outputs, int count,
                            posenc_error *error)
{
    for (int i = 0; i < outputs; i++)
        for (int j = i + 1; j < count; j++)
            if (arrays[i].begin < arrays[j].end && arrays[j].begin < arrays[i].end)
                return posenc_fail(error, POSENC_ERROR_OVERLAP,
                                   "%s and %s share memory: must lie apart", arrays[i].name,
                                   arrays[j].name);
    return POSENC_OK;
}
