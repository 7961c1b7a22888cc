/* SPDX-License-Identifier: MIT */
/* Biases by relative buckets: T5. */
#include "relative.h"


#include "bias.h"
#include "error.h"
#include "float16.h"
#include "kernels.h"
#include "structs.h"

/* Checked parameters, and where buckets begin. */
struct t5 {
    posenc_t5_params params;
    const struct posenc_kernels *kernels;
    struct posenc_t5 by;
};

/* A bias in the making: a tile's line as runs of one bucket each, the same for all heads. */
struct t5_bias {
    struct t5 t5;
    const posenc_tensor *table, *bias;
    size_t runs;
    struct run {
        int32_t bucket, length;
    } run[POSENC_BIAS_LINE];
};

void posenc_t5_params_init(posenc_t5_params *params)
{
    *params = (posenc_t5_params){
        .struct_size = sizeof(*params),
        .num_buckets = 32,
        .max_distance = 128,
        .bidirectional = 1,
    };
}

static int32_t check_buckets(const posenc_t5_params *p, posenc_error *error)
{
    int32_t least = p->bidirectional ? 4 : 2, exact = p->num_buckets / least;
    if (p->num_buckets < least || p->num_buckets > 65536 ||
        (p->bidirectional && p->num_buckets % 2))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           p->bidirectional
                               ? "params.num_buckets is %d: must be even and 4..65536"
                               : "params.num_buckets is %d: must be 2..65536",
                           (int64_t)p->num_buckets);
    if (p->max_distance <= exact || p->max_distance > INT64_C(1) << 53)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.max_distance is %d: must be above the exact range (%d) and at "
                           "most 2^53",
                           p->max_distance, (int64_t)exact);
    return POSENC_OK;
}

/* Reads and checks the parameters. */
static int32_t read_params(struct t5 *t, const posenc_t5_params *params, posenc_error *error)
{
    posenc_t5_params *p = &t->params;
    int32_t status = posenc_struct_read(p, sizeof(*p), sizeof(*p), params, "params", error);
    if (!status)
        status = posenc_flag_check(p->bidirectional, "params.bidirectional", error);
    if (!status)
        status = posenc_flag_check(p->causal, "params.causal", error);
    if (!status && p->reserved)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.reserved is %d: must be 0",
                             (int64_t)p->reserved);
    if (!status)
        status = check_buckets(p, error);
    if (!status)
        status = posenc_kernels_choose(&t->kernels, p->isa, "params.isa", error);
    return status;
}

/* The bound of bucket e + k is the least d with (d/e)^(n-e) >= (max_distance/e)^k. */
void posenc_t5_init(struct posenc_t5 *t, const posenc_t5_params *params)
{
    t->bidirectional = params->bidirectional;
    t->side = params->bidirectional ? params->num_buckets / 2 : params->num_buckets;
    t->exact = t->side / 2;
    int32_t steps = t->side - t->exact;
    posenc_log_scale_init(&t->scale, t->exact, params->max_distance, steps, steps - 1, 0);
}

/* The bucket of a distance >= 0 within its direction. */
static int32_t bucket_of(const struct posenc_t5 *t, int64_t distance)
{
    if (distance < t->exact)
        return (int32_t)distance;
    return t->exact + (int32_t)posenc_log_scale_reached(&t->scale, (uint32_t)distance);
}

int32_t posenc_t5_bucket(const struct posenc_t5 *t, int64_t relative)
{
    if (relative <= 0)
        return bucket_of(t, -relative);
    return t->bidirectional ? t->side + bucket_of(t, relative) : 0;
}

int32_t posenc_t5_buckets(const posenc_t5_params *params, const int32_t *relative, size_t count,
                          int32_t *buckets, posenc_error *error)
{
    struct t5 t;
    struct posenc_array arrays[2];
    int32_t status = read_params(&t, params, error);
    if (!status)
        status = posenc_array_check(&arrays[0], buckets, count, 4, "buckets", error);
    if (!status)
        status = posenc_array_check(&arrays[1], relative, count, 4, "relative", error);
    if (!status)
        status = posenc_arrays_apart(arrays, 1, 2, error);
    if (status || count == 0)
        return status;
    posenc_t5_init(&t.by, &t.params);
    for (size_t i = 0; i < count; i++)
        buckets[i] = posenc_t5_bucket(&t.by, relative[i]);
    return POSENC_OK;
}

/* The last relative distance, from this one on, of the same bucket. */
static int64_t last_of_bucket(const struct posenc_t5 *t, int64_t relative, int32_t bucket)
{
    int32_t within = bucket % t->side, k = within - t->exact;
    if (relative <= 0)
        return k < 0 ? relative : -(int64_t)posenc_log_scale_from(&t->scale, k);
    if (!t->bidirectional || within == t->side - 1)
        return INT64_MAX;
    return k + 1 < 0 ? relative : (int64_t)posenc_log_scale_from(&t->scale, k + 1) - 1;
}

