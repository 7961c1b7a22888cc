/* SPDX-License-Identifier: MIT */
/* Three-axis ids of prompts with images and videos: stored runs, edges, every wrong argument. */
#include "support/numbers.h"
#include "support/refuse.h"

#include <math.h>

enum { MAX_TOKENS = 512, MAX_SEGMENTS = 16, ARGUMENT = POSENC_ERROR_ARGUMENT };

static posenc_segment text(int64_t tokens)
{
    return (posenc_segment){.kind = POSENC_SEGMENT_TEXT, .tokens = tokens};
}

static posenc_segment grid(int32_t kind, int64_t frames, int64_t rows, int64_t columns,
                           double step)
{
    return (posenc_segment){.kind = kind, .frames = frames, .rows = rows, .columns = columns,
                            .frame_step = step};
}

/* B32-b: one image between texts. */
static void test_one_image(void **state)
{
    static const int64_t expected[3][13] = {{0, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 7, 8},
                                            {0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8},
                                            {0, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 7, 8}};
    const posenc_segment segments[] = {text(3), grid(POSENC_SEGMENT_GRID, 1, 4, 2, 1), text(2)};
    int64_t ids[39], next = 0, delta = 0;
    posenc_error error = {0, ""};

    (void)state;
    test_ok(posenc_ids_multimodal(segments, 3, 0, ids, 13, &next, &delta, &error), &error);
    assert_memory_equal(ids, expected, sizeof ids);
    assert_int_equal(next, 9);
    assert_int_equal(delta, -4);
}

static size_t read_segments(const char *file, const char *id, posenc_segment *segments)
{
    double n[6 * MAX_SEGMENTS];
    size_t count = test_numbers(file, id, "segments", n, 6 * MAX_SEGMENTS) / 6;

    for (size_t s = 0; s < count; s++) {
        const double *v = n + 6 * s;

        segments[s] = (posenc_segment){(int32_t)v[0], 0, (int64_t)v[1], (int64_t)v[2],
                                       (int64_t)v[3], (int64_t)v[4], v[5]};
    }
    return count;
}

/* One prompt that transformers numbered; `first` moves every id and no delta. */
static void check_prompt(const char *file, const char *id, int64_t first)
{
    static const char *const axes[] = {"t", "h", "w"};
    posenc_segment segments[MAX_SEGMENTS];
    double expected[MAX_TOKENS], delta;
    int64_t ids[3 * MAX_TOKENS], next, got;
    size_t count = read_segments(file, id, segments);
    size_t tokens = test_numbers(file, id, "t", expected, MAX_TOKENS);
    posenc_error error = {0, ""};

    test_numbers(file, id, "delta", &delta, 1);
    test_ok(posenc_ids_multimodal(segments, count, first, ids, tokens, &next, &got, &error),
            &error);
    for (size_t a = 0; a < 3; a++) {
        assert_int_equal(test_numbers(file, id, axes[a], expected, MAX_TOKENS), tokens);
        for (size_t t = 0; t < tokens; t++) {
            if (ids[a * tokens + t] - first != (int64_t)expected[t]) {
                fail_msg("%s %s[%zu]: %lld", id, axes[a], t, (long long)ids[a * tokens + t]);
            }
        }
    }
    assert_int_equal(got, (int64_t)delta);
    assert_int_equal(next, first + (int64_t)tokens + got);
}

static void test_stored(void **state)
{
    static const char *const files[] = {"builders_transformers4.txt",
                                        "builders_transformers5.txt"};
    char id[64];

    (void)state;
    for (size_t f = 0; f < 2; f++) {
        size_t n = 0;

        for (; test_number_id(files[f], "segments", n, id, sizeof id); n++) {
            check_prompt(files[f], id, 0);
            check_prompt(files[f], id, 1000000);
        }
        assert_int_equal(n, 14);
    }
}

/* Frame 100 of step 0.57 stands at 57, which the product in double misses. */
static void test_frame_step(void **state)
{
    const posenc_segment video = grid(POSENC_SEGMENT_GRID, 101, 1, 1, 0.57);
    int64_t ids[303];

    (void)state;
    assert_true(100 * 0.57 < 57);
    test_ok(posenc_ids_multimodal(&video, 1, 0, ids, 101, NULL, NULL, NULL), NULL);
    assert_int_equal(ids[100], 57);
}

