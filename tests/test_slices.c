/* SPDX-License-Identifier: MIT */
/* The same bits for any way of doing the same work: split, threaded, fused, packed. */
#include "support/half.h"
#include "support/random.h"
#include "support/test.h"
#include "support/view.h"

#include <pthread.h>

/* One job of two tensors; every test does it in another way. */
enum { BATCH = 2, TOKENS = 75, Q_HEADS = 3, K_HEADS = 1, CHANNELS = 48, WIDTH = 36, OFFSET = 5 };
enum {
    Q_COUNT = BATCH * TOKENS * Q_HEADS * CHANNELS,
    K_COUNT = BATCH * TOKENS * K_HEADS * CHANNELS
};

static const int64_t START = 4090;

struct data { uint32_t q[Q_COUNT], k[K_COUNT]; };

struct job {
    posenc_plan *plan;
    int32_t dtype;
    struct data before, expected;
};

static posenc_plan *plan_of(int32_t layout, int32_t isa)
{
    posenc_rope_params params = test_params(layout, CHANNELS, WIDTH);

    params.rotary_offset = OFFSET;
    params.isa = isa;
    params.attention_factor = 1.25;
    return test_plan(&params);
}

static void views(struct data *data, int32_t dtype, posenc_tensor *q, posenc_tensor *k)
{
    posenc_tensor_contiguous(q, data->q, dtype, BATCH, TOKENS, Q_HEADS, CHANNELS);
    posenc_tensor_contiguous(k, data->k, dtype, BATCH, TOKENS, K_HEADS, CHANNELS);
}

/* The part of a view with tokens [first, first + count) of batch rows [b, b + batch). */
static posenc_tensor part(const posenc_tensor *whole, int64_t b, int64_t batch, int64_t first,
                          int64_t count)
{
    posenc_tensor piece = *whole;
    int64_t offset = b * whole->stride[0] + first * whole->stride[1];

    piece.data = (char *)whole->data + offset * (int64_t)test_size(whole->dtype);
    piece.shape[0] = batch;
    piece.shape[1] = count;
    return piece;
}

static void rope(const posenc_plan *plan, const posenc_positions *positions, const posenc_tensor *q,
                 const posenc_tensor *q_out, const posenc_tensor *k, const posenc_tensor *k_out)
{
    posenc_error error = {0, ""};

    test_ok(posenc_rope(plan, POSENC_FORWARD, positions, q, q_out, k, k_out, &error), &error);
}

static void make_rows(const posenc_plan *plan, const posenc_positions *positions, int64_t batch,
                      int64_t tokens, posenc_tensor *rows, float *memory)
{
    posenc_error error = {0, ""};

    posenc_tensor_contiguous(rows, memory, POSENC_F32, batch, tokens, 1,
                             2 * (int64_t)posenc_plan_pairs(plan));
    test_ok(posenc_rows(plan, positions, rows, &error), &error);
}

static posenc_positions start_at(int64_t start)
{
    posenc_positions positions;

    posenc_positions_start(&positions, start);
    return positions;
}

static posenc_positions ids_at(const void *ids, int32_t dtype, int64_t batch_stride)
{
    posenc_positions positions;

    posenc_positions_start(&positions, 0);
    positions.kind = POSENC_POSITIONS_IDS;
    positions.dtype = dtype;
    positions.ids = ids;
    positions.stride[0] = batch_stride;
    positions.stride[1] = 1;
    return positions;
}

typedef void way(const struct job *job, struct data *data);

/* Fused, in place, in one call: what all others are compared with. */
static void whole(const struct job *job, struct data *data)
{
    posenc_positions positions = start_at(START);
    posenc_tensor q, k;

    views(data, job->dtype, &q, &k);
    rope(job->plan, &positions, &q, NULL, &k, NULL);
}

static void same_view_as_output(const struct job *job, struct data *data)
{
    posenc_positions positions = start_at(START);
    posenc_tensor q, k;

    views(data, job->dtype, &q, &k);
    rope(job->plan, &positions, &q, &q, &k, &k);
}

static void rows_then_rotate(const struct job *job, struct data *data)
{
    static float memory[BATCH * TOKENS * WIDTH];
    posenc_positions positions = start_at(START);
    posenc_error error = {0, ""};
    posenc_tensor q, k, rows;

    views(data, job->dtype, &q, &k);
    make_rows(job->plan, &positions, BATCH, TOKENS, &rows, memory);
    test_ok(posenc_rotate(job->plan, POSENC_FORWARD, &rows, &q, NULL, &k, NULL, &error), &error);
}

/* Rows of one batch row serve all. */
static void shared_rows(const struct job *job, struct data *data)
{
    static float memory[TOKENS * WIDTH];
    posenc_positions positions = start_at(START);
    posenc_error error = {0, ""};
    posenc_tensor q, k, rows;

    views(data, job->dtype, &q, &k);
    make_rows(job->plan, &positions, 1, TOKENS, &rows, memory);
    test_ok(posenc_rotate(job->plan, POSENC_FORWARD, &rows, &q, NULL, &k, NULL, &error), &error);
}

