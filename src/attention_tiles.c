/* SPDX-License-Identifier: MIT */
/* Attention tile by tile: how a call is cut into walks of rows, and where their memory lies. */
#include "attention_scales.h"
#include "attention_walk.h"

enum {
    TILE = POSENC_ATTENTION_TILE,
    CHAINS = POSENC_ATTENTION_CHAINS,
    SPAN = POSENC_ATTENTION_SPAN,
    STACK = 43 << 10,   /* bytes: all else of a call fits the rest of 64 KiB */
    BLOCK_ROWS = 256,   /* of 128 to 512 the fastest */
    LEAST_ROWS = 8,     /* for which packing a tile pays */
    DIRECT_ROWS = 16,   /* rows of a head that read a tile directly */
    FEW_ROWS = 12,      /* fewer take the direct kernels */
    SIDE_BY_SIDE = 8,   /* rows that take a tile's keys before any takes its values */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The sums of a span that row `at` of the states has finished, if it saw a key in it; they start
 * afresh. */
static void end_span(const struct posenc_attention_walk *walk, int64_t at)
{
    const struct posenc_attention_room *room = &walk->room;
    if (!room->fresh[at])
        return;
    const struct posenc_attention_state total = {
        room->total_m + at, room->total_l + at * CHAINS, room->total_o + at * walk->padded};
    const struct posenc_attention_state span = {room->m + at, room->l + at * CHAINS,
                                                room->o + at * walk->padded};
    walk->kernels->fold(!room->any[at], &total, &span, walk->padded);
    room->any[at] = 1;
    room->fresh[at] = 0;
}

static float *state_of(const struct posenc_attention_walk *walk, int64_t key_head, int64_t r,
                       int64_t span)
{
    const struct posenc_attention_job *job = walk->job;
    int64_t token = walk->s.first_query + walk->token + r / walk->members;
    int64_t h = posenc_attention_query_head(job, key_head, walk->member + r % walk->members);
    int64_t at = (span - job->first_span) * (job->values + CHAINS + 1);
    return (float *)(void *)posenc_element(job->state, walk->s.batch, token, h, at);
}

static void put_state(const struct posenc_attention_walk *walk, int64_t span, int64_t at)
{
    const struct posenc_attention_room *room = &walk->room;
    size_t bytes = (size_t)walk->job->values * sizeof(float);
    float *l = room->l + at * CHAINS, *o = room->o + at * walk->padded;
    float *state = state_of(walk, walk->head + at / walk->rows, at % walk->rows, span);
    if (!room->fresh[at])
        return;
    state[0] = room->m[at];
    memcpy(state + 1, l, CHAINS * sizeof(float));
    memcpy(state + 1 + CHAINS, o, bytes);
    room->m[at] = -FLT_MAX;
    memset(l, 0, CHAINS * sizeof(float));
    memset(o, 0, bytes);
    room->fresh[at] = 0;
}

/* The last span of rows that are finished here is left to finish_row, which has them in L1 then. */
static void end_spans(const struct posenc_attention_walk *walk, int64_t span, int last)
{
    const int64_t all = walk->heads * walk->rows;
    if (walk->job->state)
        for (int64_t at = 0; at < all; at++)
            put_state(walk, span, at);
    else if (!last)
        for (int64_t at = 0; at < all; at++)
            end_span(walk, at);
}

/* Every span of every row as one that saw nothing. */
static void clear_states(const struct posenc_attention_walk *walk)
{
    const struct posenc_attention_job *job = walk->job;
    const int64_t width = job->values + CHAINS + 1;
    for (int64_t at = 0; at < walk->heads * walk->rows; at++) {
        float *state =
            state_of(walk, walk->head + at / walk->rows, at % walk->rows, job->first_span);
        memset(state, 0, (size_t)(job->spans * width) * sizeof(float));
        for (int64_t n = 0; n < job->spans; n++)
            state[n * width] = posenc_float(0xff800000u);
    }
}

static void begin_row(struct posenc_attention_walk *walk, int64_t key_head, int64_t r)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    int64_t at = (key_head - walk->head) * walk->rows + r, token = r / walk->members;
    int64_t member = r % walk->members;
    int64_t h = posenc_attention_query_head(job, key_head, walk->member + member);
    token += walk->s.first_query + walk->token;
    room->m[at] = -FLT_MAX;
    room->scale[at] = job->params.softcap > 0
                          ? posenc_attention_capped_scale(job, walk->s.batch, token, h)
                          : posenc_attention_scale(job, walk->s.batch, token, h);
    if (walk->needs.lines && job->params.alibi && r < walk->members) {
        posenc_attention_bias_head(&walk->bias, h);
        room->slope[(key_head - walk->head) * walk->members + member] = walk->bias.slope;
    }
}

