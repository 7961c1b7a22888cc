/* SPDX-License-Identifier: MIT */
/* Attention over caches: what is checked of them beyond plain tensors. */
#include "attention_check.h"
#include "error.h"

/* Every number that both caches have: they differ in where their rows lie, and in channels. */
static int32_t check_alike(const struct posenc_cache_map *k, const struct posenc_cache_map *v,
                           posenc_error *error)
{
    const struct { const char *name; int64_t of_k, of_v; } both[] = {
        {"kind", k->cache.kind, v->cache.kind},
        {"rows.shape[1]", k->cache.rows.shape[1], v->cache.rows.shape[1]},
        {"rows.shape[2]", k->heads, v->heads},
        {"keep", k->cache.keep, v->cache.keep},
        {k->cache.kind == POSENC_CACHE_PAGED ? "sequences" : "rows.shape[0]", k->sequences,
         v->sequences},
        {"sequence_pages", k->cache.sequence_pages, v->cache.sequence_pages},
    };
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++)
        if (both[i].of_k != both[i].of_v)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "v.%s is %d: must be that of k, %d", both[i].name, both[i].of_v,
                               both[i].of_k);
    /* Without arrays all sequences are alike; caches without heads may have any number of them. */
    int differ = k->cache.first_keys || v->cache.first_keys || k->cache.turns || v->cache.turns;
    int64_t checked = differ || k->sequences < 1 ? k->sequences : 1;
    for (int64_t s = 0; s < checked; s++) {
        int64_t of_k = posenc_cache_first(k, s), of_v = posenc_cache_first(v, s);
        if (of_k != of_v)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "v: the first key of sequence %d is %d: must be that of k, %d", s,
                               of_v, of_k);
        of_k = k->cache.turns ? k->cache.turns[s] : 0;
        of_v = v->cache.turns ? v->cache.turns[s] : 0;
        if (of_k != of_v)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               "v: the turn of sequence %d is %d: must be that of k, %d", s, of_v,
                               of_k);
    }
    return POSENC_OK;
}

static int32_t check_cache(const struct posenc_cache_map *map,
                           struct posenc_attention_memory *memory, posenc_error *error)
{
    memory->in[memory->ins++] = map->rows;
    if (map->groups)
        memory->in[memory->ins++] = map->scales;
    for (int i = 0; i < map->arrays; i++)
        memory->array[memory->arrays++] = map->array[i];
    if (map->cache.header)
        memory->array[memory->arrays++] = (struct posenc_array){
            "header", (uintptr_t)map->cache.header, (uintptr_t)(map->cache.header + 1)};
    if (map->channels > POSENC_ATTENTION_CHANNELS)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "%s.rows.shape[3] is %d: must be 1..%d", map->name, map->channels,
                           (int64_t)POSENC_ATTENTION_CHANNELS);
    return POSENC_OK;
}

/* What a cache knows by itself, or has no word for. */
static int32_t check_params(struct posenc_attention_job *job, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    const posenc_cache *k = &job->k_map->cache;
    if (p->first_key)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.first_key is %d: must be 0, caches have their own",
                           p->first_key);
    if (p->first_keys || p->key_starts)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.%s is given: must be NULL, caches have their own",
                           p->first_keys ? "first_keys" : "key_starts");
    if (k->kind == POSENC_CACHE_RING && p->keep && p->keep != k->keep)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.keep is %d: must be 0 or that of the ring, %d", p->keep,
                           k->keep);
    if (k->kind == POSENC_CACHE_RING)
        job->keep = k->keep;
    return POSENC_OK;
}

/* 1 if a header says that its rows were rotated by some plan. */
static int is_rotated(const struct posenc_cache_map *map)
{
    return posenc_cache_header_check(map, NULL, "", NULL) != POSENC_OK;
}

/* What headers say against the rotation that params ask for. Rows that keys and values share
 * (latent attention), or a header that they share, speak of keys. */
static int32_t check_headers(const struct posenc_attention_job *job, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    const struct posenc_cache_map *k = job->k_map, *v = job->v_map;
    if (p->key_rows && !p->rotate_from && is_rotated(k))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "k.header: its keys are rotated and params.key_rows is given: must be "
                           "keys that are not");
    /* Spans leave output_rows to the join. */
    const int asked = p->key_rows ? is_rotated(k)
                                  : p->query_rows || (p->rope && !p->output_rows && !job->state);
    int32_t status =
        asked ? posenc_cache_header_check(k, p->rope, "params.rope", error) : POSENC_OK;
    if (!status && is_rotated(v) && !p->output_rows && v->cache.header != k->cache.header &&
        !posenc_disjoint_check(&k->rows, &v->rows, NULL))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "v.header: its rows are rotated: must be values that are not, or "
                             "params.output_rows given");
    return status;
}

