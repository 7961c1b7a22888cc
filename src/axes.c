/* SPDX-License-Identifier: MIT */
/* Which position axis turns which pair. */
#include "common.h"
#include "error.h"

int32_t posenc_axis_map(int32_t *axis_of_pair, size_t pairs, int32_t pattern,
                        const int32_t *section, size_t sections, posenc_error *error)
{
    (void)axis_of_pair;
    (void)pairs;
    (void)pattern;
    (void)section;
    (void)sections;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