static void next_tile(void *self, const struct posenc_bias_tile *tile)
{
    struct t5_bias *b = self;
    int64_t last = tile->first + (int64_t)tile->length - 1;
    b->runs = 0;
    for (int64_t relative = tile->first; relative <= last;) {
        int32_t bucket = posenc_t5_bucket(&b->t5.by, relative);
        int64_t end = last_of_bucket(&b->t5.by, relative, bucket);
        end = end < last ? end : last;
        b->run[b->runs++] = (struct run){bucket, (int32_t)(end - relative + 1)};
        relative = end + 1;
    }
}

/* An element of the table as bits of another dtype: widened exactly, rounded once. */
static uint32_t convert(const void *element, int32_t from, int32_t to)
{
    uint32_t word = 0;
    uint16_t half;
    if (from == POSENC_F32) {
        memcpy(&word, element, sizeof(word));
    } else {
        memcpy(&half, element, sizeof(half));
        if (from == to)
            return half;
        word = posenc_bits32(from == POSENC_F16 ? posenc_f16_to_f32(half)
                                                : posenc_bf16_to_f32(half));
    }
    if (to == POSENC_F32)
        return word;
    float value = posenc_float(word);
    return to == POSENC_F16 ? posenc_f32_to_f16(value) : posenc_f32_to_bf16(value);
}

/* A run in a line under way, which may be written up to 48 bytes past the end of the run: short
 * runs, the most, need few branches then. Returns the end. */
static char *put_run(char *to, size_t count, size_t size, uint32_t bits)
{
    enum { LONG = 512 };
    const uint64_t pair = size == 4 ? bits : (uint32_t)(bits | bits << 16);
    const uint64_t word = pair | pair << 32;
    const size_t bytes = count * size;
    if (bytes > LONG) {
        posenc_bias_repeat(to, count, size, bits);
        return to + bytes;
    }
    memcpy(to, &word, 8);
    memcpy(to + 8, &word, 8);
    for (size_t at = 16; at < bytes; at += 32) {
        memcpy(to + at, &word, 8);
        memcpy(to + at + 8, &word, 8);
        memcpy(to + at + 16, &word, 8);
        memcpy(to + at + 24, &word, 8);
    }
    return to + bytes;
}

static void make_line(void *self, const struct posenc_bias_tile *tile, int64_t head, void *line)
{
    const struct t5_bias *b = self;
    const char *column = (const char *)b->table->data;
    int64_t from = posenc_dtype_size(b->table->dtype);
    size_t size = (size_t)posenc_dtype_size(b->bias->dtype);
    char *to = line;
    (void)tile;
    for (size_t i = 0; i < b->runs; i++) {
        const char *element = column + (b->run[i].bucket * b->table->stride[1] + head) * from;
        uint32_t bits = convert(element, b->table->dtype, b->bias->dtype);
        to = put_run(to, (size_t)b->run[i].length, size, bits);
    }
}

/* Shapes of table [1][num_buckets][1][heads] and bias [..][queries][heads][keys]. */
static int32_t check_shapes(const posenc_t5_params *p, const posenc_tensor *table,
                            const posenc_tensor *bias, posenc_error *error)
{
    if (table->shape[0] != 1 || table->shape[1] != p->num_buckets || table->shape[2] != 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "table.shape is [%d, %d, %d, %d]: must be [1, num_buckets (%d), 1, "
                           "heads]",
                           table->shape[0], table->shape[1], table->shape[2], table->shape[3],
                           (int64_t)p->num_buckets);
    if (bias->shape[2] != table->shape[3])
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "bias.shape[2] is %d: must be the heads of table (%d)", bias->shape[2],
                           table->shape[3]);
    return posenc_bias_distances(bias->shape[1], bias->shape[3], p->query_offset, error);
}

int32_t posenc_t5_bias(const posenc_t5_params *params, const posenc_tensor *table,
                       const posenc_tensor *bias, posenc_error *error)
{
    struct t5_bias b;
    struct posenc_view in, out;
    int32_t status = read_params(&b.t5, params, error);
    if (!status)
        status = posenc_view_check(&in, table, "table", error);
    if (!status)
        status = posenc_view_check(&out, bias, "bias", error);
    if (!status)
        status = check_shapes(&b.t5.params, table, bias, error);
    if (!status)
        status = posenc_writable_check(&out, error);
    if (!status)
        status = posenc_disjoint_check(&out, &in, error);
    if (status || posenc_tensor_is_empty(bias))
        return status;
    posenc_t5_init(&b.t5.by, &b.t5.params);
    b.table = table;
    b.bias = bias;
    const struct posenc_bias_source source = {&b, b.t5.kernels, 0, NULL, next_tile, make_line};
    posenc_bias_fill(&source, bias, b.t5.params.query_offset, b.t5.params.causal);
    return POSENC_OK;
}
