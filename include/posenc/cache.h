/* SPDX-License-Identifier: MIT */
/* The key-value cache: append, attend, move, re-base, copy. See posenc.h for the conventions. */
#ifndef POSENC_POSENC_CACHE_H
#define POSENC_POSENC_CACHE_H

#include <posenc/attention.h>
#include <posenc/base.h>
#include <posenc/rope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------
 * Where keys lie
 * --------------------------------------------------------------------------------------------- */

enum { /* kind: the slot of logical key j of sequence s, f its first stored key */
    POSENC_CACHE_CONTIGUOUS = 1, /* slot j - f of batch row s */
    POSENC_CACHE_RING = 2,       /* of batch row s: slot j if j < keep, else */
                                 /* keep + (j - keep + turn) % (slots - keep); f is 0. A window */
                                 /* W fed T tokens a call takes keep + W - 1 + T slots */
    POSENC_CACHE_PAGED = 3       /* slot (j - f) % slots of page pages[s][(j - f) / slots] */
};

/* What a cache holds, beside it in the caller's memory: written by posenc_cache_header_init and by
 * the caller, never by a call that uses the cache. */
typedef struct posenc_cache_header {
    uint32_t struct_size;    /* sizeof(posenc_cache_header) */
    int32_t dtype;           /* of the stored rows */
    int32_t scale_dtype;     /* I8: of the scales; else 0 */
    int32_t group;           /* I8: channels that share a scale; else 0 */
    uint8_t fingerprint[16]; /* of the plan that rotated the keys; all 0 = they are not rotated */
    int32_t layout;          /* what that plan was, for the text of errors: pair layout of the */
    int32_t head_dim;        /* stored keys, widths, ... */
    int32_t rotary_dim;
    int32_t rotary_offset;
    int32_t scaling;
    int32_t recipe;
    int32_t axes;
    int32_t reserved;        /* 0 */
    double base;
    double factor;
    double attention_factor; /* of length 1 */
    int64_t first_key;       /* logical index of the first stored key, 0..2^53 */
    uint64_t revision;       /* the caller's own: never read */
} posenc_cache_header;

/*
 * A cache of keys or of values of one layer: memory of the caller, seen through a map. A sequence's
 * keys have logical indices that count on when early ones are evicted. K and V have a cache each,
 * which may share all but `rows`; a part of the channels (MLA) is a cache of its own by strides.
 */
typedef struct posenc_cache {
    uint32_t struct_size;      /* sizeof(posenc_cache) */
    int32_t kind;              /* POSENC_CACHE_* */
    posenc_tensor rows;        /* [sequences][slots][heads][channels], PAGED [pages][slots]...; */
                               /* F32, F16, BF16 or I8 */
    posenc_tensor scales;      /* I8: F16 or F32, shaped as rows but for the channels: 1 (a scale */
                               /* for each head) or channels/32; else data is NULL */
    const int64_t *first_keys; /* [sequences], 0..2^53: f; NULL = that of header, or 0 */
    int64_t keep;              /* RING: the first keys, which are never evicted; 0..slots - 1 */
    const int64_t *turns;      /* RING: [sequences], 0..2^53; NULL = 0. To take n keys out after */
                               /* the kept ones and count the later ones down by n, add n */
    const int32_t *pages;      /* PAGED: [sequences][sequence_pages], each 0..rows.shape[0] - 1; */
                               /* only the entries of keys in use are read */
    int64_t page_stride;       /* PAGED: entries from sequence to sequence */
    int64_t sequences;         /* PAGED; else 0: rows.shape[0] */
    int64_t sequence_pages;    /* PAGED */
    const posenc_cache_header *header; /* what is stored, or NULL: not known, not checked */
} posenc_cache;

/* Sets every field to its default (struct_size included); kind and rows have none. */
POSENC_API void posenc_cache_init(posenc_cache *cache);

/* Sets `cache` to the contiguous one over a tensor: also how a plain tensor is appended to. */
POSENC_API void posenc_cache_plain(posenc_cache *cache, const posenc_tensor *rows);

/* Fills a header with what `cache` stores, rotated by `plan`, or not rotated (values, keys that are
 * rotated when they are read) where it is NULL. first_key and revision become 0. */
POSENC_API int32_t posenc_cache_header_init(posenc_cache_header *header, const posenc_cache *cache,
                                            const posenc_plan *plan, posenc_error *error);

/* Where logical key `key` of a sequence lies: its first channel of head 0 is element
 * (block, slot, 0, 0) of rows. Whether a RING still holds that key is for the caller to know. */
