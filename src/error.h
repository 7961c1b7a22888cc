/* SPDX-License-Identifier: MIT */
/* Filling a caller's posenc_error without locale, errno or allocation. */
#ifndef POSENC_ERROR_H
#define POSENC_ERROR_H

#include <posenc/posenc.h>

/*
 * Fills `error` (may be NULL) and returns `status`, so that a check reads
 *
 *     if (n <= 0) return posenc_fail(error, POSENC_ERROR_ARGUMENT, "n is %d: must be > 0", n);
 *
 * A formatter of our own because printf follows the locale and may set errno. It knows %s (NULL is
 * "(null)"), %d (int64_t: cast every argument), %g (double, 9 significant digits) and %%.
 */
int32_t posenc_fail(posenc_error *error, int32_t status, const char *format, ...);

#endif
