/* SPDX-License-Identifier: MIT */
/* Making plans: copies of what the caller gave, frequencies, row tables. */
#include "plan.h"

#include <stdlib.h>

#include "error.h"
#include "frequencies.h"
#include "structs.h"

void posenc_rope_params_init(posenc_rope_params *params)
{
    *params = (posenc_rope_params){
        .struct_size = sizeof(*params),
        .base = 10000,
        .beta_fast = 32,
        .beta_slow = 1,
        .truncate = 1,
        .magnitude_slope = 0.1,
        .xpos_scale_base = 512,
    };
}

static struct posenc_range range_of(const posenc_rope_params *p)
{
    struct posenc_range range = {INT32_MIN, INT32_MAX, "32-bit positions"};
    if (p->recipe == POSENC_RECIPE_VLLM)
        range = (struct posenc_range){0, INT32_MAX, "rows of vLLM's table"};
    if (p->cos_table)
        range = (struct posenc_range){0, p->cos_rows - 1, "rows of the table"};
    if (range.high > INT32_MAX)
        range.high = INT32_MAX;
    if (p->max_position && p->max_position - 1 < range.high) {
        range.high = p->max_position - 1;
        range.why = "max_position";
    }
    return range;
}

/* A copy of `size` bytes, or NULL as it was. 0 when there is no memory. */
static int copy(const void *from, size_t size, void *to)
{
    void *made = NULL;
    if (from && !(made = malloc(size)))
        return 0;
    if (made)
        memcpy(made, from, size);
    memcpy(to, &made, sizeof(made));
    return 1;
}

/* Lists of another scaling are ignored: they may point anywhere. */
static void drop_unused(posenc_rope_params *p)
{
    if (p->scaling != POSENC_SCALING_LONGROPE)
        p->short_factors = p->long_factors = NULL;
    if (p->scaling != POSENC_SCALING_LINEAR) {
        p->factors = NULL;
        p->num_factors = 0;
    }
}

/* The caller's lists, which the plan may outlive. */
static int copy_lists(struct posenc_plan *plan, const posenc_rope_params *p)
{
    size_t pairs = (size_t)plan->pairs, doubles = pairs * sizeof(double);
    posenc_rope_params *own = &plan->params;
    return copy(p->frequencies, doubles, &own->frequencies) &&
           copy(p->short_factors, doubles, &own->short_factors) &&
           copy(p->long_factors, doubles, &own->long_factors) &&
           copy(p->factors, (size_t)p->num_factors * sizeof(double), &own->factors) &&
           copy(p->axis_of_pair, pairs * sizeof(int32_t), &own->axis_of_pair);
}

static int fill_blocks(const struct posenc_plan *plan, struct posenc_frequency_set *set)
{
    size_t pairs = (size_t)plan->pairs, count = (pairs + POSENC_ROW_BLOCK - 1) / POSENC_ROW_BLOCK;
    set->blocks = aligned_alloc(64, count * sizeof(struct posenc_row_block));
    if (!set->blocks)
        return 0;
    for (size_t b = 0; b < count; b++) {
        size_t rest = pairs - b * POSENC_ROW_BLOCK;
        posenc_row_block_init(&set->blocks[b], set->inv_freq + b * POSENC_ROW_BLOCK,
                              rest < POSENC_ROW_BLOCK ? (int)rest : POSENC_ROW_BLOCK);
    }
    return 1;
}

/* A length that selects set n. */
static int64_t length_of_set(const struct posenc_plan *plan, int32_t n)
{
    int64_t trained = posenc_trained_length(&plan->params);
    return plan->depends_on_length && n == 1 && trained < INT64_MAX ? trained + 1 : 1;
}

static int32_t factor_of_set(const struct posenc_plan *plan, int32_t n)
{
    return plan->params.factors ? n : 0;
}

static int fill_f32(const struct posenc_plan *plan, struct posenc_frequency_set *set,
                    int64_t length, int32_t factor)
{
    size_t pairs = (size_t)plan->pairs;
    set->inv_freq_f32 = malloc(pairs * sizeof(float));
    if (!set->inv_freq_f32)
        return 0;
    posenc_frequencies_f32(&plan->params, length, factor, 0, plan->pairs, set->inv_freq_f32);
    for (size_t i = 0; i < pairs; i++)
        set->inv_freq[i] = (double)set->inv_freq_f32[i] / (double)set->position_divisor;
    return 1;
}

