/* SPDX-License-Identifier: MIT */
/* posenc plot heatmap: rows by position and channel, or a bias by query and key. */
#include "plot.h"

#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 20, TEXT_WIDTH = 80, TEXT_COUNT = 20, SVG_COUNT = 64 };
static const double THRESHOLD = 0.3;

struct heatmap {
    struct plot_matrix matrix;
    int64_t start;
    double most; /* the value of full colour, of either sign */
    int buckets; /* whole numbers, not amounts */
    int bias;
    const char *x_label, *y_label, *legend;
};

/* '+', '-' or '.'; for buckets a digit or letter of their number. */
static int character(const struct heatmap *map, double value)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (map->buckets)
        return value < (double)(sizeof digits - 1) ? digits[(size_t)value] : '*';
    return value > THRESHOLD ? '+' : value < -THRESHOLD ? '-' : '.';
}

/* A line for each row, a character for each column; of more than `width` columns every k-th. */
static void draw_text(const struct heatmap *map, int64_t width, FILE *to)
{
    const struct plot_matrix *m = &map->matrix;
    int64_t step = (m->columns + width - 1) / width;
    for (int64_t row = 0; row < m->rows; row++) {
        for (int64_t column = 0; column < m->columns; column += step)
            fputc(character(map, m->value[row * m->columns + column]), to);
        fputc('\n', to);
    }
}

/* From -LEVELS to LEVELS. */
static int level_of(const struct heatmap *map, double value)
{
    if (!isfinite(value) || map->most == 0)
        return 0;
    double level = value / map->most * LEVELS;
    return (int)floor(fmax(-LEVELS, fmin(LEVELS, level)) + 0.5);
}

/* All cells of one level as a path: a rectangle for each run of neighbours in a row. */
static void put_level(FILE *to, const struct heatmap *map, const signed char *levels, int level)
{
    const struct plot_matrix *m = &map->matrix;
    int open = 0;
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t column = 0, end; column < m->columns; column = end) {
            const signed char *at = levels + row * m->columns;
            for (end = column + 1; end < m->columns && at[end] == at[column];)
                end++;
            if (at[column] != level)
                continue;
            if (!open++)
                fprintf(to, "<path class=\"%s\" fill-opacity=\"%.2f\" d=\"",
                        level > 0 ? "plus" : "minus", abs(level) / (double)LEVELS);
            fprintf(to, "M%lld %lldh%lldv1h-%lldz", (long long)column, (long long)row,
                    (long long)(end - column), (long long)(end - column));
        }
    if (open)
        fputs("\"/>\n", to);
}

/* Values near 0 are left to the ground, whatever its colour. */
static int put_cells(FILE *to, const struct heatmap *map, const struct svg_frame *f)
{
    const struct plot_matrix *m = &map->matrix;
    size_t count = (size_t)(m->rows * m->columns);
    signed char *levels = malloc(count);
    if (!levels)
        return tool_fail(TOOL_SYSTEM, "no memory for the picture");
    for (size_t i = 0; i < count; i++)
        levels[i] = (signed char)level_of(map, m->value[i]);
    fprintf(to,
            "<g class=\"marks\" shape-rendering=\"crispEdges\" transform=\"translate(%.2f %.2f) "
            "scale(%.6f %.6f)\">\n",
            f->left, f->top, f->width / (double)m->columns, f->height / (double)m->rows);
    for (int level = -LEVELS; level <= LEVELS; level++)
        if (level)
            put_level(to, map, levels, level);
    fputs("</g>\n", to);
    free(levels);
    return TOOL_OK;
}

/* A strip of all levels that occur, with the values of its ends and of 0. */
static void put_legend(FILE *to, const struct heatmap *map, const struct svg_frame *f)
{
    char number[32];
    const struct plot_matrix *m = &map->matrix;
    double lowest = 0, highest = 0, left = f->left + f->width + 24;
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        lowest = fmin(lowest, isfinite(m->value[i]) ? m->value[i] : 0);
        highest = fmax(highest, isfinite(m->value[i]) ? m->value[i] : 0);
    }
    int bottom = level_of(map, lowest), top = level_of(map, highest);
    double step = fmin(f->height, 160) / (top - bottom + 1), y = f->top + 18;
    fputs("<g class=\"legend\">\n", to);
    svg_text(to, left, f->top + 8, "label", "start", map->legend);
    for (int level = top; level >= bottom; level--, y += step) {
        if (level)
            fprintf(to,
                    "<rect class=\"%s\" fill-opacity=\"%.2f\" x=\"%.2f\" y=\"%.2f\" "
                    "width=\"16\" height=\"%.2f\" shape-rendering=\"crispEdges\"/>\n",
                    level > 0 ? "plus" : "minus", abs(level) / (double)LEVELS, left, y, step);
        if (level != top && level != bottom && level != 0)
            continue;
        snprintf(number, sizeof number, "%.4g", map->most * level / LEVELS);
        svg_text(to, left + 22, y + step / 2 + 4, "tick", "start", number);
    }
    fprintf(to, "<rect class=\"rule\" x=\"%.2f\" y=\"%.2f\" width=\"16\" height=\"%.2f\"/>\n",
            left, f->top + 18, step * (top - bottom + 1));
    fputs("</g>\n", to);
}

