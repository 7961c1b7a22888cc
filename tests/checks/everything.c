/* SPDX-License-Identifier: MIT */
/* One call of everything on the default ISA: prints its name, a hash of all bits that the usual
 * calls made, one of what rarer kinds of rows, positions and tensors made, one of caches and one of
 * sinusoids. */
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

static size_t sizeof_type(int32_t dtype)
{
    return dtype == POSENC_F32 ? 4 : dtype == POSENC_I8 ? 1 : 2;
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

/* The plans of `more`, each of one kind that the plan above is not. */
enum { PLAIN, AXES, FACTORS, DYNAMIC, LONGROPE, XPOS, VLLM, GGML, KINDS };

static posenc_plan *plan_of_kind(int kind)
{
    static int32_t axis_of_pair[WINDOW / 2];
    static const double factors[3] = {1.0, 3.0, 8.0};
    static double longer[WINDOW / 2], shorter[WINDOW / 2];
    static const int32_t scalings[KINDS] = {[FACTORS] = POSENC_SCALING_LINEAR,
                                            [DYNAMIC] = POSENC_SCALING_DYNAMIC_NTK,
                                            [LONGROPE] = POSENC_SCALING_LONGROPE,
                                            [VLLM] = POSENC_SCALING_LINEAR,
                                            [GGML] = POSENC_SCALING_YARN};
    posenc_rope_params params;
    posenc_plan *plan = NULL;
    posenc_rope_params_init(&params);
    params.layout = POSENC_ADJACENT;
    params.head_dim = WIDTH;
    params.rotary_dim = WINDOW;
    params.scaling = scalings[kind];
    params.factor = 4.0;
    params.original_max_position = 2048.0;
    for (int i = 0; i < WINDOW / 2; i++) {
        axis_of_pair[i] = i % 3;
        shorter[i] = 1.0 + 0.015625 * i;
        longer[i] = 1.5 + 0.5 * i;
    }
    params.axes = kind == AXES ? 3 : 0;
    params.axis_of_pair = kind == AXES ? axis_of_pair : NULL;
    params.factors = kind == FACTORS ? factors : NULL;
    params.num_factors = kind == FACTORS ? 3 : 0;
    params.short_factors = kind == LONGROPE ? shorter : NULL;
    params.long_factors = kind == LONGROPE ? longer : NULL;
    params.xpos = kind == XPOS ? POSENC_XPOS_KEYS : POSENC_XPOS_NONE;
    params.recipe = kind == VLLM ? POSENC_RECIPE_VLLM
                    : kind == GGML ? POSENC_RECIPE_GGML : POSENC_RECIPE_EXACT;
    must(posenc_plan_create(&plan, &params, &error));
    return plan;
}

/* Five tokens on three axes; recipes take the integers. */
static void fill_positions(posenc_positions *positions, int kind)
{
    static const double real[3][TOKENS] = {{0.0, 7.25, 100000.0, -3.0, 2147483647.5},
                                           {1.0, 8.0, 0.1, -1e-9, 131071.0},
                                           {2.0, 9.5, 17.0, -70000.75, 5.0}};
    static const int64_t whole[3][TOKENS] = {{0, 7, 100000, 4, 2147483647},
                                             {1, 8, 3, 6, 131071},
                                             {2, 9, 17, 70000, 5}};
    static const int32_t sets[TOKENS] = {0, 2, 2, 1, 0};
    memset(positions, 0, sizeof *positions);
    positions->struct_size = sizeof *positions;
    positions->kind = POSENC_POSITIONS_IDS;
    positions->dtype = kind < VLLM ? POSENC_F64 : POSENC_I64;
    positions->ids = kind < VLLM ? (const void *)real : (const void *)whole;
    positions->stride[1] = 1;
    positions->axes = kind == AXES ? 3 : 0;
    positions->axis_stride = TOKENS;
    positions->length = 100000;
    positions->sets = kind == FACTORS ? sets : NULL;
    positions->set_stride[1] = 1;
}

static void more(int kind)
{
    static float rows[TOKENS * WINDOW];
    static double wide_rows[TOKENS * WINDOW], tensor[VALUES];
    posenc_plan *plan = plan_of_kind(kind);
    posenc_positions positions;
    posenc_tensor row_view, wide_view, q, angles;
    fill_positions(&positions, kind);
    posenc_tensor_contiguous(&row_view, rows, POSENC_F32, 1, TOKENS, 1, WINDOW);
    posenc_tensor_contiguous(&wide_view, wide_rows, POSENC_F64, 1, TOKENS, 1, WINDOW);
    must(posenc_rows(plan, &positions, &row_view, &error));
    add_to_hash(rows, sizeof rows, sizeof *rows);
    if (kind < VLLM) {
        for (int i = 0; i < VALUES; i++) {
            tensor[i] = (double)(i % 13 - 6) / 3.0;
        }
        posenc_tensor_contiguous(&q, tensor, POSENC_F64, 1, TOKENS, HEADS, WIDTH);
        must(posenc_rows(plan, &positions, &wide_view, &error));
        must(posenc_rope(plan, POSENC_TRANSPOSE, &positions, &q, NULL, NULL, NULL, &error));
        add_to_hash(wide_rows, sizeof wide_rows, sizeof *wide_rows);
        add_to_hash(tensor, sizeof tensor, sizeof *tensor);
    }
    if (kind == PLAIN) {
        posenc_tensor_contiguous(&angles, tensor, POSENC_F64, 1, TOKENS, 1, WINDOW / 2);
        must(posenc_rows_from_angles(plan, &angles, &row_view, &error));
        must(posenc_rows_from_angles(plan, &angles, &wide_view, &error));
        add_to_hash(rows, sizeof rows, sizeof *rows);
        add_to_hash(wide_rows, sizeof wide_rows, sizeof *wide_rows);
    }
    posenc_plan_free(plan);
}

enum { SLOTS = 2, PAGES = 4 };

/* Keys normalised, rotated, stored in pages, moved, re-based and attended to. */
static void cache(int32_t dtype, int32_t norm, int after)
{
    static float rows[TOKENS * WINDOW], source[VALUES], out[VALUES], weights[WIDTH];
    static uint32_t stored[PAGES * SLOTS * HEADS * WIDTH], scales[PAGES * SLOTS * HEADS];
    static const int32_t pages[] = {2, 0, 3};
    const int64_t delta = -3, count = TOKENS;
    posenc_plan *plan = plan_of_kind(PLAIN), *other = plan_of_kind(VLLM);
    posenc_positions positions, deltas;
    posenc_tensor row_view, src, view, weight;
    posenc_cache keys;
    posenc_append_params append;
    posenc_attention_params attention;
    memset(stored, 0, sizeof stored);
    memset(scales, 0, sizeof scales);
    fill(source, VALUES);
    fill(weights, WIDTH);
    posenc_tensor_contiguous(&row_view, rows, POSENC_F32, 1, TOKENS, 1, WINDOW);
    posenc_tensor_contiguous(&src, source, POSENC_F32, 1, TOKENS, HEADS, WIDTH);
    posenc_tensor_contiguous(&weight, weights, POSENC_F32, 1, 1, 1, WIDTH);
    posenc_tensor_contiguous(&view, stored, dtype, PAGES, SLOTS, HEADS, WIDTH);
    posenc_cache_plain(&keys, &view);
    keys.kind = POSENC_CACHE_PAGED;
    keys.pages = pages;
    keys.sequences = 1;
    keys.sequence_pages = 3;
    if (dtype == POSENC_I8) {
        posenc_tensor_contiguous(&keys.scales, scales, POSENC_F16, PAGES, SLOTS, HEADS, 1);
    }
    posenc_positions_start(&positions, 1000);
    must(posenc_rows(plan, &positions, &row_view, &error));
    posenc_append_params_init(&append);
    append.norm = norm;
    append.norm_after = after;
    append.eps = 1e-6;
    append.weight = norm ? &weight : NULL;
    append.weight_plus_one = !after && norm;
    append.scale = 0.75;
    append.rope = plan;
    append.rows = &row_view;
    must(posenc_cache_append(&append, &src, &keys, &error));
    posenc_positions_start(&deltas, 0);
    deltas.kind = POSENC_POSITIONS_IDS;
    deltas.dtype = POSENC_I64;
    deltas.ids = &delta;
    must(posenc_cache_move(plan, &deltas, &keys, -1, 1, TOKENS - 1, &error));
    must(posenc_cache_rebase(plan, &positions, other, &positions, &keys, 0, 0, TOKENS, &error));
    posenc_tensor_contiguous(&view, out, POSENC_F32, 1, TOKENS, HEADS, WIDTH);
    posenc_attention_params_init(&attention);
    attention.causal = 1;
    attention.window_left = 2;
    attention.keep = 1;
    attention.key_counts = &count;
    must(posenc_attention_cached(&attention, &src, &keys, &keys, &view, &error));
    add_to_hash(stored, PAGES * SLOTS * HEADS * WIDTH * sizeof_type(dtype), sizeof_type(dtype));
    add_to_hash(scales, PAGES * SLOTS * HEADS * 2, 2);
    add_to_hash(out, sizeof out, sizeof *out);
    posenc_plan_free(plan);
    posenc_plan_free(other);
}

/* Up and down through 0. The first pair comes to 0 each 2 positions, where float32 shows the last
 * places of the doubles it is made from. */
static void sinusoids(int32_t arrangement)
{
    enum { ROWS = 150 };
    static float rows[ROWS * WIDTH];
    int64_t ids[ROWS];
    posenc_sinusoid_params params;
    posenc_sinusoid *sinusoid = NULL;
    posenc_positions positions;
    posenc_tensor view;
    posenc_sinusoid_params_init(&params);
    params.dim = WIDTH;
    params.arrangement = arrangement;
    params.scale = 0x1.921fb54442d18p-1;
    must(posenc_sinusoid_create(&sinusoid, &params, &error));
    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = POSENC_I64;
    positions.ids = ids;
    positions.stride[1] = 1;
    for (int64_t t = 0; t < ROWS; t++) {
        ids[t] = t < ROWS / 2 ? t - 5 : 2147483647 - t;
    }
    posenc_tensor_contiguous(&view, rows, POSENC_F32, 1, ROWS, 1, WIDTH);
    must(posenc_sinusoid_fill(sinusoid, &positions, &view, &error));
    add_to_hash(rows, sizeof rows, sizeof *rows);
    must(posenc_sinusoid_add(sinusoid, &positions, 0.3, &view, NULL, &error));
    add_to_hash(rows, sizeof rows, sizeof *rows);
    posenc_sinusoid_free(sinusoid);
}

int main(void)
{
    const uint64_t start = hash;
    for (int32_t layout = POSENC_ADJACENT; layout <= POSENC_SPLIT_HALF; layout++) {
        for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
            rotate(layout, dtype);
        }
    }
    attend();
    printf("%s\n%016llx ", posenc_isa_name(posenc_isa_default()), (unsigned long long)hash);
    hash = start;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        more(kind);
    }
    printf("%016llx ", (unsigned long long)hash);
    hash = start;
    for (int32_t norm = POSENC_NORM_NONE; norm <= POSENC_NORM_PROJECTION; norm++) {
        for (int after = 0; after <= (norm != POSENC_NORM_NONE); after++) {
            cache(POSENC_F32, norm, after);
            cache(POSENC_F16, norm, after);
            cache(POSENC_BF16, norm, after);
            cache(POSENC_I8, norm, after);
        }
    }
    printf("%016llx ", (unsigned long long)hash);
    hash = start;
    sinusoids(POSENC_SINUSOID_INTERLEAVED);
    sinusoids(POSENC_SINUSOID_HALVES);
    printf("%016llx\n", (unsigned long long)hash);
    return 0;
}
