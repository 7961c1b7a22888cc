/* SPDX-License-Identifier: MIT */
/*
 * Rows of a sinusoid made in registers and written, or added, where they belong. No fma but in the
 * sum: every machine rounds after each operation and gets the same doubles.
 *
 * Template. Before the inclusion:
 *   vec.h, vecd.h of the ISA   and two ways to make two vectors of doubles one of POSENC_LANES
 *                              floats: narrow, one after the other, and narrow_zip, in turns
 *   KERNEL(name)               the name of a kernel of this ISA
 * It defines KERNEL(sinusoid_base) and KERNEL(sinusoid), which kernels.h describes.
 */
#include "base.h"
#include "channel.h"

#include "../sinusoid_block.h"

#define N POSENC_LANES
#include "element.h"

enum { ASK = 192 }; /* bytes ahead of what is written that are asked for; measured */

/* The constants of an instantiation. */
struct posenc_form {
    int adds, halves, cosine_first;
};

/* Rows that grow side by side, what leads from row to row being in registers. Measured. */
static POSENC_INLINE int side_by_side(struct posenc_form form)
{
    return form.adds && form.halves ? 8 : 4;
}

/* Some pairs: two rows, one position after the other. */
struct posenc_turn {
    f64s twice_cos, cos[2], sin[2];
};

void KERNEL(sinusoid_base)(const struct posenc_sinusoid_block *blocks, size_t count,
                           uint32_t position, struct posenc_sinusoid_state *state)
{
    for (; count; count--, blocks++, state++)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++) {
            f64s c, s;
            base_row(blocks->w, position, v, &c, &s);
            store_f64(&state->base_cos[v * F64_LANES], c);
            store_f64(&state->base_sin[v * F64_LANES], s);
        }
}

static POSENC_INLINE void turn_on(struct posenc_turn *turn)
{
    f64s c = sub_f64(mul_f64(turn->twice_cos, turn->cos[1]), turn->cos[0]);
    f64s s = sub_f64(mul_f64(turn->twice_cos, turn->sin[1]), turn->sin[0]);
    turn->cos[0] = turn->cos[1];
    turn->sin[0] = turn->sin[1];
    turn->cos[1] = c;
    turn->sin[1] = s;
}

/* The first two rows of a group. */
static POSENC_INLINE struct posenc_turn first_turn(const struct posenc_sinusoid_block *block,
                                                   const struct posenc_sinusoid_state *state,
                                                   size_t group, int at)
{
    const f64s a = load_f64(&state->base_cos[at]), b = load_f64(&state->base_sin[at]);
    struct posenc_turn turn = {.twice_cos = load_f64(&block->twice_cos[at])};
    for (int i = 0; i < 2; i++) {
        const f64s c = load_f64(&block->step_cos[group][i][at]);
        const f64s s = load_f64(&block->step_sin[group][i][at]);
        turn.cos[i] = sub_f64(mul_f64(a, c), mul_f64(b, s));
        turn.sin[i] = add_f64(mul_f64(b, c), mul_f64(a, s));
    }
    return turn;
}

/* The two rows that are kept. */
static POSENC_INLINE struct posenc_turn next_turn(const struct posenc_sinusoid_block *block,
                                                  const struct posenc_sinusoid_state *state, int at)
{
    return (struct posenc_turn){
        load_f64(&block->twice_cos[at]),
        {load_f64(&state->cos[0][at]), load_f64(&state->cos[1][at])},
        {load_f64(&state->sin[0][at]), load_f64(&state->sin[1][at])},
    };
}

static POSENC_INLINE void keep_turn(struct posenc_sinusoid_state *state, int at,
                                    const struct posenc_turn *turn)
{
    for (int i = 0; i < 2; i++) {
        store_f64(&state->cos[i][at], turn->cos[i]);
        store_f64(&state->sin[i][at], turn->sin[i]);
    }
}

/* N channels of one token. */
static POSENC_INLINE void put(const struct posenc_sinusoid_job *job, struct posenc_form form,
                              const char *x, char *y, FLOATS value)
{
    if (form.adds) {
        __builtin_prefetch(y + ASK, 0, 3);
        value = LANES(fma)(LANES(load_f32)((const float *)(const void *)x),
                           LANES(set1)(job->scale), value);
    } else {
        prefetch_write(y + ASK);
    }
    LANES(store_f32)((float *)(void *)y, value);
}

/* F64_LANES pairs of one row side by side, or twice as many in halves. */
static POSENC_INLINE void put_pairs(const struct posenc_sinusoid_job *job, struct posenc_form form,
                                    const char *x, char *y, const struct posenc_turn *turn)
{
    const f64s c = turn[0].cos[0], s = turn[0].sin[0];
    if (!form.halves) {
        put(job, form, x, y, form.cosine_first ? narrow_zip(c, s) : narrow_zip(s, c));
        return;
    }
    const FLOATS cos = narrow(c, turn[1].cos[0]), sin = narrow(s, turn[1].sin[0]);
    put(job, form, x, y, form.cosine_first ? cos : sin);
    put(job, form, form.adds ? x + job->second : x, y + job->second, form.cosine_first ? sin : cos);
}

/* Keeps the rows of base + step and the position behind it. A whole block goes on at a time, so
 * that its chains hide each other's latency. */
