/* SPDX-License-Identifier: MIT */
/* Pictures as SVG: a frame with two axes, marks in it, a legend. */
#ifndef POSENC_TOOL_SVG_H
#define POSENC_TOOL_SVG_H

#include <stdio.h>

/* An axis from the value at its left or lower end to that at the other. */
struct svg_axis {
    double low, high;
    int logarithmic; /* both ends > 0 */
    int whole;       /* ticks at integers only */
    const char *label;
};

/* The area of the marks in the picture, in its units (pixels). */
struct svg_frame {
    double left, top, width, height;
    struct svg_axis x, y;
};

/* Where the entries of a legend above a frame go, row by row, from `left` to `right`. */
struct svg_legend {
    double left, right, x, y;
};

/* Room for an entry with a sign of `sign` pixels and this text: to the next row if need be. */
void svg_legend_place(struct svg_legend *legend, double sign, const char *text);

/* Moves on behind it. */
void svg_legend_step(struct svg_legend *legend, double sign, const char *text);

enum { SVG_SERIES = 8 }; /* classes s0 .. s7: colours, with a dash of their own in lines */

/* The head, a title above the picture, and a description for those who do not see it. */
void svg_begin(FILE *to, double width, double height, const char *title, const char *description);
void svg_end(FILE *to);

/* Escapes what XML must not hold. `classes` and `anchor` are ours. */
void svg_text(FILE *to, double x, double y, const char *classes, const char *anchor,
              const char *text);

double svg_x(const struct svg_frame *frame, double value);
double svg_y(const struct svg_frame *frame, double value);

/* Both axes with ticks, numbers, labels and faint lines at the ticks. */
void svg_axes(FILE *to, const struct svg_frame *frame);

#endif