/* After a plane the text goes on inside the time of the video, `next` after all of it. */
static void test_plane(void **state)
{
    const posenc_segment segments[] = {grid(POSENC_SEGMENT_GRID_PLANE, 9, 2, 1, 1), text(1)};
    int64_t ids[57], next, delta;

    (void)state;
    test_ok(posenc_ids_multimodal(segments, 2, 0, ids, 19, &next, &delta, NULL), NULL);
    assert_int_equal(ids[17], 8);
    assert_int_equal(ids[18], 2);
    assert_int_equal(next, 9);
    assert_int_equal(delta, 9 - 19);
}

static void test_edges(void **state)
{
    static const int64_t end = INT64_C(1) << 31;
    const posenc_segment empty[] = {text(0), text(2), text(0)};
    const posenc_segment image = grid(POSENC_SEGMENT_GRID, 1, 1, 3, 0);
    posenc_segment ignored = text(1);
    int64_t ids[9], next = 7, delta = 7;

    (void)state;
    test_ok(posenc_ids_multimodal(NULL, 0, 5, NULL, 0, &next, &delta, NULL), NULL);
    assert_int_equal(next, 5);
    assert_int_equal(delta, 0);
    test_ok(posenc_ids_multimodal(empty, 3, end - 2, ids, 2, &next, NULL, NULL), NULL);
    assert_int_equal(ids[1], end - 1);
    assert_int_equal(next, end);
    test_ok(posenc_ids_multimodal(&image, 1, -end, ids, 3, NULL, &delta, NULL), NULL);
    assert_int_equal(ids[0], -end);
    assert_int_equal(ids[8], -end + 2);
    assert_int_equal(delta, 0);
    ignored.frames = -1;
    ignored.frame_step = (double)NAN;
    test_ok(posenc_ids_multimodal(&ignored, 1, 0, ids, 1, NULL, NULL, NULL), NULL);
}

/* One segment, of one token unless said otherwise, that must be refused. */
static void refuse(posenc_segment segment, size_t tokens, int64_t first, int32_t status,
                   const char *words)
{
    const posenc_segment segments[] = {text(0), segment};
    int64_t out[64];

    REFUSE(posenc_ids_multimodal(segments, 2, first, out, tokens, out + 62, out + 63, error),
           status, words, out);
}

static void test_bad_segments(void **state)
{
    static const int32_t kinds[] = {POSENC_SEGMENT_GRID, POSENC_SEGMENT_GRID_PLANE};
    const int64_t half = INT64_C(1) << 31;
    posenc_segment s = text(1);

    (void)state;
    s.kind = 0;
    refuse(s, 1, 0, ARGUMENT, "segments[1].kind is 0");
    s.kind = 4;
    refuse(s, 1, 0, ARGUMENT, "segments[1].kind is 4");
    s = text(1);
    s.reserved = 3;
    refuse(s, 1, 0, ARGUMENT, "segments[1].reserved is 3|0");
    refuse(text(-1), 1, 0, ARGUMENT, "segments[1].tokens is -1|>= 0");
    refuse(text(2), 1, half - 1, POSENC_ERROR_POSITION, "segments[1]|2 positions|below 2^31");
    refuse(text(INT64_MAX), 1, -half, POSENC_ERROR_POSITION, "segments[1]|below 2^31");
    for (size_t k = 0; k < 2; k++) {
        int32_t kind = kinds[k];

        refuse(grid(kind, 0, 1, 1, 1), 1, 0, ARGUMENT, "segments[1].frames is 0|1..2^31");
        refuse(grid(kind, half + 1, 1, 1, 1), 1, 0, ARGUMENT, "frames is 2147483649");
        refuse(grid(kind, 1, 0, 1, 1), 1, 0, ARGUMENT, "segments[1].rows is 0|1..2^31");
        refuse(grid(kind, 1, -1, 1, 1), 1, 0, ARGUMENT, "rows is -1");
        refuse(grid(kind, 1, half + 1, 1, 1), 1, 0, ARGUMENT, "rows is 2147483649");
        refuse(grid(kind, 1, 1, 0, 1), 1, 0, ARGUMENT, "segments[1].columns is 0|1..2^31");
        refuse(grid(kind, 1, 1, INT64_MAX, 1), 1, 0, ARGUMENT, "columns is 9223372036854775807");
        refuse(grid(kind, 1, 1, 1, -1), 1, 0, ARGUMENT, "segments[1].frame_step is -1|0..2^31");
        refuse(grid(kind, 1, 1, 1, (double)NAN), 1, 0, ARGUMENT, "frame_step is nan");
        refuse(grid(kind, 1, 1, 1, (double)INFINITY), 1, 0, ARGUMENT, "frame_step is inf");
        refuse(grid(kind, 1, 1, 1, 0x1.01p31), 1, 0, ARGUMENT, "frame_step is|0..2^31");
        refuse(grid(kind, half, half, half, 1), 1, 0, ARGUMENT, "segments[1]|address space");
        refuse(grid(kind, 3, 1, 1, 0x1p30), 3, 0, POSENC_ERROR_POSITION,
               "segments[1]|2147483649 positions from 0");
        refuse(grid(kind, 1, 3, 2, 1), 6, half - 2, POSENC_ERROR_POSITION,
               "segments[1]|3 positions");
        refuse(grid(kind, 2, 3, 2, 1), 11, 0, ARGUMENT, "tokens is 11|(12)");
    }
}