static void start_at(const struct posenc_sinusoid_job *job)
{
    const size_t group = job->step / POSENC_SINUSOID_GROUP;
    for (size_t i = 0; i < job->count; i++) {
        struct posenc_turn turn[VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            turn[v] = first_turn(&job->blocks[i], &job->state[i], group, v * F64_LANES);
        for (size_t n = job->step % POSENC_SINUSOID_GROUP; n; n--)
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS; v++)
                turn_on(&turn[v]);
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; v++)
            keep_turn(&job->state[i], v * F64_LANES, &turn[v]);
    }
}

/* What a pass over all blocks makes: rows from base + step on, in one group. */
struct posenc_pass {
    size_t step;
    int last; /* 1: the last ones of the group */
    const char *x;
    char *y;
};

/* The rows of the next pass, of which each may begin a page. */
static POSENC_INLINE void ask_rows(const struct posenc_sinusoid_job *job, char *y, int tokens)
{
    y += tokens * job->y_token;
    for (int t = 0; t < tokens; t++, y += job->y_token) {
        prefetch_write(y);
        prefetch_write(y + 64);
        if (job->second) {
            prefetch_write(y + job->second);
            prefetch_write(y + job->second + 64);
        }
    }
}

/* `tokens` rows, `first`: the first ones of the group. */
static POSENC_INLINE void put_rows(const struct posenc_sinusoid_job *job, struct posenc_form form,
                                   struct posenc_pass pass, int tokens, int first)
{
    const int vectors = form.halves ? 2 : 1;
    const size_t group = pass.step / POSENC_SINUSOID_GROUP;
    const size_t ask = job->ahead ? job->count * 3 / 4 : job->count;
    char *const rows = pass.y;
    for (size_t i = 0; i < job->count; i++) {
        const struct posenc_sinusoid_block *block = &job->blocks[i];
        struct posenc_sinusoid_state *state = &job->state[i];
        if (i == ask)
            ask_rows(job, rows, tokens);
        for (int at = 0; at < POSENC_ROW_BLOCK; at += vectors * F64_LANES) {
            struct posenc_turn turn[2];
            const char *x = pass.x;
            char *y = pass.y;
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                turn[v] = first ? first_turn(block, state, group, at + v * F64_LANES)
                                : next_turn(block, state, at + v * F64_LANES);
#pragma GCC unroll 8
            for (int t = 0; t < tokens; t++, y += job->y_token) {
                put_pairs(job, form, x, y, turn);
                if (form.adds)
                    x += job->x_token;
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    turn_on(&turn[v]);
            }
            if (!pass.last)
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    keep_turn(state, at + v * F64_LANES, &turn[v]);
            pass.y += sizeof(FLOATS);
            if (form.adds)
                pass.x += sizeof(FLOATS);
        }
    }
}

static POSENC_INLINE void all_rows(const struct posenc_sinusoid_job *job, struct posenc_form form)
{
    const size_t many = (size_t)side_by_side(form);
    struct posenc_pass pass = {.step = job->step, .x = job->x, .y = job->y};
    for (size_t left = job->tokens, tokens; left; left -= tokens) {
        const size_t n = pass.step % POSENC_SINUSOID_GROUP;
        tokens = left >= many && n + many <= POSENC_SINUSOID_GROUP ? many : 1;
        pass.last = n + tokens == POSENC_SINUSOID_GROUP;
        if (tokens == 1)
            put_rows(job, form, pass, 1, n == 0);
        else if (n == 0)
            put_rows(job, form, pass, side_by_side(form), 1);
        else
            put_rows(job, form, pass, side_by_side(form), 0);
        pass.step += tokens;
        pass.y += (ptrdiff_t)tokens * job->y_token;
        if (form.adds)
            pass.x += (ptrdiff_t)tokens * job->x_token;
    }
}

/* Each form is a function of its own: inlined into one, they would share its registers. The job is
 * copied, so that no store can be to a part of it. */
typedef void rows_function(struct posenc_sinusoid_job job);

#define FORM(name, adds, halves, cosine_first)                                                 \
    static __attribute__((noinline)) void name(struct posenc_sinusoid_job job)                 \
    {                                                                                          \
        all_rows(&job, (struct posenc_form){adds, halves, cosine_first});                      \
    }

FORM(sine_beside, 0, 0, 0)
FORM(cosine_beside, 0, 0, 1)
FORM(sine_halves, 0, 1, 0)
FORM(cosine_halves, 0, 1, 1)
FORM(add_sine_beside, 1, 0, 0)
FORM(add_cosine_beside, 1, 0, 1)
FORM(add_sine_halves, 1, 1, 0)
FORM(add_cosine_halves, 1, 1, 1)
#undef FORM

void KERNEL(sinusoid)(const struct posenc_sinusoid_job *job)
{
    /* [adds][halves][cosine first] */
    static rows_function *const rows[2][2][2] = {
        {{sine_beside, cosine_beside}, {sine_halves, cosine_halves}},
        {{add_sine_beside, add_cosine_beside}, {add_sine_halves, add_cosine_halves}},
    };
    if (job->step % POSENC_SINUSOID_GROUP && !job->goes_on)
        start_at(job);
    rows[job->x != NULL][job->second != 0][job->cosine_first != 0](*job);
}
