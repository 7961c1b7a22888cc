/* SPDX-License-Identifier: MIT */
/* posenc plot similarity: how alike positions look by their distance, or how a bias falls. */
#include "plot.h"

#include "svg.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_COUNT = 32, SVG_COUNT = 512 };

struct curves {
    int64_t count; /* points of each: distances 0, 1, ... */
    int number;
    char name[SVG_SERIES][48];
    double *value; /* [number][count] */
    double low, high;
    const char *title, *y_label;
};

static int make_curves(struct curves *c, int number, int64_t count)
{
    c->number = number;
    c->count = count;
    c->value = malloc((size_t)(number * count) * sizeof(double));
    return c->value ? TOOL_OK : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/*
 * The bound of Su et al. 2021, 3.4.3, as a share of its value at distance 0: the mean over j of
 * |S_j|, S_j the sum of the first j pairs' unit vectors at this distance. A row holds them.
 */
static double decay_bound(const double *row, const double *first, int64_t pairs)
{
    double c = 0, s = 0, sum = 0, most = 0;
    for (int64_t i = 0; i < pairs; i++) {
        c += row[i];
        s += row[pairs + i];
        sum += hypot(c, s);
        most += (double)(i + 1) * first[i]; /* cos 0 = 1, times the attention factor */
    }
    return sum / most;
}

/* Row 0 times row k: for equal queries and keys the score that rotation leaves at distance k. */
static int from_rows(struct curves *c, const struct scheme *scheme, int64_t count)
{
    struct plot_matrix m;
    int rope = scheme->kind == SCHEME_ROPE;
    int code = make_curves(c, rope ? 2 : 1, count);
    if (code)
        return code;
    code = plot_make_rows(&m, scheme, 0, count);
    if (code)
        return code;
    double norm = dot(m.value, m.value, m.columns);
    if (norm == 0)
        code = tool_fail(TOOL_REFUSED, "%s: the row of position 0 is zero", scheme->model.name);
    for (int64_t k = 0; k < count && !code; k++) {
        const double *row = m.value + k * m.columns;
        c->value[k] = dot(m.value, row, m.columns) / norm;
        if (rope)
            c->value[count + k] = decay_bound(row, m.value, m.columns / 2);
    }
    free(m.value);
    c->low = -1;
    c->high = 1;
    c->title = "similarity by distance";
    c->y_label = "share of distance 0";
    snprintf(c->name[0], sizeof c->name[0], "%s", rope ? "equal vectors" : "dot product");
    snprintf(c->name[1], sizeof c->name[1], "relative bound (Su et al. 2021)");
    return code;
}

/* A last query against all keys: the bias of up to SVG_SERIES heads, spread over all. */
static int from_alibi(struct curves *c, const struct scheme *scheme, int64_t count)
{
    double *slopes = malloc((size_t)scheme->heads * sizeof *slopes);
    posenc_error error = {0, ""};
    if (!slopes)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    int code = posenc_alibi_slopes(slopes, 0, scheme->heads, scheme->heads, scheme->alibi.max_bias,
                                   &error)
                   ? tool_fail_library(scheme->model.name, &error)
                   : TOOL_OK;
    int number = scheme->heads < SVG_SERIES ? (int)scheme->heads : SVG_SERIES;
    if (!code)
        code = make_curves(c, number, count);
    for (int n = 0; n < number && !code; n++) {
        int64_t head = number > 1 ? n * (scheme->heads - 1) / (number - 1) : 0;
        snprintf(c->name[n], sizeof c->name[n], "head %lld", (long long)head);
        for (int64_t k = 0; k < count; k++) {
            double bias = 0 - slopes[head] * scheme->alibi.scale * (double)k; /* no -0 */
            c->value[n * count + k] = bias;
            c->low = fmin(c->low, bias);
        }
    }
    c->title = "bias by distance";
    c->y_label = "bias";
    free(slopes);
    return code;
}

static int from_t5(struct curves *c, const struct scheme *scheme, int64_t count)
{
    posenc_error error = {0, ""};
    int both = scheme->t5.bidirectional != 0;
    int32_t *distance = malloc((size_t)count * 2 * sizeof *distance);
    int code = distance ? make_curves(c, 1 + both, count)
                        : tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    for (int n = 0; n <= both && !code; n++) {
        for (int64_t k = 0; k < count; k++)
            distance[k] = (int32_t)(n ? k : -k);
        if (posenc_t5_buckets(&scheme->t5, distance, (size_t)count, distance + count, &error))
            code = tool_fail_library(scheme->model.name, &error);
        for (int64_t k = 0; k < count && !code; k++)
            c->value[n * count + k] = distance[count + k];
    }
    free(distance);
    c->high = scheme->t5.num_buckets;
    c->title = "bucket by distance";
    c->y_label = "bucket";
    strcpy(c->name[0], "earlier keys");
    strcpy(c->name[1], "later keys");
    return code;
}

/* The first curve as one line a distance: its value and a '+' on a scale from low to high. */
static void draw_text(const struct curves *c, int64_t width, FILE *to)
{
    char line[512];
    int columns = (int)(width < 500 ? width : 500) - 20;
    double scale = (columns - 1) / (c->high - c->low);
    int zero = (int)floor(-c->low * scale + 0.5);
    fprintf(to, "%s, %s; from %.5g to %.5g\n\ndistance      value\n", c->title, c->name[0], c->low,
            c->high);
    for (int64_t k = 0; k < c->count; k++) {
        double value = c->value[k];
        int at = (int)floor((value - c->low) * scale + 0.5);
        memset(line, ' ', (size_t)columns);
        line[zero] = '.';
        line[at < 0 ? 0 : at < columns ? at : columns - 1] = value < 0 ? '-' : '+';
        int end = columns;
        while (line[end - 1] == ' ')
            end--;
        fprintf(to, "%8lld %10.5f %.*s\n", (long long)k, value, end, line);
    }
}

static void put_curve(FILE *to, const struct curves *c, const struct svg_frame *f, int n)
{
    fprintf(to, "<path class=\"line s%d\" d=\"", n);
    for (int64_t k = 0; k < c->count; k++)
        fprintf(to, "%c%.2f %.2f", k ? 'L' : 'M', svg_x(f, (double)k),
                svg_y(f, c->value[n * c->count + k]));
    fputs("\"/>\n", to);
}

/* Draws the legend, or with `to` NULL only finds its last line. */
static double put_legend(FILE *to, const struct curves *c, double left, double right)
{
    struct svg_legend at = {left, right, left, 54};
    for (int n = 0; n < c->number; n++) {
        svg_legend_place(&at, 24, c->name[n]);
        if (to) {
            fprintf(to, "<path class=\"line s%d\" d=\"M%.2f %.2fh24\"/>\n", n, at.x, at.y - 4);
            svg_text(to, at.x + 30, at.y, "label", "start", c->name[n]);
        }
        svg_legend_step(&at, 24, c->name[n]);
    }
    return at.y;
}

static void draw_svg(const struct plot_request *r, const struct scheme *scheme,
                     const struct curves *c, FILE *to)
{
    int64_t width = 720, height = 400;
    char name[128], title[192], description[160];
    plot_size(r, &width, &height);
    plot_name(r, scheme, name, sizeof name);
    snprintf(title, sizeof title, "%s: %s", name, c->title);
    snprintf(description, sizeof description, "%d curves over distances 0 to %lld.", c->number,
             (long long)(c->count - 1));
    svg_begin(to, (double)width, (double)height, title, description);
    double last = c->count > 1 ? (double)(c->count - 1) : 1;
    double left = 84, right = (double)width - 24, top = put_legend(NULL, c, left, right) + 12;
    struct svg_frame f = {.left = 80, .top = top, .width = (double)width - 80 - 24,
                          .height = (double)height - top - 56,
                          .x = {0, last, 0, 1, "distance in tokens"},
                          .y = {c->low, c->high, 0, 0, c->y_label}};
    svg_axes(to, &f);
    fputs("<g class=\"marks\">\n", to);
    for (int n = 0; n < c->number; n++)
        put_curve(to, c, &f, n);
    fputs("</g>\n", to);
    fputs("<g class=\"legend\">\n", to);
    put_legend(to, c, left, right);
    fputs("</g>\n", to);
    svg_end(to);
}

int plot_similarity(const struct plot_request *r, const struct scheme *scheme, FILE *to)
{
    struct curves c = {.value = NULL};
    int64_t count = r->count > 0 ? r->count : r->svg ? SVG_COUNT : TEXT_COUNT;
    if (r->start)
        return tool_wrong_usage("--start is for a heatmap: similarity counts distances from 0");
    int code = scheme->kind == SCHEME_ALIBI ? from_alibi(&c, scheme, count)
               : scheme->kind == SCHEME_T5  ? from_t5(&c, scheme, count)
                                            : from_rows(&c, scheme, count);
    if (!code && c.low == c.high)
        c.high = c.low + 1;
    if (!code && r->svg)
        draw_svg(r, scheme, &c, to);
    else if (!code)
        draw_text(&c, r->width ? r->width : 80, to);
    free(c.value);
    return code;
}
