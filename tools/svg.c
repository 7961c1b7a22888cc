/* SPDX-License-Identifier: MIT */
/* Pictures as SVG: the head with its colours, text, axes. */
#include "svg.h"

#include <math.h>
#include <string.h>

/*
 * Colours of text and lines follow the reader's scheme; where nobody says which, a grey of 4.3:1 or
 * more on white and on near-black. The marks' own colours have 3:1 on both. There is no ground, so
 * the page's own shows.
 */
static const char style[] =
    "<style>\n"
    ".posenc{color:#757575;font-family:sans-serif;font-size:12px}\n"
    "@media (prefers-color-scheme:light){.posenc{color:#24292f}}\n"
    "@media (prefers-color-scheme:dark){.posenc{color:#e6edf3}}\n"
    ".posenc text{fill:currentColor}\n"
    ".posenc .title{font-size:15px;font-weight:bold}\n"
    ".posenc .rule{stroke:currentColor;fill:none}\n"
    ".posenc .grid{stroke:currentColor;stroke-opacity:.18;fill:none}\n"
    ".posenc .line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    ".posenc .plus{fill:#d9680b}\n"
    ".posenc .minus{fill:#2f7ed8}\n"
    ".posenc .s0{stroke:#2f7ed8}\n"
    ".posenc .s1{stroke:#d9680b;stroke-dasharray:6 3}\n"
    ".posenc .s2{stroke:#1a9850;stroke-dasharray:2 2}\n"
    ".posenc .s3{stroke:#b0449c;stroke-dasharray:8 3 2 3}\n"
    ".posenc .s4{stroke:#8a7a12;stroke-dasharray:10 4}\n"
    ".posenc .s5{stroke:#d6435a;stroke-dasharray:4 2}\n"
    ".posenc .s6{stroke:#1593a5;stroke-dasharray:4 4}\n"
    ".posenc .s7{stroke:#7d6ad6;stroke-dasharray:12 3 2 3 2 3}\n"
    ".posenc .open{fill:none;stroke-dasharray:none}\n"
    "</style>\n";

/* Characters as XML has them; control characters, which it has not, as '?'. */
static void put_escaped(FILE *to, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '<')
            fputs("&lt;", to);
        else if (*c == '>')
            fputs("&gt;", to);
        else if (*c == '&')
            fputs("&amp;", to);
        else
            fputc(*c < 0x20 || *c >= 0x7f ? '?' : *c, to);
    }
}

void svg_begin(FILE *to, double width, double height, const char *title, const char *description)
{
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"posenc\" role=\"img\" "
            "width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\">\n<title>",
            width, height, width, height);
    put_escaped(to, title);
    fputs("</title>\n<desc>", to);
    put_escaped(to, description);
    fprintf(to, "</desc>\n%s", style);
    svg_text(to, 16, 24, "title", "start", title);
}

void svg_end(FILE *to)
{
    fputs("</svg>\n", to);
}

void svg_text(FILE *to, double x, double y, const char *classes, const char *anchor,
              const char *text)
{
    fprintf(to, "<text class=\"%s\" x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", classes, x, y,
            anchor);
    put_escaped(to, text);
    fputs("</text>\n", to);
}

/* A sans-serif letter of 12 pixels is 6.4 wide, on average. */
static double entry_width(double sign, const char *text)
{
    return sign + 6 + 6.4 * (double)strlen(text);
}

void svg_legend_place(struct svg_legend *legend, double sign, const char *text)
{
    if (legend->x == legend->left || legend->x + entry_width(sign, text) <= legend->right)
        return;
    legend->x = legend->left;
    legend->y += 16;
}

void svg_legend_step(struct svg_legend *legend, double sign, const char *text)
{
    legend->x += entry_width(sign, text) + 14;
}

/* Where on an axis a value lies, from 0 to 1. */
static double place(const struct svg_axis *axis, double value)
{
    if (axis->logarithmic)
        return log(value / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

double svg_x(const struct svg_frame *frame, double value)
{
    return frame->left + frame->width * place(&frame->x, value);
}

double svg_y(const struct svg_frame *frame, double value)
{
    return frame->top + frame->height * (1 - place(&frame->y, value));
}

/* 1, 2 or 5 times a power of ten, so that `span` has at most `most` of it. */
static double step_of(double span, int most, int whole)
{
    double least = span / most, power = pow(10, floor(log10(least)));
    double step = least <= power       ? power
                  : least <= 2 * power ? 2 * power
                  : least <= 5 * power ? 5 * power
                                       : 10 * power;
    return whole && step < 1 ? 1 : step;
}

/* The next tick after `before` (NAN: the first); NAN when there is none. */
static double next_tick(const struct svg_axis *axis, int most, double before)
{
    double low = fmin(axis->low, axis->high), high = fmax(axis->low, axis->high), tick;
    if (axis->logarithmic) {
        double decades = ceil(log10(high / low) / most);
        tick = isnan(before) ? pow(10, ceil(log10(low) - 1e-9)) : before * pow(10, decades);
    } else {
        double step = step_of(high - low, most, axis->whole);
        tick = isnan(before) ? ceil(low / step - 1e-9) * step
                             : (floor(before / step + 0.5) + 1) * step;
    }
    double slack = 1e-9 * (axis->logarithmic ? high : high - low);
    return tick <= high + slack ? tick + 0.0 : NAN; /* + 0: no "-0" */
}

/* Positions in full: those of a far start differ in their last digits alone. */
static void name_tick(char number[32], const struct svg_axis *axis, double tick)
{
    snprintf(number, 32, "%.*g", axis->whole ? 15 : 6, tick);
}

static void put_x_tick(FILE *to, const struct svg_frame *f, double tick)
{
    char number[32];
    double x = svg_x(f, tick), bottom = f->top + f->height;
    name_tick(number, &f->x, tick);
    fprintf(to, "<path class=\"grid\" d=\"M%.2f %.2fV%.2f\"/>", x, f->top, bottom);
    fprintf(to, "<path class=\"rule\" d=\"M%.2f %.2fv5\"/>", x, bottom);
    svg_text(to, x, bottom + 18, "tick", "middle", number);
}

static void put_y_tick(FILE *to, const struct svg_frame *f, double tick)
{
    char number[32];
    double y = svg_y(f, tick);
    name_tick(number, &f->y, tick);
    fprintf(to, "<path class=\"grid\" d=\"M%.2f %.2fH%.2f\"/>", f->left, y, f->left + f->width);
    fprintf(to, "<path class=\"rule\" d=\"M%.2f %.2fh-5\"/>", f->left, y);
    svg_text(to, f->left - 8, y + 4, "tick", "end", number);
}

void svg_axes(FILE *to, const struct svg_frame *f)
{
    double middle = f->top + f->height / 2, tick = NAN;
    fputs("<g class=\"axis x\">\n", to);
    while (!isnan(tick = next_tick(&f->x, (int)(f->width / 70) + 1, tick)))
        put_x_tick(to, f, tick);
    svg_text(to, f->left + f->width / 2, f->top + f->height + 38, "label", "middle", f->x.label);
    fputs("</g>\n<g class=\"axis y\">\n", to);
    while (!isnan(tick = next_tick(&f->y, (int)(f->height / 40) + 1, tick)))
        put_y_tick(to, f, tick);
    fprintf(to, "<g transform=\"rotate(-90 16 %.2f)\">", middle);
    svg_text(to, 16, middle + 4, "label", "middle", f->y.label);
    fprintf(to, "</g></g>\n<rect class=\"rule\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                "height=\"%.2f\"/>\n",
            f->left, f->top, f->width, f->height);
}
