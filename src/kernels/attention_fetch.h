/* SPDX-License-Identifier: MIT */
/*
 * Lines of memory that kernels of attention ask for between their products.
 *
 * Template, included by attention_direct.h and attention_even.h.
 */

/* NEAR_APART, NEAR_IN_ORDER: rows ahead that are brought from L2 to L1: keys, and values that lie
 * apart; values that follow one another. AGAIN: rows after which lines are asked for again. */
enum {
    LINE = 64,
    WIDTH = POSENC_ATTENTION_USUAL,
    NEAR_APART = 8,
    NEAR_IN_ORDER = 4,
    AGAIN = 4
};

/* How often lines to fetch are asked for; 0 is false. */
enum { NEVER, ONCE, TWICE };

/* Conversions and products of F16 for four rows leave no time to ask again. */
static POSENC_INLINE int is_busy(int rows, int dtype)
{
    return rows == 4 && dtype == POSENC_F16;
}

/* Locality 1 goes to L2 on x86 as 2 does, but reaches 27 GB/s by itself where 2 reaches 18. The asm
 * keeps GCC from gathering all fetches between two branches. */
static POSENC_INLINE void fetch_line(const void *line)
{
    __builtin_prefetch(line, 0, 1);
    __asm__ volatile("");
}

/* To L1, of a row that was fetched: the CPU does not see rows that lie far apart coming. */
static POSENC_INLINE void bring_line(const void *line)
{
    __builtin_prefetch(line, 0, 3);
    __asm__ volatile("");
}

static POSENC_INLINE void fetch(const void *p, int64_t begin, int64_t end)
{
#pragma GCC unroll 4
    for (int64_t at = begin; at < end; at += LINE)
        fetch_line((const char *)p + at);
}

static POSENC_INLINE void bring(const void *p, int64_t begin, int64_t bytes)
{
#pragma GCC unroll 4
    for (int64_t at = begin; at < begin + bytes; at += LINE)
        bring_line((const char *)p + at);
}

static POSENC_INLINE int element_bytes(int dtype)
{
    return dtype == POSENC_F32 ? 4 : dtype == POSENC_I8 ? 1 : 2;
}

/* Rows as long as the keys, four of each: `next` are fetched during the products of four keys,
 * `again` asked for once more, and `near`, the keys to come, brought. */
struct rows_ahead {
    const void *const *next, *const *again, *const *near;
};

/* Lines [from, to) of them, counted from row to row. */
static POSENC_INLINE void fetch_lines(int dtype, int asks, struct rows_ahead ahead,
                                      int64_t channels, int64_t from, int64_t to)
{
    const int64_t lines = channels * element_bytes(dtype) / LINE;
#pragma GCC unroll 4
    for (int64_t n = from; n < to; n++) {
        fetch_line((const char *)ahead.next[n / lines] + n % lines * LINE);
        if (asks == TWICE)
            fetch_line((const char *)ahead.again[n / lines] + n % lines * LINE);
        bring_line((const char *)ahead.near[n / lines] + n % lines * LINE);
    }
}

/* How many of them the first `vectors` vectors of channels have fetched. */
static POSENC_INLINE int64_t lines_by(int dtype, int64_t vectors)
{
    return vectors * LANES * element_bytes(dtype) / CHAINS;
}
