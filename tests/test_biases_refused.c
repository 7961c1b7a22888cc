/* SPDX-License-Identifier: MIT */
/* Biases and buckets: every wrong argument is refused by name, and nothing is written. */
#include "support/refuse.h"

#include <math.h>

enum { ARGUMENT = POSENC_ERROR_ARGUMENT, OVERLAP = POSENC_ERROR_OVERLAP };
enum { POSITION = POSENC_ERROR_POSITION };

static union {
    float f[64];
    int64_t i[32];
    double d[32];
} out;

static posenc_tensor good_bias(void)
{
    posenc_tensor bias;

    posenc_tensor_contiguous(&bias, out.f, POSENC_F32, 2, 2, 3, 4);
    return bias;
}

#define ALIBI(change, status, words)                                                              \
    do {                                                                                          \
        posenc_alibi_params p;                                                                    \
        posenc_tensor bias = good_bias();                                                         \
        posenc_alibi_params_init(&p);                                                             \
        p.form = POSENC_ALIBI_KEY;                                                                \
        p.heads = 8;                                                                              \
        change;                                                                                   \
        REFUSE(posenc_alibi_bias(&p, &bias, error), status, words, out.f);                        \
    } while (0)

static void test_alibi(void **state)
{
    static const double slopes[3] = {1, (double)INFINITY, 1}, large[3] = {1, 2, 1e38};
    static const double huge[3] = {1, 1e300, 1};
    static const int64_t far[8] = {0, 1, 2, INT64_C(1) << 31, 0, 0, 0, 0};

    (void)state;
    ALIBI(p.struct_size = 8, ARGUMENT, "params.struct_size is 8");
    ALIBI(p.form = 0, ARGUMENT, "params.form is 0");
    ALIBI(p.form = 6, ARGUMENT, "params.form is 6");
    ALIBI(p.heads = 0, ARGUMENT, "params.heads is 0|1..65536");
    ALIBI(p.heads = 65537, ARGUMENT, "params.heads is 65537");
    ALIBI(p.first_head = -1, ARGUMENT, "params.first_head is -1|(8)");
    ALIBI(p.first_head = 6, ARGUMENT, "bias.shape[2] is 3|(2)");
    ALIBI(p.max_bias = 0, ARGUMENT, "params.max_bias is 0");
    ALIBI(p.max_bias = (double)NAN, ARGUMENT, "params.max_bias is nan");
    ALIBI(p.scale = 0, ARGUMENT, "params.scale is 0");
    ALIBI(p.scale = (double)INFINITY, ARGUMENT, "params.scale is inf");
    ALIBI(p.causal = 2, ARGUMENT, "params.causal is 2");
    ALIBI(p.isa = 99, ARGUMENT, "params.isa is 99");
    ALIBI(p.query_offset = INT64_C(1) << 31, ARGUMENT, "query_offset is 2147483648|int32");
    ALIBI(p.query_offset = INT64_MIN, ARGUMENT, "query_offset is -9223372036854775808");
    ALIBI(p.slopes = slopes, ARGUMENT, "params.slopes[1] is inf");
    ALIBI(p.slopes = large; p.scale = 10, ARGUMENT, "params.slopes[2] is|scale (10)");
    ALIBI(p.slopes = huge; p.scale = 1e-300; p.form = POSENC_ALIBI_FALCON, ARGUMENT,
          "params.slopes[1] is 1e+300|2^64 for FALCON");
    ALIBI(p.slopes = out.d + 1, OVERLAP, "params.slopes|bias");
    ALIBI(p.key_positions = far, POSITION, "params.key_positions[3] is 2147483648");
    ALIBI(p.key_positions = out.i, OVERLAP, "params.key_positions|bias");
    ALIBI(p.key_positions = far; p.form = POSENC_ALIBI_ABS, ARGUMENT,
          "params.key_positions|form 4");
    ALIBI(bias.dtype = POSENC_F64, ARGUMENT, "bias.dtype is");
    ALIBI(bias.data = NULL, ARGUMENT, "bias.data is NULL");
    ALIBI(bias.shape[3] = 0, ARGUMENT, "bias.shape[3] is 0");
    ALIBI(bias.stride[1] = 0, OVERLAP, "bias");
}

