/* SPDX-License-Identifier: MIT */
/* Geometries of appends, written from the text of cache.h and not from the library's code. */
#include "append_support.h"

#include "support/half.h"

static void set_places(struct append_case *c)
{
    static const int64_t lengths[APPEND_SEQUENCES] = {4, 0, 7};

    for (int64_t s = 0; s < APPEND_SEQUENCES; s++) {
        c->first_keys[s] = 1000 * s;
        c->turns[s] = 5 * s;
        c->starts[s] = 2 + s;
        c->token_starts[s + 1] = c->token_starts[s] + lengths[s];
        for (int32_t n = 0; n < APPEND_PAGES; n++) {
            c->pages[s][n] = n ? (int32_t)((7 * n + 6 * s) % (APPEND_PAGES - 1)) + 1 : 0;
        }
    }
}

static void set_keys(struct append_case *c)
{
    static const int64_t order[APPEND_TOKENS] = {7, 8, 9, -1, 0, 1, -5, 12, 13, 14, 2};

    for (int64_t i = 0; i < APPEND_ALL; i++) {
        int64_t s = i / APPEND_TOKENS, key = order[i % APPEND_TOKENS];

        c->keys[i] = key < 0 ? key : key + (c->geometry == APPEND_KEYS ? c->first_keys[s] : 30 * s);
    }
    c->params.keys = c->keys;
    c->params.key_stride[0] = APPEND_TOKENS;
    c->params.key_stride[1] = 1;
}

static void set_kind(struct append_case *c)
{
    switch (c->geometry) {
    case APPEND_RING_KEPT:
    case APPEND_KEYS_RING:
        c->cache.keep = 3;
        c->cache.turns = c->turns;
        /* fall through */
    case APPEND_RING:
        c->cache.kind = POSENC_CACHE_RING;
        break;
    case APPEND_PAGED:
    case APPEND_PACKED_PAGED:
        c->cache.kind = POSENC_CACHE_PAGED;
        c->cache.pages = c->pages[0];
        c->cache.page_stride = APPEND_PAGES;
        c->cache.sequences = APPEND_SEQUENCES;
        c->cache.sequence_pages = APPEND_PAGES;
        /* fall through */
    default:
        c->cache.kind = c->cache.kind ? c->cache.kind : POSENC_CACHE_CONTIGUOUS;
        break;
    }
}

static void set_sequences(struct append_case *c)
{
    int ring = c->cache.kind == POSENC_CACHE_RING;
    int packed = c->geometry == APPEND_PACKED || c->geometry == APPEND_PACKED_PAGED;

    if (packed) {
        c->params.sequences = APPEND_SEQUENCES;
        c->params.token_starts = c->token_starts;
    }
    if (c->geometry == APPEND_ONE_START) {
        c->params.start = 500;
        c->header.first_key = 498;
        c->cache.header = &c->header;
        return;
    }
    if (!ring) c->cache.first_keys = c->first_keys;
    if (c->geometry == APPEND_KEYS || c->geometry == APPEND_KEYS_RING) {
        set_keys(c);
        return;
    }
    for (int64_t s = 0; s < APPEND_SEQUENCES; s++) {
        c->starts[s] += ring ? 9 * s : c->first_keys[s];
    }
    c->params.starts = c->starts;
}

void append_case_new(struct append_case *c, enum append_geometry geometry, int32_t from, int32_t to,
                     enum test_order src_order, enum test_order rows_order, int64_t heads,
                     int64_t channels)
{
    int packed = geometry == APPEND_PACKED || geometry == APPEND_PACKED_PAGED;

    memset(c, 0, sizeof *c);
    c->geometry = geometry;
    posenc_append_params_init(&c->params);
    posenc_cache_init(&c->cache);
    set_places(c);
    set_kind(c);
    set_sequences(c);
    int paged = c->cache.kind == POSENC_CACHE_PAGED;
    c->src = test_view_new(src_order, from, packed ? 1 : APPEND_SEQUENCES, APPEND_TOKENS, heads,
                           channels);
    c->rows = test_view_new(rows_order, to, paged ? APPEND_PAGES : APPEND_SEQUENCES,
                            paged ? APPEND_PAGE : APPEND_SLOTS, heads, channels);
    c->header.struct_size = sizeof c->header;
    c->header.dtype = to;
}

void append_positions(posenc_positions *positions)
{
    static int64_t ids[APPEND_ALL];

    for (int64_t i = 0; i < APPEND_ALL; i++) ids[i] = 77 + 3 * i;
    posenc_positions_start(positions, 0);
    positions->kind = POSENC_POSITIONS_IDS;
    positions->dtype = POSENC_I64;
    positions->ids = ids;
    positions->stride[0] = APPEND_TOKENS;
    positions->stride[1] = 1;
}

int64_t append_key(const struct append_case *c, int64_t b, int64_t t, int64_t *sequence)
{
    const posenc_append_params *p = &c->params;

    *sequence = b;
    if (p->keys) return p->keys[b * p->key_stride[0] + t * p->key_stride[1]];
    if (p->sequences) {
        while (t >= p->token_starts[*sequence + 1]) ++*sequence;
        t -= p->token_starts[*sequence];
    }
    return (p->starts ? p->starts[*sequence] : p->start) + t;
}

int64_t append_at(const struct append_case *c, int64_t sequence, int64_t key, int64_t head)
{
    const posenc_cache *m = &c->cache;
    int64_t f = m->first_keys ? m->first_keys[sequence] : m->header ? m->header->first_key : 0;
    int64_t slots = m->rows.shape[1];

    switch (m->kind) {
    case POSENC_CACHE_RING: {
        int64_t turn = m->turns ? m->turns[sequence] : 0;
        int64_t slot = key < m->keep ? key : m->keep + (key - m->keep + turn) % (slots - m->keep);
        return test_view_index(&c->rows, sequence, slot, head, 0);
    }
    case POSENC_CACHE_PAGED: {
        int32_t page = m->pages[sequence * m->page_stride + (key - f) / slots];
        return test_view_index(&c->rows, page, (key - f) % slots, head, 0);
    }
    default:
        return test_view_index(&c->rows, sequence, key - f, head, 0);
    }
}

void append_image(const struct append_case *c, const void *plain, void *image)
{
    const int64_t *shape = c->src.tensor.shape;
    size_t size = test_size(c->rows.tensor.dtype), bytes = (size_t)shape[3] * size;
    const char *row = plain;

    for (int64_t b = 0; b < shape[0]; b++) {
        for (int64_t t = 0; t < shape[1]; t++) {
            int64_t sequence, key = append_key(c, b, t, &sequence);

            for (int64_t h = 0; h < shape[2]; h++, row += bytes) {
                if (key < 0) continue;
                memcpy((char *)image + append_at(c, sequence, key, h) * (int64_t)size, row, bytes);
            }
        }
    }
}