static void test_bad_arguments(void **state)
{
    posenc_segment one = text(4), three[3] = {text(0), text(0), text(0)};
    const posenc_segment huge[] = {grid(POSENC_SEGMENT_GRID, INT64_C(1) << 31, 1 << 30, 2, 0),
                                   grid(POSENC_SEGMENT_GRID, INT64_C(1) << 31, 1 << 30, 2, 0)};
    int64_t out[32], *odd = (int64_t *)(void *)((char *)out + 4);
    int64_t *inside = (int64_t *)(void *)&three[1];

    (void)state;
    REFUSE(posenc_ids_multimodal(NULL, 1, 0, out, 4, NULL, NULL, error), ARGUMENT,
           "segments is NULL", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, NULL, 4, NULL, NULL, error), ARGUMENT, "ids is NULL",
           out);
    if (_Alignof(int64_t) == 8) {
        REFUSE(posenc_ids_multimodal(&one, 1, 0, odd, 4, NULL, NULL, error), ARGUMENT,
               "ids|aligned|8", out);
    }
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, 5, NULL, NULL, error), ARGUMENT,
           "tokens is 5|(4)", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, 3, NULL, NULL, error), ARGUMENT,
           "tokens is 3|(4)", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, 0, NULL, NULL, error), ARGUMENT,
           "tokens is 0|(4)", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, SIZE_MAX / 8, NULL, NULL, error), ARGUMENT,
           "ids|address space", out);
    REFUSE(posenc_ids_multimodal(&one, SIZE_MAX / 8, 0, out, 4, NULL, NULL, error), ARGUMENT,
           "segments|address space", out);
    REFUSE(posenc_ids_multimodal(huge, 2, 0, out, 4, NULL, NULL, error), ARGUMENT,
           "segments[1]|address space", out);
    REFUSE(posenc_ids_multimodal(&one, 1, INT64_C(1) << 31, out, 4, NULL, NULL, error),
           POSENC_ERROR_POSITION, "first is 2147483648", out);
    REFUSE(posenc_ids_multimodal(&one, 1, -(INT64_C(1) << 31) - 1, out, 4, NULL, NULL, error),
           POSENC_ERROR_POSITION, "first is -2147483649|-2^31", out);
    REFUSE(posenc_ids_multimodal(&one, 1, INT64_MIN, out, 4, NULL, NULL, error),
           POSENC_ERROR_POSITION, "first is -9223372036854775808", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, 4, out + 11, NULL, error), POSENC_ERROR_OVERLAP,
           "ids|next|share memory", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, 4, NULL, out, error), POSENC_ERROR_OVERLAP,
           "ids|delta|share memory", out);
    REFUSE(posenc_ids_multimodal(&one, 1, 0, out, 4, out + 20, out + 20, error),
           POSENC_ERROR_OVERLAP, "next|delta|share memory", out);
    REFUSE(posenc_ids_multimodal(three, 3, 0, out, 0, inside, NULL, error), POSENC_ERROR_OVERLAP,
           "next|segments|share memory", out);
    REFUSE(posenc_ids_multimodal(three, 3, 0, inside, 1, NULL, NULL, error), POSENC_ERROR_OVERLAP,
           "ids|segments|share memory", out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_image),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_frame_step),
        cmocka_unit_test(test_plane),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_bad_segments),
        cmocka_unit_test(test_bad_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