/* Before the first rows: the end of a span leaves its sums as a fresh one's. */
static void clear_sums(const struct posenc_attention_walk *walk, int64_t all)
{
    const struct posenc_attention_room *room = &walk->room;
    memset(room->fresh, 0, (size_t)all);
    memset(room->l, 0, (size_t)(all * CHAINS) * sizeof(float));
    memset(room->o, 0, (size_t)(all * walk->padded) * sizeof(float));
}

static void begin_rows(struct posenc_attention_walk *walk)
{
    const struct posenc_attention_room *room = &walk->room;
    size_t all = (size_t)(walk->heads * walk->rows);
    memset(room->any, 0, all);
    for (int64_t n = 0; n < walk->heads; n++)
        for (int64_t r = 0; r < walk->rows; r++)
            begin_row(walk, walk->head + n, r);
    walk->ready = 0;
}

static void finish_row(const struct posenc_attention_walk *walk, int64_t key_head, int64_t r)
{
    const struct posenc_attention_job *job = walk->job;
    const struct posenc_attention_room *room = &walk->room;
    int64_t at = (key_head - walk->head) * walk->rows + r;
    int64_t token = walk->s.first_query + walk->token + r / walk->members;
    int64_t h = posenc_attention_query_head(job, key_head, walk->member + r % walk->members);
    if (r + POSENC_ATTENTION_AHEAD < walk->rows)
        posenc_attention_ask(
            job->out, posenc_attention_row(walk, job->out, key_head, r + POSENC_ATTENTION_AHEAD),
            1);
    end_span(walk, at);
    struct posenc_attention_sums total = {
        .m = room->total_m[at], .o = room->total_o + at * walk->padded, .any = room->any[at]};
    if (total.any)
        memcpy(total.l, room->total_l + at * CHAINS, sizeof(total.l));
    else
        posenc_attention_clear(&total, job->values);
    float *spare = room->o + at * walk->padded;
    float l = posenc_attention_finish(job, walk->s.batch, token, h, &total, spare);
    if (job->params.output_rows)
        memset(spare, 0, (size_t)job->values * sizeof(float));
    if (job->params.weights)
        posenc_attention_put_shares(walk, key_head, r, total.m, l);
}

/* The tile after one: of the next key head, or the next of the first; 0 if there is none. Tiles
 * that lie in the gap of all rows are passed over. */
static int next_tile(const struct posenc_attention_walk *walk, int64_t first, int64_t key_head,
                     struct posenc_attention_range range, struct posenc_attention_tile *tile)
{
    if (++key_head == walk->head + walk->heads) {
        key_head = walk->head;
        first = posenc_attention_after(range, first, TILE);
    }
    if (first >= range.end)
        return 0;
    posenc_attention_place(walk, key_head, first, range, tile);
    return 1;
}

/* How far apart neighbouring keys lie; in pages of one key it is not known. */
static ptrdiff_t token_step(const struct posenc_attention_job *job)
{
    ptrdiff_t token = posenc_step(job->k, job->k_map && job->k->shape[1] == 1 ? 0 : 1);
    return token < 0 ? -token : token;
}

