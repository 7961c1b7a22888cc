/* SPDX-License-Identifier: MIT */
/* Random calls of attention with chosen options, and everything that they point to. */
#include "attention_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention_support.h"
#include "support/half.h"

static void *own(struct options *o, size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    assert_non_null(memory);
    assert_true(o->owners < 40);
    o->owned[o->owners++] = memory;
    return memory;
}

static int64_t pick(struct options *o, int64_t low, int64_t high)
{
    return random_between(&o->seed, low, high);
}

static int has(const struct options *o, unsigned option)
{
    return (o->with & option) != 0;
}

void options_tensor(struct options *o, posenc_tensor *t, int32_t dtype, int64_t batch,
                    int64_t tokens, int64_t heads, int64_t channels)
{
    size_t count = (size_t)(batch * tokens * heads * channels);
    posenc_tensor_contiguous(t, own(o, count * test_size(dtype)), dtype, batch, tokens, heads,
                             channels);
    if (has(o, WITH_HEADS_FIRST)) {
        t->stride[1] = channels;
        t->stride[2] = tokens * channels;
    }
}

void options_fill(struct options *o, posenc_tensor *t, float by)
{
    for (int64_t n = tensor_count(t), i = 0; i < n; i++)
        test_store(t->data, t->dtype, i, by * random_float(&o->seed));
}

static int32_t dtype_of(struct options *o)
{
    return has(o, WITH_HALF) ? (int32_t)pick(o, POSENC_F32, POSENC_BF16) : POSENC_F32;
}

static void make_main(struct options *o)
{
    static const int64_t groups[16] = {1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 7, 8, 12, 16};
    struct attention_call *c = &o->call;
    int64_t batch = has(o, WITH_PACKED) ? 1 : pick(o, 1, 2), queries = pick(o, 1, 6);
    int64_t keys = has(o, WITH_LONG) ? pick(o, 1000, 2200) : pick(o, 1, 200);
    int64_t key_heads = pick(o, 1, 2), heads = key_heads * pick(o, 1, 3);
    int64_t channels = pick(o, 1, 70), values = pick(o, 1, 70);
    if (has(o, WITH_GROUPS)) {
        channels = 32 * (channels % 5 + 1);
        values = 32 * (values % 5 + 1);
    }
    if (has(o, WITH_LONG) || pick(o, 0, 3) == 0)
        queries = pick(o, 1, 2);
    int32_t of_keys = dtype_of(o), of_values = dtype_of(o);
    if (has(o, WITH_DECODING)) {
        queries = pick(o, 0, 5) ? 1 : pick(o, 1, 3);
        keys = has(o, WITH_LONG) ? keys : pick(o, 1, 400);
        key_heads = pick(o, 0, 1) ? pick(o, 1, 19) : 8 * pick(o, 1, 3); /* rows of whole 2 KiB */
        heads = key_heads * groups[pick(o, 0, 15)];
        channels = pick(o, 0, 7) ? 128 : 64;
        values = pick(o, 0, 7) ? 128 : 64;
        of_keys = (int32_t)pick(o, POSENC_F16, POSENC_BF16);
        of_values = (int32_t)pick(o, POSENC_F16, POSENC_BF16);
    }
    if (has(o, WITH_ROPE | WITH_OUTPUT_ROWS))
        channels += channels & 1;
    if (has(o, WITH_OUTPUT_ROWS))
        values = channels;
    options_tensor(o, &c->q, dtype_of(o), batch, queries, heads, channels);
    options_tensor(o, &c->k, of_keys, batch, keys, key_heads, channels);
    options_tensor(o, &c->v, of_values, batch, keys, key_heads, values);
    options_tensor(o, &c->out, dtype_of(o), batch, queries, heads, values);
    options_fill(o, &c->q, 1);
    options_fill(o, &c->k, 1);
    options_fill(o, &c->v, 1);
}

/* `count` numbers, the first and the last as given, never falling between. */
static const int64_t *starts(struct options *o, int64_t count, int64_t last)
{
    int64_t *s = own(o, (size_t)(count + 1) * sizeof(*s));
    for (int64_t i = 1; i < count; i++)
        s[i] = pick(o, s[i - 1], last);
    s[count] = last;
    return s;
}

