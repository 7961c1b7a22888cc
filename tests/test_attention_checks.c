/* SPDX-License-Identifier: MIT */
/* Attention: refused input, memory beside the views, strides, aliasing. */
#include "attention_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* The arguments of one call, and pointers to them that a test may replace by NULL. */
struct call {
    posenc_attention_params params;
    posenc_tensor q, k, v, out;
    const posenc_attention_params *params_at;
    const posenc_tensor *q_at, *k_at, *v_at, *out_at;
};

static float q_data[2 * 5 * 6 * 8], k_data[2 * 7 * 3 * 8], v_data[2 * 7 * 3 * 9];
static float out_data[2 * 5 * 6 * 9];

static void good_call(struct call *c)
{
    posenc_attention_params_init(&c->params);
    posenc_tensor_contiguous(&c->q, q_data, POSENC_F32, 2, 5, 6, 8);
    posenc_tensor_contiguous(&c->k, k_data, POSENC_F32, 2, 7, 3, 8);
    posenc_tensor_contiguous(&c->v, v_data, POSENC_F32, 2, 7, 3, 9);
    posenc_tensor_contiguous(&c->out, out_data, POSENC_F32, 2, 5, 6, 9);
    c->params_at = &c->params;
    c->q_at = &c->q;
    c->k_at = &c->k;
    c->v_at = &c->v;
    c->out_at = &c->out;
}

static int32_t attend(const struct call *c, posenc_error *error)
{
    return posenc_attention(c->params_at, c->q_at, c->k_at, c->v_at, c->out_at, error);
}

/* Expects `status`, a text that holds `text`, and no byte of any array changed. */
static void assert_refused(const struct call *c, int32_t status, const char *text)
{
    static unsigned char before[4][sizeof(out_data)];
    float *const data[4] = {q_data, k_data, v_data, out_data};
    const size_t size[4] = {sizeof(q_data), sizeof(k_data), sizeof(v_data), sizeof(out_data)};
    posenc_error error = {0};
    memset(out_data, FILL_BYTE, sizeof(out_data));
    for (int i = 0; i < 4; i++)
        memcpy(before[i], data[i], size[i]);
    assert_int_equal(attend(c, NULL), status);
    assert_int_equal(attend(c, &error), status);
    if (error.code != status || !strstr(error.text, text))
        fail_msg("wanted \"%s\", got %d \"%s\"", text, (int)error.code, error.text);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(before[i], data[i], size[i]);
}

#define AT(field) offsetof(struct call, field), sizeof(((struct call *)0)->field)
#define ARGUMENT POSENC_ERROR_ARGUMENT

