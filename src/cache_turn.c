/* SPDX-License-Identifier: MIT */
/* Keys of a cache turned in place: their checks, and runs of slots for the rotation kernels. */
#include "cache_turn.h"

#include "error.h"

enum { CHUNK_PAIRS = 256, CHUNK_FLOATS = POSENC_TURN_CHANNELS }; /* of rows on the stack */

int32_t posenc_turn_named(int32_t status, const char *name, posenc_error *error)
{
    if (!status || !error)
        return status;
    const posenc_error unnamed = *error;
    return posenc_fail(error, status, "%s: %s", name, unnamed.text);
}

/* A ring has a slot for two keys that are slots - keep apart: one call would turn it twice. */
static int32_t check_ring(const struct posenc_turn *turn, posenc_error *error)
{
    const posenc_cache *c = &turn->map.cache;
    if (c->kind != POSENC_CACHE_RING || turn->count <= 0 || turn->sequences == 0)
        return POSENC_OK;
    const int64_t late = turn->first > c->keep ? turn->first : c->keep;
    const int64_t room = turn->map.capacity - c->keep;
    if (turn->first + turn->count - late <= room)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_POSITION,
                       "cache: the keys from %d on, %d of them: a RING of %d slots that keeps %d "
                       "has %d others at once",
                       turn->first, turn->count, turn->map.capacity, c->keep, room);
}

static int32_t check_keys(struct posenc_turn *turn, posenc_error *error)
{
    int32_t status = POSENC_OK;
    if (turn->sequence < -1 || turn->sequence >= turn->map.sequences)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "sequence is %d: must be -1..%d",
                           turn->sequence, turn->map.sequences - 1);
    if (turn->count < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "count is %d: must be >= 0", turn->count);
    turn->sequences = turn->sequence < 0 ? turn->map.sequences : 1;
    turn->sequence = turn->sequence < 0 ? 0 : turn->sequence;
    for (int64_t b = 0; !status && b < posenc_cache_unlike(&turn->map, turn->sequences); b++)
        status = posenc_cache_keys_check(&turn->map, turn->sequence + b, turn->first, turn->count,
                                         error);
    if (!status)
        status = check_ring(turn, error);
    /* Then there is nothing to turn and no position to read. */
    if (turn->map.heads == 0 || turn->count == 0)
        turn->count = turn->sequences = 0;
    return status ? status
                  : posenc_cache_pages_once(&turn->map, turn->sequence, turn->sequences,
                                            turn->first, turn->count, error);
}

int32_t posenc_turn_check(struct posenc_turn *turn, const posenc_plan *plan, const char *plan_name,
                          const posenc_cache *cache, int64_t sequence, int64_t first, int64_t count,
                          posenc_error *error)
{
    *turn = (struct posenc_turn){
        .plan = plan, .sequence = sequence, .first = first, .count = count};
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given", plan_name);
    int32_t status = posenc_cache_read(&turn->map, cache, "cache", error);
    if (!status)
        status = posenc_cache_writable(&turn->map, error);
    if (!status && turn->map.channels != plan->head_dim && turn->map.channels != plan->rotary_dim)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "cache.rows.shape[3] is %d: must be the head_dim (%d) or rotary_dim "
                             "(%d) of %s",
                             turn->map.channels, (int64_t)plan->head_dim,
                             (int64_t)plan->rotary_dim, plan_name);
    if (!status && turn->map.groups && turn->map.channels > POSENC_TURN_CHANNELS)
        status = posenc_fail(error, POSENC_ERROR_UNSUPPORTED,
                             "cache.rows.shape[3] is %d: must be %d at most of POSENC_I8",
                             turn->map.channels, (int64_t)POSENC_TURN_CHANNELS);
    if (!status)
        status = posenc_cache_header_check(&turn->map, plan, plan_name, error);
    return status ? status : check_keys(turn, error);
}

int32_t posenc_turn_apart(const struct posenc_turn *turn, const posenc_positions *positions,
                          posenc_error *error)
{
    int32_t status = posenc_positions_apart(positions, turn->sequences, turn->count,
                                            &turn->map.rows, error);
    if (!status && turn->map.groups)
        status = posenc_positions_apart(positions, turn->sequences, turn->count, &turn->map.scales,
                                        error);
    return status;
}

/* The first channel of a head that turns, of the pairs from `first` on. */
static int64_t channel_of(const struct posenc_turn *turn, size_t first)
{
    const int adjacent = turn->plan->out_layout == POSENC_ADJACENT;
    return posenc_turn_window(turn) + (int64_t)first * (adjacent ? 2 : 1);
}

/* What kernels need to know whatever the keys. */
static struct posenc_rotate_job job_of(const struct posenc_turn *turn)
{
    const posenc_tensor *rows = &turn->map.cache.rows;
    const ptrdiff_t size = (ptrdiff_t)posenc_dtype_size(rows->dtype);
    struct posenc_rotate_job job = {.partner = (size_t)turn->plan->pairs, .sides = 1};
    job.side[0].heads = (size_t)turn->map.heads;
    job.side[0].src_token = job.side[0].dst_token = posenc_step(rows, 1) * size;
    job.side[0].src_head = job.side[0].dst_head = posenc_step(rows, 2) * size;
    const int64_t heads = turn->sequences * turn->count * turn->map.heads;
    job.ahead = posenc_asks_ahead(heads * turn->plan->rotary_dim * size);
    return job;
}

