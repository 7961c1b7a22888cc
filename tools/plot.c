/* SPDX-License-Identifier: MIT */
/* posenc plot: options, and the picture on its way to a file. */
#include "plot.h"

#include "output.h"
#include "text.h"

#include <getopt.h>
#include <string.h>

enum { WIDTH = 1, HEIGHT, COUNT, START, FORMAT, OUT, TRAINED, HEAD, SINUSOID, ALIBI, T5, PART };

static const struct tool_option options[] = {
    {COUNT, "count", "N", "positions (heatmap), queries and keys of a bias, or\ndistances "
                          "(similarity)"},
    {START, "start", "S", "the first position of a heatmap; default 0"},
    {TRAINED, "trained", "N", "bands: mark N tokens, not the model's own length"},
    {HEAD, "head", "K", "heatmap of ALiBi: the bias of head K; default 0"},
    {FORMAT, "format", "F", "text or svg; default by the name of -o, or text"},
    {WIDTH, "width", "N", "of the picture: characters (default 80) or pixels (720)"},
    {HEIGHT, "height", "N", "of the picture in pixels"},
    {OUT, "o", "FILE", "where to; default standard output"},
    {SINUSOID, "sinusoid", scheme_sinusoid_argument, scheme_sinusoid_help},
    {ALIBI, "alibi", scheme_alibi_argument, scheme_alibi_help},
    {T5, "t5", scheme_t5_argument, scheme_t5_help},
    {PART, "part", "P", scheme_part_help},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "plot heatmap|bands|similarity [OPTIONS] MODEL",
    "heatmap     rows by position and channel, or a bias by query and key; as text a\n"
    "            '+' stands for values above 0.3, '-' below -0.3, '.' between\n"
    "bands       the wavelength of each pair against the trained length\n"
    "similarity  dot product of rows, or bias, by distance",
    options, model_options, "posenc plot heatmap --sinusoid 16 --count 20"};

static int take_size(const char *name, const char *value, int64_t least, int64_t most, int64_t *to)
{
    if (tool_integer(value, least, most, to))
        return TOOL_OK;
    return tool_wrong_usage("--%s is %s: must be an integer from %lld to %lld", name, value,
                            (long long)least, (long long)most);
}

static int take_scheme(struct scheme_choice *choice, int id, const char *value)
{
    switch (id) {
    case SINUSOID: choice->sinusoid = value; return TOOL_OK;
    case ALIBI: choice->alibi = value; return TOOL_OK;
    case T5: choice->t5 = value; return TOOL_OK;
    case PART: return scheme_take_part(choice, value);
    default: return model_take_option(&choice->model, id, value);
    }
}

static int take_option(void *to, int id, const char *value)
{
    struct plot_request *r = to;
    switch (id) {
    case WIDTH: return take_size("width", value, 1, 10000, &r->width);
    case HEIGHT: return take_size("height", value, 1, 10000, &r->height);
    case COUNT: return take_size("count", value, 1, 65536, &r->count);
    case START: return take_size("start", value, INT32_MIN, INT32_MAX, &r->start);
    case TRAINED: return take_size("trained", value, 1, INT64_C(1) << 53, &r->trained);
    case HEAD: return take_size("head", value, 0, 65535, &r->head);
    case OUT: r->out = value; return TOOL_OK;
    case FORMAT:
        r->svg = strcmp(value, "svg") == 0;
        if (r->svg || strcmp(value, "text") == 0)
            return TOOL_OK;
        return tool_wrong_usage("--format is %s: must be text or svg", value);
    default: return take_scheme(&r->choice, id, value);
    }
}

static const struct picture {
    const char *name;
    int (*draw)(const struct plot_request *request, const struct scheme *scheme, FILE *to);
    int kinds; /* that a model's picture is looked for among */
} pictures[] = {
    {"heatmap", plot_heatmap, SCHEME_ROPE | SCHEME_SINUSOID | SCHEME_ALIBI | SCHEME_T5},
    {"bands", plot_bands, SCHEME_ROPE | SCHEME_SINUSOID},
    {"similarity", plot_similarity, SCHEME_ROPE | SCHEME_SINUSOID | SCHEME_ALIBI | SCHEME_T5},
};

static const struct picture *find_picture(const char *name)
{
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++)
        if (name && strcmp(pictures[i].name, name) == 0)
            return &pictures[i];
    return NULL;
}

