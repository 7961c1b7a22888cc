/* SPDX-License-Identifier: MIT */
/* What the layout tools refuse, with nothing written. */
#include "support/refuse.h"
#include "support/test.h"

enum { HEADS = 2, D = 12, R = 8, O = 2, BYTES = 4, SIZE = HEADS * D * BYTES };

static unsigned char memory[4 * SIZE];

struct rows {
    const void *in;
    void *out;
    size_t heads, head_dim, rotary_dim, offset, row_bytes;
    int32_t to;
};

static struct rows good_rows(void)
{
    return (struct rows){memory, memory + 2 * SIZE, HEADS, D, R, O, BYTES, POSENC_ADJACENT};
}

static int32_t call_rows(const struct rows *r, posenc_error *error)
{
    return posenc_permute_rows(r->in, r->out, r->heads, r->head_dim, r->rotary_dim, r->offset,
                               r->row_bytes, r->to, error);
}

static void accept_rows(struct rows r)
{
    posenc_error error = {0, ""};

    test_ok(call_rows(&r, &error), &error);
}

static void refuse_rows(struct rows r, int32_t status, const char *words)
{
    REFUSE(call_rows(&r, error), status, words, memory);
}

#define ROWS(field, value, status, words)                                                         \
    do {                                                                                          \
        struct rows call = good_rows();                                                           \
        call.field = value;                                                                       \
        refuse_rows(call, status, words);                                                         \
    } while (0)

static void test_rows(void **state)
{
    (void)state;
    struct rows r = good_rows();

    accept_rows(r);
    ROWS(to, 0, POSENC_ERROR_ARGUMENT, "to is 0|POSENC_ADJACENT");
    ROWS(to, 3, POSENC_ERROR_ARGUMENT, "to is 3");
    ROWS(in, NULL, POSENC_ERROR_ARGUMENT, "in is NULL");
    ROWS(rotary_dim, 0, POSENC_ERROR_ARGUMENT, "rotary_dim is 0|even");
    ROWS(rotary_dim, 7, POSENC_ERROR_ARGUMENT, "rotary_dim is 7|even");
    ROWS(rotary_dim, 14, POSENC_ERROR_ARGUMENT, "rotary_dim is 14|head_dim (12)");
    ROWS(rotary_dim, SIZE_MAX - 1, POSENC_ERROR_ARGUMENT, "rotary_dim is");
    ROWS(offset, 5, POSENC_ERROR_ARGUMENT, "rotary_offset is 5|(4)");
    ROWS(offset, SIZE_MAX, POSENC_ERROR_ARGUMENT, "rotary_offset is");
    ROWS(row_bytes, 0, POSENC_ERROR_ARGUMENT, "row_bytes is 0");
    ROWS(heads, SIZE_MAX / 4, POSENC_ERROR_ARGUMENT, "heads is|address space");
    ROWS(head_dim, SIZE_MAX / 4, POSENC_ERROR_ARGUMENT, "head_dim|address space");
    ROWS(row_bytes, SIZE_MAX / 8, POSENC_ERROR_ARGUMENT, "row_bytes|address space");
    r.head_dim = 70000;
    r.rotary_dim = 65538;
    r.heads = 0;
    refuse_rows(r, POSENC_ERROR_ARGUMENT, "rotary_dim is 65538|65536");
}

static void test_rows_overlap(void **state)
{
    (void)state;
    ROWS(out, memory + SIZE - 1, POSENC_ERROR_OVERLAP, "in and out share memory");
    ROWS(out, memory + 1, POSENC_ERROR_OVERLAP, "in and out share memory");
    ROWS(in, memory + 3 * SIZE - 1, POSENC_ERROR_OVERLAP, "in and out share memory");
    struct rows r = good_rows();
    r.out = memory + SIZE;
    accept_rows(r);
    r.in = memory + 2 * SIZE;
    accept_rows(r);
}

struct channels {
    posenc_tensor in, out;
    const posenc_tensor *in_arg, *out_arg;
    int32_t r, offset, to;
};

