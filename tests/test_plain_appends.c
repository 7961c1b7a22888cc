/* SPDX-License-Identifier: MIT */
/* Appends recognised at a glance: the same answer, text and bits as the full checks give. */
#include "support/random.h"
#include "support/test.h"

#include "../src/cache_append.h"

#include <math.h>

/* Whatever a call does not refuse lies between the first and the last quarter of the memory. */
enum { MEMORY = 40960, FIRST = MEMORY / 4, FARTHEST = 176, MOST_WIDE = 32 };

static _Alignas(64) unsigned char memory[MEMORY];

/* Structs with room behind them, zero unless a call says more than the library knows. */
struct call {
    struct { posenc_append_params p; uint64_t tail; } params;
    struct { posenc_cache c; uint64_t tail; } cache;
    posenc_tensor src, rows, weight;
    posenc_cache_header header;
    int64_t places[4];
    int32_t pages[4];
    const posenc_append_params *params_arg;
    const posenc_tensor *src_arg;
    const posenc_cache *cache_arg;
};

/* Two plans, of which a call takes the first unless it is spoiled; and heads of these channels. */
struct kind { int32_t layout, out_layout, head, rotary, offset; int64_t channels; };

static const struct kind kinds[] = {
    {POSENC_SPLIT_HALF, 0, MOST_WIDE, MOST_WIDE, 0, MOST_WIDE},
    {POSENC_ADJACENT, 0, 16, 16, 0, 16},
    {POSENC_SPLIT_HALF, 0, 24, 8, 4, 24},
    {POSENC_SPLIT_HALF, 0, 24, 8, 4, 8},
    {POSENC_ADJACENT, POSENC_SPLIT_HALF, 28, 28, 0, 28},
    {0, 0, 0, 0, 0, 7}, /* no rotation */
    {0, 0, 0, 0, 0, 20},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int64_t one_of(struct test_random *random, const int64_t *values, size_t count)
{
    return values[test_below(random, (uint32_t)count)];
}

#define ONE_OF(random, ...)                                                                    \
    one_of(random, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8)

static int64_t any_stride(struct test_random *random)
{
    return ONE_OF(random, 0, 1, -1, 8, 16, 24, MOST_WIDE, -MOST_WIDE, MOST_WIDE + 1, FARTHEST,
                  INT64_C(1) << 31, INT64_C(1) << 32, -(INT64_C(1) << 32), INT64_MAX, INT64_MIN);
}

/* Places in a small window, where views meet, touch and miss one another. */
static void *any_place(struct test_random *random)
{
    return memory + FIRST + FIRST / 2 + 4 * test_below(random, 512);
}

/* Heads within tokens or tokens within heads, with gaps or without. */
static posenc_tensor plain(struct test_random *random, int32_t dtype, int64_t tokens,
                           int64_t heads, int64_t channels)
{
    posenc_tensor t;
    int64_t gap = ONE_OF(random, 0, 0, 0, 0, 0, 0, 1, 2, 8, -1);

    posenc_tensor_contiguous(&t, any_place(random), dtype, 1, tokens, heads, channels);
    t.stride[2] = channels + gap;
    t.stride[1] = heads * t.stride[2] + ONE_OF(random, 0, 0, 0, 0, 0, 1, -1, -channels);
    if (test_below(random, 3) == 0) {
        t.stride[1] = channels + gap;
        t.stride[2] = tokens * t.stride[1] + ONE_OF(random, 0, 0, 0, 0, 1, -1, -gap - 1);
    }
    t.stride[0] = any_stride(random);
    if (tokens == 1) t.stride[1] = any_stride(random);
    if (heads == 1) t.stride[2] = any_stride(random);
    return t;
}

/* Sums of addresses that need not point anywhere. */
static void *moved(const void *data, int64_t bytes)
{
    return (void *)((uintptr_t)data + (uintptr_t)bytes);
}

/* Bytes from the first of a small view to behind its last. */
static int64_t reach_of(const posenc_tensor *t)
{
    int64_t elements = t->shape[3] % (FARTHEST + 1);

    for (int d = 1; d < 3; d++)
        if (t->shape[d] > 1 && t->shape[d] < 8)
            elements += (t->shape[d] - 1) * (t->stride[d] % (FARTHEST + 1));
    return elements * (t->dtype == POSENC_F32 ? 4 : 2);
}

/* Directly behind or before the other, or 2 bytes from there: at the edge of an overlap. */
static void put_beside(struct test_random *random, posenc_tensor *t, const posenc_tensor *other)
{
    int below = (int)test_below(random, 2);
    int64_t reach = reach_of(below ? t : other), off = ONE_OF(random, 0, 0, 0, 4, -4, 2, -2);

    if (reach > 0 && reach < FIRST && other->data)
        t->data = moved(other->data, (below ? -reach : reach) + off);
}

/* Fields that agree with one another, but on what no call has. */
static void agree(struct test_random *random, struct call *c)
{
    posenc_tensor *const all[] = {&c->rows, &c->src, &c->cache.c.rows};
    int64_t value = ONE_OF(random, 0, 2, -1, INT64_MAX, INT64_MIN);
    int64_t wide = ONE_OF(random, 0, 8, -1, INT64_C(1) << 62, (INT64_C(1) << 62) + 8, INT64_MAX,
                          INT64_MIN, INT64_MIN + 8);
    int64_t heads = ONE_OF(random, 0, 3, -1, INT64_C(1) << 62, (INT64_C(1) << 62) + 1);
    int which = (int)test_below(random, 3);

    for (int i = 0; i < 3 && which == 0; i++)
        all[i]->shape[0] = all[i]->shape[1] = all[i]->stride[3] = value;
    for (int i = 1; i < 3 && which == 1; i++)
        all[i]->shape[3] = wide;
    for (int i = 1; i < 3 && which == 2; i++) {
        all[i]->shape[2] = heads;
        all[i]->stride[2] = ONE_OF(random, 0, 32, INT64_C(1) << 40, INT64_MIN);
    }
    c->rows.shape[2] = which ? 1 : value;
}

static void spoil_tensor(struct test_random *random, struct call *c, const struct kind *kind)
{
    posenc_tensor *const all[] = {&c->rows, &c->src, &c->cache.c.rows};
    posenc_tensor *t = all[test_below(random, 3)], *other = all[test_below(random, 3)];

    switch (test_below(random, 9)) {
    case 0:
        t->dtype = (int32_t)ONE_OF(random, 0, 1, 2, 3, 4, 5, 6, 7, -1, INT32_MAX, INT32_MIN);
        break;
    case 1:
        t->shape[test_below(random, 3)] = ONE_OF(random, 0, 1, 2, 3, -1, INT64_C(1) << 62,
                                                 INT64_MAX, INT64_MIN, INT64_MIN + 1);
        break;
    case 2:
        t->shape[3] = ONE_OF(random, kind->head, kind->rotary, kind->channels + 1, 0, -1, 1,
                             INT64_C(1) << 62, INT64_MAX, INT64_MIN);
        break;
    case 3: t->stride[3] = ONE_OF(random, 0, 2, -1, 1, INT64_MAX, INT64_MIN); break;
    case 4: t->stride[test_below(random, 3)] = any_stride(random); break;
    case 5: t->data = test_below(random, 3) ? moved(t->data, test_below(random, 4)) : NULL; break;
    case 6: t->data = (void *)(UINTPTR_MAX - test_below(random, 8)); break;
    case 7: agree(random, c); break;
    default: put_beside(random, t, other); break;
    }
}

static void spoil_place(struct test_random *random, struct call *c)
{
    posenc_append_params *p = &c->params.p;
    const int64_t slots = c->cache.c.rows.shape[1];

    for (int i = 0; i < 4; i++) c->places[i] = ONE_OF(random, 0, 1, 1, 1, 2, -1);
    switch (test_below(random, 5)) {
    case 0:
        p->start = ONE_OF(random, slots, slots == INT64_MIN ? 0 : slots - 1, -1, INT64_MAX,
                          INT64_MIN, INT64_C(1) << 53);
        break;
    case 1: p->starts = c->places; break;
    case 2:
        p->sequences = ONE_OF(random, 1, 1, 2, -1, INT64_MIN);
        c->places[0] = test_below(random, 8) == 0;
        p->token_starts = test_below(random, 4) ? c->places : NULL;
        break;
    case 3: p->token_starts = c->places; break;
    default:
        p->keys = test_below(random, 3) ? c->places : NULL;
        p->key_stride[test_below(random, 2)] = ONE_OF(random, 0, 1, INT64_MAX);
        if (p->keys && test_below(random, 3)) p->start = 0;
        break;
    }
}

static void spoil_work(struct test_random *random, struct call *c, const posenc_plan *other)
{
    static const double epses[] = {1e-5, 1, 1.5, -1e-9, (double)NAN};
    static const double scales[] = {-0.0, 1, 0.5, 1 + 0x1p-40, 1e39, (double)NAN};
    posenc_append_params *p = &c->params.p;

    switch (test_below(random, 10)) {
    case 0: p->isa = (int32_t)ONE_OF(random, 1, 2, 3, 4, 5, -1, 99, INT32_MIN); break;
    case 1: p->norm = (int32_t)ONE_OF(random, 1, 2, 3, -1); break;
    case 2: p->norm_after = (int32_t)ONE_OF(random, 1, 2, -1); break;
    case 3: p->eps = epses[test_below(random, 5)]; break;
    case 4:
        p->weight = &c->weight;
        p->norm = (int32_t)test_below(random, 2);
        break;
    case 5: p->weight_plus_one = (int32_t)ONE_OF(random, 1, 2, -1); break;
    case 6: p->stream = (int32_t)ONE_OF(random, 1, 2, -1); break;
    case 7: p->scale = scales[test_below(random, 6)]; break;
    case 8: p->rope = test_below(random, 2) ? other : NULL; break;
    default: p->rows = p->rows ? NULL : &c->rows; break;
    }
}

static void spoil_cache(struct test_random *random, struct call *c)
{
    posenc_cache *m = &c->cache.c;

    for (int i = 0; i < 4; i++) {
        c->places[i] = ONE_OF(random, 0, 1, 2, -1);
        c->pages[i] = (int32_t)ONE_OF(random, 0, 0, 0, 1, -1);
    }
    switch (test_below(random, 9)) {
    case 0: m->kind = (int32_t)ONE_OF(random, 0, 2, 2, 3, 4, -1); break;
    case 1:
        m->kind = POSENC_CACHE_PAGED;
        m->pages = c->pages;
        m->sequences = m->page_stride = m->sequence_pages = 1;
        break;
    case 2:
        posenc_tensor_contiguous(&m->scales, any_place(random), POSENC_F32, 1,
                                 m->rows.shape[1] & 7, m->rows.shape[2] & 7, 1);
        m->rows.dtype = test_below(random, 3) ? POSENC_I8 : m->rows.dtype;
        break;
    case 3: m->first_keys = c->places; break;
    case 4: m->keep = ONE_OF(random, 1, -1, INT64_MIN); break;
    case 5: m->turns = c->places; break;
    case 6: *(test_below(random, 2) ? &m->sequences : &m->sequence_pages) = 1; break;
    case 7: m->pages = c->pages; break;
    default:
        posenc_cache_header_init(&c->header, m, test_below(random, 2) ? c->params.p.rope : NULL,
                                 NULL);
        c->header.first_key = ONE_OF(random, 0, 0, 1, -1);
        m->header = &c->header;
        break;
    }
}

static void spoil_form(struct test_random *random, struct call *c)
{
    const uint32_t size = (uint32_t)ONE_OF(random, 0, 4, 8);
    const uint32_t less = (uint32_t)ONE_OF(random, 0, 8, 1);

    switch (test_below(random, 5)) {
    case 0: c->params.p.struct_size += size - less; break;
    case 1: c->cache.c.struct_size += size - less; break;
    case 2: c->params_arg = NULL; break;
    case 3: c->src_arg = NULL; break;
    default: c->cache_arg = NULL; break;
    }
}

/* The library must accept what fits some address space; here it must fit the memory. */
static void keep_inside(posenc_tensor *t)
{
    const uintptr_t place = (uintptr_t)t->data - (uintptr_t)memory;

    for (int d = 0; d < 3; d++)
        if (t->shape[d] > 1 && t->shape[d] < 8) t->stride[d] %= FARTHEST + 1;
    if (t->shape[3] > 1 && t->shape[3] <= MOST_WIDE + 1) t->stride[3] %= 3;
    if (t->data && (uintptr_t)t->data < UINTPTR_MAX - 8 && (place < FIRST || place >= 2 * FIRST))
        t->data = memory + FIRST + place % 4;
}

static void make_call(struct test_random *random, const struct kind *kind,
                      const posenc_plan *const plans[2], struct call *c)
{
    posenc_append_params *p = &c->params.p;
    uint32_t spoiled = test_below(random, 3);
    int64_t heads = ONE_OF(random, 1, 1, 2, 4), slots = ONE_OF(random, 1, 2, 5);
    posenc_tensor rows = plain(random, 1 + (int32_t)test_below(random, 3), slots, heads,
                               kind->channels);

    memset(c, 0, sizeof *c);
    posenc_append_params_init(p);
    posenc_cache_plain(&c->cache.c, &rows);
    c->src = plain(random, 1 + (int32_t)test_below(random, 3), 1, heads, kind->channels);
    c->rows = plain(random, POSENC_F32, 1, 1, kind->rotary ? kind->rotary : 4);
    c->weight = plain(random, POSENC_F32, 1, 1, kind->channels);
    c->params_arg = p;
    c->src_arg = &c->src;
    c->cache_arg = &c->cache.c;
    p->start = test_below(random, (uint32_t)slots);
    p->rope = plans[0];
    p->rows = plans[0] ? &c->rows : NULL;
    if (test_below(random, 8)) {
        put_beside(random, &c->src, &c->cache.c.rows);
        put_beside(random, &c->rows, &c->cache.c.rows);
    }
    for (uint32_t i = 0; i < spoiled; i++)
        switch (test_below(random, 8)) {
        case 0: spoil_place(random, c); break;
        case 1: spoil_work(random, c, plans[1]); break;
        case 2: spoil_cache(random, c); break;
        case 3: spoil_form(random, c); break;
        default: spoil_tensor(random, c, kind); break;
        }
    keep_inside(&c->src);
    keep_inside(&c->rows);
    keep_inside(&c->weight);
    keep_inside(&c->cache.c.rows);
    keep_inside(&c->cache.c.scales);
}

/* A struct of a size to come whose new members are 0 says the same, but is never plain. */
static int make_longer(struct call *c)
{
    if (c->params_arg && c->params.p.struct_size == sizeof c->params.p)
        c->params.p.struct_size = sizeof c->params;
    else if (c->cache_arg && c->cache.c.struct_size == sizeof c->cache.c)
        c->cache.c.struct_size = sizeof c->cache;
    else
        return 0;
    return 1;
}

/* Returns the status. `glanced` counts the calls that the full checks do not see. */
static int32_t compare(struct call *c, int *glanced)
{
    static unsigned char before[MEMORY], once[MEMORY];
    posenc_error error = {0, ""}, full_error = {0, ""};

    memcpy(before, memory, MEMORY);
    *glanced += posenc_append_glance(c->params_arg, c->src_arg, c->cache_arg);
    memcpy(memory, before, MEMORY);
    int32_t status = posenc_cache_append(c->params_arg, c->src_arg, c->cache_arg, &error);
    memcpy(once, memory, MEMORY);
    memcpy(memory, before, MEMORY);
    if (!make_longer(c)) return status;
    assert_false(posenc_append_glance(c->params_arg, c->src_arg, c->cache_arg));
    int32_t full = posenc_cache_append(c->params_arg, c->src_arg, c->cache_arg, &full_error);
    if (status != full)
        fail_msg("%d \"%s\", in full %d \"%s\"", status, error.text, full, full_error.text);
    assert_string_equal(error.text, full_error.text);
    assert_memory_equal(once, memory, MEMORY);
    if (status) assert_memory_equal(before, memory, MEMORY);
    return status;
}

static posenc_plan *plan_of(const struct kind *kind)
{
    posenc_rope_params params = test_params(kind->layout, kind->head, kind->rotary);

    params.rotary_offset = kind->offset;
    params.out_layout = kind->out_layout;
    return test_plan(&params);
}

static void compare_many(size_t first, size_t end)
{
    const int rounds = test_quick() ? 2500 : 8000;
    posenc_plan *other = plan_of(&kinds[0]);

    for (size_t i = first; i < end; i++) {
        posenc_plan *plan = kinds[i].rotary ? plan_of(&kinds[i]) : NULL;
        const posenc_plan *const plans[2] = {plan, other};
        int accepted = 0, refused = 0, glanced = 0;
        struct test_random random = {(uint32_t)i};

        for (int round = 0; round < rounds; round++) {
            struct call c;

            make_call(&random, &kinds[i], plans, &c);
            for (size_t at = 0; round % 64 == 0 && at < MEMORY / 4; at++) {
                float x = test_unit(&random);
                memcpy(memory + 4 * at, &x, 4);
            }
            *(compare(&c, &glanced) ? &refused : &accepted) += 1;
        }
        posenc_plan_free(plan);
        print_message("kind %d: %d refused, %d accepted, %d of them at a glance\n", (int)i,
                      refused, accepted, glanced);
        assert_true(accepted > rounds / 8 && refused > rounds / 8);
        /* addresses of 32 bits are never plain */
        if (sizeof(void *) >= 8 && i != 2 && i != 4) assert_true(glanced > rounds / 16);
    }
    posenc_plan_free(other);
}

static void turned_tokens(void **state)
{
    (void)state;
    compare_many(0, 5);
}

static void copied_tokens(void **state)
{
    (void)state;
    compare_many(5, KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turned_tokens),
        cmocka_unit_test(copied_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
