/* SPDX-License-Identifier: MIT */
/*
 * Any rotary model: a plan and rows for each frequency set (Gemma 3 and 4 have two), the running
 * length (LongRoPE, dynamic NTK), and latent attention: one key of the window for all (DeepSeek).
 *
 *     cc layer_sets.c $(pkg-config --cflags --libs posenc-contract) -o layer_sets
 *     ./layer_sets config.json
 */
#include <posenc/contract.h>
#include <stdio.h>
#include <stdlib.h>

enum { START = 5, TOKENS = 2, MAX_SETS = 8 };

/* What the layers of one set share: the plan for the life of the model, rows for one step. */
struct set {
    posenc_contract_set facts;
    posenc_plan *plan;
    float *memory;
    posenc_tensor rows;
};

static int32_t open_set(struct set *set, const posenc_contract *contract, int32_t index,
                        posenc_error *error)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    set->facts.struct_size = sizeof set->facts;
    int32_t status = posenc_contract_get_set(contract, index, &set->facts, error);
    status = status ? status : posenc_contract_plan_params(contract, index, &params, error);
    params.length = 0; /* "short" of LongRoPE becomes a plan that switches; layers name no "long" */
    status = status ? status : posenc_plan_create(&set->plan, &params, error);
    const size_t width = (size_t)set->facts.rotary_dim;
    if (!status && !(set->memory = calloc(TOKENS * width, sizeof *set->memory)))
        status = error->code = POSENC_ERROR_MEMORY;
    posenc_tensor_contiguous(&set->rows, set->memory, POSENC_F32, 1, TOKENS, 1, (int64_t)width);
    return status;
}

/* Rows of a step. Where frequencies depend on the running length, keys that were cached before it
 * reached `next` are stale from there on: rotate them again, or drop them. */
static int32_t fill_rows(const struct set *set, posenc_error *error)
{
    int64_t first, next;
    posenc_positions positions;
    posenc_positions_start(&positions, START);
    positions.length = START + TOKENS; /* ignored by plans that do not depend on it */
    int32_t status = posenc_plan_length_range(set->plan, positions.length, &first, &next, error);
    if (!status && next != INT64_MAX)
        printf("set %s: frequencies change at length %lld\n", set->facts.id, (long long)next);
    return status ? status : posenc_rows(set->plan, &positions, &set->rows, error);
}

/* Rotates q and k of one layer, which its projections would have written. */
static int32_t rotate_layer(const struct set *set, int64_t layer, const char *type,
                            posenc_error *error)
{
    const posenc_contract_set *facts = &set->facts;
    /* With an offset the query is still the whole head, while the key is one head of the window
     * alone: posenc_rotate tells the two by their width. */
    const int64_t offset = facts->rotary_offset, width = facts->head_dim;
    const int64_t k_width = offset ? facts->rotary_dim : width;
    const int64_t k_heads = offset ? 1 : facts->num_kv_heads;
    const int64_t q_size = TOKENS * facts->num_heads * width, k_size = TOKENS * k_heads * k_width;
    float *q_memory = calloc((size_t)q_size, sizeof *q_memory);
    float *k_memory = calloc((size_t)k_size, sizeof *k_memory);
    int32_t status = q_memory && k_memory ? POSENC_OK : POSENC_ERROR_MEMORY;
    posenc_tensor q, k;
    for (int64_t i = offset; i < q_size && !status; i += width)
        q_memory[i] = 1.0f; /* the first channel of every window */
    for (int64_t i = 0; i < k_size && !status; i += k_width)
        k_memory[i] = 1.0f;
    posenc_tensor_contiguous(&q, q_memory, POSENC_F32, 1, TOKENS, facts->num_heads, width);
    posenc_tensor_contiguous(&k, k_memory, POSENC_F32, 1, TOKENS, k_heads, k_width);
    if (!status)
        status = posenc_rotate(set->plan, POSENC_FORWARD, &set->rows, &q, NULL, &k, NULL, error);
    if (!status)
        printf("layer %lld, %s: set %s, q[%lld] %.4f, k[0] %.4f of %lld heads of %lld\n",
               (long long)layer, type, facts->id, (long long)offset, (double)q_memory[offset],
               (double)k_memory[0], (long long)k_heads, (long long)k_width);
    free(q_memory);
    free(k_memory);
    return status;
}

int main(int argc, char **argv)
{
    struct set sets[MAX_SETS] = {0};
    posenc_contract *contract = NULL;
    posenc_contract_facts facts = {.struct_size = sizeof facts};
    posenc_error error = {POSENC_ERROR_MEMORY, "no memory left, or not a rotary model"};
    if (argc != 2) {
        fprintf(stderr, "usage: layer_sets config.json\n");
        return 2;
    }
    int32_t status = posenc_contract_open(&contract, argv[1], &error);
    status = status ? status : posenc_contract_get_facts(contract, &facts, &error);
    if (!status && (facts.num_sets < 1 || facts.num_sets > MAX_SETS))
        status = POSENC_ERROR_UNSUPPORTED;
    for (int32_t i = 0; i < facts.num_sets && !status; i++) {
        status = open_set(&sets[i], contract, i, &error);
        status = status ? status : fill_rows(&sets[i], &error);
    }
    for (int64_t layer = 0; layer < facts.num_layers && !status; layer++) {
        const int32_t set = posenc_contract_layer_set(contract, layer); /* < 0: is not rotated */
        const char *type = posenc_contract_layer_type(contract, layer);
        if (set >= 0)
            status = rotate_layer(&sets[set], layer, type, &error);
    }
    if (status)
        fprintf(stderr, "%s\n", error.text);
    else
        printf("softmax scale %.6f, yarn's multiplier included\n", facts.softmax_scale);
    for (int32_t i = 0; i < MAX_SETS; i++) {
        posenc_plan_free(sets[i].plan);
        free(sets[i].memory);
    }
    posenc_contract_free(contract);
    return status != 0;
}