POSENC_API int32_t posenc_cache_locate(const posenc_cache *cache, int64_t sequence, int64_t key,
                                       int64_t *block, int64_t *slot, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Append
 * --------------------------------------------------------------------------------------------- */

enum { /* norm: what is divided by its root mean square */
    POSENC_NORM_NONE = 0,
    POSENC_NORM_HEAD = 1,      /* each head by itself */
    POSENC_NORM_PROJECTION = 2 /* all heads of a token together */
};

/* The default of every field is 0 or NULL (posenc_append_params_init sets struct_size too). */
typedef struct posenc_append_params {
    uint32_t struct_size; /* sizeof(posenc_append_params) */
    int32_t isa;          /* POSENC_ISA_* */

    /* Where: token t of sequence s becomes its key starts[s] + t, each 0..2^53 */
    int64_t start;
    const int64_t *starts;       /* [sequences]; NULL = start for each */
    int64_t sequences;           /* > 0: packed into batch row 0 of src */
    const int64_t *token_starts; /* [sequences + 1], from 0 to T, never falling */
    const int64_t *keys;         /* instead: token (b, t) becomes the key keys[b*key_stride[0] + */
    int64_t key_stride[2];       /* t*key_stride[1]]; < 0: it is left out (padding). Not packed. */
                                 /* key_stride[1] is not 0 where there are several tokens */

    /* What is done to a head on its way, in this order unless norm_after */
    int32_t norm;                /* POSENC_NORM_* */
    int32_t norm_after;          /* 1: the norm follows the rotation (Llama 4, HunYuan) */
    double eps;                  /* added to the mean of squares; 0..1 */
    const posenc_tensor *weight; /* [1][1][1 or H][D] F32, F16 or BF16; NULL = 1. With a norm */
    int32_t weight_plus_one;     /* 1: the factor is 1 + weight (Gemma) */
    int32_t stream;              /* 1: stores go past the caches of the CPU: for so many tokens */
                                 /* that attention will not find them there */
    double scale;                /* multiplies the result; within the range of float; 0 = 1 */
    const posenc_plan *rope;     /* NULL = no rotation */
    const posenc_tensor *rows;   /* [B or 1][T][1][r] F32 of posenc_rows, with rope */
} posenc_append_params;

/* Sets every field to its default (struct_size included). */
POSENC_API void posenc_append_params_init(posenc_append_params *params);

/*
 * Writes src [B][T][H][D] (F32, F16, BF16) into a cache of H heads of D channels, in one pass over
 * the data: norm, rotation, scale, conversion, store. For each token and head x, in float32, each
 * operation rounded by itself, w the weight (or 1 + weight), R the rotation of posenc_rotate:
 *
 *     ss = sum of x[c]^2 over the head, or over all heads; after the rotation if norm_after
 *     r  = 1 / sqrtf(ss / n + (float)eps), without norm 1
 *     g  = r (float)scale
 *     y  = norm_after ? (R(x) g) w : R(x g) with (x g) w in channels that are not rotated and
 *          rows c w[p], s w[p], c w[q], s w[q] where x[p], x[q] are multiplied by c, s
 *     stored = y rounded once to the stored type
 *
 * I8: scale = the largest |y| of the head or group / 127, rounded to its dtype, y / scale rounded
 * to an integer in -127..127, ties to even; |error| <= scale / 2 (1 + 2^-15), where the scale is a
 * subnormal 2^-18 (F16) or 2^-143 (F32) if that is more. F16 clamps |y| to 127 x 65504. A group
 * with a NaN or inf is stored as NaN. Values take the same path without norm and rotation, Q into
 * posenc_cache_plain of a tensor. Tokens are written in order: in a RING later ones overwrite. src
 * shares no memory with the cache, except that rows may be src itself (F32, F16, BF16) where every
 * token is written where it is. With norm_after, and for I8, heads have 4096 channels at most, else
 * POSENC_ERROR_UNSUPPORTED. docs/cache.md gives the arithmetic operation by operation.
 */
POSENC_API int32_t posenc_cache_append(const posenc_append_params *params,
                                       const posenc_tensor *src, const posenc_cache *cache,
                                       posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Attention over caches
 * --------------------------------------------------------------------------------------------- */

/*
 * posenc_attention, and posenc_attention_spans, with keys and values in caches of one kind, slots,
 * heads and sequences; an I8 key counts as its float32 product with its scale. Equal bits as over
 * the same keys in plain memory. Differences:
 *
 * - Sequence s is batch row s of q, or the s-th packed one; key_starts is NULL.
 * - first_key and first_keys are 0 and NULL: the cache has its own.
 * - key_counts[s] counts keys from the first on, in a RING those that were overwritten too. Only
 *   CONTIGUOUS may leave it NULL: all slots. A RING holds the kept keys and the last slots - keep;
 *   keep is its own, or 0.
 * - A header of k must be that of params.rope, if rope is given and not for output_rows alone.
 * - Where posenc_attention indexes by stored key (bias, weights, key_rows, rotate_from, ALiBi's
 *   key_positions), the index is j - f, in a RING the slot, and Tk is slots, PAGED sequence_pages
 *   times slots. key_rows may have, and key_positions has, a batch row for each sequence.
 */
POSENC_API int32_t posenc_attention_cached(const posenc_attention_params *params,
                                           const posenc_tensor *q, const posenc_cache *k,
                                           const posenc_cache *v, const posenc_tensor *out,
                                           posenc_error *error);
POSENC_API int32_t posenc_attention_cached_spans(const posenc_attention_params *params,
                                                 const posenc_tensor *q, const posenc_cache *k,
                                                 const posenc_cache *v, int64_t first_span,
                                                 const posenc_tensor *state, posenc_error *error);

/* ------------------------------------------------------------------------------------------------
 * Move, re-base, copy: the keys [first, first + count) of a sequence, or of all (-1), in place
 * --------------------------------------------------------------------------------------------- */

/*
 * Turns cached keys as if their tokens stood elsewhere: key first + t of sequence b (of a single
 * one: batch row 0) by the delta position(b, t) of `deltas`, any axes, with the length and sets of
 * its rotation; no limit of the plan but 32 bits. One delta for all keys: IDS of one number, both
 * strides 0 (START and STARTS, which count up from key to key, are refused for more than one). The
 * attention factor is not applied again; xPos decays by the delta alone. A key whose deltas are all
 * 0 keeps its bytes. Arithmetic as posenc_rotate with the row that EXACT has for the delta and the
 * plan's frequencies, whatever the recipe, rounded once to the stored type; I8: groups that turn
 * get new scales, heads have 8192 channels at most. Refused for plans from tables:
 * posenc_cache_rebase from a plan to itself moves by any rows. Refused too, in both: a page that
 * holds keys of the call in two places, as where sequences share it. Logical indices are the
 * caller's to change.
 */
POSENC_API int32_t posenc_cache_move(const posenc_plan *plan, const posenc_positions *deltas,
                                     const posenc_cache *cache, int64_t sequence, int64_t first,
                                     int64_t count, posenc_error *error);

/*
 * Turns keys that `from` rotated at from_positions into what `to` would have made of them at
 * to_positions, attention factors included: by the quotient, as complex numbers, of the F32 rows
 * that posenc_rows makes for both, computed in double and rounded once. So what a recipe or a table
 * did is undone as it was done, and steps add up to the step from the first to the last. LongRoPE
 * or dynamic NTK whose length grows past a switch is one plan twice, with other lengths. Both plans
 * have the same widths, stored layout and axes. A header must be that of `from`; write that of `to`
 * (posenc_cache_header_init) when all keys are done. Keys of equal rows keep their bytes. Rows
 * without a finite quotient are refused: tables of 0, decays beyond floats.
 */
POSENC_API int32_t posenc_cache_rebase(const posenc_plan *from,
                                       const posenc_positions *from_positions,
                                       const posenc_plan *to, const posenc_positions *to_positions,
                                       const posenc_cache *cache, int64_t sequence, int64_t first,
                                       int64_t count, posenc_error *error);

/*
 * Copies keys between caches of equal heads and channels, of whatever kinds: key first + t of
 * to_sequence becomes what key keys[t] of from_sequence is (NULL: key from_first + t, else
 * from_first is 0). Bytes where the stored types agree, else converted and rounded once. Headers,
 * where both have one, must say the same rotation. Two caches over the same rows are the same kind;
 * within a sequence keys only move down (keys[t] >= first + t), so that none is read after it was
 * written, a RING holds all of them at once, and no page is listed twice; pages of another sequence
 * must be other pages, and sequences of one pool of pages are copied one by one. Other overlaps are
 * refused.
 */
POSENC_API int32_t posenc_cache_copy(const posenc_cache *from, int64_t from_sequence,
                                     int64_t from_first, const int64_t *keys,
                                     const posenc_cache *to, int64_t to_sequence, int64_t first,
                                     int64_t count, posenc_error *error);

#ifdef __cplusplus
}
#endif

#endif
