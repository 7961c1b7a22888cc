/* SPDX-License-Identifier: MIT */
/* One call of everything on the default ISA: prints its name and a hash of all bits it made. */
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 5, HEADS = 3, WIDTH = 70, WINDOW = 54, VALUES = TOKENS * HEADS * WIDTH };

static uint64_t hash = 14695981039346656037u;

/* FNV-1a over elements of `size` bytes, lowest byte first whatever the machine's order. */
static void add_to_hash(const void *data, size_t bytes, size_t size)
{
    const uint16_t one = 1;
    const unsigned char *byte = data;
    size_t turn = *(const unsigned char *)&one ? 0 : size - 1;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ byte[i / size * size + (i % size ^ turn)]) * 1099511628211u;
    }
}

static posenc_error error;

static void must(int32_t status)
{
    if (status != POSENC_OK) {
        printf("%s\n", error.text);
        exit(1);
    }
}

/* Values of both signs below 16. */
static void fill(float *values, size_t count)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((float)(state >> 8) - 8388608.0f) / 524288.0f;
    }
}

static posenc_plan *plan_of(int32_t layout)
{
    posenc_rope_params params;
    posenc_plan *plan = NULL;
    posenc_rope_params_init(&params);
    params.layout = layout;
    params.head_dim = WIDTH;
    params.rotary_dim = WINDOW;
    params.rotary_offset = 10;
    params.base = 500000.0;
    must(posenc_plan_create(&plan, &params, &error));
    return plan;
}

static void rotate(int32_t layout, int32_t dtype)
{
    static float source[VALUES];
    static float out[VALUES];
    static float rows[TOKENS * WINDOW];
    const int32_t ids[TOKENS] = {0, 7, 100000, -3, 2147483647};
    posenc_plan *plan = plan_of(layout);
    posenc_positions positions;
    posenc_tensor q, k, row_view;
    memset(&positions, 0, sizeof positions);
    positions.struct_size = sizeof positions;
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I32;
    positions.ids = ids;
    positions.stride[1] = 1;
    fill(source, VALUES);
    posenc_tensor_contiguous(&q, source, POSENC_F32, 1, TOKENS, HEADS, WIDTH);
    posenc_tensor_contiguous(&k, out, dtype, 1, TOKENS, HEADS, WIDTH);
    posenc_tensor_contiguous(&row_view, rows, POSENC_F32, 1, TOKENS, 1, WINDOW);
    memset(out, 0, sizeof out);
    must(posenc_rows(plan, &positions, &row_view, &error));
    must(posenc_rotate(plan, POSENC_FORWARD, &row_view, &q, &k, NULL, NULL, &error));
    must(posenc_rope(plan, POSENC_INVERSE, &positions, NULL, NULL, &k, NULL, &error));
    add_to_hash(rows, sizeof rows, sizeof *rows);
    add_to_hash(out, sizeof out, dtype == POSENC_F32 ? 4 : 2);
    posenc_plan_free(plan);
}

static void attend(void)
{
    static float q[VALUES], k[VALUES], v[VALUES], out[VALUES];
    posenc_attention_params params;
    posenc_tensor views[4];
    float *data[4] = {q, k, v, out};
    posenc_attention_params_init(&params);
    params.causal = 1;
    for (int i = 0; i < 4; i++) {
        fill(data[i], VALUES);
        posenc_tensor_contiguous(&views[i], data[i], POSENC_F32, 1, TOKENS, HEADS, WIDTH);
    }
    must(posenc_attention(&params, &views[0], &views[1], &views[2], &views[3], &error));
    add_to_hash(out, sizeof out, sizeof *out);
}

int main(void)
{
    for (int32_t layout = POSENC_ADJACENT; layout <= POSENC_SPLIT_HALF; layout++) {
        for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
            rotate(layout, dtype);
        }
    }
    attend();
    printf("%s\n%016llx\n", posenc_isa_name(posenc_isa_default()), (unsigned long long)hash);
    return 0;
}
