/* SPDX-License-Identifier: MIT */
/* posenc plot bands: the wavelength of each pair against the lengths that a model knows. */
#include "plot.h"

#include "bands.h"
#include "svg.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double TURN = 6.283185307179586;

/* A sinusoid's frequencies, by its formula; the axes of a grid one after another. */
static int read_sinusoid(struct bands *b, const struct plot_request *r, const struct scheme *scheme)
{
    const posenc_sinusoid_params *p = &scheme->sinusoid;
    posenc_sinusoid *probe = NULL;
    posenc_error error = {0, ""};
    if (posenc_sinusoid_create(&probe, p, &error))
        return tool_fail_library(scheme->model.name, &error);
    posenc_sinusoid_free(probe);
    *b = (struct bands){.id = scheme->model.name, .trained = r->trained};
    b->params.base = p->base;
    b->pairs = p->odd == POSENC_ODD_SINE ? (p->dim + 1) / 2 : p->dim / 2;
    b->frequency = b->memory = calloc((size_t)b->pairs + 1, sizeof(double));
    if (!b->memory)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    double numerator = p->exponent_by_width ? p->dim / 2.0 : b->pairs;
    for (int32_t i = 0; i < b->pairs; i++)
        b->frequency[i] = p->scale * pow(p->base, -i / (numerator - p->shift));
    return TOOL_OK;
}

/* Whether a pair has a wavelength to draw. Below 1e-300 it, or the decade above, is no double. */
static int turns(const struct bands *b, int32_t i)
{
    return b->frequency[i] >= 1e-300;
}

/* Ends of the axis: whole decades around all wavelengths and marked lengths. */
static void find_range(const struct bands *b, int64_t declared, double *low, double *high)
{
    *low = 1;
    *high = 10;
    for (int32_t i = 0; i < b->pairs; i++)
        if (turns(b, i)) {
            *high = fmax(*high, TURN / b->frequency[i]);
            *low = fmin(*low, TURN / b->frequency[i]);
        }
    *high = fmax(*high, (double)(b->trained > declared ? b->trained : declared));
    *low = pow(10, floor(log10(*low)));
    *high = pow(10, ceil(log10(*high)));
}

static int completes(const struct bands *b, int32_t i)
{
    return b->trained < 1 || (double)b->trained * b->frequency[i] >= TURN;
}

/* One pair as a bar on a log scale: '+' if it completes a turn in training, else '-'; the lengths
 * are marks beyond the bar's end or in it. */
static void put_bar(FILE *to, const struct bands *b, int32_t i, int64_t declared, int columns,
                    double low, double high)
{
    char bar[512];
    double wave = turns(b, i) ? TURN / b->frequency[i] : high;
    double scale = (columns - 1) / log(high / low);
    int end = (int)floor(log(wave / low) * scale + 0.5);
    memset(bar, ' ', (size_t)columns);
    memset(bar, completes(b, i) ? '+' : '-', (size_t)end + 1);
    if (declared >= 1)
        bar[(int)floor(log((double)declared / low) * scale + 0.5)] = ':';
    if (b->trained >= 1)
        bar[(int)floor(log((double)b->trained / low) * scale + 0.5)] = '|';
    while (columns > 0 && bar[columns - 1] == ' ')
        columns--;
    if (turns(b, i))
        fprintf(to, "%6d  %11.5g  %.*s\n", (int)i, wave, columns, bar);
    else
        fprintf(to, "%6d  %11s  %.*s\n", (int)i, "-", columns, bar);
}

static void draw_text(const struct plot_request *r, const struct bands *b, int64_t declared,
                      FILE *to)
{
    double low, high;
    int64_t width = r->width ? r->width : 80;
    int columns = (int)(width < 500 ? width : 500) - 21;
    find_range(b, declared, &low, &high);
    fprintf(to, "wavelengths in tokens, %g to %g on a log scale\n", low, high);
    if (b->trained > 0)
        fprintf(to, "| trained: %lld; + completes a turn in it, - does not\n",
                (long long)b->trained);
    if (declared > 0)
        fprintf(to, ": declared: %lld\n", (long long)declared);
    fprintf(to, "\n  pair   wavelength\n");
    for (int32_t i = 0; i < b->pairs; i++)
        put_bar(to, b, i, declared, columns, low, high);
}

static void put_limit(FILE *to, const struct svg_frame *f, double tokens, const char *name,
                      const char *series, int below)
{
    char text[64];
    double y = svg_y(f, tokens);
    fprintf(to, "<path class=\"line %s limit\" d=\"M%.2f %.2fh%.2f\"/>\n", series, f->left, y,
            f->width);
    snprintf(text, sizeof text, "%s: %.0f", name, tokens);
    svg_text(to, f->left + 8, below ? y + 15 : y - 6, "label", "start", text);
}

