/* SPDX-License-Identifier: MIT */
/* Buckets and index maps of disentangled attention: DeBERTa. */
#include "bias.h"
#include "error.h"
#include "relative.h"

/* A map in the making. */
struct deberta_map {
    const struct posenc_deberta *deberta;
    int32_t sign; /* of the bucket of query - key in the map */
};

static int32_t check_buckets(int32_t buckets, int64_t max_distance, posenc_error *error)
{
    int32_t middle = buckets / 2;
    if (buckets < 0 || buckets == 1 || buckets > 65536)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "buckets is %d: must be 0 or 2..65536",
                           (int64_t)buckets);
    if (buckets == 0)
        return POSENC_OK;
    if (max_distance < middle + 2 || max_distance > INT64_C(1) << 53)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "max_distance is %d: must be at least buckets/2 + 2 (%d) and at most "
                           "2^53",
                           max_distance, (int64_t)middle + 2);
    double end = posenc_log_scale_end(middle, max_distance - 1, middle - 1, UINT32_C(1) << 31);
    if (middle > 1 && middle + end > INT32_MAX)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "max_distance is %d: so near to buckets/2 (%d) that the buckets of "
                           "distances do not fit int32",
                           max_distance, (int64_t)middle);
    return POSENC_OK;
}

/*
 * The bucket mid + k + 1 is that of d with (d/mid)^(mid-1) > ((max_distance-1)/mid)^k, up to
 * `most`. Where mid is 1 the exponent is 0, and so is every logarithm's part.
 */
static void make_scale(struct posenc_deberta *d, int32_t buckets, int64_t max_distance,
                       int64_t most)
{
    d->buckets = buckets;
    d->middle = buckets / 2;
    if (d->middle > 1)
        posenc_log_scale_init(&d->scale, d->middle, max_distance - 1, d->middle - 1,
                              most, 1);
}

static int64_t bucket_of(const struct posenc_deberta *d, int64_t relative)
{
    int64_t distance = relative < 0 ? -relative : relative, bucket = d->middle;
    if (d->buckets == 0 || distance < d->middle)
        return relative;
    if (d->middle > 1)
        bucket += posenc_log_scale_reached(&d->scale, (uint32_t)distance) + 1;
    return relative < 0 ? -bucket : bucket;
}

/* Beyond mid + k + 1 = span + 1 every index is at an end. */
void posenc_deberta_init(struct posenc_deberta *d, int32_t buckets, int64_t max_distance)
{
    d->span = buckets ? buckets : max_distance;
    make_scale(d, buckets, max_distance, d->span - buckets / 2);
}

int64_t posenc_deberta_index(const struct posenc_deberta *d, int64_t distance, int32_t sign)
{
    int64_t at = sign * bucket_of(d, distance) + d->span;
    at = at < 0 ? 0 : at;
    return at < 2 * d->span ? at : 2 * d->span - 1;
}

int32_t posenc_deberta_buckets(int32_t buckets, int64_t max_distance, const int32_t *relative,
                               size_t count, int32_t *out, posenc_error *error)
{
    struct posenc_deberta d;
    struct posenc_array arrays[2];
    uint32_t farthest = 1;
    int32_t status = check_buckets(buckets, max_distance, error);
    if (!status)
        status = posenc_array_check(&arrays[0], out, count, 4, "out", error);
    if (!status)
        status = posenc_array_check(&arrays[1], relative, count, 4, "relative", error);
    if (!status)
        status = posenc_arrays_apart(arrays, 1, 2, error);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        uint32_t distance = relative[i] < 0 ? 0 - (uint32_t)relative[i] : (uint32_t)relative[i];
        farthest = distance > farthest ? distance : farthest;
    }
    int64_t most = 0;
    if (buckets > 3 && farthest > (uint32_t)buckets / 2)
        most = (int64_t)posenc_log_scale_end(buckets / 2, max_distance - 1, buckets / 2 - 1,
                                             farthest);
    make_scale(&d, buckets, max_distance, most);
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)bucket_of(&d, relative[i]);
    return POSENC_OK;
}

static void no_tile(void *self, const struct posenc_bias_tile *tile)
{
    (void)self;
    (void)tile;
}

/* Elements of a line are key - query; the buckets count query - key. */
static void make_line(void *self, const struct posenc_bias_tile *tile, int64_t head, void *line)
{
    const struct deberta_map *map = self;
    int32_t *index = line;
    (void)head;
    for (size_t i = 0; i < tile->length; i++)
        index[i] = (int32_t)posenc_deberta_index(map->deberta, -(tile->first + (int64_t)i),
                                                 map->sign);
}

static void fill_map(const struct posenc_deberta *d, int32_t sign, int64_t queries, int64_t keys,
                     int64_t query_offset, int32_t *out)
{
    struct deberta_map map = {d, sign};
    const struct posenc_bias_source source = {
        &map, posenc_kernels_get(POSENC_ISA_DEFAULT), 0, NULL, no_tile, make_line};
    posenc_tensor view;
    /* Elements of 4 bytes are copied as they are; their dtype is not looked at. */
    posenc_tensor_contiguous(&view, out, POSENC_F32, 1, queries, 1, keys);
    if (out)
        posenc_bias_fill(&source, &view, query_offset, 0);
}

static int32_t check_maps(int64_t queries, int64_t keys, int64_t query_offset, int32_t *c2p,
                          int32_t *p2c, posenc_error *error)
{
    struct posenc_array arrays[2];
    int count = 0;
    if (queries < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "queries is %d: must be >= 0", queries);
    if (keys < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "keys is %d: must be >= 0", keys);
    int32_t status = posenc_bias_distances(queries, keys, query_offset, error);
    uint64_t elements = (uint64_t)queries * (uint64_t)keys;
    size_t size = elements > SIZE_MAX ? SIZE_MAX : (size_t)elements;
    if (!status && c2p)
        status = posenc_array_check(&arrays[count++], c2p, size, 4, "c2p", error);
    if (!status && p2c)
        status = posenc_array_check(&arrays[count++], p2c, size, 4, "p2c", error);
    if (!status)
        status = posenc_arrays_apart(arrays, count, count, error);
    return status;
}

int32_t posenc_deberta_maps(int32_t buckets, int64_t max_distance, int64_t queries, int64_t keys,
                            int64_t query_offset, int32_t *c2p, int32_t *p2c, posenc_error *error)
{
    struct posenc_deberta d;
    int32_t status = check_buckets(buckets, max_distance, error);
    if (!status && !buckets && (max_distance < 1 || max_distance > INT64_C(1) << 30))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "max_distance is %d: must be 1..2^30 without buckets", max_distance);
    if (!status)
        status = check_maps(queries, keys, query_offset, c2p, p2c, error);
    if (status || queries == 0 || keys == 0)
        return status;
    posenc_deberta_init(&d, buckets, max_distance);
    fill_map(&d, 1, queries, keys, query_offset, c2p);
    fill_map(&d, -1, queries, keys, query_offset, p2c);
    return POSENC_OK;
}
