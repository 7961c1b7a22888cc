/* SPDX-License-Identifier: MIT */
/* Reading parameter structs that grow at their end. */
#include "structs.h"

#include "error.h"

enum { LARGEST = 4096 }; /* a size beyond this is garbage, and its tail is not safe to look at */

int32_t posenc_struct_read(void *to, size_t known, size_t first, const void *from,
                           const char *name, posenc_error *error)
{
    const unsigned char *bytes = from;
    uint32_t size;
    if (!from)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", name);
    memcpy(&size, from, sizeof(size));
    if ((size < known && size != first) || size > LARGEST)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.struct_size is %d: must be the size of the struct, %d", name,
                           (int64_t)size, (int64_t)known);
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return posenc_fail(
                error, POSENC_ERROR_ARGUMENT,
                "%s.struct_size is %d and byte %d is set: this version knows %d bytes", name,
                (int64_t)size, (int64_t)i, (int64_t)known);
    memcpy(to, from, size < known ? size : known);
    return POSENC_OK;
}
