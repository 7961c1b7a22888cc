/* SPDX-License-Identifier: MIT */
/* Calls recognised at a glance: the same answer, text and bits as the full checks give. */
#include "support/random.h"
#include "support/test.h"

/* Whatever a call does not refuse lies between the first and the last quarter of the memory. */
enum { MEMORY = 24576, FIRST = MEMORY / 4, FARTHEST = 400, MOST_WIDE = 128 };

static _Alignas(64) unsigned char memory[MEMORY];

struct call {
    posenc_tensor rows, q, k;
    const posenc_tensor *q_arg, *k_arg;
};

struct widths { int32_t head, rotary, offset; };

static const struct widths widths[] = {
    {MOST_WIDE, MOST_WIDE, 0}, {16, 16, 0}, {24, 8, 4}, {7, 4, 1}, {96, 64, 32}};

enum { WIDTHS = sizeof(widths) / sizeof(widths[0]) };

static int64_t one_of(struct test_random *random, const int64_t *values, size_t count)
{
    return values[test_below(random, (uint32_t)count)];
}

#define ONE_OF(random, ...)                                                                    \
    one_of(random, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8)

static int64_t any_stride(struct test_random *random)
{
    return ONE_OF(random, 0, 1, -1, 8, 16, 24, MOST_WIDE, -MOST_WIDE, MOST_WIDE + 1, FARTHEST,
                  INT64_C(1) << 32, -(INT64_C(1) << 32), INT64_MAX, INT64_MIN);
}

/* A place in a small window, where views meet, touch and miss one another. */
static void *any_place(struct test_random *random)
{
    return memory + FIRST + 4 * test_below(random, 512);
}

static posenc_tensor plain(struct test_random *random, int32_t dtype, int64_t heads,
                           int64_t channels)
{
    posenc_tensor tensor;

    posenc_tensor_contiguous(&tensor, any_place(random), dtype, 1, 1, heads, channels);
    if (test_below(random, 2))
        tensor.stride[2] += ONE_OF(random, 0, 1, 2, 8, 64, -1);
    for (int d = 0; d < 2; d++)
        tensor.stride[d] = any_stride(random);
    if (heads == 1)
        tensor.stride[2] = any_stride(random);
    return tensor;
}

/* Sums of addresses that need not point anywhere. */
static void *moved(const void *data, int64_t bytes)
{
    return (void *)((uintptr_t)data + (uintptr_t)bytes);
}

/* Directly behind or before the other, or 2 bytes from there: at the edge of an overlap. */
static void put_beside(struct test_random *random, posenc_tensor *t, const posenc_tensor *other)
{
    const posenc_tensor *lower = test_below(random, 2) ? t : other;
    int64_t more = lower->shape[2] > 1 && lower->shape[2] < 8 ? lower->shape[2] - 1 : 0;
    int64_t step = more ? lower->stride[2] % (FARTHEST + 1) : 0;
    int64_t width = lower->shape[3] % (FARTHEST + 1);
    int64_t reach = (more * step + width) * (lower->dtype == POSENC_F32 ? 4 : 2);
    int64_t place = lower == t ? -reach : reach;

    if (reach > 0 && reach < FIRST / 2 && other->data)
        t->data = moved(other->data, place + ONE_OF(random, 0, 0, 2, -2, 4, -4));
}

/* Fields that agree with one another, but not on 1. */
static void agree(struct test_random *random, struct call *c)
{
    posenc_tensor *const all[] = {&c->rows, &c->q, &c->k};
    int64_t value = ONE_OF(random, 0, 2, -1, INT64_MAX, INT64_MIN);

    for (int i = 0; i < 3; i++)
        all[i]->shape[0] = all[i]->shape[1] = all[i]->stride[3] = value;
    c->rows.shape[2] = value;
}