/* After the last key head's tile at `first`; `next` is the tile after it, if it is in the range. */
static void end_tile(const struct posenc_attention_walk *walk, int64_t first, int64_t next,
                     struct posenc_attention_range range)
{
    if (next >= range.end || next / SPAN != first / SPAN)
        end_spans(walk, first / SPAN, next >= range.end);
}

/* Tiles from `first` on, until one is even; returns that one's first key, or an end. */
static int64_t go_by_tables(struct posenc_attention_walk *walk, int64_t first,
                            struct posenc_attention_range range)
{
    struct posenc_attention_tile tiles[2];
    struct posenc_attention_place even;
    posenc_attention_place(walk, walk->head, first, range, &tiles[0]);
    for (int at = 0, more = 1; more; at = !at) {
        const struct posenc_attention_tile *tile = &tiles[at];
        more = next_tile(walk, tile->first, tile->head, range, &tiles[!at]);
        if (walk->pages && tile->head == walk->head)
            posenc_attention_ask_pages(walk, tile->head, tile->first + 2 * TILE, range);
        posenc_attention_step(walk, tile, more ? &tiles[!at] : NULL);
        if (tile->head < walk->head + walk->heads - 1)
            continue;
        first = more ? tiles[!at].first : range.end;
        end_tile(walk, tile->first, first, range);
        if (walk->has_even && posenc_attention_place_evenly(walk, first, &range, &even))
            return first;
    }
    return range.end;
}

/* Even tiles from `first` on; returns where they end. */
static int64_t go_evenly(struct posenc_attention_walk *walk, int64_t first,
                         struct posenc_attention_range range)
{
    struct posenc_attention_place places[2];
    int more = posenc_attention_place_evenly(walk, first, &range, &places[0]);
    for (int at = 0; more; at = !at) {
        struct posenc_attention_place *next = &places[!at];
        const int64_t after = posenc_attention_after(range, first, TILE);
        more = posenc_attention_place_evenly(walk, after, &range, next);
        /* Before the last keys, fewer than a tile, their lines are fetched with those before. */
        if (!more && (after + TILE < range.end ||
                      !posenc_attention_place_evenly(walk, range.end - TILE, &range, next)))
            *next = places[at];
        if (walk->even.pages)
            posenc_attention_ask_pages(walk, walk->head, first + 2 * TILE, range);
        posenc_attention_even_step(walk, &places[at], next);
        end_tile(walk, first, after, range);
        first = after;
    }
    return first;
}

static void go_through(struct posenc_attention_walk *walk, struct posenc_attention_range range)
{
    for (int64_t first = range.begin - range.begin % TILE; first < range.end;) {
        if (walk->has_even)
            first = go_evenly(walk, first, range);
        if (first < range.end)
            first = go_by_tables(walk, first, range);
    }
}

/* All rows of [token, token + tokens) x [member, member + members) of the key heads of a walk. */
static void walk_rows(struct posenc_attention_walk *walk)
{
    const struct posenc_attention_range range =
        posenc_attention_summed(walk->job, &walk->s, walk->token, walk->tokens);
    walk->rows = walk->tokens * walk->members;
    begin_rows(walk);
    if (walk->job->state)
        clear_states(walk);
    if (range.begin < range.end)
        go_through(walk, range);
    for (int64_t n = 0; !walk->job->state && n < walk->heads; n++)
        for (int64_t r = 0; r < walk->rows; r++)
            finish_row(walk, walk->head + n, r);
}

/* How many rows of one key head have room. */
static int64_t fit_rows(const struct posenc_attention_needs *needs, int64_t turned_keys,
                        int64_t most, size_t memory)
{
    struct posenc_attention_room none;
    size_t fixed = posenc_attention_room(&none, needs, 1, 0, turned_keys, NULL);
    size_t each = (posenc_attention_room(&none, needs, 1, TILE, turned_keys, NULL) - fixed) / TILE;
    int64_t rows = fixed < memory ? (int64_t)((memory - fixed) / each) : 0;
    rows = rows < most ? rows : most;
    while (rows > 0 && posenc_attention_room(&none, needs, 1, rows, turned_keys, NULL) > memory)
        rows--;
    return rows;
}