static const struct {
    size_t offset, size;
    int64_t value;
    int32_t status;
    const char *text;
} bad[] = {
    {AT(params_at), 0, ARGUMENT, "params is NULL"},
    {AT(q_at), 0, ARGUMENT, "q is NULL"},
    {AT(k_at), 0, ARGUMENT, "k is NULL"},
    {AT(v_at), 0, ARGUMENT, "v is NULL"},
    {AT(out_at), 0, ARGUMENT, "out is NULL"},
    {AT(params.struct_size), 0, ARGUMENT, "params.struct_size is 0"},
    {AT(params.struct_size), 8, ARGUMENT, "params.struct_size is 8"},
    {AT(params.causal), 2, ARGUMENT, "params.causal is 2"},
    {AT(params.causal), -1, ARGUMENT, "params.causal is -1"},
    {AT(params.isa), -1, ARGUMENT, "params.isa is -1"},
    {AT(params.isa), 5, ARGUMENT, "params.isa is 5"},
    {AT(params.reserved), 1, ARGUMENT, "params.reserved is 1"},
    {AT(q.data), 0, ARGUMENT, "q.data is NULL"},
    {AT(k.data), 0, ARGUMENT, "k.data is NULL"},
    {AT(v.data), 0, ARGUMENT, "v.data is NULL"},
    {AT(out.data), 0, ARGUMENT, "out.data is NULL"},
    {AT(q.dtype), 0, ARGUMENT, "q.dtype is 0"},
    {AT(k.dtype), POSENC_F64, ARGUMENT, "k.dtype is 6"},
    {AT(out.dtype), POSENC_I32, ARGUMENT, "out.dtype is 4"},
    {AT(q.shape[0]), 1, ARGUMENT, "k.shape[0] is 2: must be that of q, 1"},
    {AT(q.shape[0]), -1, ARGUMENT, "q.shape[0] is -1"},
    {AT(q.shape[1]), 4, ARGUMENT, "out.shape[1] is 5: must be 4"},
    {AT(q.shape[2]), 3, ARGUMENT, "out.shape[2] is 6: must be 3"},
    {AT(q.shape[3]), 7, ARGUMENT, "k.shape[3] is 8: must be that of q, 7"},
    {AT(q.shape[3]), 0, ARGUMENT, "q.shape[3] is 0"},
    {AT(q.shape[3]), 4097, ARGUMENT, "q.shape[3] is 4097"},
    {AT(k.shape[0]), 3, ARGUMENT, "k.shape[0] is 3: must be that of q, 2"},
    {AT(k.shape[1]), 6, ARGUMENT, "v.shape[1] is 7: must be that of k, 6"},
    {AT(k.shape[2]), 2, ARGUMENT, "v.shape[2] is 3: must be that of k, 2"},
    {AT(k.shape[3]), 4097, ARGUMENT, "k.shape[3] is 4097"},
    {AT(v.shape[0]), 1, ARGUMENT, "v.shape[0] is 1: must be that of k, 2"},
    {AT(v.shape[2]), 1, ARGUMENT, "v.shape[2] is 1: must be that of k, 3"},
    {AT(v.shape[3]), 4097, ARGUMENT, "v.shape[3] is 4097"},
    {AT(out.shape[0]), 1, ARGUMENT, "out.shape[0] is 1: must be 2"},
    {AT(out.shape[3]), 8, ARGUMENT, "out.shape[3] is 8: must be 9"},
    {AT(q.shape[1]), INT64_MAX / 4, ARGUMENT, "shape [2, 2305843009213693951, 6, 8]"},
    {AT(k.stride[3]), 2, ARGUMENT, "k.stride[3] is 2"},
    {AT(out.stride[3]), 0, ARGUMENT, "out.stride[3] is 0"},
    {AT(v.stride[1]), INT64_MAX, ARGUMENT, "v: shape [2, 7, 3, 9]"},
    {AT(q.stride[0]), INT64_MIN, ARGUMENT, "q: shape [2, 5, 6, 8]"},
    {AT(out.stride[1]), 0, POSENC_ERROR_OVERLAP, "out: elements of shape [2, 5, 6, 9]"},
    {AT(out.stride[2]), 8, POSENC_ERROR_OVERLAP, "out: elements of shape [2, 5, 6, 9]"},
};

static void each_wrong_argument_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct call c;
        int32_t narrow = (int32_t)bad[i].value;
        good_call(&c);
        memcpy((char *)&c + bad[i].offset,
               bad[i].size == 4 ? (const void *)&narrow : (const void *)&bad[i].value, bad[i].size);
        assert_refused(&c, bad[i].status, bad[i].text);
    }
}

static void head_counts_must_divide(void **state)
{
    struct call c;
    (void)state;
    good_call(&c);
    c.q.shape[2] = c.out.shape[2] = 5;
    assert_refused(&c, ARGUMENT, "q.shape[2] is 5 heads: must be a multiple of the 3 heads of k");
    good_call(&c);
    c.k.shape[2] = c.v.shape[2] = 0;
    assert_refused(&c, ARGUMENT, "q.shape[2] is 6 heads: must be a multiple of the 0 heads of k");
}

static void wrong_scales_are_refused(void **state)
{
    static const double scale[] = {NAN, INFINITY, -INFINITY, 1e39, -1e300};
    static const char *const text[] = {"params.scale is nan", "params.scale is inf",
                                       "params.scale is -inf", "params.scale is 1e+39",
                                       "params.scale is -1e+300"};
    struct call c;
    (void)state;
    for (int i = 0; i < 5; i++) {
        good_call(&c);
        c.params.scale = scale[i];
        assert_refused(&c, ARGUMENT, text[i]);
    }
}

static void an_isa_of_another_cpu_is_refused(void **state)
{
    struct call c;
    (void)state;
    good_call(&c);
    for (c.params.isa = POSENC_ISA_AVX2; c.params.isa <= POSENC_ISA_NEON; c.params.isa++)
        if (!posenc_isa_available(c.params.isa))
            assert_refused(&c, POSENC_ERROR_UNSUPPORTED, posenc_isa_name(c.params.isa));
}