static int ends_with(const char *text, const char *end)
{
    size_t all = strlen(text), size = strlen(end);
    return all >= size && strcmp(text + all - size, end) == 0;
}

static int check_sizes(const struct plot_request *r)
{
    if (r->svg && r->width && r->width < 320)
        return tool_wrong_usage("--width is %lld: an SVG has 320 to 10000 pixels",
                                (long long)r->width);
    if (r->svg && r->height && r->height < 200)
        return tool_wrong_usage("--height is %lld: an SVG has 200 to 10000 pixels",
                                (long long)r->height);
    if (!r->svg && r->height)
        return tool_wrong_usage("--height needs --format svg: text has a line for each row");
    if (!r->svg && r->width && r->width < 40 && strcmp(r->what, "heatmap") != 0)
        return tool_wrong_usage("--width is %lld: text of %s has 40 characters or more",
                                (long long)r->width, r->what);
    return TOOL_OK;
}

static int parse(struct plot_request *r, int argc, char **argv, int *code)
{
    r->svg = -1;
    if (!tool_take_options(&usage, argc, argv, take_option, r, code))
        return 0;
    if (r->svg < 0)
        r->svg = r->out && ends_with(r->out, ".svg");
    int operands = argc - optind, named = scheme_is_named(&r->choice);
    *code = TOOL_USAGE;
    r->what = operands > 0 ? argv[optind] : NULL;
    if (!find_picture(r->what))
        tool_wrong_usage("needs heatmap, bands or similarity%s%s", r->what ? ": got " : "",
                         r->what ? r->what : "");
    else if (operands > 2 || (named && operands == 2))
        tool_wrong_usage("%s is one operand too many", argv[argc - 1]);
    else if (!named && operands < 2)
        tool_wrong_usage("needs one MODEL (or --rope, --sinusoid, --alibi, --t5)");
    else
        *code = check_sizes(r);
    if (!*code && operands == 2)
        r->choice.model.model = argv[optind + 1];
    return *code == TOOL_OK;
}

void plot_name(const struct plot_request *r, const struct scheme *scheme, char *text, size_t size)
{
    const struct scheme_choice *c = &r->choice;
    const char *direct = c->sinusoid ? c->sinusoid
                         : c->alibi  ? c->alibi
                         : c->t5     ? c->t5
                                     : c->model.rope;
    const char *words[] = {"sinusoid", "ALiBi", "T5 buckets", "rotation"};
    int word = c->sinusoid ? 0 : c->alibi ? 1 : c->t5 ? 2 : 3;
    if (direct) {
        snprintf(text, size, "%s %.60s", words[word], direct);
        return;
    }
    const char *type = scheme->model.facts.model_type;
    snprintf(text, size, "%.40s%s%.40s", type ? type : "model",
             scheme->kind == SCHEME_ROPE ? ", set " : "",
             scheme->kind == SCHEME_ROPE ? scheme->set.id : "");
}

void plot_size(const struct plot_request *r, int64_t *width, int64_t *height)
{
    if (r->width)
        *width = r->width;
    if (r->height)
        *height = r->height;
}

/* The whole picture is drawn before the first byte is written, so that what is refused leaves
 * nothing behind. */
static int write_picture(const struct plot_request *r, const char *text, size_t length)
{
    struct tool_output output;
    if (!r->out) {
        tool_output_standard(&output);
        return tool_output_write(&output, text, length);
    }
    int code = tool_output_open(&output, r->out);
    if (!code)
        code = tool_output_write(&output, text, length);
    return code ? code : tool_output_close(&output);
}

static int plot(const struct plot_request *r, const struct scheme *scheme)
{
    struct tool_text text;
    FILE *to = tool_text_open(&text);
    if (!to)
        return TOOL_SYSTEM;
    int code = find_picture(r->what)->draw(r, scheme, to);
    if (code)
        fclose(to);
    else
        code = tool_text_close(&text, to);
    if (!code)
        code = write_picture(r, text.data, text.length);
    tool_text_free(&text);
    if (!code)
        model_warn_notes(&scheme->model);
    return code;
}

int tool_plot(int argc, char **argv)
{
    struct plot_request request = {.choice = scheme_no_choice, .count = -1};
    struct scheme scheme;
    int code;
    if (!parse(&request, argc, argv, &code))
        return code;
    code = scheme_choose(&scheme, &request.choice, find_picture(request.what)->kinds);
    if (code)
        return code;
    code = plot(&request, &scheme);
    scheme_close(&scheme);
    return code;
}
