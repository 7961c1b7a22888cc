/* SPDX-License-Identifier: MIT */
/* A call of rows, rotate and rope with right arguments, for tests that spoil one of them. */
#ifndef TEST_CALL_H
#define TEST_CALL_H

#include "test.h"

enum { BATCH = 2, TOKENS = 3, Q_HEADS = 2, K_HEADS = 1, CHANNELS = 16, WIDTH = 8, OFFSET = 4 };
enum { Q_SIZE = BATCH * TOKENS * Q_HEADS * CHANNELS, K_SIZE = BATCH * TOKENS * K_HEADS * CHANNELS };
enum { ROWS_SIZE = BATCH * TOKENS * WIDTH, SLACK = 64 };

/* All memory that a call may reach, so that "nothing written" is one comparison. */
struct memory {
    float q[Q_SIZE + SLACK], q_out[Q_SIZE + SLACK], k[K_SIZE + SLACK], k_out[K_SIZE + SLACK];
    float rows[ROWS_SIZE + SLACK];
    int64_t ids[BATCH * TOKENS + 2];
};

/* The arguments of all functions; a test changes one and calls. Pointers may become NULL. */
struct call {
    posenc_plan *plan;
    int32_t direction;
    posenc_positions positions;
    posenc_tensor rows, q, q_out, k, k_out;
    const posenc_positions *positions_arg;
    const posenc_tensor *rows_arg, *q_arg, *q_out_arg, *k_arg, *k_out_arg;
};

extern struct memory memory;

/* Makes and frees the plan of all calls: fixtures of a group of tests. */
int call_setup(void **state);
int call_teardown(void **state);

/* A call that is right in all arguments. It and `memory` are the same objects each time. */
struct call *fresh(void);

/* The same with positions of that kind, in memory.ids. */
struct call *with_ids(int32_t kind);

/* Sets of functions. */
enum { ROWS = 1, ROTATE = 2, ROPE = 4 };

/* Every function of the set accepts the call. */
void accept(unsigned functions, const struct call *c);

/* Instead of a status: a wrong shape may also be seen as an overlap of the view with itself. */
enum { EITHER = -1 };

/* Every function of the set refuses the call, with and without an error, and writes nothing. */
void refuse(unsigned functions, const struct call *c, int32_t expected, const char *words);

/* The same for the flat call, with the plan of `c`. */
struct flat {
    void *q, *k;
    int32_t dtype;
    size_t batch, tokens, q_heads, k_heads;
    int64_t start;
};
void refuse_flat(const posenc_plan *plan, const struct flat *f, int32_t expected,
                 const char *words);

#endif
