/* SPDX-License-Identifier: MIT */
/* Pages that a table lists twice: no key is turned twice, or read after it was written. */
#include "support/test.h"

static posenc_positions one_position(const int64_t *position)
{
    return (posenc_positions){.struct_size = sizeof(posenc_positions), .dtype = POSENC_I64,
                              .kind = POSENC_POSITIONS_IDS, .ids = position};
}

enum { POOL = 70000, WINDOW = 1 << 15, ENTRIES = 4 }; /* WINDOW: pages that are looked at at once */

static float memory[POOL * 2 * 2], before[POOL * 2 * 2];

/* Two sequences of four pages of two keys of two channels. */
static posenc_cache pool(const int32_t *pages)
{
    posenc_cache c;
    posenc_cache_init(&c);
    c.kind = POSENC_CACHE_PAGED;
    posenc_tensor_contiguous(&c.rows, memory, POSENC_F32, POOL, 2, 1, 2);
    c.pages = pages;
    c.page_stride = ENTRIES;
    c.sequences = 2;
    c.sequence_pages = ENTRIES;
    return c;
}

/* Moves and re-bases some keys. */
static void turned(const int32_t *pages, int64_t sequence, int64_t first, int64_t count,
                   const char *words)
{
    static const int64_t zero = 0, one = 1;
    const posenc_positions from = one_position(&zero), to = one_position(&one);
    const posenc_rope_params p = test_params(POSENC_ADJACENT, 2, 2);
    posenc_plan *plan = test_plan(&p);
    const posenc_cache c = pool(pages);
    posenc_error error = {0, ""};
    for (int way = 0; way < 2; way++) {
        for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
            memory[i] = before[i] = 1;
        int32_t status =
            way ? posenc_cache_move(plan, &to, &c, sequence, first, count, &error)
                : posenc_cache_rebase(plan, &from, plan, &to, &c, sequence, first, count, &error);
        if (words) {
            test_refused(status, POSENC_ERROR_OVERLAP, &error, words);
            assert_memory_equal(memory, before, sizeof memory);
        } else {
            test_ok(status, &error);
            assert_float_equal(memory[4 * pages[0] + 2 * (first % 2)], 0.5403023 - 0.8414710, 1e-6);
        }
    }
    posenc_plan_free(plan);
}

/* A page in two places would be turned twice. What lies beyond the keys of the call is not read. */
static void a_page_is_turned_once(void **state)
{
    int32_t pages[2 * ENTRIES] = {5, 8, 5, -1, 6, 7, 8, INT32_MAX};
    (void)state;
    turned(pages, 0, 0, 4, NULL);
    turned(pages, 0, 0, 5, "cache.pages: entry 2 of sequence 0 is page 5");
    turned(pages, 0, 1, 4, "entry 2 of sequence 0 is page 5");
    turned(pages, -1, 0, 4, NULL);
    turned(pages, -1, 0, 5, "entry 2 of sequence 0 is page 5");
    pages[2] = 9;
    turned(pages, 0, 0, 6, NULL);
    turned(pages, -1, 0, 5, "entry 2 of sequence 1 is page 8");
    pages[4] = 5;
    turned(pages, -1, 1, 1, "entry 0 of sequence 1 is page 5");
    turned(pages, 1, 1, 1, NULL);
    /* Of large pools too, where pages a window apart are not the same. */
    const int32_t far[2 * ENTRIES] = {POOL - 1, 0, POOL - 1 - WINDOW, POOL - 1,
                                      POOL - 1 - 2 * WINDOW, WINDOW, WINDOW - 1, WINDOW};
    turned(far, 0, 0, 6, NULL);
    turned(far, -1, 0, 6, NULL);
    turned(far, 0, 0, 7, "entry 3 of sequence 0 is page 69999");
    turned(far, -1, 1, 7, "page");
    turned(far + ENTRIES, 0, 0, 7, "entry 3 of sequence 0 is page 32768");
}

/* Within one memory no key is read after it was written, whatever the table says. */
static void a_page_is_copied_once(void **state)
{
    static const int64_t keys[2] = {2, 7};
    int32_t pages[2 * ENTRIES] = {5, 8, 5, 9, 1, 2, 3, 4};
    const posenc_cache c = pool(pages);
    posenc_error error = {0, ""};
    (void)state;
    for (int i = 0; i < POOL * 4; i++)
        memory[i] = before[i] = (float)i;
    /* written to page 5, read from page 8 and then, as entry 2, from page 5 */
    test_refused(posenc_cache_copy(&c, 0, 2, NULL, &c, 0, 0, 3, &error), POSENC_ERROR_OVERLAP,
                 &error, "page 5");
    test_refused(posenc_cache_copy(&c, 0, 0, NULL, &c, 0, 0, 5, &error), POSENC_ERROR_OVERLAP,
                 &error, "to.pages: entry 2 of sequence 0 is page 5");
    assert_memory_equal(memory, before, sizeof memory);
    test_ok(posenc_cache_copy(&c, 0, 0, keys, &c, 0, 0, 2, &error), &error);
    assert_memory_equal(memory + 5 * 4, before + 8 * 4, 2 * sizeof(float));
    assert_memory_equal(memory + 5 * 4 + 2, before + 9 * 4 + 2, 2 * sizeof(float));
    pages[2] = 10;
    test_ok(posenc_cache_copy(&c, 0, 2, NULL, &c, 0, 0, 6, &error), &error);
    assert_memory_equal(memory + 8 * 4, before + 10 * 4, 4 * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_turned_once),
        cmocka_unit_test(a_page_is_copied_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
