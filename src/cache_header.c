/* SPDX-License-Identifier: MIT */
/* What a cache says that it holds, and what of it a plan contradicts. */
#include "cache.h"
#include "error.h"
#include "plan.h"
#include "structs.h"

void posenc_cache_init(posenc_cache *cache)
{
    *cache = (posenc_cache){.struct_size = sizeof(*cache)};
}

void posenc_cache_plain(posenc_cache *cache, const posenc_tensor *rows)
{
    posenc_cache_init(cache);
    cache->kind = POSENC_CACHE_CONTIGUOUS;
    cache->rows = *rows;
}

static void describe(posenc_cache_header *h, const posenc_plan *plan)
{
    const posenc_rope_params *p = &plan->params;
    h->layout = plan->out_layout;
    h->head_dim = plan->head_dim;
    h->rotary_dim = plan->rotary_dim;
    h->rotary_offset = plan->rotary_offset;
    h->scaling = p->scaling;
    h->recipe = p->recipe;
    h->axes = plan->axes;
    h->base = p->base;
    h->factor = p->factor;
    h->attention_factor = plan->sets[0].attention_factor;
    posenc_plan_fingerprint(plan, h->fingerprint, NULL);
}

static void store(posenc_cache_header *h, const struct posenc_cache_map *map)
{
    h->dtype = map->cache.rows.dtype;
    h->scale_dtype = map->groups ? map->cache.scales.dtype : 0;
    h->group = map->groups ? (int32_t)(map->channels / map->groups) : 0;
}

int32_t posenc_cache_header_init(posenc_cache_header *header, const posenc_cache *cache,
                                 const posenc_plan *plan, posenc_error *error)
{
    struct posenc_cache_map map;
    posenc_cache_header h = {.struct_size = sizeof(h)};
    posenc_cache without;
    if (!header || !cache)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           header ? "cache" : "header");
    /* What the old header says of the first key is no concern of the new one. */
    posenc_cache_init(&without);
    int32_t status = posenc_struct_read(&without, sizeof(without), sizeof(without), cache, "cache",
                                        error);
    without.header = NULL;
    if (!status)
        status = posenc_cache_read(&map, &without, "cache", error);
    if (!status && plan && map.channels != plan->head_dim && map.channels != plan->rotary_dim)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "cache.rows.shape[3] is %d: must be the head_dim (%d) or rotary_dim "
                             "(%d) of plan",
                             map.channels, (int64_t)plan->head_dim, (int64_t)plan->rotary_dim);
    if (status)
        return status;
    store(&h, &map);
    if (plan)
        describe(&h, plan);
    *header = h;
    return POSENC_OK;
}

static int is_rotated(const posenc_cache_header *h)
{
    for (size_t i = 0; i < sizeof(h->fingerprint); i++)
        if (h->fingerprint[i])
            return 1;
    return 0;
}

int32_t posenc_cache_stored_check(const struct posenc_cache_map *map, posenc_error *error)
{
    posenc_cache_header h = {0}, now = {0};
    if (!map->cache.header)
        return POSENC_OK;
    int32_t status = posenc_struct_read(&h, sizeof(h), sizeof(h), map->cache.header, "header",
                                        error);
    if (status)
        return status;
    store(&now, map);
    if (h.dtype != now.dtype || h.scale_dtype != now.scale_dtype || h.group != now.group)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.header says dtype %d, scale_dtype %d, group %d: the cache has %d, "
                           "%d, %d",
                           map->name, (int64_t)h.dtype, (int64_t)h.scale_dtype, (int64_t)h.group,
                           (int64_t)now.dtype, (int64_t)now.scale_dtype, (int64_t)now.group);
    if (is_rotated(&h) && map->channels != h.head_dim && map->channels != h.rotary_dim)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.header says head_dim %d, rotary_dim %d: the cache has %d channels",
                           map->name, (int64_t)h.head_dim, (int64_t)h.rotary_dim, map->channels);
    if (h.first_key < 0 || h.first_key > POSENC_CACHE_FARTHEST)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.header.first_key is %d: must be 0..2^53", map->name, h.first_key);
    return POSENC_OK;
}