static void output_must_not_overlap(void **state)
{
    static const char *const text[] = {"out and q", "out and k", "out and v"};
    float *const data[] = {q_data, k_data, v_data};
    struct call c;
    (void)state;
    for (int i = 0; i < 3; i++) {
        good_call(&c);
        posenc_tensor *t = i == 0 ? &c.q : i == 1 ? &c.k : &c.v;
        c.out.data = data[i];
        c.out.shape[0] = c.out.shape[1] = c.q.shape[0] = c.q.shape[1] = 1;
        c.k.shape[0] = c.v.shape[0] = 1;
        assert_refused(&c, POSENC_ERROR_OVERLAP, text[i]);
        c.out.data = out_data;
        t->data = out_data + 6 * 9 - 1; /* the last element of out only */
        assert_refused(&c, POSENC_ERROR_OVERLAP, text[i]);
        t->data = out_data + 6 * 9;
        assert_int_equal(attend(&c, NULL), POSENC_OK);
    }
}

/* A later version's params: accepted while what this version does not know is zero. */
static void longer_params_need_a_zero_tail(void **state)
{
    struct {
        posenc_attention_params params;
        int32_t later[2];
    } longer = {.later = {0, 0}};
    struct call c;
    (void)state;
    good_call(&c);
    posenc_attention_params_init(&longer.params);
    assert_int_equal(longer.params.struct_size, sizeof(posenc_attention_params));
    longer.params.struct_size = sizeof(longer);
    c.params_at = &longer.params;
    assert_int_equal(attend(&c, NULL), POSENC_OK);
    longer.later[1] = 1;
    assert_refused(&c, ARGUMENT, "params.struct_size is 288");
}

static void nothing_to_do_is_fine(void **state)
{
    struct call c;
    (void)state;
    for (int dimension = 0; dimension < 3; dimension++) {
        good_call(&c);
        c.q.shape[dimension] = c.out.shape[dimension] = 0;
        if (dimension != 1)
            c.k.shape[dimension] = c.v.shape[dimension] = 0;
        c.q.data = c.out.data = NULL;
        assert_int_equal(attend(&c, NULL), POSENC_OK);
    }
}

/* A view between two pages that cannot be touched: at the end of its memory, or at the begin. */
struct fenced {
    char *map;
    size_t size, page;
};

static void fence(struct fenced *f, posenc_tensor *t, int64_t floats, int at_end)
{
    size_t bytes = (size_t)floats * sizeof(float);
    f->page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inner = (bytes + f->page - 1) / f->page * f->page;
    f->size = inner + 2 * f->page;
    f->map = mmap(NULL, f->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f->map != MAP_FAILED);
    assert_int_equal(mprotect(f->map + f->page, inner, PROT_READ | PROT_WRITE), 0);
    char *data = f->map + f->page + (at_end ? inner - bytes : 0);
    memcpy(data, t->data, bytes);
    t->data = data;
}

static void attend_fenced(struct problem *p, int32_t isa, int at_end)
{
    struct fenced f[4];
    struct problem fenced = *p;
    posenc_tensor *view[4] = {&fenced.q, &fenced.k, &fenced.v, &fenced.out};
    run(p, isa);
    for (int i = 0; i < 4; i++)
        fence(&f[i], view[i], tensor_count(view[i]), at_end);
    run(&fenced, isa);
    assert_memory_equal(fenced.out.data, p->out.data, tensor_bytes(&p->out));
    for (int i = 0; i < 4; i++)
        munmap(f[i].map, f[i].size);
}

static void memory_beside_the_views_is_not_touched(void **state)
{
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        for (int64_t width = 1; width <= 140 && posenc_isa_available(isa); width++) {
            struct problem p;
            problem_init(&p, (struct shape){1, 2, 1 + width % 69, 2, 1, width, 141 - width, 1}, 1);
            attend_fenced(&p, isa, 0);
            attend_fenced(&p, isa, 1);
            problem_free(&p);
        }
}

enum { B = 2, T = 70, HQ = 4, HK = 2, D = 20, ROW = (HQ + 2 * HK) * D, GAP = 3 };