/* What the ticks of the longest position need beside the label. */
static double left_of(const struct heatmap *map)
{
    int first = snprintf(NULL, 0, "%lld", (long long)map->start);
    int last = snprintf(NULL, 0, "%lld", (long long)(map->start + map->matrix.rows));
    return fmax(72, 34 + 8 * (first > last ? first : last));
}

static int draw_svg(const struct plot_request *r, const struct scheme *scheme,
                    const struct heatmap *map, FILE *to)
{
    const struct plot_matrix *m = &map->matrix;
    int64_t width = map->bias ? 560 : 720, height = map->bias ? 520 : 440;
    char name[128], title[192], description[256];
    plot_size(r, &width, &height);
    plot_name(r, scheme, name, sizeof name);
    snprintf(title, sizeof title, "%s: %s", name,
             map->bias ? "bucket of each query and key" : "rows by position");
    if (map->bias && !map->buckets)
        snprintf(title, sizeof title, "%s: bias of head %lld", name, (long long)r->head);
    snprintf(description, sizeof description, "Heat map, %lld rows (%s) by %lld columns (%s).",
             (long long)m->rows, map->y_label, (long long)m->columns, map->x_label);
    svg_begin(to, (double)width, (double)height, title, description);
    double first = (double)map->start - 0.5, left = left_of(map);
    struct svg_frame f = {
        .left = left, .top = 44, .width = (double)width - left - 96,
        .height = (double)height - 44 - 56,
        .x = {-0.5, (double)m->columns - 0.5, 0, 1, map->x_label},
        .y = {first + (double)m->rows, first, 0, 1, map->y_label}};
    int code = put_cells(to, map, &f);
    svg_axes(to, &f);
    put_legend(to, map, &f);
    svg_end(to);
    return code;
}

static int make_rows(struct heatmap *map, const struct plot_request *r, const struct scheme *scheme,
                     int64_t count)
{
    map->start = r->start;
    map->y_label = "position";
    map->x_label = scheme->kind == SCHEME_ROPE ? "channel of the row: cosines, then sines"
                                               : "channel";
    map->legend = "value";
    int code = plot_make_rows(&map->matrix, scheme, r->start, count);
    map->most = 1;
    for (int64_t i = 0; !code && i < map->matrix.rows * map->matrix.columns; i++)
        map->most = fmax(map->most, fabs(map->matrix.value[i])); /* attention factors */
    return code;
}

static int make_bias(struct heatmap *map, const struct plot_request *r,
                     const struct scheme *scheme, int64_t count)
{
    map->bias = 1;
    map->buckets = scheme->kind == SCHEME_T5;
    map->y_label = "query";
    map->x_label = "key";
    map->legend = map->buckets ? "bucket" : "bias";
    int code = plot_make_bias(&map->matrix, scheme, r->head, count);
    for (int64_t i = 0; !code && i < map->matrix.rows * map->matrix.columns; i++)
        map->most = fmax(map->most, fabs(map->matrix.value[i]));
    return code;
}

int plot_heatmap(const struct plot_request *r, const struct scheme *scheme, FILE *to)
{
    struct heatmap map = {.most = 0};
    int64_t count = r->count > 0 ? r->count : r->svg ? SVG_COUNT : TEXT_COUNT;
    int is_rows = scheme->kind == SCHEME_ROPE || scheme->kind == SCHEME_SINUSOID;
    if (!is_rows && r->start)
        return tool_fail(TOOL_REFUSED, "--start is %lld: a bias has no positions",
                         (long long)r->start);
    int code = is_rows ? make_rows(&map, r, scheme, count) : make_bias(&map, r, scheme, count);
    if (code)
        return code;
    if (r->svg)
        code = draw_svg(r, scheme, &map, to);
    else
        draw_text(&map, r->width ? r->width : TEXT_WIDTH, to);
    free(map.matrix.value);
    if (!code && is_rows)
        model_warn_limit(&scheme->model, scheme->max_position, r->start + count - 1);
    return code;
}
