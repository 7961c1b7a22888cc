/* SPDX-License-Identifier: MIT */
/* Rows of attention that walk through the tiles of keys together. */
#ifndef POSENC_ATTENTION_WALK_H
#define POSENC_ATTENTION_WALK_H

#include "attention_bias.h"
#include "attention_job.h"
#include "attention_kernels.h"

/* What a walk needs memory for, beside the states of its rows. */
struct posenc_attention_needs {
    int64_t channels, values;
    int wide_q;   /* 1: q is not read where it lies */
    int lines;    /* 1: terms by place */
    int biases;   /* 1: rows have biases of their own */
    int turned;   /* 1: stored keys are rotated first */
    int deberta;  /* 1: terms that are products with queries and keys */
    int gaps;     /* 1: rows may see kept keys and a window apart from them */
    int block;    /* 1: the block kernels */
    int64_t scales; /* floats of a tile's scales: see posenc_attention_wide_scales */
    int64_t together; /* key heads whose rows take a tile side by side: 1 but for even tiles */
    int in_order;     /* 1: even tiles in the order of memory, one row a head */
};

/*
 * The memory of a walk, cut from one piece. The states of rows, [heads][rows], are sums of the open
 * span (m, l, o) and of the finished ones (total); the rest is for one tile of one key head. NULL
 * where it is not needed.
 */
struct posenc_attention_room {
    float *m, *l, *o, *total_m, *total_l, *total_o; /* l: 16 floats, o: values rounded up to 16 */
    float *scale;
    uint8_t *fresh, *any; /* the open span, a finished one has seen a key */
    double *slope;        /* ALiBi's, [heads][members] */

    /* of the key heads side by side: [together][rows] */
    const float **q;
    float *wide_q;
    float *w, *a;
    float *spare;         /* of heads in the order of memory, [together][128] */
    uint8_t *begin, *end; /* room for 64 at least */
    uint64_t *hidden;

    const float **bias;
    float *biases; /* [rows][64] */
    float *line;   /* [members][64 + tokens] */
    float *tile;   /* packed keys, then widened values */
    float *turned; /* [turned_keys][channels rounded up to 16] */
    float *scales; /* of the slots of a tile, of keys or of values */
    float *pair;   /* [2][channels rounded up to 16]: a key and a position's query */
};

/* Bytes for a walk of that many rows and key heads; cuts them from memory (aligned to 64) if it is
 * there. */
size_t posenc_attention_room(struct posenc_attention_room *room,
                             const struct posenc_attention_needs *needs, int64_t heads,
                             int64_t rows, int64_t turned_keys, void *memory);

/* A tile of one key head: logical keys from `first` on in the slots [begin, gap) and [resume, end).
 * Scales of I8 beside their keys and values. */
struct posenc_attention_tile {
    int64_t head, first, begin, end, gap, resume;
    const void *key[POSENC_ATTENTION_TILE], *value[POSENC_ATTENTION_TILE];
    const void *key_scale[POSENC_ATTENTION_TILE], *value_scale[POSENC_ATTENTION_TILE];
};

/* How a walk takes even tiles. */
struct posenc_attention_even_plan {
    ptrdiff_t key, key_head, value, value_head; /* bytes from one to the next */
    int alike;    /* 1: keys and values lie equally far apart: each fetch the others' lines */
    int again;    /* 1: lines are asked for twice */
    int in_order; /* 1: heads side by side go in the order of memory */
    int pages;    /* 1: the pages of the tile after the next are asked for */
};

struct posenc_attention_walk {
    const struct posenc_attention_job *job;
    const struct posenc_attention_kernels *kernels;
    struct posenc_attention_needs needs;
    struct posenc_attention_sequence s;
    struct posenc_attention_bias bias;
    struct posenc_attention_room room;
    int64_t padded;          /* values rounded up to 16 */
    int64_t turned_keys;     /* that the room has place for */
    int64_t head, heads;     /* key heads [head, head + heads) */
    int64_t member, members; /* of the query heads of each */
    int64_t token, tokens;   /* queries of the sequence */
    int64_t rows;            /* tokens x members, members vary fastest */
    int again;               /* 1: the direct kernels ask twice for lines */
    int alternates;          /* 1: they fetch values with keys, keys with values */
    int pages;               /* 1: pages of the tile after the next are asked for */
    int has_even;            /* 1: even tiles go by the even kernels, as `even` says */
    struct posenc_attention_even_plan even;
    int64_t widened, ready;  /* the key heads [widened, + ready) whose queries are in room.q */
};

/* The query head of a member of a key head's group. */
static inline int64_t posenc_attention_query_head(const struct posenc_attention_job *job,
                                                  int64_t key_head, int64_t member)
{
    return job->params.head_map == POSENC_HEADS_GROUPED
               ? key_head * (job->heads / job->key_heads) + member
               : key_head + member * job->key_heads;
}

/* Rows of one head lie a page apart in most views, so that no machine foresees the next: asked for
 * this many before their turn. */
enum { POSENC_ATTENTION_AHEAD = 6 };