static void put_circle(FILE *to, double x, double y, double radius, const char *classes)
{
    fprintf(to, "<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"%g\"/>\n", classes, x, y, radius);
}

static void put_marks(FILE *to, const struct bands *b, const struct svg_frame *f)
{
    double radius = fmax(1.5, fmin(4, 0.3 * f->width / b->pairs));
    fputs("<g class=\"marks\">\n", to);
    for (int32_t i = 0; b->unscaled && b->params.scaling && i < b->pairs; i++)
        put_circle(to, svg_x(f, i), svg_y(f, TURN / b->unscaled[i]), radius, "open rule unscaled");
    for (int32_t i = 0; i < b->pairs; i++)
        if (turns(b, i))
            put_circle(to, svg_x(f, i), svg_y(f, TURN / b->frequency[i]), radius,
                       completes(b, i) ? "minus turns" : "plus turns");
    fputs("</g>\n", to);
}

static void put_entry(FILE *to, struct svg_legend *at, const char *classes, const char *text)
{
    svg_legend_place(at, 8, text);
    if (to) {
        put_circle(to, at->x + 4, at->y - 4, 4, classes);
        svg_text(to, at->x + 14, at->y, "label", "start", text);
    }
    svg_legend_step(at, 8, text);
}

/* Draws the legend, or with `to` NULL only finds its last line. */
static double put_legend(FILE *to, const struct bands *b, double left, double right)
{
    struct svg_legend at = {left, right, left, 54};
    put_entry(to, &at, "minus", b->trained > 0 ? "completes a turn in training" : "wavelength");
    if (b->trained > 0)
        put_entry(to, &at, "plus", "does not");
    if (b->unscaled && b->params.scaling)
        put_entry(to, &at, "open rule", "before scaling");
    return at.y;
}

static void draw_svg(const struct plot_request *r, const struct scheme *scheme,
                     const struct bands *b, int64_t declared, FILE *to)
{
    int64_t width = 720, height = 440;
    double low, high;
    char name[128], title[192], description[160];
    plot_size(r, &width, &height);
    plot_name(r, scheme, name, sizeof name);
    find_range(b, declared, &low, &high);
    snprintf(title, sizeof title, "%s: wavelengths", name);
    snprintf(description, sizeof description,
             "Wavelength in tokens of each of %d pairs, on a logarithmic scale.", (int)b->pairs);
    svg_begin(to, (double)width, (double)height, title, description);
    double left = 84, right = (double)width - 24, top = put_legend(NULL, b, left, right) + 12;
    struct svg_frame f = {.left = 80, .top = top, .width = (double)width - 80 - 24,
                          .height = (double)height - top - 56,
                          .x = {-0.5, b->pairs - 0.5, 0, 1, "pair"},
                          .y = {low, high, 1, 0, "wavelength in tokens"}};
    svg_axes(to, &f);
    if (declared > 0 && declared != b->trained)
        put_limit(to, &f, (double)declared, "declared limit", "s1",
                  b->trained > declared);
    if (b->trained > 0)
        put_limit(to, &f, (double)b->trained,
                  declared == b->trained ? "trained and declared length" : "trained length", "s2",
                  b->trained <= declared && declared != b->trained);
    put_marks(to, b, &f);
    fputs("<g class=\"legend\">\n", to);
    put_legend(to, b, left, right);
    fputs("</g>\n", to);
    svg_end(to);
}

int plot_bands(const struct plot_request *r, const struct scheme *scheme, FILE *to)
{
    struct bands b;
    if (scheme->kind != SCHEME_ROPE && scheme->kind != SCHEME_SINUSOID)
        return tool_fail(TOOL_REFUSED, "%s: has no frequencies", scheme->model.name);
    if (r->count > 0 || r->start)
        return tool_wrong_usage("--count and --start are not for bands");
    int code = scheme->kind == SCHEME_ROPE
                   ? bands_read(&b, &scheme->model, &scheme->set, r->trained)
                   : read_sinusoid(&b, r, scheme);
    if (code)
        return code;
    if (scheme->kind == SCHEME_SINUSOID && b.trained < 1)
        b.trained = scheme->max_position;
    if (r->svg)
        draw_svg(r, scheme, &b, scheme->max_position, to);
    else
        draw_text(r, &b, scheme->max_position, to);
    bands_free(&b);
    return TOOL_OK;
}