static int fill_ggml(const struct posenc_plan *plan, struct posenc_frequency_set *set,
                     int64_t length)
{
    const posenc_rope_params *p = &plan->params;
    int is_long = posenc_effective_length(p, length) > posenc_trained_length(p);
    set->inv_freq_f32 = malloc((size_t)plan->pairs * sizeof(float));
    if (set->inv_freq_f32)
        posenc_ggml_divisors(p, is_long, set->inv_freq, set->inv_freq_f32);
    return set->inv_freq_f32 != NULL;
}

/* The frequencies of one set, and what rows make of them. */
static int fill_set(const struct posenc_plan *plan, int32_t n)
{
    const posenc_rope_params *p = &plan->params;
    struct posenc_frequency_set *set = &plan->sets[n];
    size_t pairs = (size_t)plan->pairs;
    int64_t length = length_of_set(plan, n);
    int32_t factor = factor_of_set(plan, n);
    set->position_divisor = posenc_position_divisor(p, factor);
    set->attention_factor = posenc_attention_factor(p, length);
    if (plan->rows_by == POSENC_ROWS_TABLE)
        return 1;
    set->inv_freq = malloc(pairs * sizeof(double));
    if (!set->inv_freq)
        return 0;
    if (plan->rows_by == POSENC_ROWS_HF_F32)
        return fill_f32(plan, set, length, factor);
    posenc_frequencies(p, length, factor, 0, plan->pairs, set->inv_freq);
    if (plan->rows_by == POSENC_ROWS_GGML)
        return fill_ggml(plan, set, length);
    return plan->rows_by == POSENC_ROWS_XPOS || fill_blocks(plan, set);
}

/* Everything that needs memory. 0 when there is none. */
static int fill(struct posenc_plan *plan, const posenc_rope_params *p)
{
    if (!copy_lists(plan, p))
        return 0;
    plan->axis_of_pair = plan->params.axis_of_pair;
    plan->sets = calloc((size_t)plan->num_sets, sizeof(*plan->sets));
    if (!plan->sets)
        return 0;
    for (int32_t n = 0; n < plan->num_sets; n++)
        if (!fill_set(plan, n))
            return 0;
    if (plan->rows_by == POSENC_ROWS_GGML)
        posenc_ggml_prepare(p, &plan->ggml);
    if (plan->rows_by != POSENC_ROWS_XPOS)
        return 1;
    plan->log_decay = malloc((size_t)plan->pairs * sizeof(*plan->log_decay));
    if (plan->log_decay)
        posenc_xpos_prepare(p, plan->log_decay);
    return plan->log_decay != NULL;
}

static void fill_in_place(struct posenc_plan *plan)
{
    for (int32_t dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
        uint32_t size = (uint32_t)posenc_dtype_size(dtype);
        uint32_t head_bytes = (uint32_t)plan->head_dim * size;
        uint32_t row_bytes = (uint32_t)plan->rotary_dim * (uint32_t)sizeof(float);
        plan->in_place[dtype - 1] = (struct posenc_in_place){
            .kernel = plan->kernels->rotate[plan->layout - 1][dtype - 1][dtype - 1],
            .size = size,
            .offset = (uint32_t)plan->rotary_offset * size,
            .last = head_bytes - 1,
            .reach = head_bytes + row_bytes - 1,
        };
        /* Nothing is in place: with these two no call looks plain, see glance.h. */
        if (plan->out_layout != plan->layout) {
            plan->in_place[dtype - 1].size = 0;
            plan->in_place[dtype - 1].reach = UINTPTR_MAX;
        }
    }
}

static int32_t rows_by(const posenc_rope_params *p)
{
    if (p->cos_table)
        return POSENC_ROWS_TABLE;
    switch (p->recipe) {
    case POSENC_RECIPE_HF_F32:
    case POSENC_RECIPE_VLLM:
        return POSENC_ROWS_HF_F32;
    case POSENC_RECIPE_GGML:
        return POSENC_ROWS_GGML;
    default:
        return p->xpos ? POSENC_ROWS_XPOS : POSENC_ROWS_EXACT;
    }
}