/* How the rows of a sequence are cut. */
struct cut {
    int64_t rows, heads, turned_keys;
};

static struct cut cut_rows(struct posenc_attention_needs *needs, int64_t all, size_t memory)
{
    struct cut cut = {0, 1, needs->turned ? TILE : 0};
    const int wide_q = needs->wide_q;
    needs->block = all >= FEW_ROWS;
    if (needs->block) {
        /* Queries side by side: those of a view may lie 4 KiB apart, which one cache set holds. */
        needs->wide_q = 1;
        int64_t most = all < BLOCK_ROWS ? all : BLOCK_ROWS;
        cut.rows = fit_rows(needs, cut.turned_keys, most, memory);
        if (cut.rows >= LEAST_ROWS)
            return cut;
        needs->block = 0;
        needs->wide_q = wide_q;
    }
    for (;; cut.turned_keys /= 4) {
        cut.rows = fit_rows(needs, cut.turned_keys, all < DIRECT_ROWS ? all : DIRECT_ROWS, memory);
        if (cut.rows > 0 || cut.turned_keys <= 1)
            return cut;
    }
}

/* Key heads that walk together: all that have room where a key's heads lie side by side. */
static int64_t fit_heads(const struct posenc_attention_job *job,
                         const struct posenc_attention_needs *needs, const struct cut *cut,
                         size_t memory)
{
    struct posenc_attention_room none;
    ptrdiff_t head = posenc_step(job->k, 2);
    int64_t heads = job->key_heads, parts = 1;
    if (token_step(job) < (head < 0 ? -head : head))
        return 1;
    while (heads > 1 && posenc_attention_room(&none, needs, heads, cut->rows, cut->turned_keys,
                                              NULL) > memory)
        parts++, heads = (job->key_heads + parts - 1) / parts;
    return heads;
}

/* Key heads that take a tile side by side, as far as there is room. */
static void fit_together(struct posenc_attention_needs *needs, int64_t heads, const struct cut *cut,
                         size_t memory)
{
    struct posenc_attention_room none;
    const int64_t most = least((SIDE_BY_SIDE + cut->rows - 1) / cut->rows, heads);
    while (needs->together < most) {
        needs->together++;
        const size_t wanted =
            posenc_attention_room(&none, needs, heads, cut->rows, cut->turned_keys, NULL);
        if (wanted > memory) {
            needs->together--;
            return;
        }
    }
}

/* Queries before heads: all heads of a query often lie in one page of q and of out, and a page that
 * is left for long costs more to find again than keys do to read again. */
static void cut_members(struct posenc_attention_walk *walk, int64_t rows, int64_t heads)
{
    const struct posenc_attention_job *job = walk->job;
    int64_t group = job->heads / job->key_heads, parts = (group + rows - 1) / rows;
    int64_t members = (group + parts - 1) / parts, tokens = rows / members;
    /* Blocks of one size pack fewer tiles than full ones and a rest. */
    int64_t blocks = (walk->s.queries + tokens - 1) / tokens;
    tokens = (walk->s.queries + blocks - 1) / blocks;
    for (walk->token = 0; walk->token < walk->s.queries; walk->token += tokens) {
        walk->tokens = least(tokens, walk->s.queries - walk->token);
        for (walk->head = 0; walk->head < job->key_heads; walk->head += heads) {
            walk->heads = least(heads, job->key_heads - walk->head);
            for (walk->member = 0; walk->member < group; walk->member += members) {
                walk->members = least(members, group - walk->member);
                walk_rows(walk);
            }
        }
    }
}