static void make_sequences(struct options *o)
{
    struct attention_call *c = &o->call;
    posenc_attention_params *p = &c->params;
    int64_t keys = c->k.shape[1], count = c->q.shape[0];
    if (has(o, WITH_PACKED)) {
        count = p->sequences = pick(o, 1, 3);
        p->query_starts = starts(o, count, c->q.shape[1]);
        p->key_starts = starts(o, count, keys);
    }
    int64_t *counts = own(o, (size_t)count * sizeof(*counts));
    int64_t *offsets = own(o, (size_t)count * sizeof(*offsets));
    int64_t *firsts = own(o, (size_t)count * sizeof(*firsts));
    for (int64_t s = 0; s < count; s++) {
        int64_t most = p->sequences ? p->key_starts[s + 1] - p->key_starts[s] : keys;
        counts[s] = pick(o, 0, most);
        firsts[s] = pick(o, 0, 3000);
        offsets[s] = pick(o, -3, firsts[s] + keys + 3);
    }
    if (has(o, WITH_COUNTS))
        p->key_counts = counts;
    if (!has(o, WITH_PLACES))
        return;
    p->align = (int32_t)pick(o, POSENC_ALIGN_BOTTOM_RIGHT, POSENC_ALIGN_OFFSET);
    p->first_key = pick(o, 0, 100);
    if (pick(o, 0, 1))
        p->first_keys = firsts;
    if (p->align == POSENC_ALIGN_OFFSET && pick(o, 0, 1))
        p->query_offsets = offsets;
    else if (p->align == POSENC_ALIGN_OFFSET)
        p->query_offset = pick(o, -3, 300);
}

static void make_bias(struct options *o)
{
    const int64_t *q = o->call.q.shape;
    options_tensor(o, &o->bias, dtype_of(o), pick(o, 0, 1) ? q[0] : 1, pick(o, 0, 1) ? q[1] : 1,
                   pick(o, 0, 1) ? q[2] : 1, o->call.k.shape[1]);
    options_fill(o, &o->bias, 1);
    int64_t hide = pick(o, 2, 9);
    for (int64_t n = tensor_count(&o->bias), i = 0; i < n; i++)
        if (pick(o, 0, hide) == 0)
            test_store(o->bias.data, o->bias.dtype, i, -INFINITY);
    o->call.params.bias = &o->bias;
}

static void make_alibi(struct options *o)
{
    const int64_t heads = o->call.q.shape[2], count = o->call.q.shape[0] * o->call.k.shape[1];
    double *slopes = own(o, (size_t)heads * sizeof(*slopes));
    int64_t *positions = own(o, (size_t)count * sizeof(*positions));
    posenc_alibi_params_init(&o->alibi);
    o->alibi.form = (int32_t)pick(o, POSENC_ALIBI_DISTANCE, POSENC_ALIBI_FALCON);
    o->alibi.heads = heads + pick(o, 0, 3);
    o->alibi.first_head = pick(o, 0, o->alibi.heads - heads);
    for (int64_t h = 0; h < heads; h++)
        slopes[h] = random_float(&o->seed) * 0.1;
    for (int64_t i = 0; i < count; i++)
        positions[i] = pick(o, -5, 300);
    if (pick(o, 0, 2) == 0)
        o->alibi.slopes = slopes;
    if (pick(o, 0, 1))
        o->alibi.scale = 0.125;
    if (o->alibi.form != POSENC_ALIBI_DISTANCE && o->alibi.form != POSENC_ALIBI_ABS &&
        pick(o, 0, 1))
        o->alibi.key_positions = positions;
    o->call.params.alibi = &o->alibi;
}

static void make_buckets(struct options *o)
{
    const int64_t heads = o->call.q.shape[2], channels = o->call.q.shape[3];
    if (has(o, WITH_T5)) {
        posenc_t5_params_init(&o->t5);
        o->t5.bidirectional = (int32_t)pick(o, 0, 1);
        options_tensor(o, &o->t5_table, dtype_of(o), 1, o->t5.num_buckets, 1, heads);
        options_fill(o, &o->t5_table, 1);
        o->call.params.t5 = &o->t5;
        o->call.params.t5_table = &o->t5_table;
    }
    if (has(o, WITH_DEBERTA)) {
        posenc_attention_deberta *d = &o->deberta;
        *d = (posenc_attention_deberta){.struct_size = sizeof(*d), .buckets = 16};
        d->max_distance = 60;
        options_tensor(o, &o->position_keys, dtype_of(o), 1, 32, heads, channels);
        options_tensor(o, &o->position_queries, dtype_of(o), 1, 32, heads, channels);
        options_fill(o, &o->position_keys, 1);
        options_fill(o, &o->position_queries, 1);
        int64_t terms = pick(o, 1, 3);
        d->position_keys = terms & 1 ? &o->position_keys : NULL;
        d->position_queries = terms & 2 ? &o->position_queries : NULL;
        o->call.params.deberta = d;
    }
}