static union {
    unsigned char bytes[8 * SIZE];
    double aligned;
} views;

static struct channels *good_channels(void)
{
    static struct channels c;

    posenc_tensor_contiguous(&c.in, views.bytes, POSENC_F32, 1, 1, HEADS, D);
    posenc_tensor_contiguous(&c.out, views.bytes + 4 * SIZE, POSENC_F32, 1, 1, HEADS, D);
    c.in_arg = &c.in;
    c.out_arg = &c.out;
    c.r = R;
    c.offset = O;
    c.to = POSENC_SPLIT_HALF;
    return &c;
}

static int32_t call_channels(const struct channels *c, posenc_error *error)
{
    return posenc_permute_channels(c->in_arg, c->out_arg, c->r, c->offset, c->to, error);
}

static void accept_channels(const struct channels *c)
{
    posenc_error error = {0, ""};

    test_ok(call_channels(c, &error), &error);
}

#define CHANNELS(field, value, status, words)                                                     \
    do {                                                                                          \
        struct channels *c = good_channels();                                                     \
        c->field = value;                                                                         \
        REFUSE(call_channels(c, error), status, words, views.bytes);                              \
    } while (0)

static void test_channels(void **state)
{
    (void)state;
    accept_channels(good_channels());
    CHANNELS(to, 0, POSENC_ERROR_ARGUMENT, "to is 0");
    CHANNELS(to, -1, POSENC_ERROR_ARGUMENT, "to is -1");
    CHANNELS(in_arg, NULL, POSENC_ERROR_ARGUMENT, "in is NULL");
    CHANNELS(in.data, NULL, POSENC_ERROR_ARGUMENT, "in.data is NULL");
    CHANNELS(out.data, NULL, POSENC_ERROR_ARGUMENT, "out.data is NULL");
    CHANNELS(in.dtype, POSENC_I32, POSENC_ERROR_ARGUMENT, "in.dtype is 4");
    CHANNELS(out.dtype, POSENC_F64, POSENC_ERROR_ARGUMENT, "out.dtype is 6|1 as in in");
    CHANNELS(out.shape[2], 1, POSENC_ERROR_ARGUMENT, "out.shape[2] is 1|2 as in in");
    CHANNELS(out.shape[3], D - 1, POSENC_ERROR_ARGUMENT, "out.shape[3] is 11");
    CHANNELS(in.shape[3], R, POSENC_ERROR_ARGUMENT, "rotary_offset is 2");
    CHANNELS(in.stride[3], 2, POSENC_ERROR_ARGUMENT, "in.stride[3] is 2");
    CHANNELS(r, 9, POSENC_ERROR_ARGUMENT, "rotary_dim is 9|even");
    CHANNELS(r, -2, POSENC_ERROR_ARGUMENT, "rotary_dim is -2");
    CHANNELS(r, 14, POSENC_ERROR_ARGUMENT, "rotary_dim is 14|in.shape[3] (12)");
    CHANNELS(offset, -1, POSENC_ERROR_ARGUMENT, "rotary_offset is -1");
    CHANNELS(offset, 5, POSENC_ERROR_ARGUMENT, "rotary_offset is 5");
    CHANNELS(in.shape[2], INT64_MAX / 8, POSENC_ERROR_ARGUMENT, "in: shape|address space");
}

static void test_channels_overlap(void **state)
{
    (void)state;
    CHANNELS(out.data, views.bytes + 4, POSENC_ERROR_OVERLAP, "out and in share memory");
    CHANNELS(out.stride[2], D - 1, POSENC_ERROR_OVERLAP, "out|cannot be written");
    struct channels *c = good_channels();
    c->out_arg = NULL;
    c->in.stride[2] = 0;
    REFUSE(call_channels(c, error), POSENC_ERROR_OVERLAP, "in|cannot be written", views.bytes);
    c->out_arg = &c->out; /* a source may repeat itself */
    accept_channels(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_overlap),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_channels_overlap),
    };
    return cmocka_run_group_tests_name("permute_arguments", tests, NULL, NULL);
}
