/* SPDX-License-Identifier: MIT */
/* The checks of a cache: its form, its keys, and which memory it shares. */
#include "cache.h"
#include "error.h"
#include "structs.h"

/* The text names a member of the argument. */
struct member {
    char text[48];
};

static struct member member_of(const char *name, const char *member)
{
    struct member m;
    size_t n = strlen(name), at = n < 32 ? n : 32;
    memcpy(m.text, name, at);
    m.text[at++] = '.';
    n = strlen(member);
    memcpy(m.text + at, member, n < 14 ? n + 1 : 14);
    m.text[sizeof(m.text) - 1] = '\0';
    return m;
}

static int32_t check_unused(const struct posenc_cache_map *map, posenc_error *error)
{
    const posenc_cache *c = &map->cache;
    const int paged = c->kind == POSENC_CACHE_PAGED, ring = c->kind == POSENC_CACHE_RING;
    const char *set = !paged && c->pages             ? "pages"
                      : !paged && c->sequences       ? "sequences"
                      : !paged && c->sequence_pages  ? "sequence_pages"
                      : !ring && c->keep             ? "keep"
                      : !ring && c->turns            ? "turns"
                                                     : NULL;
    if (set)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.%s is set and %s.kind is %d: only %s has it", map->name, set,
                           map->name, (int64_t)c->kind,
                           set[0] == 'k' || set[0] == 't' ? "POSENC_CACHE_RING"
                                                          : "POSENC_CACHE_PAGED");
    return POSENC_OK;
}

static int32_t check_kind(struct posenc_cache_map *map, posenc_error *error)
{
    const posenc_cache *c = &map->cache;
    const int64_t most = INT64_C(1) << 40;
    if (c->kind < POSENC_CACHE_CONTIGUOUS || c->kind > POSENC_CACHE_PAGED)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.kind is %d: must be a POSENC_CACHE_* value", map->name,
                           (int64_t)c->kind);
    int32_t status = check_unused(map, error);
    if (status)
        return status;
    map->sequences = c->rows.shape[0];
    map->capacity = c->rows.shape[1];
    if (c->kind == POSENC_CACHE_RING && (c->keep < 0 || c->keep >= map->capacity))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.keep is %d: must be 0 or more, and less than the %d slots",
                           map->name, c->keep, map->capacity);
    if (c->kind != POSENC_CACHE_PAGED)
        return POSENC_OK;
    if (c->sequences < 0 || c->sequences > most || c->sequence_pages < 0 ||
        c->sequence_pages > most || map->capacity < 1 || map->capacity > most)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s has sequences %d, sequence_pages %d and %d slots a page: must be "
                           "0..2^40, and a slot at least",
                           map->name, c->sequences, c->sequence_pages, map->capacity);
    map->sequences = c->sequences;
    if (__builtin_mul_overflow(map->capacity, c->sequence_pages, &map->capacity) ||
        map->capacity > POSENC_CACHE_FARTHEST)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.sequence_pages is %d with %d slots a page: must be 2^53 keys at "
                           "most",
                           map->name, c->sequence_pages, c->rows.shape[1]);
    return POSENC_OK;
}

static int32_t check_scales(struct posenc_cache_map *map, posenc_error *error)
{
    enum { GROUP = 32 };
    const posenc_tensor *t = &map->cache.scales, *rows = &map->cache.rows;
    if (rows->dtype != POSENC_I8 && !t->data)
        return POSENC_OK;
    const struct member name = member_of(map->name, "scales");
    if (rows->dtype != POSENC_I8)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.data is given with rows of dtype %d: only POSENC_I8 has scales",
                           name.text, (int64_t)rows->dtype);
    int32_t status = posenc_view_check(&map->scales, t, name.text, error);
    if (!status && t->dtype == POSENC_BF16)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "%s.dtype is %d: must be POSENC_F32 or POSENC_F16", name.text,
                             (int64_t)t->dtype);
    for (int d = 0; !status && d < 3; d++)
        if (t->shape[d] != rows->shape[d])
            status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                 "%s.shape[%d] is %d: must be that of rows, %d", name.text,
                                 (int64_t)d, t->shape[d], rows->shape[d]);
    map->groups = t->shape[3];
    if (!status && map->groups != 1 &&
        (rows->shape[3] % GROUP || map->groups != rows->shape[3] / GROUP))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "%s.shape[3] is %d: must be 1, or the %d channels / 32", name.text,
                             map->groups, rows->shape[3]);
    return status ? status : posenc_disjoint_check(&map->rows, &map->scales, error);
}

/* An array by sequence whose entries lie in 0..2^53. */
static int32_t check_each(struct posenc_cache_map *map, const int64_t *values, const char *what,
                          posenc_error *error)
{
    if (!values)
        return POSENC_OK;
    const struct member name = member_of(map->name, what);
    struct posenc_array *array = &map->array[map->arrays++];
    int32_t status = posenc_array_check(array, values, (size_t)map->sequences, sizeof(*values),
                                        name.text, error);
    array->name = what;
    for (int64_t s = 0; !status && s < map->sequences; s++)
        if (values[s] < 0 || values[s] > POSENC_CACHE_FARTHEST)
            status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s[%d] is %d: must be 0..2^53",
                                 name.text, s, values[s]);
    return status;
}