/* vLLM's DYNAMIC_NTK is one table for all lengths, and one pair turns by 1 whatever the base. */
static int depends_on_length(const posenc_rope_params *p)
{
    int grows = p->scaling == POSENC_SCALING_DYNAMIC_NTK && p->recipe != POSENC_RECIPE_VLLM &&
                p->rotary_dim > 2;
    return (grows || p->scaling == POSENC_SCALING_LONGROPE) && p->length == 0;
}

static int32_t number_of_sets(const posenc_rope_params *p)
{
    if (p->factors)
        return p->num_factors;
    return p->scaling == POSENC_SCALING_LONGROPE && depends_on_length(p) ? 2 : 1;
}

static struct posenc_plan *make(const posenc_rope_params *p, const struct posenc_kernels *kernels)
{
    struct posenc_plan *made = malloc(sizeof(*made));
    if (!made)
        return NULL;
    *made = (struct posenc_plan){
        .kernels = kernels,
        .layout = p->layout,
        .out_layout = p->out_layout ? p->out_layout : p->layout,
        .head_dim = p->head_dim,
        .rotary_dim = p->rotary_dim,
        .rotary_offset = p->rotary_offset,
        .pairs = p->rotary_dim / 2,
        .rows_by = rows_by(p),
        .row_dtype = p->row_dtype ? p->row_dtype : POSENC_F32,
        .range = range_of(p),
        .params = *p,
        .axes = p->axes ? p->axes : 1,
        .num_sets = number_of_sets(p),
        .depends_on_length = depends_on_length(p),
    };
    fill_in_place(made);
    /* Until copied they are not the plan's to free. */
    made->params.frequencies = made->params.factors = NULL;
    made->params.short_factors = made->params.long_factors = NULL;
    made->params.axis_of_pair = NULL;
    if (!fill(made, p)) {
        posenc_plan_free(made);
        return NULL;
    }
    if (made->rows_by != POSENC_ROWS_TABLE)
        posenc_fingerprint_compute(made, made->fingerprint);
    return made;
}

int32_t posenc_plan_create(posenc_plan **plan, const posenc_rope_params *params,
                           posenc_error *error)
{
    posenc_rope_params p;
    if (!plan)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "plan is NULL: must be given");
    posenc_rope_params_init(&p);
    int32_t status = posenc_struct_read(&p, sizeof(p), offsetof(posenc_rope_params, length), params,
                                        "params", error);
    if (!status)
        status = posenc_rope_params_check(&p, error);
    const struct posenc_kernels *kernels = NULL;
    if (!status)
        status = posenc_kernels_choose(&kernels, p.isa, "isa", error);
    if (status)
        return status;
    drop_unused(&p);
    struct posenc_plan *made = make(&p, kernels);
    if (!made)
        return posenc_fail(error, POSENC_ERROR_MEMORY, "no memory for a plan of %d pairs",
                           (int64_t)(p.rotary_dim / 2));
    *plan = made;
    return POSENC_OK;
}

int32_t posenc_plan_create_simple(posenc_plan **plan, int32_t layout, int32_t head_dim,
                                  double base, posenc_error *error)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    if (head_dim % 2)
        return posenc_fail(error, POSENC_ERROR_ARGUMENT, "head_dim is %d: must be even",
                           (int64_t)head_dim);
    params.layout = layout;
    params.head_dim = head_dim;
    params.rotary_dim = head_dim;
    params.base = base;
    return posenc_plan_create(plan, &params, error);
}

/* The plan's own memory, which its struct holds as const. */
static void release(const void *memory)
{
    free((void *)(uintptr_t)memory);
}

void posenc_plan_free(posenc_plan *plan)
{
    if (!plan)
        return;
    for (int32_t n = 0; plan->sets && n < plan->num_sets; n++) {
        free(plan->sets[n].inv_freq);
        free(plan->sets[n].inv_freq_f32);
        free(plan->sets[n].blocks);
    }
    free(plan->sets);
    free(plan->log_decay);
    release(plan->params.frequencies);
    release(plan->params.short_factors);
    release(plan->params.long_factors);
    release(plan->params.factors);
    release(plan->params.axis_of_pair);
    free(plan);
}