static void one_token_at_a_time(const struct job *job, struct data *data)
{
    posenc_tensor q, k;

    views(data, job->dtype, &q, &k);
    for (int64_t t = 0; t < TOKENS; t++) {
        posenc_positions positions = start_at(START + t);
        posenc_tensor q_piece = part(&q, 0, BATCH, t, 1), k_piece = part(&k, 0, BATCH, t, 1);

        rope(job->plan, &positions, &q_piece, NULL, &k_piece, NULL);
    }
}

static void random_pieces(const struct job *job, struct data *data)
{
    struct test_random random = {(uint32_t)job->dtype};
    posenc_tensor q, k;

    views(data, job->dtype, &q, &k);
    for (int64_t b = 0; b < BATCH; b++) {
        int64_t t = 0;

        while (t < TOKENS) {
            int64_t count = 1 + test_below(&random, 20);
            posenc_positions positions = start_at(START + t);

            if (t + count > TOKENS) count = TOKENS - t;
            posenc_tensor q_piece = part(&q, b, 1, t, count), k_piece = part(&k, b, 1, t, count);
            rope(job->plan, &positions, &q_piece, NULL, &k_piece, NULL);
            t += count;
        }
    }
}

static void q_and_k_apart(const struct job *job, struct data *data)
{
    posenc_positions positions = start_at(START);
    posenc_tensor q, k;

    views(data, job->dtype, &q, &k);
    rope(job->plan, &positions, NULL, NULL, &k, NULL);
    rope(job->plan, &positions, &q, NULL, NULL, NULL);
}

static void elsewhere_and_back(const struct job *job, struct data *data)
{
    static struct data out;
    posenc_positions positions = start_at(START);
    posenc_tensor q, k, q_out, k_out;

    memset(&out, 0x7f, sizeof out);
    views(data, job->dtype, &q, &k);
    views(&out, job->dtype, &q_out, &k_out);
    rope(job->plan, &positions, &q, &q_out, &k, &k_out);
    memcpy(data->q, out.q, Q_COUNT * test_size(job->dtype));
    memcpy(data->k, out.k, K_COUNT * test_size(job->dtype));
}

static void ids32(const struct job *job, struct data *data)
{
    static int32_t ids[BATCH * TOKENS];
    posenc_positions positions = ids_at(ids, POSENC_I32, TOKENS);
    posenc_tensor q, k;

    for (int i = 0; i < BATCH * TOKENS; i++) ids[i] = (int32_t)START + i % TOKENS;
    views(data, job->dtype, &q, &k);
    rope(job->plan, &positions, &q, NULL, &k, NULL);
}

/* One shared row of 64-bit ids, the other way round in memory. */
static void ids64_shared_backwards(const struct job *job, struct data *data)
{
    static int64_t ids[TOKENS];
    posenc_positions positions = ids_at(ids + TOKENS - 1, POSENC_I64, 0);
    posenc_tensor q, k;

    positions.stride[1] = -1;
    for (int i = 0; i < TOKENS; i++) ids[TOKENS - 1 - i] = START + i;
    views(data, job->dtype, &q, &k);
    rope(job->plan, &positions, &q, NULL, &k, NULL);
}

static void starts(const struct job *job, struct data *data)
{
    int32_t narrow[BATCH * 3] = {(int32_t)START, 9, 9, (int32_t)START, 9, 9};
    posenc_positions positions = ids_at(narrow, POSENC_I32, 3);
    posenc_tensor q, k;

    positions.kind = POSENC_POSITIONS_STARTS;
    views(data, job->dtype, &q, &k);
    rope(job->plan, &positions, &q, NULL, &k, NULL);
}

/* Tokens in another order, each with its id. */
static void unsorted(const struct job *job, struct data *data)
{
    static struct data mixed;
    static int64_t ids[TOKENS];
    posenc_positions positions = ids_at(ids, POSENC_I64, 0);
    posenc_tensor q, k, q_mixed, k_mixed;
    size_t size = test_size(job->dtype);

    views(data, job->dtype, &q, &k);
    views(&mixed, job->dtype, &q_mixed, &k_mixed);
    for (int round = 0; round < 2; round++) {
        for (int64_t n = 0; n < BATCH * TOKENS; n++) {
            int64_t b = n / TOKENS, t = n % TOKENS, to = t * 32 % TOKENS;
            posenc_tensor a = part(&q, b, 1, t, 1), c = part(&q_mixed, b, 1, to, 1);
            posenc_tensor d = part(&k, b, 1, t, 1), e = part(&k_mixed, b, 1, to, 1);

            ids[to] = START + t;
            memcpy(round ? a.data : c.data, round ? c.data : a.data, Q_HEADS * CHANNELS * size);
            memcpy(round ? d.data : e.data, round ? e.data : d.data, K_HEADS * CHANNELS * size);
        }
        if (round == 0) rope(job->plan, &positions, &q_mixed, NULL, &k_mixed, NULL);
    }
}

