/* SPDX-License-Identifier: MIT */
/* Wherever sinusoids take positions and embeddings from, each token has the row it has alone. */
#include "sinusoid_call.h"

#include <math.h>

enum { AXES = 2, WIDTH = 64, DIM = AXES * WIDTH, BATCH = 3, TOKENS = 70 };

/* Elements from token to token: those of x differ from those of out. */
enum {
    X_TOKEN = DIM + 3,
    Y_TOKEN = DIM + 9,
    X = BATCH * TOKENS * X_TOKEN,
    Y = BATCH * TOKENS * Y_TOKEN
};

/* Where every kind of positions puts the tokens. */
enum place { FROM_MINUS_ONE, STARTS_32, STARTS_64, GRID_32, GRID_64, PLACES };

/* Whole blocks of pairs counting up take the short way, what goes down the other one. */
static int64_t position_at(enum place place, int axis, int64_t b, int64_t t)
{
    if (place == FROM_MINUS_ONE) return t - 1;
    if (place == STARTS_32 || place == STARTS_64) return 1000 * b + t;
    return axis ? 5000 - 100 * b - t : 300 * b + t;
}

static void store_id(void *ids, int32_t dtype, int64_t i, int64_t value)
{
    if (dtype == POSENC_I64)
        ((int64_t *)ids)[i] = value;
    else
        ((int32_t *)ids)[i] = (int32_t)value;
}

/* Ids go by token, then batch row, then axis. */
static posenc_positions positions_of(enum place place, int64_t *ids)
{
    posenc_positions positions;

    posenc_positions_start(&positions, -1);
    if (place == FROM_MINUS_ONE) return positions;
    positions.dtype = place == STARTS_64 || place == GRID_64 ? POSENC_I64 : POSENC_I32;
    positions.ids = ids;
    if (place == STARTS_32 || place == STARTS_64) {
        positions.kind = POSENC_POSITIONS_STARTS;
        positions.stride[0] = 2;
        for (int64_t b = 0; b < BATCH; b++)
            store_id(ids, positions.dtype, 2 * b, position_at(place, 0, b, 0));
        return positions;
    }
    positions.kind = POSENC_POSITIONS_IDS;
    positions.stride[0] = AXES;
    positions.stride[1] = AXES * BATCH;
    positions.axes = AXES;
    positions.axis_stride = 1;
    for (int64_t t = 0; t < TOKENS; t++)
        for (int64_t b = 0; b < BATCH; b++)
            for (int a = 0; a < AXES; a++)
                store_id(ids, positions.dtype, (t * BATCH + b) * AXES + a,
                         position_at(place, a, b, t));
    return positions;
}

/* Batch rows of a token lie side by side. */
static posenc_tensor view_of(float *data, int64_t tokens, int64_t token)
{
    posenc_tensor view;

    posenc_tensor_contiguous(&view, data, POSENC_F32, BATCH, tokens, 1, DIM);
    view.stride[0] = token;
    view.stride[1] = BATCH * token;
    return view;
}

/* The row of a token alone; that of -p from the one of p, so that it owes nothing to its sign. */
static void row_at(const posenc_sinusoid *axis, int halves, int64_t position, float *row)
{
    sinusoid_run(axis, position < 0 ? -position : position, 1, WIDTH, POSENC_F32, row);
    for (int i = 0; i < WIDTH / 2 && position < 0; i++)
        row[halves ? i : 2 * i] *= -1;
}

/* All of y, gaps too, for a fill or (x given) x / 2 more. */
static void check(const float *got, const posenc_sinusoid *axis, int halves, enum place place,
                  int64_t tokens, const float *x)
{
    float row[WIDTH];

    for (int64_t t = 0; t < tokens; t++)
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t c = 0; c < Y_TOKEN; c++) {
                float expected = -7;
                int64_t at = t * BATCH + b;

                if (c % WIDTH == 0 && c < DIM)
                    row_at(axis, halves, position_at(place, (int)(c / WIDTH), b, t), row);
                if (c < DIM) expected = row[c % WIDTH];
                if (c < DIM && x) expected = fmaf(x[at * X_TOKEN + c], 0.5f, expected);
                if (memcmp(&got[at * Y_TOKEN + c], &expected, sizeof expected))
                    fail_msg("place %d, batch %d, token %d, channel %d: %a instead of %a",
                             (int)place, (int)b, (int)t, (int)c,
                             (double)got[at * Y_TOKEN + c], (double)expected);
            }
}

static void test_places(void **state)
{
    static float x[X], y[Y];
    static int64_t ids[AXES * BATCH * TOKENS];
    int32_t isas[TEST_ISAS];
    size_t count = test_isas(isas);
    posenc_error error = {0, ""};

    (void)state;
    for (int i = 0; i < X; i++)
        x[i] = (float)(i % 1013) / 7;
    for (size_t k = 0; k < 2 * PLACES * count; k++) {
        const enum place place = (enum place)(k / 2 % PLACES);
        const int64_t tokens = place == FROM_MINUS_ONE ? 20 : TOKENS;
        posenc_sinusoid_params p = sinusoid_params(WIDTH, 1 + (int32_t)k % 2);
        const posenc_positions positions = positions_of(place, ids);
        const posenc_tensor from = view_of(x, tokens, X_TOKEN), to = view_of(y, tokens, Y_TOKEN);

        p.padding_row = 9999; /* nowhere: the default, -1, would be met */
        p.isa = POSENC_ISA_SCALAR;
        posenc_sinusoid *axis = sinusoid_new(&p);
        p.dim = DIM;
        p.axes = AXES;
        p.axis_dim[0] = p.axis_dim[1] = WIDTH;
        p.isa = isas[k / (2 * PLACES)];
        posenc_sinusoid *sinusoid = sinusoid_new(&p);

        for (int adds = 0; adds < 2; adds++) {
            for (int i = 0; i < Y; i++)
                y[i] = -7;
            test_ok(adds ? posenc_sinusoid_add(sinusoid, &positions, 0.5, &from, &to, &error)
                         : posenc_sinusoid_fill(sinusoid, &positions, &to, &error), &error);
            check(y, axis, p.arrangement == POSENC_SINUSOID_HALVES, place, tokens,
                  adds ? x : NULL);
        }
        posenc_sinusoid_free(sinusoid);
        posenc_sinusoid_free(axis);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
