/* SPDX-License-Identifier: MIT */
/* posenc run for models that are not rotated: their tables, sinusoids and biases. */
#ifndef POSENC_RUN_OTHER_H
#define POSENC_RUN_OTHER_H

#include "measure.h"
#include "scheme.h"

enum { WORK_MOST = 4 };

/* One piece of a model's work: rows added to embeddings, or a bias filled. */
struct work {
    enum scheme_kind kind;
    const char *op;  /* "sinusoid", "learned", "alibi", "t5" */
    char where[160]; /* "t5 in the encoder: 32 buckets" */
    int64_t start, tokens; /* of a bias: queries, the last of the step */
    int64_t last;          /* position */
    int32_t dtype;
    int isas;
    int32_t isa[MEASURE_ISAS]; /* scalar first */

    posenc_sinusoid_params sinusoid_params;
    posenc_sinusoid *sinusoid[MEASURE_ISAS];
    posenc_alibi_params alibi;
    posenc_t5_params t5;
    int64_t offset;       /* of a learned table */
    posenc_tensor table;  /* a learned table, or the values of T5 */
    posenc_tensor x;      /* embeddings, or the bias */
    double bytes;         /* that a pass reads and writes */

    double error, bound; /* of the self-check: the largest share of its bound, and 1 */
    int isa_same[MEASURE_ISAS];
    struct measurement measured;
};

struct other {
    const char *name; /* of the model, for refusals */
    struct work work[WORK_MOST];
    int count;
};

/* What every table of embeddings is multiplied by while its row is added; repeats leave it below
 * twice a row. */
extern const double work_scale;

/* One pass by ISA number `isa`: rows added to x into `out` (NULL: in place), or a bias filled into
 * `out` (NULL: x). */
int32_t work_pass(const struct work *work, int isa, const posenc_tensor *out, posenc_error *error);

/* Contiguous memory of its own; TOOL_OK or TOOL_SYSTEM. */
int work_make_tensor(posenc_tensor *t, int32_t dtype, int64_t tokens, int64_t heads,
                     int64_t channels);
size_t work_bytes_of(const posenc_tensor *t);

/* run_other_check.c: against the truth in long double, and every ISA against scalar's bits. */
int work_check(struct work *work, const char *name);
int work_passed(const struct work *work);
int work_isas_equal(const struct work *work);

struct run_options;

/* run_other_print.c */
void other_print(const struct other *other, const struct model *model,
                 const struct run_options *options);
void other_print_json(const struct other *other, const struct model *model,
                      const struct run_options *options);

/* Sets up, checks, measures and prints what `model` does. */
int run_other(const struct model *model, const struct run_options *options);

#endif