/* Q, K and V packed in one row, batch inside tokens, tokens backwards; out with gaps. */
static void pack(const struct problem *p, struct problem *packed, float *qkv, float *out)
{
    posenc_tensor *view[3] = {&packed->q, &packed->k, &packed->v};
    const posenc_tensor *flat[3] = {&p->q, &p->k, &p->v};
    const int64_t at[3] = {0, HQ * D, (HQ + HK) * D};
    *packed = *p;
    for (int i = 0; i < 3; i++) {
        view[i]->data = qkv + (T - 1) * B * ROW + at[i];
        view[i]->stride[0] = ROW;
        view[i]->stride[1] = -(int64_t)B * ROW;
        view[i]->stride[2] = D;
        for (int64_t b = 0; b < B; b++)
            for (int64_t t = 0; t < T; t++)
                for (int64_t h = 0; h < view[i]->shape[2]; h++)
                    memcpy(element(view[i], b, t, h), element(flat[i], b, t, h), D * sizeof(float));
    }
    packed->out = (posenc_tensor){
        out, POSENC_F32, {B, T, HQ, D}, {T * HQ * (D + GAP), D + GAP, T * (D + GAP), 1}};
}

static void assert_packed_output(const posenc_tensor *packed, const posenc_tensor *flat)
{
    unsigned char gap[GAP * sizeof(float)];
    memset(gap, FILL_BYTE, sizeof(gap));
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t h = 0; h < HQ; h++) {
                float *row = element(packed, b, t, h);
                assert_memory_equal(row, element(flat, b, t, h), D * sizeof(float));
                assert_memory_equal(row + D, gap, sizeof(gap));
            }
}

static void strides_are_free(void **state)
{
    static float qkv[B * T * ROW], out[B * T * HQ * (D + GAP)];
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        struct problem p, packed;
        if (!posenc_isa_available(isa))
            continue;
        problem_init(&p, (struct shape){B, T, T, HQ, HK, D, D, 1}, 21);
        run(&p, isa);
        memset(out, FILL_BYTE, sizeof(out));
        pack(&p, &packed, qkv, out);
        assert_int_equal(posenc_attention(&packed.params, &packed.q, &packed.k, &packed.v,
                                          &packed.out, NULL), POSENC_OK);
        assert_packed_output(&packed.out, &p.out);
        problem_free(&p);
    }
}

/* Where a dimension has one element its stride means nothing. */
static void strides_of_single_elements_are_ignored(void **state)
{
    (void)state;
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        struct problem p;
        if (!posenc_isa_available(isa))
            continue;
        problem_init(&p, (struct shape){1, 1, 1, 1, 1, 33, 37, 0}, 24);
        posenc_tensor *view[4] = {&p.q, &p.k, &p.v, &p.out};
        for (int i = 0; i < 4; i++)
            for (int d = 0; d < 3; d++)
                view[i]->stride[d] = d == 1 ? INT64_MIN : INT64_MAX;
        run(&p, isa);
        assert_memory_equal(p.out.data, p.v.data, tensor_bytes(&p.v));
        problem_free(&p);
    }
}

/* Q, K and V may be one view, and every token may be the same memory. */
static void inputs_may_share_memory(void **state)
{
    struct problem p;
    (void)state;
    problem_init(&p, (struct shape){1, 30, 30, 2, 2, 12, 12, 0}, 22);
    memcpy(p.k.data, p.q.data, tensor_bytes(&p.q));
    memcpy(p.v.data, p.q.data, tensor_bytes(&p.q));
    run(&p, POSENC_ISA_DEFAULT);
    uint64_t expected = hash_bytes(p.out.data, tensor_bytes(&p.out), 1);
    struct problem one = p;
    one.k = one.v = p.q;
    run(&one, POSENC_ISA_DEFAULT);
    assert_true(hash_bytes(p.out.data, tensor_bytes(&p.out), 1) == expected);
    one.v.stride[1] = 0;
    run(&one, POSENC_ISA_DEFAULT);
    for (int c = 0; c < 12; c++)
        assert_true(fabsf(element(&p.out, 0, 7, 1)[c] - element(&one.v, 0, 0, 1)[c]) < 1e-6f);
    problem_free(&p);
}