static int32_t fail_integer(const struct posenc_cache_map *map, const char *what, int32_t stored,
                            int32_t now, const char *plan_name, posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.header: its keys were rotated with %s %d, %s has %d: must be the same "
                       "plan",
                       map->name, what, (int64_t)stored, plan_name, (int64_t)now);
}

static int32_t fail_real(const struct posenc_cache_map *map, const char *what, double stored,
                         double now, const char *plan_name, posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.header: its keys were rotated with %s %g, %s has %g: must be the same "
                       "plan",
                       map->name, what, stored, plan_name, now);
}

/* Says the first fact that differs. */
static int32_t fail_facts(const struct posenc_cache_map *map, const posenc_cache_header *now,
                          const char *other, posenc_error *error)
{
    const posenc_cache_header *h = map->cache.header;
    const struct { const char *name; int32_t stored, now; } facts[] = {
        {"layout", h->layout, now->layout},
        {"head_dim", h->head_dim, now->head_dim},
        {"rotary_dim", h->rotary_dim, now->rotary_dim},
        {"rotary_offset", h->rotary_offset, now->rotary_offset},
        {"axes", h->axes, now->axes},
        {"scaling", h->scaling, now->scaling},
        {"recipe", h->recipe, now->recipe},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        if (facts[i].stored != facts[i].now)
            return fail_integer(map, facts[i].name, facts[i].stored, facts[i].now, other, error);
    if (h->base != now->base)
        return fail_real(map, "base", h->base, now->base, other, error);
    if (h->factor != now->factor)
        return fail_real(map, "factor", h->factor, now->factor, other, error);
    if (h->attention_factor != now->attention_factor)
        return fail_real(map, "attention_factor", h->attention_factor, now->attention_factor,
                         other, error);
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.header: its keys were rotated with other frequencies than those of %s: "
                       "must be the same plan (fingerprints differ)",
                       map->name, other);
}

int32_t posenc_cache_headers_agree(const struct posenc_cache_map *from,
                                   const struct posenc_cache_map *to, posenc_error *error)
{
    const posenc_cache_header *a = from->cache.header, *b = to->cache.header;
    if (!a || !b || !memcmp(a->fingerprint, b->fingerprint, sizeof(a->fingerprint)))
        return POSENC_OK;
    if (is_rotated(a) && is_rotated(b))
        return fail_facts(from, b, "to.header", error);
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s.header: its keys are %srotated, those of %s.header are %srotated: must "
                       "be the same",
                       from->name, is_rotated(a) ? "" : "not ", to->name,
                       is_rotated(b) ? "" : "not ");
}

int32_t posenc_cache_header_check(const struct posenc_cache_map *map, const posenc_plan *plan,
                                  const char *plan_name, posenc_error *error)
{
    const posenc_cache_header *h = map->cache.header;
    uint8_t fingerprint[sizeof(h->fingerprint)];
    if (!h)
        return POSENC_OK;
    if (is_rotated(h) != !!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           plan ? "%s.header: its rows are not rotated and %s is given: must be "
                                  "the header of that plan"
                                : "%s.header: its keys are rotated and %s is NULL: must be the "
                                  "plan that rotated them",
                           map->name, plan_name);
    if (!plan)
        return POSENC_OK;
    int32_t status = posenc_plan_fingerprint(plan, fingerprint, error);
    if (status || !memcmp(fingerprint, h->fingerprint, sizeof(fingerprint)))
        return status;
    posenc_cache_header now = {0};
    describe(&now, plan);
    return fail_facts(map, &now, plan_name, error);
}

int32_t posenc_cache_locate(const posenc_cache *cache, int64_t sequence, int64_t key,
                            int64_t *block, int64_t *slot, posenc_error *error)
{
    struct posenc_cache_map map;
    int32_t status = posenc_cache_read(&map, cache, "cache", error);
    if (!status && (!block || !slot))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                             block ? "slot" : "block");
    if (!status && (sequence < 0 || sequence >= map.sequences))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "sequence is %d: must be 0..%d",
                             sequence, map.sequences - 1);
    if (!status)
        status = posenc_cache_keys_check(&map, sequence, key, 1, error);
    if (status)
        return status;
    const struct posenc_cache_slot at = posenc_cache_slot_of(&map, sequence, key);
    *block = at.block;
    *slot = at.token;
    return POSENC_OK;
}