/* Rows of random angles in batch rows of their own, or shared ones. */
static void make_rows(struct options *o, posenc_tensor *rows, int64_t tokens)
{
    int64_t batch = pick(o, 0, 1) ? o->call.q.shape[0] : 1, pairs = o->rope.rotary_dim / 2;
    float factor = (float)posenc_plan_attention_factor(o->plan);
    options_tensor(o, rows, POSENC_F32, batch, tokens, 1, 2 * pairs);
    for (int64_t t = 0; t < batch * tokens; t++)
        for (int64_t i = 0; i < pairs; i++) {
            float *row = (float *)rows->data + t * 2 * pairs, angle = random_float(&o->seed);
            row[i] = cosf(angle) * factor;
            row[pairs + i] = sinf(angle) * factor;
        }
}

static void make_rope(struct options *o)
{
    posenc_attention_params *p = &o->call.params;
    const int64_t channels = o->call.q.shape[3], keys = o->call.k.shape[1];
    posenc_rope_params_init(&o->rope);
    o->rope.layout = (int32_t)pick(o, POSENC_ADJACENT, POSENC_SPLIT_HALF);
    o->rope.head_dim = (int32_t)channels;
    o->rope.rotary_dim = (int32_t)(2 * pick(o, 1, channels / 2));
    o->rope.rotary_offset = (int32_t)pick(o, 0, channels - o->rope.rotary_dim);
    if (pick(o, 0, 1))
        o->rope.attention_factor = 1.25;
    assert_int_equal(posenc_plan_create(&o->plan, &o->rope, NULL), POSENC_OK);
    o->call.rope = &o->rope;
    p->rope = o->plan;
    make_rows(o, &o->query_rows, o->call.q.shape[1]);
    make_rows(o, &o->key_rows, keys);
    make_rows(o, &o->output_rows, o->call.q.shape[1]);
    int64_t sides = pick(o, 1, 3);
    if (has(o, WITH_ROPE) && sides & 1)
        p->query_rows = &o->query_rows;
    if (has(o, WITH_ROPE) && sides & 2) {
        p->key_rows = &o->key_rows;
        p->rotate_from = pick(o, 0, 1) ? pick(o, 0, keys) : 0;
    }
    if (has(o, WITH_OUTPUT_ROWS))
        p->output_rows = &o->output_rows;
}

static void make_scores(struct options *o)
{
    posenc_attention_params *p = &o->call.params;
    const int64_t *q = o->call.q.shape;
    float *sinks = own(o, (size_t)q[2] * sizeof(*sinks));
    for (int64_t h = 0; h < q[2]; h++)
        sinks[h] = 2 * random_float(&o->seed);
    if (has(o, WITH_SINKS))
        p->sinks = sinks;
    if (has(o, WITH_SOFTCAP))
        p->softcap = pick(o, 0, 1) ? 0.75 : 5;
    if (has(o, WITH_TEMPERATURE)) {
        options_tensor(o, &o->temperature, POSENC_F32, pick(o, 0, 1) ? q[0] : 1,
                       pick(o, 0, 1) ? q[1] : 1, pick(o, 0, 1) ? q[2] : 1, 1);
        options_fill(o, &o->temperature, 1);
        p->temperature = &o->temperature;
    }
    if (has(o, WITH_SCALES)) {
        p->scale = pick(o, 0, 1) ? 0.37 : 0;
        p->multiplier = pick(o, 0, 1) ? 1.3 : 0;
        p->head_map = (int32_t)pick(o, POSENC_HEADS_GROUPED, POSENC_HEADS_INTERLEAVED);
    }
}