/* Tokens [token, token + tokens) of a sequence, by a row each, or by one for all of them. */
static void turn_tokens(const struct posenc_turn *turn, struct posenc_rotate_job *job, int64_t b,
                        int64_t token, int64_t tokens, const struct posenc_rows_target *rows)
{
    const int32_t dtype = turn->map.cache.rows.dtype, layout = turn->plan->out_layout;
    posenc_rotate_kernel *kernel = turn->plan->kernels->rotate[layout - 1][dtype - 1][dtype - 1];
    const int64_t sequence = turn->sequence + b, channel = channel_of(turn, rows->first);
    const float *cos = rows->cos, *sin = rows->sin;
    while (tokens > 0) {
        const int64_t key = turn->first + token;
        const int64_t run = posenc_cache_run(&turn->map, sequence, key);
        const int64_t now = run < tokens ? run : tokens;
        const struct posenc_cache_slot slot = posenc_cache_slot_of(&turn->map, sequence, key);
        job->side[0].src = job->side[0].dst =
            posenc_cache_row(&turn->map, slot, 0) + channel * posenc_dtype_size(dtype);
        job->cos = cos;
        job->sin = sin;
        job->row_stride = turn->one_row ? 0 : rows->stride;
        job->tokens = (size_t)now;
        job->pairs = rows->count;
        kernel(job);
        cos += now * job->row_stride;
        sin += now * job->row_stride;
        token += now;
        tokens -= now;
    }
}

static void turn_any(const struct posenc_turn *turn, struct posenc_rotate_job *job, int64_t b,
                     int64_t token, int64_t tokens, const struct posenc_rows_target *rows)
{
    if (turn->map.groups)
        posenc_turn_int8(turn, b, token, tokens, rows);
    else
        turn_tokens(turn, job, b, token, tokens, rows);
}

/* Tokens [token, token + tokens) of a sequence, but for those that stay as they are. */
static void turn_stretch(const struct posenc_turn *turn, struct posenc_rotate_job *job, int64_t b,
                         int64_t token, int64_t tokens, const struct posenc_rows_target *rows)
{
    uint8_t stays[POSENC_TURN_TOKENS];
    struct posenc_rows_target at = *rows;
    turn->rows(turn, b, token, (size_t)tokens, rows, stays);
    for (int64_t t = 0, end; t < tokens; t = end) {
        for (end = t + 1; end < tokens && stays[end] == stays[t]; end++)
            ;
        if (stays[t])
            continue;
        at.cos = (float *)rows->cos + t * rows->stride;
        at.sin = (float *)rows->sin + t * rows->stride;
        turn_any(turn, job, b, token + t, end - t, &at);
    }
}

/* One row for all keys of a sequence. */
static void turn_by_one(const struct posenc_turn *turn, struct posenc_rotate_job *job, int64_t b,
                        const struct posenc_rows_target *row)
{
    uint8_t stays;
    turn->rows(turn, b, 0, 1, row, &stays);
    if (!stays)
        turn_any(turn, job, b, 0, turn->count, row);
}

/* Some pairs of all keys of a sequence, in stretches whose rows fit the stack. */
static void turn_pairs(const struct posenc_turn *turn, struct posenc_rotate_job *job, int64_t b,
                       size_t first, size_t count)
{
    float scratch[CHUNK_FLOATS];
    const int64_t fits = CHUNK_FLOATS / (int64_t)(2 * count);
    const int64_t most = fits < POSENC_TURN_TOKENS ? fits : POSENC_TURN_TOKENS;
    const struct posenc_rows_target to = {
        .cos = scratch,
        .sin = scratch + count,
        .dtype = POSENC_F32,
        .stride = (ptrdiff_t)(2 * count),
        .first = first,
        .count = count,
    };
    if (turn->one_row) {
        turn_by_one(turn, job, b, &to);
        return;
    }
    for (int64_t t = 0; t < turn->count; t += most) {
        const int64_t left = turn->count - t;
        turn_stretch(turn, job, b, t, left < most ? left : most, &to);
    }
}

void posenc_turn_keys(const struct posenc_turn *turn)
{
    const size_t pairs = (size_t)turn->plan->pairs;
    /* Heads of I8 are computed whole, since their channels share scales. */
    const size_t most = turn->map.groups ? pairs : CHUNK_PAIRS;
    if (turn->count == 0)
        return;
    struct posenc_rotate_job job = job_of(turn);
    for (int64_t b = 0; b < turn->sequences; b++)
        for (size_t first = 0; first < pairs; first += most) {
            const size_t left = pairs - first;
            turn_pairs(turn, &job, b, first, left < most ? left : most);
        }
}
