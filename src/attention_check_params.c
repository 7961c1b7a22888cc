/* SPDX-License-Identifier: MIT */
/* What can be checked of attention's params by themselves. */
#include "attention_check.h"
#include "bias.h"
#include "error.h"
#include "structs.h"

#include <math.h>

/* Where the struct ended in its first form and in the second. */
enum {
    FIRST_SIZE = offsetof(posenc_attention_params, align),
    SECOND_SIZE = offsetof(posenc_attention_params, keep),
};

static int32_t check_choices(const posenc_attention_params *p, posenc_error *error)
{
    int32_t status = posenc_flag_check(p->causal, "params.causal", error);
    if (status)
        return status;
    if (p->reserved != 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.reserved is %d: must be 0",
                           (int64_t)p->reserved);
    if (p->align < POSENC_ALIGN_BOTTOM_RIGHT || p->align > POSENC_ALIGN_OFFSET)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.align is %d: must be a POSENC_ALIGN_* value",
                           (int64_t)p->align);
    if (p->head_map != POSENC_HEADS_GROUPED && p->head_map != POSENC_HEADS_INTERLEAVED)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.head_map is %d: must be a POSENC_HEADS_* value",
                           (int64_t)p->head_map);
    return POSENC_OK;
}

static int32_t check_window(int64_t keys, const char *name, posenc_error *error)
{
    if (keys >= 0)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is %d: must be > 0, or 0: no limit", name,
                       keys);
}

static int32_t check_places(const posenc_attention_params *p, posenc_error *error)
{
    int32_t status = check_window(p->window_left, "params.window_left", error);
    if (!status)
        status = check_window(p->window_right, "params.window_right", error);
    if (status)
        return status;
    if (p->align != POSENC_ALIGN_OFFSET && (p->query_offset || p->query_offsets))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.%s is given with align %d: only POSENC_ALIGN_OFFSET "
                           "(2) reads it",
                           p->query_offset ? "query_offset" : "query_offsets",
                           (int64_t)p->align);
    if (p->query_offset < -posenc_farthest || p->query_offset > posenc_farthest)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.query_offset is %d: must be within -2^53..2^53",
                           p->query_offset);
    if (p->chunk < 0 || p->chunk > posenc_farthest)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.chunk is %d: must be 0..2^53",
                           p->chunk);
    if (p->first_key < 0 || p->first_key > posenc_farthest)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.first_key is %d: must be 0..2^53", p->first_key);
    if (p->keep < 0 || p->keep > posenc_farthest)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.keep is %d: must be 0..2^53",
                           p->keep);
    if (p->sequences < 0)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "params.sequences is %d: must be >= 0",
                           p->sequences);
    if (!p->sequences && (p->query_starts || p->key_starts))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.%s is given with sequences 0: only packed calls have it",
                           p->query_starts ? "query_starts" : "key_starts");
    return POSENC_OK;
}

static int32_t check_scores(const posenc_attention_params *p, posenc_error *error)
{
    if (!(fabs(p->scale) <= FLT_MAX))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.scale is %g: must be finite and within the range of float",
                           p->scale);
    if (!(fabs(p->multiplier) <= FLT_MAX))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.multiplier is %g: must be finite and within the range of float",
                           p->multiplier);
    if (p->multiplier != 0 && !(fabs(p->scale * p->multiplier) <= FLT_MAX))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.scale x params.multiplier is %g: must be within the range of "
                           "float",
                           p->scale * p->multiplier);
    if (p->softcap != 0 && !(p->softcap >= FLT_MIN && p->softcap <= FLT_MAX))
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.softcap is %g: must be 0 or > 0 and within the range of float",
                           p->softcap);
    return POSENC_OK;
}

/* A check that speaks of its own arguments, as one of a member of params. */
static int32_t within(const char *name, int32_t status, posenc_error *error)
{
    if (!status || !error)
        return status;
    posenc_error inner = *error;
    return posenc_fail(error, status, "%s: %s", name, inner.text);
}

static int32_t not_both(const char *a, const char *b, posenc_error *error)
{
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "params.%s and params.%s are both given: must be one at most", a, b);
}

