/* SPDX-License-Identifier: MIT */
/* posenc diff: what two models do differently with positions. */
#include "json.h"
#include "model.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON = 1 };

static const struct tool_option options[] = {
    {JSON, "json", NULL, "one JSON object instead of a table"}, {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "diff [--json] A B",
    "Compares the position contracts of two models: everything that changes results\n"
    "(scheme, frequencies, layers, scales, windows), not names, limits or notes.\n"
    "Frequencies count by their effect: what gives the same rows is the same, however\n"
    "a file spells it. Exit code 0: no difference, 1: a table of differences.",
    options, NULL, "posenc diff model/config.json model-long/config.json"};

struct comparison {
    struct model a, b;
    posenc_contract_difference *list;
    size_t count;
};

static int compare(struct comparison *c)
{
    posenc_error error = {0, ""};
    if (posenc_contract_compare(c->a.contract, c->b.contract, NULL, 0, &c->count, &error))
        return tool_fail_library(c->a.name, &error);
    c->list = calloc(c->count + 1, sizeof *c->list);
    if (!c->list)
        return tool_fail(TOOL_SYSTEM, "%s", strerror(ENOMEM));
    if (posenc_contract_compare(c->a.contract, c->b.contract, c->list, c->count, &c->count,
                                &error))
        return tool_fail_library(c->a.name, &error);
    return TOOL_OK;
}

static void print_json(const struct comparison *c)
{
    printf("{\"a\": ");
    json_string(c->a.name);
    printf(", \"b\": ");
    json_string(c->b.name);
    printf(", \"same\": %s, \"differences\": [", c->count ? "false" : "true");
    for (size_t i = 0; i < c->count; i++) {
        printf("%s\n  {\"key\": ", i ? "," : "");
        json_string(c->list[i].key);
        printf(", \"a\": ");
        json_string(c->list[i].a);
        printf(", \"b\": ");
        json_string(c->list[i].b);
        putchar('}');
    }
    printf("%s]}\n", c->count ? "\n" : "");
}

static void widen(int *width, const char *text)
{
    if ((int)strlen(text) > *width)
        *width = (int)strlen(text);
}

static void print_table(const struct comparison *c)
{
    int key = (int)strlen("fact"), a = 1;
    if (c->count == 0) {
        puts("no difference that changes results");
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        widen(&key, c->list[i].key);
        widen(&a, c->list[i].a);
    }
    printf("A  %s\nB  %s\n\n%-*s  %-*s  B\n", c->a.name, c->b.name, key, "fact", a, "A");
    for (size_t i = 0; i < c->count; i++)
        printf("%-*s  %-*s  %s\n", key, c->list[i].key, a, c->list[i].a, c->list[i].b);
}

static int take_option(void *to, int id, const char *value)
{
    (void)value;
    *(int *)to |= id == JSON;
    return TOOL_OK;
}

int tool_diff(int argc, char **argv)
{
    struct comparison c = {0};
    int json = 0, code;
    if (!tool_take_options(&usage, argc, argv, take_option, &json, &code))
        return code;
    if (argc - optind != 2)
        return tool_wrong_usage("needs two models, A and B: got %d operands", argc - optind);
    if (strcmp(argv[optind], "-") == 0 && strcmp(argv[optind + 1], "-") == 0)
        return tool_wrong_usage("standard input can be one of the two models, not both");
    code = model_open(&c.a, argv[optind]);
    if (!code)
        code = model_open(&c.b, argv[optind + 1]);
    if (!code)
        code = compare(&c);
    if (!code) {
        (json ? print_json : print_table)(&c);
        code = c.count ? TOOL_REFUSED : TOOL_OK;
    }
    free(c.list);
    model_close(&c.a);
    model_close(&c.b);
    return code;
}
