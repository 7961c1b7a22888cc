/* SPDX-License-Identifier: MIT */
/* The fingerprint of a plan: a hash of what its rows are made from, not of how it was asked for. */
#include "error.h"
#include "hash.h"
#include "plan.h"

/* Changes with the serialisation, so that fingerprints of two forms never agree by chance. */
enum { FORM = 1 };

/* How rows come about, in numbers that outlive the order of an enumeration. */
static int64_t method(const posenc_plan *plan)
{
    switch (plan->rows_by) {
    case POSENC_ROWS_EXACT: return 0;
    case POSENC_ROWS_HF_F32: return 1;
    case POSENC_ROWS_GGML: return 2;
    case POSENC_ROWS_TABLE: return 3;
    case POSENC_ROWS_XPOS: return 4;
    default: return 100 + plan->rows_by;
    }
}

static void add_widths(struct posenc_hash *hash, const posenc_plan *plan)
{
    /* A cache in the order of another layout is another cache. */
    posenc_hash_integer(hash, plan->out_layout == plan->layout
                                  ? plan->layout
                                  : plan->layout | plan->out_layout << 8);
    posenc_hash_integer(hash, plan->head_dim);
    posenc_hash_integer(hash, plan->rotary_dim);
    posenc_hash_integer(hash, plan->rotary_offset);
    posenc_hash_integer(hash, method(plan));
    posenc_hash_integer(hash, plan->row_dtype);
}

static void add_axes(struct posenc_hash *hash, const posenc_plan *plan)
{
    posenc_hash_integer(hash, plan->axes);
    for (int32_t i = 0; plan->axes > 1 && i < plan->pairs; i++)
        posenc_hash_integer(hash, plan->axis_of_pair ? plan->axis_of_pair[i] : 0);
}

/* Table values are used as they are, so their bits count and -0 is not 0. */
static void add_table(struct posenc_hash *hash, const float *table, int64_t rows, int32_t pairs)
{
    posenc_hash_integer(hash, rows);
    for (int64_t i = 0; i < rows * pairs; i++) {
        uint32_t bits = posenc_bits32(table[i]);
        unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                  (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
        posenc_hash_bytes(hash, bytes, sizeof bytes);
    }
}

/* Of a plan that depends on the length: where its sets change, and how they grow. */
static void add_lengths(struct posenc_hash *hash, const posenc_plan *plan)
{
    const posenc_rope_params *p = &plan->params;
    posenc_hash_integer(hash, plan->depends_on_length ? p->scaling : 0);
    if (!plan->depends_on_length)
        return;
    posenc_hash_real(hash, p->original_max_position);
    if (p->scaling == POSENC_SCALING_DYNAMIC_NTK) {
        posenc_hash_real(hash, p->base);
        posenc_hash_real(hash, p->factor);
    }
}

/* ggml steps from angle to angle by these, and blends angles, not frequencies. */
static void add_ggml(struct posenc_hash *hash, const struct posenc_ggml *ggml)
{
    posenc_hash_real(hash, (double)ggml->theta_scale);
    posenc_hash_real(hash, (double)ggml->freq_scale);
    posenc_hash_integer(hash, ggml->yarn);
    if (ggml->yarn) {
        posenc_hash_real(hash, (double)ggml->low);
        posenc_hash_real(hash, (double)ggml->high);
    }
}

/* What stands for the frequencies: in float32 it is ggml's divisors. */
static void add_frequencies(struct posenc_hash *hash, const posenc_plan *plan,
                            const struct posenc_frequency_set *set)
{
    if (plan->rows_by == POSENC_ROWS_TABLE)
        return;
    for (int32_t i = 0; i < plan->pairs; i++)
        posenc_hash_real(hash, plan->rows_by == POSENC_ROWS_GGML ? (double)set->inv_freq_f32[i]
                                                                 : set->inv_freq[i]);
}

static void add_sets(struct posenc_hash *hash, const posenc_plan *plan)
{
    posenc_hash_integer(hash, plan->num_sets);
    for (int32_t s = 0; s < plan->num_sets; s++) {
        const struct posenc_frequency_set *set = &plan->sets[s];
        posenc_hash_real(hash, set->attention_factor);
        posenc_hash_real(hash, (double)set->position_divisor);
        add_frequencies(hash, plan, set);
    }
}

static void add_rows(struct posenc_hash *hash, const posenc_plan *plan)
{
    const posenc_rope_params *p = &plan->params;
    switch (plan->rows_by) {
    case POSENC_ROWS_TABLE:
        add_table(hash, p->cos_table, p->cos_rows, plan->pairs);
        add_table(hash, p->sin_table, p->sin_rows, plan->pairs);
        break;
    case POSENC_ROWS_XPOS:
        posenc_hash_integer(hash, p->xpos);
        posenc_hash_real(hash, p->xpos_scale_base);
        posenc_hash_integer(hash, p->xpos_center);
        break;
    case POSENC_ROWS_GGML: add_ggml(hash, &plan->ggml); break;
    default: break;
    }
}

void posenc_fingerprint_compute(const struct posenc_plan *plan, uint8_t fingerprint[16])
{
    struct posenc_hash hash = posenc_hash_start();
    posenc_hash_integer(&hash, FORM);
    add_widths(&hash, plan);
    add_axes(&hash, plan);
    add_lengths(&hash, plan);
    add_sets(&hash, plan);
    add_rows(&hash, plan);
    posenc_hash_end(&hash, fingerprint);
}

int32_t posenc_plan_fingerprint(const posenc_plan *plan, uint8_t *fingerprint, posenc_error *error)
{
    if (!plan || !fingerprint)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "%s is NULL: must be given",
                           plan ? "fingerprint" : "plan");
    if (plan->rows_by == POSENC_ROWS_TABLE)
        posenc_fingerprint_compute(plan, fingerprint);
    else
        memcpy(fingerprint, plan->fingerprint, sizeof(plan->fingerprint));
    return POSENC_OK;
}