static struct posenc_attention_needs needs_of(const struct posenc_attention_job *job)
{
    const posenc_attention_params *p = &job->params;
    int64_t of_k = posenc_attention_wide_scales(job->k_map);
    int64_t of_v = posenc_attention_wide_scales(job->v_map);
    return (struct posenc_attention_needs){
        .channels = job->channels, .values = job->values,
        .wide_q = p->query_rows || job->q->dtype != POSENC_F32, .lines = p->alibi || p->t5,
        .biases = p->bias || p->deberta, .turned = p->key_rows != NULL,
        .deberta = p->deberta != NULL,
        .gaps = job->keep > 0 && (p->window_left || p->chunk || job->k_map),
        .scales = of_k > of_v ? of_k : of_v, .together = 1};
}

/* Returns 0 if not even one row has room. */
static int walk_sequence(struct posenc_attention_walk *walk, void *memory, size_t size)
{
    const struct posenc_attention_job *job = walk->job;
    int64_t group = job->heads / job->key_heads;
    if (walk->s.queries == 0)
        return 1;
    walk->needs = needs_of(job);
    struct cut cut = cut_rows(&walk->needs, walk->s.queries * group, size);
    if (cut.rows == 0)
        return 0;
    int64_t heads = 1;
    walk->has_even = walk->s.queries == 1 && cut.rows >= group &&
                     posenc_attention_can_be_even(walk, group);
    if (walk->has_even)
        posenc_attention_even_begin(walk, group);
    walk->needs.in_order = walk->has_even && walk->even.in_order;
    if (!walk->needs.block && cut.rows >= walk->s.queries * group)
        heads = fit_heads(job, &walk->needs, &cut, size);
    if (walk->has_even)
        fit_together(&walk->needs, heads, &cut, size);
    /* Each of several heads meets pages again: CPUs that ask twice gain where keys share one. */
    walk->pages = !walk->needs.block &&
                  (heads == 1 || (walk->again && posenc_attention_shares_pages(job)));
    posenc_attention_room(&walk->room, &walk->needs, heads, cut.rows, cut.turned_keys, memory);
    clear_sums(walk, heads * cut.rows);
    walk->turned_keys = cut.turned_keys;
    cut_members(walk, cut.rows, heads);
    return 1;
}

/* By itself, so that its stack is free where the scalar job takes over. Returns 0 if not even one
 * row has room. */
static __attribute__((noinline)) int walk_all(const struct posenc_attention_job *job)
{
    _Alignas(64) char stack[STACK];
    struct posenc_attention_walk walk;
    int in_workspace = job->workspace && job->workspace_size > STACK;
    void *memory = in_workspace ? job->workspace : stack;
    size_t size = in_workspace ? job->workspace_size : STACK;
    walk.job = job;
    walk.kernels = job->kernels->attention_tiles;
    walk.again = posenc_fetches_twice();
    walk.alternates = posenc_attention_alternates(job, walk.again);
    walk.padded = posenc_attention_padded(job->values);
    posenc_attention_bias_init(&walk.bias, job);
    for (int64_t n = 0; n < job->sequences; n++) {
        walk.s = posenc_attention_sequence_of(job, n);
        if (!walk_sequence(&walk, memory, size))
            return 0;
    }
    return 1;
}

void posenc_attention_tiles_job(const struct posenc_attention_job *job)
{
    if (!walk_all(job))
        posenc_attention_scalar_job(job);
}

size_t posenc_attention_wanted(int64_t queries, int64_t group, int64_t channels, int64_t values)
{
    enum { ALIGNMENT = 64 };
    struct posenc_attention_room none;
    int64_t rows = queries < BLOCK_ROWS ? least(queries * group, BLOCK_ROWS) : BLOCK_ROWS;
    const int block = rows >= FEW_ROWS;
    const int64_t groups = (channels > values ? channels : values) / 32;
    const struct posenc_attention_needs needs = {
        channels, values, 1, 1, 1, 1, 1, 1, block, (groups > 1 ? groups : 1) * TILE, 1, 0};
    size_t few = posenc_attention_room(&none, &needs, 1, block ? rows : 1, block ? TILE : 1, NULL);
    if (rows == 0 || few <= STACK)
        return 0;
    return posenc_attention_room(&none, &needs, 1, rows, TILE, NULL) + ALIGNMENT;
}
