/* SPDX-License-Identifier: MIT */
/* Prompt -> ids -> axis map -> plan -> rotated queries, against what multimodal models made. */
#include "support/numbers.h"
#include "support/test.h"

#include <math.h>

enum { WIDTH = 16, TOKENS = 61, COUNT = TOKENS * WIDTH };

static const char file[] = "builders_transformers5.txt";

/* The models compute angles (below 15), sines and products in float32. */
static const double TOLERANCE = 4e-6;

/* The prompt of the file: text, a video of three frames, text, an image, text. */
static void prompt_ids(int64_t *ids)
{
    const posenc_segment segments[] = {
        {.kind = POSENC_SEGMENT_TEXT, .tokens = 2},
        {.kind = POSENC_SEGMENT_GRID_PLANE, .frames = 3, .rows = 4, .columns = 4, .frame_step = 1},
        {.kind = POSENC_SEGMENT_TEXT, .tokens = 3},
        {.kind = POSENC_SEGMENT_GRID, .frames = 1, .rows = 2, .columns = 2, .frame_step = 1},
        {.kind = POSENC_SEGMENT_TEXT, .tokens = 4},
    };
    posenc_error error = {0, ""};

    test_ok(posenc_ids_multimodal(segments, 5, 0, ids, TOKENS, NULL, NULL, &error), &error);
}

static void check_model(const char *id)
{
    double n[5], q[COUNT], expected[COUNT];
    float x[COUNT];
    int32_t section[3], axes[WIDTH / 2];
    int64_t ids[3 * TOKENS];
    posenc_positions positions = {.struct_size = sizeof positions,
                                  .kind = POSENC_POSITIONS_IDS, .dtype = POSENC_I64, .ids = ids,
                                  .stride = {0, 1}, .axes = 3, .axis_stride = TOKENS};
    posenc_rope_params params;
    posenc_plan *plan;
    posenc_tensor tensor;
    posenc_error error = {0, ""};

    assert_int_equal(test_numbers(file, id, "mrope", n, 5), 5);
    assert_int_equal(test_numbers(file, id, "q", q, COUNT), COUNT);
    assert_int_equal(test_numbers(file, id, "rotated", expected, COUNT), COUNT);
    for (int i = 0; i < COUNT; i++) x[i] = (float)q[i];
    for (int a = 0; a < 3; a++) section[a] = (int32_t)n[2 + a];
    prompt_ids(ids);
    test_ok(posenc_axis_map(axes, WIDTH / 2, (int32_t)n[0], section, 3, &error), &error);
    params = test_params((int32_t)n[1], WIDTH, WIDTH);
    params.axes = 3;
    params.axis_of_pair = axes;
    plan = test_plan(&params);
    posenc_tensor_contiguous(&tensor, x, POSENC_F32, 1, TOKENS, 1, WIDTH);
    test_ok(posenc_rope(plan, POSENC_FORWARD, &positions, &tensor, NULL, NULL, NULL, &error),
            &error);
    for (int i = 0; i < COUNT; i++) {
        if (!(fabs((double)x[i] - expected[i]) <= TOLERANCE)) {
            fail_msg("%s [%d]: %.9g instead of %.9g", id, i, (double)x[i], expected[i]);
        }
    }
    posenc_plan_free(plan);
}

static void test_models(void **state)
{
    char id[64];
    size_t n = 0;

    (void)state;
    for (; test_number_id(file, "mrope", n, id, sizeof id); n++) check_model(id);
    assert_int_equal(n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