#define T5(change, status, words)                                                                 \
    do {                                                                                          \
        static float weights[32 * 3];                                                             \
        static int32_t relative[4];                                                               \
        posenc_t5_params p;                                                                       \
        posenc_tensor bias = good_bias(), table;                                                  \
        posenc_t5_params_init(&p);                                                                \
        posenc_tensor_contiguous(&table, weights, POSENC_F32, 1, 32, 1, 3);                       \
        change;                                                                                   \
        REFUSE(posenc_t5_bias(&p, &table, &bias, error), status, words, out.f);                   \
        if (strstr(words, "params.") != NULL)                                                     \
            REFUSE(posenc_t5_buckets(&p, relative, 4, (int32_t *)out.f, error), status, words,    \
                   out.f);                                                                        \
    } while (0)

static void test_t5(void **state)
{
    (void)state;
    T5(p.struct_size = 4, ARGUMENT, "params.struct_size is 4");
    T5(p.num_buckets = 0, ARGUMENT, "params.num_buckets is 0");
    T5(p.num_buckets = 2, ARGUMENT, "params.num_buckets is 2|4..65536");
    T5(p.num_buckets = 33, ARGUMENT, "params.num_buckets is 33|even");
    T5(p.num_buckets = 1; p.bidirectional = 0, ARGUMENT, "params.num_buckets is 1|2..65536");
    T5(p.num_buckets = 65538, ARGUMENT, "params.num_buckets is 65538");
    T5(p.max_distance = 8, ARGUMENT, "params.max_distance is 8|(8)");
    T5(p.max_distance = (INT64_C(1) << 53) + 1, ARGUMENT, "params.max_distance is|2^53");
    T5(p.bidirectional = 2, ARGUMENT, "params.bidirectional is 2");
    T5(p.causal = -1, ARGUMENT, "params.causal is -1");
    T5(p.isa = -1, ARGUMENT, "params.isa is -1");
    T5(p.reserved = 1, ARGUMENT, "params.reserved is 1");
    T5(p.query_offset = INT64_MAX, ARGUMENT, "query_offset is");
    T5(table.shape[1] = 31, ARGUMENT, "table.shape is [1, 31, 1, 3]|(32)");
    T5(table.shape[3] = 2, ARGUMENT, "bias.shape[2] is 3|(2)");
    T5(table.data = out.f, OVERLAP, "bias|table");
    T5(table.dtype = 0, ARGUMENT, "table.dtype is 0");
    T5(bias.stride[2] = 0, OVERLAP, "bias");
}

static void test_deberta(void **state)
{
    int32_t relative[4] = {0}, *to = (int32_t *)out.f;

    (void)state;
    REFUSE(posenc_deberta_buckets(1, 9, relative, 4, to, error), ARGUMENT, "buckets is 1", out.f);
    REFUSE(posenc_deberta_buckets(-1, 9, relative, 4, to, error), ARGUMENT, "buckets is -1", out.f);
    REFUSE(posenc_deberta_buckets(65537, 9, relative, 4, to, error), ARGUMENT, "buckets is", out.f);
    REFUSE(posenc_deberta_buckets(8, 5, relative, 4, to, error), ARGUMENT, "max_distance is 5|(6)",
           out.f);
    REFUSE(posenc_deberta_buckets(65536, 32770, relative, 4, to, error), ARGUMENT,
           "max_distance is 32770|int32", out.f);
    REFUSE(posenc_deberta_buckets(8, 20, NULL, 4, to, error), ARGUMENT, "relative is NULL", out.f);
    REFUSE(posenc_deberta_buckets(8, 20, to, 4, to, error), OVERLAP, "out|relative", out.f);
    REFUSE(posenc_deberta_maps(8, 20, -1, 4, 0, to, NULL, error), ARGUMENT, "queries is -1", out.f);
    REFUSE(posenc_deberta_maps(8, 20, 1, -4, 0, to, NULL, error), ARGUMENT, "keys is -4", out.f);
    REFUSE(posenc_deberta_maps(0, 0, 1, 4, 0, to, NULL, error), ARGUMENT, "max_distance is 0",
           out.f);
    REFUSE(posenc_deberta_maps(8, 20, 2, 4, 0, to, to + 7, error), OVERLAP, "c2p|p2c", out.f);
    REFUSE(posenc_deberta_maps(8, 20, 2, 4, INT64_C(1) << 32, to, NULL, error), ARGUMENT,
           "query_offset is 4294967296", out.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alibi),
        cmocka_unit_test(test_t5),
        cmocka_unit_test(test_deberta),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