/* A line that will be read. GCC takes a function that does nothing but this for one without effect
 * and drops its calls: the empty asm is one. */
static inline void posenc_attention_ask_line(const void *line)
{
    __builtin_prefetch(line, 0, 3);
    __asm__ volatile("");
}

/* A head of q or out that will be read, or written. The asm is there for the same reason. */
static inline void posenc_attention_ask(const posenc_tensor *t, const char *head, int to_write)
{
    int64_t bytes = t->shape[3] * posenc_dtype_size(t->dtype);
    for (int64_t at = 0; at < bytes; at += 64) {
        if (to_write)
            __builtin_prefetch(head + at, 1, 3);
        else
            __builtin_prefetch(head + at, 0, 3);
        __asm__ volatile("");
    }
}

/* Where the head of a row lies in q, out or another view like them. */
static inline char *posenc_attention_row(const struct posenc_attention_walk *walk,
                                         const posenc_tensor *t, int64_t key_head, int64_t r)
{
    int64_t token = walk->s.first_query + walk->token + r / walk->members;
    int64_t member = walk->member + r % walk->members;
    int64_t h = posenc_attention_query_head(walk->job, key_head, member);
    return posenc_element(t, walk->s.batch, token, h, 0);
}

/* Sets the terms of all rows for a tile in room.bias, -inf in their gaps; returns it, or NULL if
 * there are none. */
const float *const *posenc_attention_biases(struct posenc_attention_walk *walk,
                                            const struct posenc_attention_tile *tile);

/* Floats of the keys in the slots [begin, end) one after the other in `to`, rotated where they are
 * to be, and where they lie; F32 keys that are not rotated stay where they are. */
void posenc_attention_turn(const struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile, int64_t begin, int64_t end,
                           float *to, const void **key);

/* Points room.q to the queries of key heads side by side, in floats. */
void posenc_attention_queries(struct posenc_attention_walk *walk, int64_t key_head, int64_t heads);

/* The sums of all rows with a tile in room.w, by the direct kernels. */
void posenc_attention_sum_directly(struct posenc_attention_walk *walk,
                                   const struct posenc_attention_tile *tile,
                                   const struct posenc_attention_fetched *next);

/*
 * What comes next is fetched during what comes before it: the values of a tile during its keys. But
 * where each row has a page of its own, keys and values would be in more pages than most machines
 * have at hand (64 to 96), so that keys go with keys there: in the pages that are being read, if
 * they are the next head's. CPUs that want to be asked again are faster so wherever rows do not
 * follow one another.
 */
int posenc_attention_alternates(const struct posenc_attention_job *job, int again);

/* Takes a tile into the sums of the rows of its key head. */
void posenc_attention_step(struct posenc_attention_walk *walk,
                           const struct posenc_attention_tile *tile,
                           const struct posenc_attention_tile *next);

/* Where the first of 64 keys and of their values lie, all equally apart, for the walk's first key
 * head. */
struct posenc_attention_place {
    const char *key, *value;
};

/* Sets that for the logical keys [first, first + 64); 0 if the range has not all of them, or they
 * do not lie equally apart. The range by address: a copy of it would be waited for. */
int posenc_attention_place_evenly(const struct posenc_attention_walk *walk, int64_t first,
                                  const struct posenc_attention_range *range,
                                  struct posenc_attention_place *at);

/* 1 if two keys lie in one page of memory, so that several heads meet few pages for many lines. */
int posenc_attention_shares_pages(const struct posenc_attention_job *job);

/* 1 if the even kernels can serve a sequence whose key heads have so many rows each. */
int posenc_attention_can_be_even(const struct posenc_attention_walk *walk, int64_t rows);

/* Plans them for a sequence whose key heads have so many rows each. */
void posenc_attention_even_begin(struct posenc_attention_walk *walk, int64_t rows);

/* Takes the even tile at a place into the sums of the rows of all key heads of the walk; the one at
 * `next` is fetched meanwhile. */
void posenc_attention_even_step(struct posenc_attention_walk *walk,
                                const struct posenc_attention_place *at,
                                const struct posenc_attention_place *next);

/* Sets where the keys and values of the tile at `first` lie, which has a key of `range`. */
void posenc_attention_place(const struct posenc_attention_walk *walk, int64_t key_head,
                            int64_t first, struct posenc_attention_range range,
                            struct posenc_attention_tile *tile);

/*
 * Asks for each page of the keys [first, first + 64) in `range` and of their values: two tiles
 * ahead, so that the page is known when its lines are fetched. One that is not costs more than a
 * microsecond on some machines, and the lines behind it wait.
 */
void posenc_attention_ask_pages(const struct posenc_attention_walk *walk, int64_t key_head,
                                int64_t first, struct posenc_attention_range range);

/* Finished: m and l are the final ones of a row; its weights go to every chosen row that it is. */
void posenc_attention_put_shares(const struct posenc_attention_walk *walk, int64_t key_head,
                                 int64_t row, float m, float l);

#endif
