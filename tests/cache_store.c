/* SPDX-License-Identifier: MIT */
/* Caches of every kind, from the definitions in cache.h. */
#include "cache_store.h"

#include "support/half.h"

#include <math.h>

struct store_form store_any(struct test_random *random)
{
    static const int32_t dtypes[4] = {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_I8};
    static const int64_t pages[4] = {1, 4, 7, 16};
    struct store_form f = {
        .kind = POSENC_CACHE_CONTIGUOUS + (int32_t)test_below(random, 3),
        .dtype = dtypes[test_below(random, 4)],
        .sequences = 1 + test_below(random, STORE_SEQUENCES),
        .keys = 1 + test_below(random, 90),
        .heads = 1 + test_below(random, 3),
        .channels = 32 * (1 + test_below(random, 3)),
        .order = (enum test_order)test_below(random, TEST_ORDERS),
        .place = (enum test_place)test_below(random, TEST_PLACES),
    };
    if (f.dtype == POSENC_I8) {
        f.scale_dtype = test_below(random, 2) ? POSENC_F32 : POSENC_F16;
        f.groups = test_below(random, 2) ? 1 : f.channels / 32;
    }
    if (f.kind == POSENC_CACHE_RING) {
        f.keep = test_below(random, (uint32_t)f.keys);
        f.more = test_below(random, 200);
    }
    if (f.kind == POSENC_CACHE_PAGED)
        f.page = pages[test_below(random, 4)];
    return f;
}

/* Pages in any order, with entries that no key uses of a value that none may have. */
static void fill_pages(struct store *s, struct test_random *random)
{
    const int64_t each = s->cache.sequence_pages, n = each * s->form.sequences;
    for (int64_t i = 0; i < n; i++)
        s->page_memory[i] = (int32_t)i;
    for (int64_t i = n; i > 1; i--) {
        int64_t j = test_below(random, (uint32_t)i);
        int32_t page = s->page_memory[i - 1];
        s->page_memory[i - 1] = s->page_memory[j];
        s->page_memory[j] = page;
    }
}

static void fill_rows(struct store *s, const struct test_view *view, struct test_random *random)
{
    int8_t *bytes = s->rows_memory;
    if (s->form.dtype != POSENC_I8)
        test_fill(bytes, s->form.dtype, 0, view->elements, TEST_SMALL, random);
    for (int64_t i = 0; s->form.dtype == POSENC_I8 && i < view->elements; i++)
        bytes[i] = (int8_t)((int)test_below(random, 255) - 127);
}

static posenc_tensor place_view(const struct store_form *f, struct test_guard *guard,
                                struct test_view *view, void **memory, size_t *bytes)
{
    const size_t size = test_size(view->tensor.dtype);
    *bytes = (size_t)view->elements * size;
    *guard = test_guard_new(*bytes + 16);
    *memory = test_guard_at(guard, *bytes, size, f->place);
    view->tensor.data = (char *)*memory + view->origin * (int64_t)size;
    return view->tensor;
}

static void add_scales(struct store *s, int64_t blocks, int64_t slots, struct test_random *random)
{
    struct test_view view = test_view_new(TEST_CONTIGUOUS, s->form.scale_dtype, blocks, slots,
                                          s->form.heads, s->form.groups);
    s->cache.scales =
        place_view(&s->form, &s->scales, &view, &s->scales_memory, &s->scales_bytes);
    for (int64_t i = 0; i < view.elements; i++)
        test_store(s->scales_memory, s->form.scale_dtype, i,
                   (1 + (double)test_below(random, 1000)) / 127000);
}

static void add_pages(struct store *s, struct test_random *random)
{
    const size_t n = (size_t)(s->cache.sequence_pages * s->form.sequences);
    s->pages = test_guard_new(n * sizeof(int32_t));
    s->page_memory = test_guard_at(&s->pages, n * sizeof(int32_t), sizeof(int32_t), TEST_AT_END);
    fill_pages(s, random);
    s->cache.pages = s->page_memory;
    s->cache.page_stride = s->cache.sequence_pages;
    s->cache.sequences = s->form.sequences;
}

void store_new(struct store *s, const struct store_form *form, struct test_random *random)
{
    *s = (struct store){.form = *form};
    int64_t blocks = form->sequences, slots = form->keys;
    posenc_cache_init(&s->cache);
    s->cache.kind = form->kind;
    s->cache.keep = form->keep;
    if (form->kind == POSENC_CACHE_PAGED) {
        s->cache.sequence_pages = (form->keys + form->page - 1) / form->page;
        blocks = form->sequences * s->cache.sequence_pages;
        slots = form->page;
        add_pages(s, random);
    }
    struct test_view view = test_view_new(form->order, form->dtype, blocks, slots, form->heads,
                                          form->channels);
    s->cache.rows = place_view(form, &s->rows, &view, &s->rows_memory, &s->rows_bytes);
    fill_rows(s, &view, random);
    if (form->dtype == POSENC_I8)
        add_scales(s, blocks, slots, random);
    for (int64_t i = 0; i < STORE_SEQUENCES; i++) {
        s->first[i] = form->kind == POSENC_CACHE_RING ? 0 : test_below(random, 5);
        s->turns[i] = form->kind == POSENC_CACHE_RING ? test_below(random, 100) : 0;
    }
    s->cache.first_keys = s->first;
    if (form->kind == POSENC_CACHE_RING) s->cache.turns = s->turns;
}

void store_free(struct store *s)
{
    test_guard_free(&s->rows);
    if (s->scales.map) test_guard_free(&s->scales);
    if (s->pages.map) test_guard_free(&s->pages);
}