static int32_t check_pages(struct posenc_cache_map *map, posenc_error *error)
{
    const posenc_cache *c = &map->cache;
    int64_t reach;
    if (c->kind != POSENC_CACHE_PAGED || !map->sequences || !c->sequence_pages)
        return POSENC_OK;
    const struct member name = member_of(map->name, "pages");
    if (c->page_stride < 0 ||
        __builtin_mul_overflow(map->sequences - 1, c->page_stride, &reach) ||
        reach > INT64_MAX / 8)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.page_stride is %d: must be >= 0 and within the address space",
                           map->name, c->page_stride);
    struct posenc_array *array = &map->array[map->arrays++];
    int32_t status = posenc_array_check(array, c->pages, (size_t)(reach + c->sequence_pages),
                                        sizeof(*c->pages), name.text, error);
    array->name = "pages";
    return status;
}

int32_t posenc_cache_read(struct posenc_cache_map *map, const posenc_cache *cache, const char *name,
                          posenc_error *error)
{
    map->name = name;
    map->arrays = 0;
    map->groups = 0;
    map->scales = (struct posenc_view){0};
    posenc_cache_init(&map->cache);
    int32_t status = posenc_struct_read(&map->cache, sizeof(map->cache), sizeof(map->cache), cache,
                                        name, error);
    if (status)
        return status;
    /* The name is made where a text needs it: it costs as much as all else that a call checks. */
    if (posenc_stored_view_check(&map->rows, &map->cache.rows, name, NULL)) {
        const struct member rows = member_of(name, "rows");
        status = posenc_stored_view_check(&map->rows, &map->cache.rows, rows.text, error);
    }
    if (!status)
        status = check_kind(map, error);
    if (status)
        return status;
    map->rows.name = name;
    map->heads = map->cache.rows.shape[2];
    map->channels = map->cache.rows.shape[3];
    status = check_scales(map, error);
    map->scales.name = name;
    if (!status)
        status = posenc_cache_stored_check(map, error);
    if (!status)
        status = check_each(map, map->cache.first_keys, "first_keys", error);
    if (!status && map->cache.kind == POSENC_CACHE_RING)
        for (int64_t s = 0; !status && s < posenc_cache_unlike(map, map->sequences); s++)
            if (posenc_cache_first(map, s))
                status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                                     "%s: the first key of sequence %d is %d: must be 0 in a RING",
                                     name, s, posenc_cache_first(map, s));
    if (!status)
        status = check_each(map, map->cache.turns, "turns", error);
    return status ? status : check_pages(map, error);
}

/* Every page entry that one of the slots [from, to) of a sequence goes through. */
static int32_t check_entries(const struct posenc_cache_map *map, int64_t sequence, int64_t from,
                             int64_t to, posenc_error *error)
{
    const posenc_cache *c = &map->cache;
    const int64_t slots = c->rows.shape[1];
    for (int64_t n = from / slots; n * slots < to; n++) {
        int32_t page = c->pages[sequence * c->page_stride + n];
        if (page < 0 || page >= c->rows.shape[0])
            return posenc_fail(error, POSENC_ERROR_POSITION,
                               "%s.pages: entry %d of sequence %d is %d: must be 0..%d", map->name,
                               n, sequence, (int64_t)page, c->rows.shape[0] - 1);
    }
    return POSENC_OK;
}

int32_t posenc_cache_keys_check(const struct posenc_cache_map *map, int64_t sequence, int64_t first,
                                int64_t count, posenc_error *error)
{
    const int ring = map->cache.kind == POSENC_CACHE_RING;
    const int64_t least = posenc_cache_first(map, sequence);
    /* Without heads there may be more slots than logical indices. */
    const int64_t slots = map->capacity < POSENC_CACHE_FARTHEST ? map->capacity
                                                                : POSENC_CACHE_FARTHEST;
    const int64_t most = ring ? POSENC_CACHE_FARTHEST : least + slots;
    if (count <= 0)
        return POSENC_OK;
    if (first < least || count > most || first > most - count)
        return posenc_fail(error, POSENC_ERROR_POSITION,
                           "%s: the keys from %d on, %d of them, of sequence %d: must lie in "
                           "%d..%d",
                           map->name, first, count, sequence, least, most - 1);
    if (map->cache.kind == POSENC_CACHE_PAGED)
        return check_entries(map, sequence, first - least, first - least + count, error);
    return POSENC_OK;
}

int32_t posenc_cache_apart(const struct posenc_cache_map *map, const struct posenc_view *view,
                           posenc_error *error)
{
    int32_t status = posenc_disjoint_check(&map->rows, view, error);
    if (!status && map->groups)
        status = posenc_disjoint_check(&map->scales, view, error);
    return status;
}

int32_t posenc_cache_apart_array(const struct posenc_cache_map *map,
                                 const struct posenc_array *array, posenc_error *error)
{
    const struct posenc_view *view[2] = {&map->rows, &map->scales};
    for (int i = 0; i < 2; i++)
        if (array->begin < view[i]->end && view[i]->begin < array->end)
            return posenc_fail(error, POSENC_ERROR_OVERLAP,
                               "%s and %s share memory: must lie apart", map->name, array->name);
    return POSENC_OK;
}

int32_t posenc_cache_writable(const struct posenc_cache_map *map, posenc_error *error)
{
    const posenc_cache_header *header = map->cache.header;
    int32_t status = posenc_writable_check(&map->rows, error);
    if (!status && map->groups)
        status = posenc_writable_check(&map->scales, error);
    for (int i = 0; !status && i < map->arrays; i++)
        status = posenc_cache_apart_array(map, &map->array[i], error);
    if (!status && header) {
        const struct posenc_array array = {"its header", (uintptr_t)header,
                                           (uintptr_t)header + sizeof(*header)};
        status = posenc_cache_apart_array(map, &array, error);
    }
    return status;
}
