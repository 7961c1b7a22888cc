/* SPDX-License-Identifier: MIT */
/* posenc plot: heat maps, bands and similarity, as text and as SVG. */
#ifndef POSENC_TOOL_PLOT_H
#define POSENC_TOOL_PLOT_H

#include "scheme.h"

#include <stdio.h>

struct plot_request {
    struct scheme_choice choice;
    const char *what, *out;
    int svg;
    int64_t width, height; /* of the picture: characters or pixels; 0 not given */
    int64_t count, start;  /* positions or distances; -1 the default */
    int64_t trained;       /* 0 the model's own */
    int64_t head;          /* whose bias */
};

/* Each draws to `to`; TOOL_OK or an exit code after saying why. */
int plot_heatmap(const struct plot_request *request, const struct scheme *scheme, FILE *to);
int plot_bands(const struct plot_request *request, const struct scheme *scheme, FILE *to);
int plot_similarity(const struct plot_request *request, const struct scheme *scheme, FILE *to);

/* plot_rows.c: a matrix of doubles that a picture shows. */
struct plot_matrix {
    int64_t rows, columns;
    double *value;
};

/* Rows of positions start, start + 1, ... of a rotation (attention factor included) or of a
 * sinusoid; free value. */
int plot_make_rows(struct plot_matrix *matrix, const struct scheme *scheme, int64_t start,
                   int64_t count);

/* One head's bias of `count` queries and as many keys, or the T5 buckets; free value. */
int plot_make_bias(struct plot_matrix *matrix, const struct scheme *scheme, int64_t head,
                   int64_t count);

/* "model.json, set main" or "--rope 8": what a picture is of. */
void plot_name(const struct plot_request *request, const struct scheme *scheme, char *text,
               size_t size);

/* Pixels of an SVG, by default `width` x `height`. */
void plot_size(const struct plot_request *request, int64_t *width, int64_t *height);

#endif