/* Tokens 16 GiB apart, in memory that is only reserved: nothing may pass through 32 bits. */
static void strides_beyond_32_bits_work(void **state)
{
    const int64_t stride = (INT64_C(1) << 32) + 64;
    const size_t size = 3 * (size_t)stride * sizeof(float);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    (void)state;
    if (sizeof(size_t) < 8)
        skip();
    float *far = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (far == MAP_FAILED)
        skip();
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++) {
        struct problem p, wide;
        if (!posenc_isa_available(isa))
            continue;
        problem_init(&p, (struct shape){1, 3, 3, 1, 1, 18, 18, 1}, 23);
        run(&p, isa);
        wide = p;
        posenc_tensor *view[4] = {&wide.q, &wide.k, &wide.v, &wide.out};
        for (int i = 0; i < 4; i++) {
            posenc_tensor from = *view[i];
            view[i]->data = far + i * 100;
            view[i]->stride[1] = stride;
            for (int64_t t = 0; t < 3; t++)
                memcpy(element(view[i], 0, t, 0), element(&from, 0, t, 0), 18 * sizeof(float));
        }
        assert_int_equal(posenc_attention(&wide.params, &wide.q, &wide.k, &wide.v, &wide.out, NULL),
                         POSENC_OK);
        for (int64_t t = 0; t < 3; t++)
            assert_memory_equal(element(&wide.out, 0, t, 0), element(&p.out, 0, t, 0),
                                18 * sizeof(float));
        problem_free(&p);
    }
    munmap(far, size);
}

/* Keys that are not there have strides that mean nothing: nothing is computed with them. */
static void absent_keys_may_have_any_strides(void **state)
{
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
    posenc_tensor q, k, out;
    posenc_attention_params params;
    posenc_error error = {0, ""};

    (void)state;
    posenc_attention_params_init(&params);
    posenc_tensor_contiguous(&q, x, POSENC_F32, 1, 1, 4, 2);
    posenc_tensor_contiguous(&out, y, POSENC_F32, 1, 1, 4, 2);
    posenc_tensor_contiguous(&k, NULL, POSENC_F32, 1, 0, 4, 2);
    for (int d = 0; d < 3; d++) k.stride[d] = INT64_MAX;
    assert_int_equal(posenc_attention(&params, &q, &k, &k, &out, &error), POSENC_OK);
    for (int i = 0; i < 8; i++) assert_true(y[i] == 0.0f);
}

/* Without heads nothing is attended to, however many tokens there are said to be. */
static void tokens_without_heads_may_be_any_number(void **state)
{
    posenc_tensor q, k, table;
    posenc_attention_params params;
    posenc_t5_params t5;
    posenc_error error = {0, ""};

    (void)state;
    posenc_attention_params_init(&params);
    posenc_t5_params_init(&t5);
    posenc_tensor_contiguous(&q, NULL, POSENC_F32, 1, INT64_MAX, 0, 2);
    posenc_tensor_contiguous(&k, NULL, POSENC_F32, 1, INT64_MAX, 0, 2);
    posenc_tensor_contiguous(&table, &error, POSENC_F32, 1, 32, 1, 1);
    params.first_key = INT64_C(1) << 53;
    assert_int_equal(posenc_attention(&params, &q, &k, &k, &q, &error), POSENC_OK);
    params.t5 = &t5;
    params.t5_table = &table;
    params.align = POSENC_ALIGN_OFFSET;
    if (posenc_attention(&params, &q, &k, &k, &q, &error) != POSENC_OK) fail_msg("%s", error.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_refused),
        cmocka_unit_test(head_counts_must_divide),
        cmocka_unit_test(wrong_scales_are_refused),
        cmocka_unit_test(an_isa_of_another_cpu_is_refused),
        cmocka_unit_test(output_must_not_overlap),
        cmocka_unit_test(longer_params_need_a_zero_tail),
        cmocka_unit_test(nothing_to_do_is_fine),
        cmocka_unit_test(memory_beside_the_views_is_not_touched),
        cmocka_unit_test(strides_are_free),
        cmocka_unit_test(strides_of_single_elements_are_ignored),
        cmocka_unit_test(inputs_may_share_memory),
        cmocka_unit_test(strides_beyond_32_bits_work),
        cmocka_unit_test(absent_keys_may_have_any_strides),
        cmocka_unit_test(tokens_without_heads_may_be_any_number),
    };
    return cmocka_run_group_tests_name("attention checks", tests, NULL, NULL);
}
