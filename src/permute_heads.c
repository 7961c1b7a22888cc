/* SPDX-License-Identifier: MIT */
/*
 * The work behind the layout tools, in place or not, without allocation.
 *
 * Channels go through a kernel. In place it can do the usual widths by itself; for others its
 * destination is a buffer on the stack, a few heads at a time. Rows are copied whole; in place they
 * move along the cycles of the permutation, a piece of each row at a time.
 */
#include "permute.h"

/* Calls that move more bytes than this read ahead: the data cannot be in the nearer caches. */
enum { AHEAD_BYTES = 1 << 20 };

/* Calls that move more bytes than this store past the caches: of so much the first lines have left
 * them before the last ones are written, and a line that is stored to otherwise is read first. */
enum { STREAM_BYTES = 32 << 20 };

enum { BUFFER_BYTES = 8192, MAX_ROWS = 65536, WORDS = MAX_ROWS / 64 };

/* The row that comes to row `to_row`. */
static size_t source_of(const struct posenc_permutation *p, size_t to_row)
{
    const size_t half = p->rotary_dim / 2;
    if (p->to == POSENC_ADJACENT)
        return to_row % 2 * half + to_row / 2;
    return to_row < half ? 2 * to_row : 2 * (to_row - half) + 1;
}

/* For the rows of biases and small factors a call each would cost more than the bytes. */
static inline void copy_row(char *dst, const char *src, size_t bytes)
{
    if (bytes > 128) {
        memcpy(dst, src, bytes);
        return;
    }
    for (; bytes >= 16; bytes -= 16, dst += 16, src += 16)
        memcpy(dst, src, 16);
    for (; bytes; bytes--)
        *dst++ = *src++;
}

static void copy_rest(const struct posenc_permutation *p, const struct posenc_permute_job *job)
{
    const size_t second = p->before + p->rotary_dim * p->row_bytes;
    const char *src = job->src;
    char *dst = job->dst;
    if (!p->before && !p->after)
        return;
    for (size_t h = 0; h < job->heads; h++, src += job->src_head, dst += job->dst_head) {
        memcpy(dst, src, p->before);
        memcpy(dst + second, src + second, p->after);
    }
}

static void permute_apart(const struct posenc_permutation *p, const struct posenc_permute_job *job)
{
    const char *src = job->src + p->before;
    char *dst = job->dst + p->before;
    for (size_t h = 0; h < job->heads; h++, src += job->src_head, dst += job->dst_head)
        for (size_t row = 0; row < p->rotary_dim; row++)
            copy_row(dst + row * p->row_bytes, src + source_of(p, row) * p->row_bytes,
                     p->row_bytes);
}

/* One bit for each row that begins a cycle of at least two; the first and the last row stay. */
static void find_cycles(const struct posenc_permutation *p, uint64_t first[WORDS])
{
    uint64_t seen[WORDS] = {0};
    memset(first, 0, WORDS * sizeof(*first));
    for (size_t row = 1; row + 1 < p->rotary_dim; row++) {
        if (seen[row / 64] >> row % 64 & 1)
            continue;
        if (source_of(p, row) != row)
            first[row / 64] |= UINT64_C(1) << row % 64;
        for (size_t at = row; !(seen[at / 64] >> at % 64 & 1); at = source_of(p, at))
            seen[at / 64] |= UINT64_C(1) << at % 64;
    }
}

static void turn_cycle(const struct posenc_permutation *p, char *rows, size_t first)
{
    char piece[BUFFER_BYTES];
    for (size_t at = 0; at < p->row_bytes; at += sizeof(piece)) {
        const size_t left = p->row_bytes - at;
        const size_t bytes = left < sizeof(piece) ? left : sizeof(piece);
        size_t row = first;
        copy_row(piece, rows + row * p->row_bytes + at, bytes);
        for (size_t next; (next = source_of(p, row)) != first; row = next)
            copy_row(rows + row * p->row_bytes + at, rows + next * p->row_bytes + at, bytes);
        copy_row(rows + row * p->row_bytes + at, piece, bytes);
    }
}

static void permute_by_cycles(const struct posenc_permutation *p,
                              const struct posenc_permute_job *job)
{
    uint64_t first[WORDS];
    char *rows = job->dst + p->before;
    find_cycles(p, first);
    for (size_t h = 0; h < job->heads; h++, rows += job->dst_head)
        for (size_t row = 1; row + 1 < p->rotary_dim; row++)
            if (first[row / 64] >> row % 64 & 1)
                turn_cycle(p, rows, row);
}

/* The kernel for rows of this size; NULL if they are none of 2, 4 or 8 bytes. */
static posenc_permute_kernel *kernel_of(const struct posenc_permutation *p)
{
    posenc_permute_kernel *const *kernels =
        posenc_kernels_get(POSENC_ISA_DEFAULT)->permute[p->to - 1];
    return p->row_bytes == 2 || p->row_bytes == 4 ? kernels[p->row_bytes / 4]
           : p->row_bytes == 8                    ? kernels[2]
                                                  : NULL;
}

/* As many heads at a time as the buffer has room for, through it and back. */
static void permute_by_buffer(posenc_permute_kernel *kernel, size_t window,
                              const struct posenc_permute_job *whole)
{
    char buffer[BUFFER_BYTES];
    struct posenc_permute_job job = *whole;
    const ptrdiff_t head = whole->dst_head;
    job.dst = buffer;
    job.dst_head = (ptrdiff_t)window;
    for (size_t left = whole->heads; left; left -= job.heads) {
        char *back = (char *)(uintptr_t)job.src;
        const size_t most = BUFFER_BYTES / window;
        job.heads = left < most ? left : most;
        kernel(&job);
        if (head == (ptrdiff_t)window)
            memcpy(back, buffer, job.heads * window);
        else
            for (size_t h = 0; h < job.heads; h++, back += head)
                memcpy(back, buffer + h * window, window);
        job.src += (ptrdiff_t)job.heads * head;
    }
}

void posenc_permute_heads(const struct posenc_permutation *p, const struct posenc_permute_job *job)
{
    posenc_permute_kernel *kernel = kernel_of(p);
    const size_t window = p->rotary_dim * p->row_bytes;
    struct posenc_permute_job windows = *job;
    windows.src += p->before;
    windows.dst += p->before;
    windows.ahead = job->heads > AHEAD_BYTES / window;
    if (job->src == job->dst) {
        if (kernel && (window == 128 || window == 256 || window == 512))
            kernel(&windows);
        else if (kernel && window <= BUFFER_BYTES)
            permute_by_buffer(kernel, window, &windows);
        else
            permute_by_cycles(p, job);
        return;
    }
    copy_rest(p, job);
    /* A small job would wait for its stores at its end. */
    windows.stream = windows.ahead && p->call_bytes > STREAM_BYTES;
    if (kernel)
        kernel(&windows);
    else
        permute_apart(p, job);
}