static void make_results(struct options *o)
{
    posenc_attention_params *p = &o->call.params;
    const int64_t *q = o->call.q.shape;
    options_tensor(o, &o->lse, POSENC_F32, q[0], q[1], q[2], 1);
    if (has(o, WITH_LSE))
        p->lse = &o->lse;
    int64_t n = pick(o, 1, q[1]), *rows = own(o, (size_t)n * sizeof(*rows));
    for (int64_t i = 0; i < n; i++)
        rows[i] = pick(o, 0, q[1] - 1);
    options_tensor(o, &o->weights, POSENC_F32, q[0], n, q[2], o->call.k.shape[1]);
    if (has(o, WITH_WEIGHTS)) {
        p->weights = &o->weights;
        p->weight_rows = rows;
    }
}

void options_init(struct options *o, unsigned with, uint64_t seed)
{
    *o = (struct options){.with = with, .seed = seed};
    posenc_attention_params *p = &o->call.params;
    posenc_attention_params_init(p);
    make_main(o);
    make_sequences(o);
    p->causal = has(o, WITH_CAUSAL);
    if (has(o, WITH_WINDOW)) {
        p->window_left = pick(o, 0, 91);
        p->window_right = pick(o, 0, 91);
    }
    if (has(o, WITH_CHUNK))
        p->chunk = pick(o, 1, 40);
    if (has(o, WITH_KEEP)) {
        p->keep = pick(o, 1, pick(o, 0, 3) ? 9 : 150);
        if (has(o, WITH_DECODING) && pick(o, 0, 1))
            p->keep = 64 * pick(o, 1, 3); /* a gap that begins with a tile */
        if (!p->window_left && !p->chunk)
            p->window_left = pick(o, 1, 60);
    }
    if (has(o, WITH_BIAS))
        make_bias(o);
    if (has(o, WITH_ALIBI))
        make_alibi(o);
    make_buckets(o);
    if (has(o, WITH_ROPE | WITH_OUTPUT_ROWS))
        make_rope(o);
    make_scores(o);
    make_results(o);
}

void options_free(struct options *o)
{
    posenc_plan_free(o->plan);
    for (int i = 0; i < o->owners; i++)
        free(o->owned[i]);
}

unsigned options_choose(uint64_t *seed)
{
    static const unsigned terms[4] = {0, WITH_ALIBI, WITH_T5, WITH_DEBERTA};
    const unsigned any = (1u << OPTION_COUNT) - 1;
    unsigned with = (unsigned)(random_bits(seed) & random_bits(seed)) & any;
    with &= ~(unsigned)(WITH_ALIBI | WITH_T5 | WITH_DEBERTA);
    with |= terms[random_between(seed, 0, 3)];
    return random_between(seed, 0, 5) ? with & ~(unsigned)WITH_LONG : with;
}

const char *options_text(unsigned with, char *text, size_t size)
{
    static const char *const names[OPTION_COUNT] = {
        "causal", "window", "places", "counts", "packed", "half", "bias", "alibi", "t5", "deberta",
        "softcap", "sinks", "temperature", "rope", "output_rows", "lse", "weights", "scales",
        "long", "heads_first", "chunk", "keep"};
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (with >> i & 1)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? "|" : "", names[i]);
    return text;
}

static size_t bytes_of(const posenc_tensor *t)
{
    return (size_t)tensor_count(t) * test_size(t->dtype);
}

size_t options_result_bytes(const struct options *o)
{
    return bytes_of(&o->call.out) + bytes_of(&o->lse) + bytes_of(&o->weights);
}

void options_results(const struct options *o, void *to)
{
    const posenc_tensor *t[3] = {&o->call.out, &o->lse, &o->weights};
    char *at = to;
    for (int i = 0; i < 3; at += bytes_of(t[i++]))
        memcpy(at, t[i]->data, bytes_of(t[i]));
}

void options_run(struct options *o, int32_t isa)
{
    struct attention_call *c = &o->call;
    posenc_error error = {0};
    char text[200];
    c->params.isa = isa;
    memset(c->out.data, FILL_BYTE, bytes_of(&c->out));
    memset(o->lse.data, FILL_BYTE, bytes_of(&o->lse));
    memset(o->weights.data, FILL_BYTE, bytes_of(&o->weights));
    if (posenc_attention(&c->params, &c->q, &c->k, &c->v, &c->out, &error) != POSENC_OK)
        fail_msg("%s: %s", options_text(o->with, text, sizeof(text)), error.text);
}