/* Q, K and V interleaved in one buffer; V must stay. */
static void packed(const struct job *job, struct data *data)
{
    enum { ALL = Q_HEADS + 2 * K_HEADS };
    static uint32_t buffer[BATCH * TOKENS * ALL * CHANNELS];
    size_t size = test_size(job->dtype), head = CHANNELS * size;
    posenc_positions positions = start_at(START);
    posenc_tensor q, k;

    memset(buffer, 0x11, sizeof buffer);
    posenc_tensor_contiguous(&q, buffer, job->dtype, BATCH, TOKENS, ALL, CHANNELS);
    k = q;
    q.shape[2] = Q_HEADS;
    k.shape[2] = K_HEADS;
    k.data = (char *)buffer + Q_HEADS * head;
    for (int round = 0; round < 2; round++) {
        for (size_t n = 0; n < BATCH * TOKENS; n++) {
            char *token = (char *)buffer + n * ALL * head;
            char *from_q = (char *)data->q + n * Q_HEADS * head;
            char *from_k = (char *)data->k + n * K_HEADS * head;
            char *v = token + (Q_HEADS + K_HEADS) * head;

            memcpy(round ? from_q : token, round ? token : from_q, Q_HEADS * head);
            memcpy(round ? from_k : token + Q_HEADS * head, round ? token + Q_HEADS * head : from_k,
                   K_HEADS * head);
            for (size_t i = 0; i < K_HEADS * head; i++) assert_int_equal(v[i], 0x11);
        }
        if (round == 0) rope(job->plan, &positions, &q, NULL, &k, NULL);
    }
}

/* Eight threads, each with its own tokens. */
enum { THREADS = 8 };

struct share { const struct job *job; struct data *data; int64_t first, count; };

static void *work(void *argument)
{
    const struct share *share = argument;
    posenc_positions positions = start_at(START + share->first);
    posenc_tensor q, k, q_piece, k_piece;

    views(share->data, share->job->dtype, &q, &k);
    q_piece = part(&q, 0, BATCH, share->first, share->count);
    k_piece = part(&k, 0, BATCH, share->first, share->count);
    return posenc_rope(share->job->plan, POSENC_FORWARD, &positions, &q_piece, NULL, &k_piece, NULL,
                       NULL) == POSENC_OK ? NULL : argument;
}

static void threads(const struct job *job, struct data *data)
{
    pthread_t thread[THREADS];
    struct share share[THREADS];

    for (int i = 0; i < THREADS; i++) {
        int64_t first = TOKENS * i / THREADS, last = TOKENS * (i + 1) / THREADS;

        share[i] = (struct share){job, data, first, last - first};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &share[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;

        assert_int_equal(pthread_join(thread[i], &result), 0);
        assert_null(result);
    }
}

static way *const ways[] = {same_view_as_output, rows_then_rotate, shared_rows, one_token_at_a_time,
                            random_pieces, q_and_k_apart, elsewhere_and_back, ids32,
                            ids64_shared_backwards, starts, unsorted, packed, threads};
static const char *const way_names[] = {"same view as output",
                                        "rows then rotate",
                                        "shared rows",
                                        "one token at a time",
                                        "random pieces",
                                        "q and k apart",
                                        "elsewhere and back",
                                        "32-bit ids",
                                        "64-bit ids, shared, backwards",
                                        "starts",
                                        "unsorted",
                                        "packed",
                                        "threads"};

static void test_ways(void **state)
{
    static struct job job;
    static struct data got;
    static const int32_t dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    struct test_random random = {31};
    int32_t isas[TEST_ISAS];
    size_t n = test_isas(isas);

    (void)state;
    for (size_t c = 0; c < n * 6; c++) {
        size_t size = test_size(job.dtype = dtypes[c % 3]);

        job.plan = plan_of(1 + (int32_t)(c / 3 % 2), isas[c / 6]);
        for (int64_t i = 0; i < Q_COUNT; i++) {
            test_store(job.before.q, job.dtype, i, (double)test_unit(&random));
        }
        for (int64_t i = 0; i < K_COUNT; i++) {
            test_store(job.before.k, job.dtype, i, (double)test_unit(&random));
        }
        job.expected = job.before;
        whole(&job, &job.expected);
        assert_true(memcmp(job.expected.q, job.before.q, Q_COUNT * size) != 0);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            got = job.before;
            ways[w](&job, &got);
            if (memcmp(got.q, job.expected.q, Q_COUNT * size) != 0
                || memcmp(got.k, job.expected.k, K_COUNT * size) != 0) {
                fail_msg("%s: %s, dtype %d", way_names[w], posenc_isa_name(isas[c / 6]), job.dtype);
            }
        }
        posenc_plan_free(job.plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
