/* SPDX-License-Identifier: MIT */
/*
 * What an engine does with a model: read its config.json once, and per step make the rows once and
 * rotate Q in place and K straight into an f16 cache, for every layer.
 *
 *     cc decode_step.c $(pkg-config --cflags --libs posenc-contract) -o decode_step
 *     ./decode_step config.json
 */
#include <posenc/contract.h>
#include <stdio.h>
#include <stdlib.h>

enum { CACHE_TOKENS = 64, PROMPT = 7, STEPS = 3 };

struct model {
    int64_t layers, heads, kv_heads, width;
    int32_t pairs;
    posenc_contract *contract; /* which layers turn */
    posenc_plan *plan;
};

/* The facts and the plan of a model. One frequency set is enough for most; with several, an engine
 * makes a plan and rows for each and picks by posenc_contract_layer_set. */
static int32_t open_model(struct model *model, const char *path, posenc_error *error)
{
    posenc_contract_facts facts = {.struct_size = sizeof facts};
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    int32_t status = posenc_contract_open(&model->contract, path, error);
    if (!status)
        status = posenc_contract_get_facts(model->contract, &facts, error);
    if (!status && facts.num_sets != 1) {
        snprintf(error->text, sizeof error->text, "%s: this example takes one frequency set", path);
        status = error->code = POSENC_ERROR_UNSUPPORTED;
    }
    if (!status)
        status = posenc_contract_plan_params(model->contract, 0, &params, error);
    if (!status)
        status = posenc_plan_create(&model->plan, &params, error);
    model->layers = facts.num_layers;
    model->heads = facts.num_heads;
    model->kv_heads = facts.num_kv_heads;
    model->width = facts.head_dim;
    model->pairs = posenc_plan_pairs(model->plan);
    return status;
}

/* One step of `tokens` tokens at `start`: rows once, then every layer. q and k stand in for what
 * the projections of a layer would have written. */
static int32_t step(const struct model *model, int64_t start, int64_t tokens, float *row_memory,
                    float *q_memory, float *k_memory, uint16_t *cache, posenc_error *error)
{
    const int64_t slot = model->kv_heads * model->width; /* elements of a token in the cache */
    posenc_positions positions;
    posenc_tensor rows, q, k, k_out;
    posenc_positions_start(&positions, start);
    posenc_tensor_contiguous(&rows, row_memory, POSENC_F32, 1, tokens, 1, 2 * model->pairs);
    posenc_tensor_contiguous(&q, q_memory, POSENC_F32, 1, tokens, model->heads, model->width);
    posenc_tensor_contiguous(&k, k_memory, POSENC_F32, 1, tokens, model->kv_heads, model->width);
    int32_t status = posenc_rows(model->plan, &positions, &rows, error);
    for (int64_t layer = 0; layer < model->layers && !status; layer++) {
        if (posenc_contract_layer_set(model->contract, layer) < 0)
            continue; /* not rotated: the engine stores K as it is */
        uint16_t *slots = cache + (layer * CACHE_TOKENS + start) * slot;
        posenc_tensor_contiguous(&k_out, slots, POSENC_F16, 1, tokens, model->kv_heads,
                                 model->width);
        status = posenc_rotate(model->plan, POSENC_FORWARD, &rows, &q, NULL, &k, &k_out, error);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct model model = {0};
    posenc_error error = {POSENC_ERROR_MEMORY, "no memory left"};
    if (argc != 2) {
        fprintf(stderr, "usage: decode_step config.json\n");
        return 2;
    }
    if (open_model(&model, argv[1], &error)) {
        fprintf(stderr, "%s\n", error.text);
        posenc_contract_free(model.contract);
        return 1;
    }
    const size_t width = (size_t)model.width, kv_heads = (size_t)model.kv_heads;
    float *rows = calloc((size_t)(PROMPT * 2 * model.pairs), sizeof *rows);
    float *q = calloc(PROMPT * (size_t)model.heads * width, sizeof *q);
    float *k = calloc(PROMPT * kv_heads * width, sizeof *k);
    uint16_t *cache = calloc((size_t)model.layers * CACHE_TOKENS * kv_heads * width, sizeof *cache);
    int32_t status = !rows || !q || !k || !cache;
    for (int64_t start = 0; start < PROMPT + STEPS && !status;) {
        const int64_t tokens = start == 0 ? PROMPT : 1; /* the prompt, then token by token */
        for (size_t i = 0; k && i < PROMPT * kv_heads * width; i += width)
            k[i] = 1.0f; /* the first channel of every head */
        status = step(&model, start, tokens, rows, q, k, cache, &error);
        start += tokens;
    }
    if (status)
        fprintf(stderr, "%s\n", error.text);
    else
        printf("%d tokens of %lld layers are in the cache; key 0 is %04x, key 5 begins with %04x\n",
               PROMPT + STEPS, (long long)model.layers, cache[0], cache[5 * kv_heads * width]);
    posenc_plan_free(model.plan);
    posenc_contract_free(model.contract);
    free(rows);
    free(q);
    free(k);
    free(cache);
    return status != 0;
}
