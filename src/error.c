/* SPDX-License-Identifier: MIT */
/* Status names, the version, and a formatter that needs neither stdio, locale, errno nor memory. */
#include "error.h"

#include "dd.h"

#include <stdarg.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

enum { SIGNIFICANT_DIGITS = 9 };

/* The text written so far; what does not fit is dropped, one byte stays free for the NUL. */
typedef struct writer {
    char *text;
    size_t length;
    size_t capacity;
} writer;

static void put(writer *out, char c)
{
    if (out->length + 1 < out->capacity) {
        out->text[out->length++] = c;
    }
}

/* A text may be a file name or a key of a user's file: '?' keeps the message one line of ASCII. */
static void put_text(writer *out, const char *text)
{
    for (text = text ? text : "(null)"; *text; text++) {
        put(out, *text >= 0x20 && *text < 0x7f ? *text : '?');
    }
}

static void put_unsigned(writer *out, uint64_t n, int32_t least_digits)
{
    char digits[20];
    int32_t count = 0;
    do {
        digits[count++] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0 || count < least_digits);
    while (count > 0) {
        put(out, digits[--count]);
    }
}

static void put_integer(writer *out, int64_t n)
{
    if (n < 0) {
        put(out, '-');
    }
    put_unsigned(out, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, 1);
}

/*
 * x > 0 as n 10^(exponent - 8) with n in [10^8, 10^9), nearest. The scaling by a power of two is
 * exact and keeps the double-doubles far from overflow and underflow.
 */
static uint32_t decimal(double x, int32_t *exponent)
{
    double scale = x > 1e100 ? 0x1p-200 : x < 1e-100 ? 0x1p200 : 1.0;
    posenc_dd value = posenc_dd_from(x * scale), ten = posenc_dd_from(10.0);
    *exponent = SIGNIFICANT_DIGITS - 1;
    for (; value.hi >= 1e9 * scale; ++*exponent) {
        value = posenc_dd_div(value, ten);
    }
    for (; value.hi < 1e8 * scale; --*exponent) {
        value = posenc_dd_mul(value, ten);
    }
    double whole = value.hi / scale;
    uint32_t n = (uint32_t)whole;
    double rest = (whole - (double)n) + value.lo / scale;
    n += rest > 0.5 || (rest == 0.5 && n % 2 == 1);
    if (n == 1000000000) {
        n = 100000000;
        ++*exponent;
    }
    return n;
}

/* `digits` significant digits of n with the point after the first `before` of them. */
static void put_digits(writer *out, uint32_t n, int32_t digits, int32_t before)
{
    uint32_t unit = 1;
    for (int32_t i = 1; i < digits; i++) {
        unit *= 10;
    }
    for (int32_t i = 0; i < digits || i < before; i++) {
        if (i == before) {
            put(out, '.');
        }
        put(out, (char)('0' + (unit ? n / unit % 10 : 0)));
        unit /= 10;
    }
}

static void put_positive(writer *out, double x)
{
    int32_t exponent, digits = SIGNIFICANT_DIGITS;
    uint32_t n = decimal(x, &exponent);
    for (; n % 10 == 0; n /= 10) {
        digits--;
    }
    if (exponent >= 0 && exponent < SIGNIFICANT_DIGITS) {
        put_digits(out, n, digits, exponent + 1);
    } else if (exponent < 0 && exponent >= -4) {
        put_text(out, "0.");
        for (int32_t i = exponent + 1; i < 0; i++) {
            put(out, '0');
        }
        put_digits(out, n, digits, digits);
    } else {
        put_digits(out, n, digits, 1);
        put_text(out, exponent < 0 ? "e-" : "e+");
        put_unsigned(out, (uint64_t)(exponent < 0 ? -exponent : exponent), 2);
    }
}

static void put_double(writer *out, double x)
{
    if (x != x) {
        put_text(out, "nan");
        return;
    }
    if (posenc_bits64(x) >> 63) {
        put(out, '-');
        x = -x;
    }
    if (x == 0.0) {
        put(out, '0');
    } else if (x > DBL_MAX) {
        put_text(out, "inf");
    } else {
        put_positive(out, x);
    }
}

int32_t posenc_fail(posenc_error *error, int32_t status, const char *format, ...)
{
    if (!error) {
        return status;
    }
    writer out = {error->text, 0, sizeof error->text};
    va_list arguments;
    va_start(arguments, format);
    for (const char *c = format; *c; c++) {
        if (*c != '%' || c[1] == '\0') {
            put(&out, *c);
            continue;
        }
        switch (*++c) {
        case 's': put_text(&out, va_arg(arguments, const char *)); break;
        case 'd': put_integer(&out, va_arg(arguments, int64_t)); break;
        case 'g': put_double(&out, va_arg(arguments, double)); break;
        default: put(&out, *c); break;
        }
    }
    va_end(arguments);
    error->text[out.length] = '\0';
    error->code = status;
    return status;
}

const char *posenc_status_name(int32_t status)
{
    switch (status) {
    case POSENC_OK: return "ok";
    case POSENC_ERROR_ARGUMENT: return "argument";
    case POSENC_ERROR_POSITION: return "position";
    case POSENC_ERROR_OVERLAP: return "overlap";
    case POSENC_ERROR_UNSUPPORTED: return "unsupported";
    case POSENC_ERROR_MEMORY: return "memory";
    case POSENC_ERROR_IO: return "io";
    case POSENC_ERROR_FORMAT: return "format";
    case POSENC_ERROR_MODEL: return "model";
    default: return "unknown";
    }
}

const char *posenc_version(void)
{
    return VERSION_TEXT(POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR, POSENC_VERSION_PATCH);
}
