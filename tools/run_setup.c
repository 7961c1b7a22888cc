/* SPDX-License-Identifier: MIT */
/* posenc run, first step: plans on every ISA, the rows of the step, Q and K of each layer. */
#include "float16.h"
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_LAYERS = 4, MOST_DEFAULT_LAYERS = 8, MOST_DEFAULT_BYTES = 256 << 20 };

static int no_memory(void)
{
    return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

void run_fill(const posenc_tensor *t, uint32_t seed)
{
    size_t count = (size_t)(t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3]);
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < count; i++) {
        uint32_t u = next_random(&state);
        float x = 0.125f + 0.875f * (float)(u >> 9) * 0x1p-23f;
        if (u & 1)
            x = -x;
        if (t->dtype == POSENC_F32)
            ((float *)t->data)[i] = x;
        else
            ((uint16_t *)t->data)[i] =
                t->dtype == POSENC_F16 ? posenc_f32_to_f16(x) : posenc_f32_to_bf16(x);
    }
}

int run_default_isa(const struct run *run)
{
    for (int i = 0; i < run->isas; i++)
        if (run->isa[i] == posenc_isa_default())
            return i;
    return 0;
}

/* An allocation that the machine cannot back would end the process without a word. */
static double affordable(void)
{
    return 0.5 * (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Contiguous memory of its own, aligned as engines align theirs, every page present. */
static int make_tensor(posenc_tensor *t, int32_t dtype, int64_t tokens, int64_t heads,
                       int64_t channels)
{
    double size =
        (double)tokens * (double)heads * (double)channels * (double)tool_dtype_size(dtype);
    size_t bytes = (size_t)(tokens * heads * channels) * tool_dtype_size(dtype);
    void *data = NULL;
    if (size > affordable() || size > (double)(SIZE_MAX / 2) || posix_memalign(&data, 64, bytes))
        return no_memory();
    memset(data, 0, bytes);
    posenc_tensor_contiguous(t, data, dtype, 1, tokens, heads, channels);
    return TOOL_OK;
}

static int make_rows(const struct run *run, const posenc_plan *plan, posenc_tensor *rows)
{
    posenc_positions positions;
    posenc_error error = {0, ""};
    posenc_positions_start(&positions, run->options.start);
    int code = make_tensor(rows, POSENC_F32, run->options.tokens, 1, 2 * posenc_plan_pairs(plan));
    if (!code && posenc_rows(plan, &positions, rows, &error))
        code = tool_fail_library(run->model.name, &error);
    return code;
}

static int make_timed_rows(const struct run *run, struct run_set *set)
{
    posenc_rope_params params = set->params;
    posenc_plan *plan = NULL;
    posenc_error error = {0, ""};
    params.attention_factor = 1;
    params.short_attention = params.long_attention = 0;
    if (posenc_plan_create(&plan, &params, &error))
        return tool_fail_library(run->model.name, &error);
    int code = make_rows(run, plan, &set->timed_rows);
    posenc_plan_free(plan);
    return code;
}

static int make_set(struct run *run, int32_t index)
{
    struct run_set *set = &run->sets[index];
    posenc_error error = {0, ""};
    if (run->options.limit)
        set->params.max_position = run->model.facts.max_position;
    if (set->params.scaling == POSENC_SCALING_DYNAMIC_NTK)
        set->params.length = run->length;
    int shared_key = set->facts.rotary_offset > 0;
    set->k_heads = shared_key ? 1 : set->facts.num_kv_heads;
    set->k_channels = shared_key ? set->facts.rotary_dim : set->facts.head_dim;
    for (int i = 0; i < run->isas; i++) {
        posenc_rope_params params = set->params;
        params.isa = run->isa[i];
        if (posenc_plan_create(&set->plan[i], &params, &error))
            return tool_fail_library(run->model.name, &error);
    }
    const posenc_plan *plan = set->plan[run_default_isa(run)];
    size_t pairs = (size_t)posenc_plan_pairs(plan);
    set->attention_factor = posenc_plan_attention_factor(plan);
    set->inv_freq = malloc(pairs * sizeof *set->inv_freq);
    if (!set->inv_freq)
        return no_memory();
    if (posenc_plan_inv_freq(plan, set->inv_freq, pairs, &error))
        return tool_fail_library(run->model.name, &error);
    int code = make_rows(run, plan, &set->rows);
    return code ? code : make_timed_rows(run, set);
}

/* Bytes of Q and K of one layer. */
static double layer_bytes(const struct run *run, int32_t set)
{
    if (set < 0)
        return 0;
    const struct run_set *s = &run->sets[set];
    double elements = (double)s->facts.num_heads * s->facts.head_dim +
                      (double)(s->k_heads * s->k_channels);
    return (double)run->options.tokens * elements * (double)tool_dtype_size(run->options.dtype);
}

/* Few layers make a short run; enough of them show every frequency set near the model's front. */
static int64_t choose_layers(const struct run *run)
{
    int64_t least = DEFAULT_LAYERS, layers = 0;
    double bytes = 0;
    for (int64_t l = 1; l < MOST_DEFAULT_LAYERS; l++) {
        int new_kind = run_set_of_layer(run, l) >= 0;
        for (int64_t before = 0; before < l; before++)
            if (run_set_of_layer(run, before) == run_set_of_layer(run, l))
                new_kind = 0;
        if (new_kind && l + 1 > least)
            least = l + 1;
    }
    for (; layers < least && layers < run->model.facts.num_layers; layers++) {
        bytes += layer_bytes(run, run_set_of_layer(run, layers));
        if (layers > 0 && bytes > MOST_DEFAULT_BYTES)
            break;
    }
    return layers;
}

static int check_memory(const struct run *run)
{
    double bytes = 0, most = 0;
    for (int64_t l = 0; l < run->num_layers; l++) {
        double layer = layer_bytes(run, run_set_of_layer(run, l));
        bytes += layer;
        if (layer > most)
            most = layer;
    }
    bytes += 2 * most; /* results of the self-check */
    if (bytes <= affordable())
        return TOOL_OK;
    return tool_fail(TOOL_SYSTEM,
                     "%lld tokens in %lld layers need %.1f GiB: more than half of this "
                     "machine's memory; lower --tokens or --layers",
                     (long long)run->options.tokens, (long long)run->num_layers, bytes * 0x1p-30);
}

static int make_layers(struct run *run)
{
    const struct run_options *o = &run->options;
    run->layers = calloc((size_t)run->num_layers, sizeof *run->layers);
    if (!run->layers)
        return no_memory();
    for (int64_t l = 0; l < run->num_layers; l++) {
        struct run_layer *layer = &run->layers[l];
        layer->set = run_set_of_layer(run, l);
        if (layer->set < 0)
            continue;
        const struct run_set *s = &run->sets[layer->set];
        int64_t heads = s->facts.num_heads;
        int code = make_tensor(&layer->q, o->dtype, o->tokens, heads, s->facts.head_dim);
        if (!code)
            code = make_tensor(&layer->k, o->dtype, o->tokens, s->k_heads, s->k_channels);
        if (code)
            return code;
        run_fill(&layer->q, (uint32_t)(2 * l));
        run_fill(&layer->k, (uint32_t)(2 * l + 1));
        run->rotated_layers++;
        run->bytes += 2.0 * (double)o->tokens * (double)(heads + s->k_heads) * s->facts.rotary_dim *
                      (double)tool_dtype_size(o->dtype);
    }
    return TOOL_OK;
}

int run_set_up(struct run *run)
{
    const posenc_contract_facts *facts = &run->model.facts;
    if (facts->num_sets < 1)
        return tool_fail(TOOL_REFUSED, "%s: the model has no rotary frequency set",
                         run->model.name);
    if (run->options.limit && facts->max_position < 1)
        return tool_fail(TOOL_REFUSED, "%s: --limit: the model states no trained limit",
                         run->model.name);
    if (run->options.layers > facts->num_layers)
        return tool_fail(TOOL_REFUSED, "%s: --layers is %lld: the model has %lld", run->model.name,
                         (long long)run->options.layers, (long long)facts->num_layers);
    for (int32_t isa = POSENC_ISA_SCALAR; isa <= POSENC_ISA_NEON; isa++)
        if (posenc_isa_available(isa))
            run->isa[run->isas++] = isa;
    int64_t end = run->options.start + run->options.tokens;
    run->length = end > 0 ? end : 1;
    int code = run_choose_sets(run);
    for (int32_t s = 0; s < run->num_sets && !code; s++)
        code = make_set(run, s);
    if (code)
        return code;
    run->num_layers = run->options.layers ? run->options.layers : choose_layers(run);
    code = check_memory(run);
    if (!code)
        code = make_layers(run);
    if (!code && run->rotated_layers == 0)
        code = tool_fail(TOOL_REFUSED,
                         "%s: none of the first %lld layers is rotated%s: raise --layers",
                         run->model.name, (long long)run->num_layers,
                         run->options.set ? " by this set" : "");
    return code;
}

void run_tear_down(struct run *run)
{
    for (int32_t s = 0; s < run->num_sets; s++) {
        for (int i = 0; i < RUN_ISAS; i++)
            posenc_plan_free(run->sets[s].plan[i]);
        free(run->sets[s].inv_freq);
        free(run->sets[s].rows.data);
        free(run->sets[s].timed_rows.data);
    }
    for (int64_t l = 0; run->layers && l < run->num_layers; l++) {
        free(run->layers[l].q.data);
        free(run->layers[l].k.data);
    }
    free(run->sets);
    free(run->layers);
}
