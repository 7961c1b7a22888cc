/* SPDX-License-Identifier: MIT */
/* Sequences of an attention call: batch rows or packed ones, and where their tokens stand. */
#include "attention_check.h"
#include "error.h"

struct posenc_attention_sequence
posenc_attention_sequence_of(const struct posenc_attention_job *job, int64_t sequence)
{
    const posenc_attention_params *p = &job->params;
    struct posenc_attention_sequence s = {
        .batch = sequence, .queries = job->q->shape[1], .keys = job->capacity};
    if (p->sequences) {
        s.batch = 0;
        s.first_query = p->query_starts[sequence];
        s.queries = p->query_starts[sequence + 1] - s.first_query;
    }
    if (p->sequences && !job->k_map) {
        s.first_stored = p->key_starts[sequence];
        s.keys = p->key_starts[sequence + 1] - s.first_stored;
    }
    if (p->key_counts)
        s.keys = p->key_counts[sequence];
    s.first_key = p->first_keys ? p->first_keys[sequence] : p->first_key;
    s.key_batch = s.batch;
    if (job->k_map) {
        s.key_batch = sequence;
        s.first_key = posenc_cache_first(job->k_map, sequence);
    }
    s.oldest = s.first_key;
    if (job->k_map && job->k_map->cache.kind == POSENC_CACHE_RING) {
        int64_t lost = s.keys - (job->capacity - job->k_map->cache.keep);
        s.oldest = lost > 0 ? lost : 0;
    }
    s.place = s.first_key;
    if (p->align == POSENC_ALIGN_BOTTOM_RIGHT)
        s.place += s.keys - s.queries;
    else if (p->align == POSENC_ALIGN_OFFSET)
        s.place = p->query_offsets ? p->query_offsets[sequence] : p->query_offset;
    return s;
}

/* Starts of packed sequences: from 0 to `end`, never falling. */
static int32_t check_starts(const int64_t *starts, int64_t count, int64_t end, const char *name,
                            posenc_error *error)
{
    for (int64_t s = 0; s <= count; s++) {
        int64_t least = s ? starts[s - 1] : 0, most = s ? end : 0;
        if (s == count)
            least = end;
        if (starts[s] < least || starts[s] > most)
            return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                               least == most ? "params.%s[%d] is %d: must be %d"
                                             : "params.%s[%d] is %d: must be %d..%d",
                               name, s, starts[s], least, most);
    }
    return POSENC_OK;
}

static int32_t check_packing(const struct posenc_attention_job *job,
                             struct posenc_attention_memory *memory, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    const size_t count = (size_t)p->sequences + 1, size = sizeof(int64_t);
    const int own = !job->k_map; /* caches have their own sequences */
    if (job->q->shape[0] != 1)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "q.shape[0] is %d with params.sequences %d: packed sequences share "
                           "batch row 0",
                           job->q->shape[0], p->sequences);
    int32_t status = posenc_array_check(&memory->array[memory->arrays++], p->query_starts, count,
                                        size, "params.query_starts", error);
    if (!status && own)
        status = posenc_array_check(&memory->array[memory->arrays++], p->key_starts, count, size,
                                    "params.key_starts", error);
    if (!status)
        status = check_starts(p->query_starts, p->sequences, job->q->shape[1], "query_starts",
                              error);
    if (!status && own)
        status = check_starts(p->key_starts, p->sequences, job->capacity, "key_starts", error);
    return status;
}

static int32_t check_each(const struct posenc_attention_job *job,
                          struct posenc_attention_memory *memory, const int64_t *values,
                          int64_t least, int64_t most, const char *name, posenc_error *error)
{
    if (!values)
        return POSENC_OK;
    int32_t status = posenc_array_check(&memory->array[memory->arrays++], values,
                                        (size_t)job->sequences, sizeof(*values), name, error);
    for (int64_t s = 0; !status && s < job->sequences; s++)
        if (values[s] < least || values[s] > most)
            status = posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s[%d] is %d: must be %d..%d",
                                 name, s, values[s], least, most);
    return status;
}

/* Stored keys that a sequence has, in a ring those that were overwritten too. */
static int64_t most_keys(const struct posenc_attention_job *job, int64_t sequence)
{
    const posenc_attention_params *p = &job->params;
    if (job->k_map)
        return job->k_map->cache.kind == POSENC_CACHE_RING ? posenc_farthest : job->capacity;
    return p->sequences ? p->key_starts[sequence + 1] - p->key_starts[sequence] : job->capacity;
}

/* One sequence by itself. Distances of relative terms must fit int32. Where there are no heads,
 * tokens may be so many that places overflow; no row stands at them. */
static int32_t check_sequence(const struct posenc_attention_job *job, int64_t sequence,
                              posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    const int64_t limit = INT64_C(1) << 30;
    int64_t stored = most_keys(job, sequence);
    if (p->key_counts && p->key_counts[sequence] > stored)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.key_counts[%d] is %d: must be 0..%d", sequence,
                           p->key_counts[sequence], stored);
    if (!job->heads || (!p->alibi && !p->t5 && !p->deberta))
        return POSENC_OK;
    const struct posenc_attention_sequence s = posenc_attention_sequence_of(job, sequence);
    if (s.first_key + s.keys > limit || s.place < -limit || s.place + s.queries > limit)
        return posenc_fail(error, POSENC_ERROR_POSITION,
                           "sequence %d has keys up to %d and queries from %d on to %d: relative "
                           "terms need all within -2^30..2^30",
                           sequence, s.first_key + s.keys, s.place, s.place + s.queries);
    return POSENC_OK;
}

int32_t posenc_attention_sequences_check(struct posenc_attention_job *job,
                                         struct posenc_attention_memory *memory,
                                         posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    int32_t status = p->sequences ? check_packing(job, memory, error) : POSENC_OK;
    job->sequences = p->sequences ? p->sequences : job->q->shape[0];
    if (!status)
        status = check_each(job, memory, p->query_offsets, -posenc_farthest,
                            posenc_farthest, "params.query_offsets", error);
    if (!status)
        status = check_each(job, memory, p->first_keys, 0, posenc_farthest, "params.first_keys",
                            error);
    if (!status)
        status = check_each(job, memory, p->key_counts, 0,
                            job->k_map ? posenc_farthest : job->capacity, "params.key_counts",
                            error);
    /* Batch rows that no array tells apart are alike; empty tensors may have any number of them. */
    int differ = p->sequences || p->query_offsets || p->first_keys || p->key_counts ||
                 (job->k_map && job->k_map->cache.first_keys);
    int64_t checked = differ || job->sequences < 1 ? job->sequences : 1;
    for (int64_t s = 0; !status && s < checked; s++)
        status = check_sequence(job, s, error);
    return status;
}
