/* SPDX-License-Identifier: MIT */
/* Memory that arguments share: what must be refused, what must not, and the flat call's arrays. */
#include "support/call.h"

#include <sys/mman.h>

static void test_overlaps(void **state)
{
    struct call *c = fresh();

    (void)state;
    /* B17-b: the destination is the source, moved. */
    c->q_out.data = memory.q + 4;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out|q");
    c = fresh(), c->q_out.data = memory.q, c->q_out.stride[1] += 4;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out|q");
    c = fresh(), c->q_out.data = memory.q,
    c->q_out.dtype = POSENC_F16; /* the same place, another type */
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out|q");
    c = fresh(), c->q_out.data = memory.k;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out|k");
    c = fresh(), c->k_out.data = memory.q;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "k_out|q");
    c = fresh(), c->k_out.data = memory.q_out;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "k_out|q_out");
    c = fresh(), c->k.data = memory.q, c->q_out_arg = c->k_out_arg = NULL;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q|k");
    c = fresh(), c->rows.data = memory.q + 8, c->q_out_arg = NULL;
    refuse(ROTATE, c, POSENC_ERROR_OVERLAP, "rows|q");
    c = fresh(), c->rows.data = memory.k_out;
    refuse(ROTATE, c, POSENC_ERROR_OVERLAP, "rows|k_out");
    /* Inputs that are only read may share: K may be Q, rows may lie in K. */
    c = fresh(), c->k.data = memory.q;
    accept(ROTATE | ROPE, c);
    c = fresh(), c->rows.data = memory.k;
    accept(ROTATE, c);
}

/* Ids or starts that the call would overwrite while it reads them. */
static void test_ids_in_outputs(void **state)
{
    for (int32_t kind = POSENC_POSITIONS_STARTS; kind <= POSENC_POSITIONS_IDS; kind++) {
        struct call *c = with_ids(kind);

        (void)state;
        /* Both views end just inside the ids. */
        c->k_out.data = (float *)(void *)memory.ids - (K_SIZE - 4);
        c->q_arg = c->q_out_arg = NULL;
        c->rows.data = (float *)(void *)memory.ids - (ROWS_SIZE - 4);
        refuse(ROWS, c, POSENC_ERROR_OVERLAP, "rows|ids");
        refuse(ROPE, c, POSENC_ERROR_OVERLAP, "k_out|ids");
    }
}

static void test_self_overlap(void **state)
{
    struct call *c = fresh();

    (void)state;
    c->q_out.stride[1] = 0;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out");
    c = fresh(), c->q_out.stride[2] = CHANNELS - 1;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out");
    c = fresh(), c->q_out_arg = NULL, c->q.stride[0] = c->q.stride[1];
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q");
    c = fresh(), c->rows.stride[1] = 0;
    refuse(ROWS, c, POSENC_ERROR_OVERLAP, "rows");
    /* A view that is only read may repeat: one head's values for all heads. */
    c = fresh(), c->q.stride[2] = 0;
    accept(ROTATE | ROPE, c);
    c = fresh(), c->rows.stride[0] = c->rows.stride[1] = 0;
    accept(ROTATE, c);
}

/* Q and K interleaved in one buffer are legal in every order; one channel too many is not. */
static void test_packed(void **state)
{
    struct call *c = fresh();
    float *packed = memory.q;

    (void)state;
    c->q_out_arg = c->k_out_arg = NULL;
    c->q.shape[2] = 1;
    c->q.stride[1] = c->k.stride[1] = 2 * CHANNELS;
    c->q.stride[0] = c->k.stride[0] = 2 * CHANNELS * TOKENS;
    c->q.data = packed;
    c->k.data = packed + CHANNELS;
    accept(ROTATE | ROPE, c);
    c->k.data = packed + CHANNELS - 1;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q|k");
    c->k.data = packed + CHANNELS + 1;
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q|k");
}

/* Views that a sparse mapping of 8 GiB holds: far apart is no overlap, and a far one is found. */
static void test_far_views(void **state)
{
#if UINTPTR_MAX > 0xffffffff
    size_t size = (size_t)1 << 33;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct call *c = fresh();
    int64_t far = INT64_C(1) << 29; /* elements: three tokens reach over 4 GiB */

    (void)state;
    if (map == MAP_FAILED) skip();
    c->k_arg = c->k_out_arg = NULL;
    c->q.shape[0] = c->q_out.shape[0] = 1;
    c->q.shape[2] = c->q_out.shape[2] = 1;
    c->rows.shape[0] = 1;
    c->q.data = map;
    c->q_out.data = map + 64;
    c->q.stride[1] = c->q_out.stride[1] = far;
    accept(ROTATE | ROPE, c);
    c->q_out.data = map + 4 * far + 60; /* token 0 there meets token 1 of q, 2^31 bytes on */
    refuse(ROTATE | ROPE, c, POSENC_ERROR_OVERLAP, "q_out|q");
    c->q.data = map + 8 * far;
    c->q.stride[1] = -far;
    c->q_out.data = map + 64;
    accept(ROTATE | ROPE, c);
    assert_int_equal(munmap(map, size), 0);
#else
    (void)state;
    skip();
#endif
}

/* ---- the flat call ---- */

static void test_flat(void **state)
{
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 4, SIZE_MAX / 16};
    struct call *c = fresh();
    const struct flat good = {memory.q, memory.k, POSENC_F32, BATCH, TOKENS, Q_HEADS, K_HEADS, 5};
    struct flat f = good;

    (void)state;
    test_ok(posenc_rope_flat(c->plan, f.q, f.k, f.dtype, f.batch, f.tokens, f.q_heads, f.k_heads,
                             f.start, NULL), NULL);
    refuse_flat(NULL, &f, POSENC_ERROR_ARGUMENT, "plan|NULL");
    f.q = NULL;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "q is NULL|q_heads 2");
    f = good, f.k = NULL;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "k is NULL|k_heads 1");
    f = good, f.q = f.k = NULL, f.q_heads = f.k_heads = 0;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "q|k|NULL");
    f = good, f.q_heads = 0;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "q is given|q_heads 0");
    f = good, f.dtype = 0;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "dtype|0");
    f = good, f.dtype = POSENC_I64;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "dtype|5");
    f = good, f.q = (char *)memory.q + 1;
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "q");
    f = good, f.k = memory.q + 1;
    refuse_flat(c->plan, &f, POSENC_ERROR_OVERLAP, "q|k");
    f = good, f.start = INT64_MAX;
    refuse_flat(c->plan, &f, POSENC_ERROR_POSITION, "9223372036854775807");
    for (int i = 0; i < 4; i++) {
        /* Counts of 32 bits fit a shape, so that the text names q or k there. */
        int named = i == 0 && sizeof(size_t) > 4;

        f = good, f.batch = huge[i];
        refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, named ? "batch" : "");
        f = good, f.tokens = huge[i];
        refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, named ? "tokens" : "");
        f = good, f.q_heads = huge[i];
        refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, named ? "q_heads" : "");
        f = good, f.k_heads = huge[i];
        refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, named ? "k_heads" : "");
    }
#if UINTPTR_MAX > 0xffffffff
    f = good, f.batch = 1, f.tokens = (size_t)4611686018427387904, f.q_heads = 8; /* B22-c */
    refuse_flat(c->plan, &f, POSENC_ERROR_ARGUMENT, "");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlaps),
        cmocka_unit_test(test_ids_in_outputs),
        cmocka_unit_test(test_self_overlap),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_far_views),
        cmocka_unit_test(test_flat),
    };

    return cmocka_run_group_tests(tests, call_setup, call_teardown);
}