int32_t posenc_attention_caches_check(struct posenc_attention_job *job,
                                      struct posenc_attention_memory *memory, posenc_error *error)
{
    const struct posenc_cache_map *k = job->k_map, *v = job->v_map;
    const int64_t sequences = job->params.sequences;
    job->capacity = k->capacity;
    int32_t status = check_cache(k, memory, error);
    if (!status)
        status = check_cache(v, memory, error);
    if (!status)
        status = check_alike(k, v, error);
    if (!status && k->channels != job->q->shape[3])
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "k.rows.shape[3] is %d: must be that of q, %d", k->channels,
                             job->q->shape[3]);
    if (!status && k->sequences != (sequences ? sequences : job->q->shape[0]))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             sequences ? "k has %d sequences: must be params.sequences, %d"
                                       : "k has %d sequences: must be those of q, %d",
                             k->sequences, sequences ? sequences : job->q->shape[0]);
    if (!status)
        status = check_params(job, error);
    return status ? status : check_headers(job, error);
}

/* The keys of a range that are stored; entries of others are not read. */
static int32_t check_range(const struct posenc_cache_map *map, int64_t sequence,
                           struct posenc_attention_range range, posenc_error *error)
{
    int32_t status = POSENC_OK;
    if (range.begin < range.gap)
        status = posenc_cache_keys_check(map, sequence, range.begin, range.gap - range.begin,
                                         error);
    if (!status && range.resume < range.end)
        status = posenc_cache_keys_check(map, sequence, range.resume, range.end - range.resume,
                                         error);
    return status;
}

int32_t posenc_attention_slots_check(const struct posenc_attention_job *job, posenc_error *error)
{
    int32_t status = POSENC_OK;
    if (posenc_tensor_is_empty(job->q))
        return POSENC_OK;
    if (job->k_map->cache.kind != POSENC_CACHE_CONTIGUOUS && !job->params.key_counts)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.key_counts is NULL: must be given with k.kind %d, whose slots "
                           "are not the keys in use",
                           (int64_t)job->k_map->cache.kind);
    for (int64_t n = 0; !status && n < job->sequences; n++) {
        const struct posenc_attention_sequence s = posenc_attention_sequence_of(job, n);
        if (!s.queries)
            continue;
        const struct posenc_attention_range range =
            posenc_attention_summed(job, &s, 0, s.queries);
        status = check_range(job->k_map, n, range, error);
        if (!status)
            status = check_range(job->v_map, n, range, error);
    }
    return status;
}

static int32_t read_caches(struct posenc_cache_map maps[2], const posenc_cache *k,
                           const posenc_cache *v, struct posenc_attention_job *job,
                           posenc_error *error)
{
    int32_t status = posenc_cache_read(&maps[0], k, "k", error);
    if (!status)
        status = posenc_cache_read(&maps[1], v, "v", error);
    job->k_map = &maps[0];
    job->v_map = &maps[1];
    job->k = &maps[0].cache.rows;
    job->v = &maps[1].cache.rows;
    return status;
}

int32_t posenc_attention_cached(const posenc_attention_params *params, const posenc_tensor *q,
                                const posenc_cache *k, const posenc_cache *v,
                                const posenc_tensor *out, posenc_error *error)
{
    struct posenc_cache_map maps[2];
    struct posenc_attention_job job = {.q = q, .out = out};
    int32_t status = read_caches(maps, k, v, &job, error);
    return status ? status : posenc_attention_to_out(&job, params, error);
}

int32_t posenc_attention_cached_spans(const posenc_attention_params *params, const posenc_tensor *q,
                                      const posenc_cache *k, const posenc_cache *v,
                                      int64_t first_span, const posenc_tensor *state,
                                      posenc_error *error)
{
    struct posenc_cache_map maps[2];
    struct posenc_attention_job job = {.q = q, .state = state};
    int32_t status = read_caches(maps, k, v, &job, error);
    return status ? status : posenc_attention_to_state(&job, params, first_span, error);
}
