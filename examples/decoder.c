/* SPDX-License-Identifier: MIT */
/*
 * A decoder whose positions are all by posenc: rows once a step; norm, rotation and store in one
 * pass; attention over caches. Layer 0 sees a window and the first tokens, layer 1 everything. With
 * one type of cache it says the same, bit for bit, however prompts are cut and wherever keys lie.
 *
 *     cc decoder.c $(pkg-config --cflags --libs posenc) -o decoder
 *     ./decoder [CHUNK [KIND [DTYPE]]]    KIND: a POSENC_CACHE_*, or 0: a ring, then pages
 */
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 2, HEADS = 4, KEY_HEADS = 2, WIDTH = 32, HIDDEN = 64, VOCABULARY = 96 };
enum { QUERY = HEADS * WIDTH, KEY = KEY_HEADS * WIDTH, PACKED = QUERY + 2 * KEY }; /* channels */
enum { PROMPT = 80, GENERATED = 64, TOKENS = PROMPT + GENERATED, CHUNK = 64 };
enum { WINDOW = 24, KEEP = 4, PAGE = 16, PAGES = TOKENS / PAGE };

static struct {
    float embedding[VOCABULARY][HIDDEN], head[VOCABULARY][HIDDEN];
    float qkv[LAYERS][PACKED][HIDDEN], out[LAYERS][HIDDEN][QUERY];
    float norms[LAYERS][2][WIDTH]; /* of q and k; 1 is added */
} weights;

/* Keys or values of a layer, in room for the largest type. */
struct store {
    float rows[TOKENS * KEY], scales[TOKENS * KEY_HEADS];
    posenc_cache_header header;
    posenc_cache cache;
};
static struct store keys[LAYERS], values[LAYERS];
static const int32_t pages[PAGES] = {5, 0, 7, 2, 8, 4, 1, 6, 3};
static int32_t tokens[TOKENS];
static float logits[GENERATED][VOCABULARY];
/* What a step works on. */
static float x[CHUNK * HIDDEN], qkv[CHUNK * PACKED], seen[CHUNK * QUERY], turns[CHUNK * WIDTH];
static posenc_plan *plan;
static posenc_error error;