static void spoil(struct test_random *random, struct call *c, const struct widths *w)
{
    posenc_tensor *const all[] = {&c->rows, &c->q, &c->k};
    posenc_tensor *t = all[test_below(random, 3)], *other = all[test_below(random, 3)];

    switch (test_below(random, 9)) {
    case 0:
        t->dtype = (int32_t)ONE_OF(random, 0, 1, 2, 3, 4, 5, -1, INT32_MAX, INT32_MIN);
        break;
    case 1:
        t->shape[test_below(random, 3)] = ONE_OF(random, 0, 1, 2, 3, -1, INT64_C(1) << 62,
                                                 INT64_MAX, INT64_MIN, INT64_MIN + 1);
        break;
    case 2:
        t->shape[3] = ONE_OF(random, w->head, w->rotary, w->head + 1, w->rotary - 1, 0, -1, 1,
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

/* The library must accept what fits some address space; here it must fit the memory. */
static void keep_inside(posenc_tensor *t)
{
    const uintptr_t place = (uintptr_t)t->data - (uintptr_t)memory;

    for (int d = 0; d < 3; d++)
        if (t->shape[d] > 1 && t->shape[d] < 8)
            t->stride[d] %= FARTHEST + 1;
    if (t->data && (uintptr_t)t->data < UINTPTR_MAX - 8 && (place < FIRST || place >= 2 * FIRST))
        t->data = memory + FIRST + place % 4;
}

static void make_call(struct test_random *random, const struct widths *w, struct call *c)
{
    int32_t dtype = 1 + (int32_t)test_below(random, 3);
    uint32_t which = test_below(random, 3), spoiled = test_below(random, 3);

    c->rows = plain(random, POSENC_F32, 1, w->rotary);
    c->q = plain(random, dtype, ONE_OF(random, 1, 1, 2, 4),
                 test_below(random, 4) ? w->head : w->rotary);
    c->k = plain(random, dtype, ONE_OF(random, 1, 1, 3),
                 test_below(random, 4) ? w->head : w->rotary);
    if (test_below(random, 2)) {
        put_beside(random, &c->k, &c->q);
        put_beside(random, &c->rows, &c->k);
    }
    for (uint32_t i = 0; i < spoiled; i++)
        spoil(random, c, w);
    keep_inside(&c->rows);
    keep_inside(&c->q);
    keep_inside(&c->k);
    c->q_arg = which == 1 ? NULL : &c->q;
    c->k_arg = which == 2 ? NULL : &c->k;
}

/* An output that is given, if only as the input itself, is never plain. Returns the status. */
static int32_t compare(const posenc_plan *plan, const struct call *c)
{
    static unsigned char before[MEMORY], glanced[MEMORY];
    posenc_error error = {0, ""}, full_error = {0, ""};

    memcpy(before, memory, MEMORY);
    int32_t status = posenc_rotate(plan, POSENC_FORWARD, &c->rows, c->q_arg, NULL, c->k_arg, NULL,
                                   &error);
    memcpy(glanced, memory, MEMORY);
    memcpy(memory, before, MEMORY);
    int32_t full = posenc_rotate(plan, POSENC_FORWARD, &c->rows, c->q_arg, c->q_arg, c->k_arg,
                                 c->k_arg, &full_error);
    assert_int_equal(status, full);
    assert_string_equal(error.text, full_error.text);
    assert_memory_equal(glanced, memory, MEMORY);
    if (status)
        assert_memory_equal(before, memory, MEMORY);
    return status;
}

static void compare_many(int32_t layout)
{
    const int rounds = test_quick() ? 2000 : 5000;
    struct test_random random = {(uint32_t)layout};
    int accepted = 0, refused = 0;

    for (size_t i = 0; i < WIDTHS; i++) {
        posenc_rope_params params = test_params(layout, widths[i].head, widths[i].rotary);
        params.rotary_offset = widths[i].offset;
        posenc_plan *plan = test_plan(&params);
        for (int round = 0; round < rounds; round++) {
            struct call c;
            make_call(&random, &widths[i], &c);
            for (size_t at = 0; round % 64 == 0 && at < MEMORY / 4; at++) {
                float x = test_unit(&random);
                memcpy(memory + 4 * at, &x, 4);
            }
            *(compare(plan, &c) ? &refused : &accepted) += 1;
        }
        posenc_plan_free(plan);
    }
    assert_true(accepted > rounds && refused > rounds);
}

static void test_split_half(void **state)
{
    (void)state;
    compare_many(POSENC_SPLIT_HALF);
}

static void test_adjacent(void **state)
{
    (void)state;
    compare_many(POSENC_ADJACENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_half),
        cmocka_unit_test(test_adjacent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
