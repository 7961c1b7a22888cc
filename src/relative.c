/* SPDX-License-Identifier: MIT */
/* Biases by relative buckets: T5 and DeBERTa. */
#include "common.h"
#include "error.h"

void posenc_t5_params_init(posenc_t5_params *params)
{
    (void)params;
}

int32_t posenc_t5_buckets(const posenc_t5_params *params, const int32_t *relative, size_t count,
                            int32_t *buckets, posenc_error *error)
{
    (void)params;
    (void)relative;
    (void)count;
    (void)buckets;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_t5_bias(const posenc_t5_params *params, const posenc_tensor *table,
                            const posenc_tensor *bias, posenc_error *error)
{
    (void)params;
    (void)table;
    (void)bias;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_deberta_buckets(int32_t buckets, int64_t max_distance, const int32_t *relative,
                            size_t count, int32_t *out, posenc_error *error)
{
    (void)buckets;
    (void)max_distance;
    (void)relative;
    (void)count;
    (void)out;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}

int32_t posenc_deberta_maps(int32_t buckets, int64_t max_distance, int64_t queries, int64_t keys,
                            int64_t query_offset, int32_t *c2p, int32_t *p2c, posenc_error *error)
{
    (void)buckets;
    (void)max_distance;
    (void)queries;
    (void)keys;
    (void)query_offset;
    (void)c2p;
    (void)p2c;
    return posenc_fail(error, POSENC_ERROR_UNSUPPORTED, "not available in this build");
}