/* The enumeration in cache.h says the same in words. */
static void locate(const struct store *s, int64_t sequence, int64_t key, int64_t *block,
                   int64_t *slot)
{
    const struct store_form *f = &s->form;
    const int64_t at = key - s->first[sequence];
    *block = sequence;
    *slot = at;
    if (f->kind == POSENC_CACHE_PAGED) {
        *block = s->page_memory[sequence * s->cache.page_stride + at / f->page];
        *slot = at % f->page;
    }
    if (f->kind == POSENC_CACHE_RING && key >= f->keep)
        *slot = f->keep + (key - f->keep + s->turns[sequence]) % (f->keys - f->keep);
}

static void *element(const struct store *s, const posenc_tensor *t, int64_t sequence, int64_t key,
                     int64_t head)
{
    int64_t block, slot;
    locate(s, sequence, key, &block, &slot);
    return (char *)t->data + (block * t->stride[0] + slot * t->stride[1] + head * t->stride[2]) *
                                 (int64_t)test_size(t->dtype);
}

void *store_row(const struct store *s, int64_t sequence, int64_t key, int64_t head)
{
    return element(s, &s->cache.rows, sequence, key, head);
}

void *store_scale(const struct store *s, int64_t sequence, int64_t key, int64_t head)
{
    return element(s, &s->cache.scales, sequence, key, head);
}

void store_range(const struct store *s, int64_t sequence, int late, int64_t *low, int64_t *high)
{
    const struct store_form *f = &s->form;
    *low = s->first[sequence];
    *high = *low + f->keys;
    if (f->kind != POSENC_CACHE_RING)
        return;
    *low = late ? f->keep + f->more : 0;
    *high = late ? f->keys + f->more : f->keep;
}

float store_value(const struct store *s, int64_t sequence, int64_t key, int64_t head, int64_t c)
{
    const struct store_form *f = &s->form;
    const void *row = store_row(s, sequence, key, head);
    if (f->dtype != POSENC_I8)
        return (float)test_load(row, f->dtype, c);
    const int64_t group = c / (f->channels / f->groups);
    const double d = test_load(store_scale(s, sequence, key, head), f->scale_dtype, group);
    return (float)((const int8_t *)row)[c] * (float)d;
}

/* One group of I8, as the cache's text defines it. */
static void store_group(const float *values, int64_t count, int8_t *to, void *scale, int64_t group,
                        int32_t scale_dtype)
{
    float largest = 0, d;
    int finite = 1;
    for (int64_t i = 0; i < count; i++) {
        finite &= isfinite(values[i]) != 0;
        largest = fmaxf(largest, fabsf(values[i]));
    }
    d = finite ? largest / 127.0f : NAN;
    if (scale_dtype == POSENC_F16 && d > 65504.0f) d = 65504.0f;
    test_store(scale, scale_dtype, group, (double)d);
    d = (float)test_load(scale, scale_dtype, group);
    for (int64_t i = 0; i < count; i++) {
        float q = finite && d > 0 ? rintf(values[i] / d) : 0;
        to[i] = (int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
}

void store_part(const struct store *s, int64_t sequence, int64_t key, int64_t head,
                const float *values, int64_t from, int64_t to)
{
    const struct store_form *f = &s->form;
    char *row = store_row(s, sequence, key, head);
    for (int64_t c = from; f->dtype != POSENC_I8 && c < to; c++)
        test_store(row, f->dtype, c, (double)values[c]);
    if (f->dtype != POSENC_I8)
        return;
    const int64_t count = f->channels / f->groups;
    for (int64_t g = 0; g < f->groups; g++)
        if (g * count < to && from < (g + 1) * count)
            store_group(values + g * count, count, (int8_t *)row + g * count,
                        store_scale(s, sequence, key, head), g, f->scale_dtype);
}

void *store_snapshot(const struct store *s)
{
    char *copy = malloc(s->rows_bytes + s->scales_bytes);
    assert_non_null(copy);
    memcpy(copy, s->rows_memory, s->rows_bytes);
    if (s->scales_bytes)
        memcpy(copy + s->rows_bytes, s->scales_memory, s->scales_bytes);
    return copy;
}

int store_same(const struct store *s, void *snapshot)
{
    const char *copy = snapshot;
    int same = memcmp(copy, s->rows_memory, s->rows_bytes) == 0 &&
               (!s->scales_bytes ||
                memcmp(copy + s->rows_bytes, s->scales_memory, s->scales_bytes) == 0);
    free(snapshot);
    return same;
}

void store_restore(const struct store *s, void *snapshot)
{
    const char *copy = snapshot;
    memcpy(s->rows_memory, copy, s->rows_bytes);
    if (s->scales_bytes)
        memcpy(s->scales_memory, copy + s->rows_bytes, s->scales_bytes);
    free(snapshot);
}

struct store_keys store_any_keys(const struct store *s, struct test_random *random)
{
    const int late = test_below(random, 3) != 0;
    int64_t low, high, other_low, other_high;
    struct store_keys r = {(int64_t)test_below(random, (uint32_t)s->form.sequences + 1) - 1, 0, 0};
    store_range(s, r.sequence < 0 ? 0 : r.sequence, late, &low, &high);
    for (int64_t i = 0; r.sequence < 0 && i < s->form.sequences; i++) {
        store_range(s, i, late, &other_low, &other_high);
        low = other_low > low ? other_low : low;
        high = other_high < high ? other_high : high;
    }
    if (s->form.kind == POSENC_CACHE_RING && s->form.more == 0) {
        low = 0;
        high = s->form.keys;
    }
    if (high <= low) return (struct store_keys){r.sequence, low, 0};
    r.first = low + test_below(random, (uint32_t)(high - low));
    r.count = test_below(random, (uint32_t)(high - r.first) + 1);
    return r;
}