static void must(int32_t status)
{
    if (status) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

/* y = W x, or y + W x, of n tokens. The product of two floats is exact as a double: a compiler that
 * makes it one operation with the sum does not change a bit. */
static void project(const float *w, const float *in, int cols, float *out, int rows, int n, int add)
{
    for (int t = 0; t < n; t++)
        for (int r = 0; r < rows; r++) {
            double sum = add ? out[t * rows + r] : 0;
            for (int c = 0; c < cols; c++)
                sum += (double)w[r * cols + c] * in[t * cols + c];
            out[t * rows + r] = (float)sum;
        }
}

/* `by` is what turns the rows; NULL: nothing does. */
static void open_store(struct store *s, int32_t kind, int32_t dtype, int slots, posenc_plan *by)
{
    const int blocks = kind == POSENC_CACHE_PAGED ? PAGES : 1;
    posenc_cache *c = &s->cache;
    posenc_cache_init(c);
    c->kind = kind;
    posenc_tensor_contiguous(&c->rows, s->rows, dtype, blocks, slots, KEY_HEADS, WIDTH);
    if (dtype == POSENC_I8) /* a scale for each head */
        posenc_tensor_contiguous(&c->scales, s->scales, POSENC_F32, blocks, slots, KEY_HEADS, 1);
    c->keep = kind == POSENC_CACHE_RING ? KEEP : 0;
    if (kind == POSENC_CACHE_PAGED) {
        c->pages = pages; /* [sequences][sequence_pages] */
        c->page_stride = c->sequence_pages = PAGES;
        c->sequences = 1;
    }
    must(posenc_cache_header_init(&s->header, c, by, &error));
    c->header = &s->header;
}

static void open_model(int chunk, int32_t kind, int32_t dtype)
{
    posenc_rope_params params;
    posenc_rope_params_init(&params);
    params.layout = POSENC_SPLIT_HALF;
    params.head_dim = params.rotary_dim = WIDTH;
    params.scaling = POSENC_SCALING_YARN;
    params.factor = 4;
    params.original_max_position = 32;
    must(posenc_plan_create(&plan, &params, &error));
    for (uint32_t i = 0, random = 1; i < sizeof weights / sizeof(float); i++) {
        random = random * 1664525 + 1013904223;
        ((float *)&weights)[i] = (float)(random >> 8) / 0x1p25f - 0.25f;
    }
    for (int i = 0; i < LAYERS; i++) {
        const int32_t own = kind ? kind : i == 0 ? POSENC_CACHE_RING : POSENC_CACHE_PAGED;
        int slots = own == POSENC_CACHE_PAGED ? PAGE : TOKENS;
        if (own == POSENC_CACHE_RING && i == 0)
            slots = KEEP + WINDOW - 1 + chunk; /* what the first token of a step sees, and a step */
        open_store(&keys[i], own, dtype, slots, plan);
        open_store(&values[i], own, dtype, slots, NULL);
    }
}

/* Heads that are a part of the channels of tokens. */
static posenc_tensor view(float *data, int n, int channels, int heads)
{
    return (posenc_tensor){data, POSENC_F32, {1, n, heads, WIDTH}, {0, channels, WIDTH, 1}};
}

/* src becomes the keys from `first` on; with rows it is normed and turned on the way. */
static void append(const posenc_tensor *src, const posenc_cache *to, int first,
                   const posenc_tensor *rows, float *norm)
{
    const posenc_tensor factors = view(norm, 1, WIDTH, 1);
    posenc_append_params params;
    posenc_append_params_init(&params);
    params.start = first;
    if (rows) {
        params.norm = POSENC_NORM_HEAD;
        params.eps = 1e-6;
        params.weight = &factors;
        params.weight_plus_one = 1;
        params.rope = plan;
        params.rows = rows;
    }
    must(posenc_cache_append(&params, src, to, &error));
}

/* q, k and v are parts of one projection. q is turned where it lies: any tensor is a cache. */
static void attend(int layer, int first, int n, const posenc_tensor *rows)
{
    const posenc_tensor q = view(qkv, n, PACKED, HEADS);
    const posenc_tensor k = view(qkv + QUERY, n, PACKED, KEY_HEADS);
    const posenc_tensor v = view(qkv + QUERY + KEY, n, PACKED, KEY_HEADS);
    const posenc_tensor out = view(seen, n, QUERY, HEADS);
    const int64_t in_use = first + n; /* in a ring with those that were overwritten */
    posenc_cache in_place, *k_cache = &keys[layer].cache, *v_cache = &values[layer].cache;
    posenc_attention_params params;
    posenc_cache_plain(&in_place, &q);
    append(&q, &in_place, 0, rows, weights.norms[layer][0]);
    append(&k, k_cache, first, rows, weights.norms[layer][1]);
    append(&v, v_cache, first, NULL, NULL);
    posenc_attention_params_init(&params);
    params.causal = 1;
    params.key_counts = &in_use;
    params.window_left = layer == 0 ? WINDOW : 0;
    params.keep = layer == 0 ? KEEP : 0;
    must(posenc_attention_cached(&params, &q, k_cache, v_cache, &out, &error));
}

/* Tokens first .. first + n - 1; logits of what follows them. */
static void run_step(int first, int n, float *next)
{
    const posenc_tensor rows = view(turns, n, WIDTH, 1);
    posenc_positions positions;
    posenc_positions_start(&positions, first);
    must(posenc_rows(plan, &positions, &rows, &error)); /* for all layers */
    for (int i = 0; i < n * HIDDEN; i++)
        x[i] = weights.embedding[tokens[first + i / HIDDEN]][i % HIDDEN];
    for (int i = 0; i < LAYERS; i++) {
        project(weights.qkv[i][0], x, HIDDEN, qkv, PACKED, n, 0);
        attend(i, first, n, &rows);
        project(weights.out[i][0], seen, QUERY, x, HIDDEN, n, 1);
    }
    project(weights.head[0], x + (n - 1) * HIDDEN, HIDDEN, next, VOCABULARY, 1, 0);
}

/* The prompt `chunk` tokens at a time, then one by one the token with the largest logit. */
static void generate(int chunk, int32_t kind, int32_t dtype)
{
    open_model(chunk, kind, dtype);
    for (int t = 0; t < PROMPT; t++)
        tokens[t] = t * t * 31 % VOCABULARY;
    for (int t = 0; t < PROMPT; t += chunk)
        run_step(t, t + chunk < PROMPT ? chunk : PROMPT - t, logits[0]);
    for (int t = PROMPT; t < TOKENS; t++) {
        float *next = logits[t - PROMPT];
        if (t > PROMPT)
            run_step(t - 1, 1, next);
        for (int i = tokens[t] = 0; i < VOCABULARY; i++)
            tokens[t] = next[i] > next[tokens[t]] ? i : tokens[t];
    }
    posenc_plan_free(plan);
}

int main(int argc, char **argv)
{
    const int chunk = argc > 1 ? atoi(argv[1]) : CHUNK;
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    if (chunk < 1 || chunk > CHUNK)
        return 2;
    generate(chunk, argc > 2 ? atoi(argv[2]) : 0, argc > 3 ? atoi(argv[3]) : POSENC_F16);
    for (size_t i = 0; i < sizeof logits[0]; i++)
        hash = (hash ^ ((unsigned char *)logits[GENERATED - 1])[i]) * 0x100000001b3;
    for (int t = PROMPT; t < TOKENS; t++)
        printf("%d%c", tokens[t], t % 16 == 15 ? '\n' : ' ');
    printf("the last logits hash to %016llx\n", (unsigned long long)hash);
    return 0;
}