/* What posenc_alibi_bias and posenc_t5_bias are told, and attention has in its own params. */
static int32_t check_unused(int64_t query_offset, int32_t causal, int32_t isa, const char *name,
                            posenc_error *error)
{
    if (!query_offset && !causal && !isa)
        return POSENC_OK;
    return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                       "%s has query_offset %d, causal %d, isa %d: must be 0, attention has its "
                       "own",
                       name, query_offset, (int64_t)causal, (int64_t)isa);
}

static int32_t read_t5(struct posenc_attention_job *job, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    posenc_t5_params *t5 = &job->t5;
    if (!p->t5 != !p->t5_table)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT,
                           "params.%s is given without params.%s: must come together",
                           p->t5 ? "t5" : "t5_table", p->t5 ? "t5_table" : "t5");
    if (!p->t5)
        return POSENC_OK;
    posenc_t5_params_init(t5);
    int32_t status = posenc_struct_read(t5, sizeof(*t5), sizeof(*t5), p->t5, "params.t5", error);
    if (!status)
        status = within("params.t5", posenc_t5_buckets(t5, NULL, 0, NULL, error), error);
    if (!status)
        status = check_unused(t5->query_offset, t5->causal, t5->isa, "params.t5", error);
    return status;
}

static int32_t read_deberta(struct posenc_attention_job *job, posenc_error *error)
{
    posenc_attention_deberta *d = &job->deberta;
    int32_t status = posenc_struct_read(d, sizeof(*d), sizeof(*d), job->params.deberta,
                                        "params.deberta", error);
    if (!status)
        status = within("params.deberta",
                        posenc_deberta_maps(d->buckets, d->max_distance, 0, 0, 0, NULL, NULL,
                                            error),
                        error);
    if (!status && !d->position_keys && !d->position_queries)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.deberta has neither position_keys nor position_queries: must "
                             "have one");
    return status;
}

static int32_t read_relative(struct posenc_attention_job *job, posenc_error *error)
{
    const posenc_attention_params *p = &job->params;
    posenc_alibi_params *alibi = &job->alibi;
    int32_t status = POSENC_OK;
    if (p->alibi && (p->t5 || p->deberta))
        return not_both("alibi", p->t5 ? "t5" : "deberta", error);
    if (p->t5 && p->deberta)
        return not_both("t5", "deberta", error);
    if (p->alibi) {
        posenc_alibi_params_init(alibi);
        status = posenc_struct_read(alibi, sizeof(*alibi), sizeof(*alibi), p->alibi,
                                    "params.alibi", error);
        if (!status)
            status = check_unused(alibi->query_offset, alibi->causal, alibi->isa, "params.alibi",
                                  error);
    }
    if (!status)
        status = read_t5(job, error);
    if (!status && p->deberta)
        status = read_deberta(job, error);
    return status;
}

/* A side without limit reaches any key from any place. */
static int64_t reach_of(int64_t window)
{
    const int64_t far = 4 * posenc_farthest;
    return window == 0 || window > far ? far : window - 1;
}

int32_t posenc_attention_params_check(struct posenc_attention_job *job,
                                      const posenc_attention_params *params, posenc_error *error)
{
    posenc_attention_params *p = &job->params;
    posenc_attention_params_init(p);
    const int is_second = params && params->struct_size == SECOND_SIZE;
    int32_t status = posenc_struct_read(p, sizeof(*p), is_second ? SECOND_SIZE : FIRST_SIZE, params,
                                        "params", error);
    if (!status)
        status = check_choices(p, error);
    if (!status)
        status = check_scores(p, error);
    if (!status)
        status = check_places(p, error);
    if (!status)
        status = read_relative(job, error);
    if (!status)
        status = posenc_kernels_choose(&job->kernels, p->isa, "params.isa", error);
    if (!status && !p->rope && (p->query_rows || p->key_rows || p->output_rows))
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.rope is NULL with %s: must say how it turns",
                             p->query_rows ? "query_rows"
                             : p->key_rows ? "key_rows"
                                           : "output_rows");
    if (!status && p->rotate_from && !p->key_rows)
        status = posenc_fail(error, POSENC_ERROR_ARGUMENT,
                             "params.rotate_from is %d without key_rows: must be 0",
                             p->rotate_from);
    if (status)
        return status;
    job->left = reach_of(p->window_left);
    job->right = reach_of(p->window_right);
    job->keep = p->keep;
    if (p->causal)
        job->right = 0;
    return POSENC_OK;
}
