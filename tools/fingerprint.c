/* SPDX-License-Identifier: MIT */
/* posenc fingerprint: 128 bits that stand for what a model does with positions. */
#include "model.h"

#include <getopt.h>
#include <stdio.h>

static const struct tool_option options[] = {{0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "fingerprint [OPTIONS] MODEL",
    "Prints 32 hex digits that stand for everything in a model's contract that\n"
    "changes results: equal where 'posenc diff' finds no difference. With --set,\n"
    "--layer, --length or --rope: those of one plan, posenc_plan_fingerprint, as a\n"
    "cache of rotated keys would keep them.",
    options, model_options, "posenc fingerprint config.json"};

static int take_option(void *to, int id, const char *value)
{
    return model_take_option(to, id, value);
}

static void print(const uint8_t bytes[16])
{
    for (int i = 0; i < 16; i++)
        printf("%02x", bytes[i]);
    putchar('\n');
}

static int print_contract(const char *path)
{
    struct model model;
    uint8_t bytes[16];
    posenc_error error = {0, ""};
    int code = model_open(&model, path);
    if (code)
        return code;
    if (posenc_contract_fingerprint(model.contract, bytes, &error))
        code = tool_fail_library(model.name, &error);
    else
        print(bytes);
    model_close(&model);
    return code;
}

static int print_plan(const struct model_choice *choice)
{
    struct model model;
    struct model_set set;
    posenc_plan *plan = NULL;
    uint8_t bytes[16];
    posenc_error error = {0, ""};
    int code = model_choose(&model, &set, choice);
    if (code)
        return code;
    if (!set.rotated)
        code = tool_fail(TOOL_REFUSED, "%s: layer %lld is not rotated", model.name,
                         (long long)choice->layer);
    else if (posenc_plan_create(&plan, &set.params, &error) ||
             posenc_plan_fingerprint(plan, bytes, &error))
        code = tool_fail_library(model.name, &error);
    else
        print(bytes);
    posenc_plan_free(plan);
    model_close(&model);
    return code;
}

int tool_fingerprint(int argc, char **argv)
{
    struct model_choice choice = {.layer = -1, .length = -1};
    int code;
    if (!tool_take_options(&usage, argc, argv, take_option, &choice, &code))
        return code;
    code = model_take_operand(&choice, argc, argv);
    if (code)
        return code;
    int plan = choice.rope || choice.set || choice.layer >= 0 || choice.length >= 0;
    return plan ? print_plan(&choice) : print_contract(choice.model);
}
