/* SPDX-License-Identifier: MIT */
/* posenc run: the whole path on a model's own shape, checked and measured. */
#include "run.h"
#include "run_other.h"

#include <getopt.h>
#include <stdio.h>

enum {
    TOKENS = 1, START, LAYERS, DTYPE, SET, JSON, LIMIT,
    MAX_TOKENS = 1048576,
    DEFAULT_TOKENS = 512
};

static const struct tool_option options[] = {
    {TOKENS, "tokens", "N", "tokens of the step; default 512"},
    {START, "start", "S", "position of the first token; default 0"},
    {LAYERS, "layers", "L",
     "the model's first L layers; default 4, or up to 8 if\n"
     "these show one more frequency set"},
    {DTYPE, "dtype", "T", "of Q and K: f32, f16 or bf16; default f32"},
    {SET, "set", "ID",
     "only layers of this frequency set; of LongRoPE's two\n"
     "this one (default: by start + tokens)"},
    {JSON, "json", NULL, "one JSON object instead of the text"},
    {LIMIT, "limit", NULL, "refuse positions past the trained limit"},
    {0, NULL, NULL, NULL}};

static const struct tool_usage usage = {
    "run [OPTIONS] MODEL",
    "Reads the position contract of MODEL (a config.json, a GGUF file, a folder, or\n"
    "- for stdin), makes the rows of one step, rotates Q and K of the model's own\n"
    "shape and runs attention on a sample. Checks rows, rotation and attention\n"
    "against the truth in long double and every instruction set against the bits of\n"
    "the scalar code, then measures all of them, interleaved, against touching the\n"
    "same bytes in place. A model without rotation gets its own work: sinusoids or a\n"
    "learned table added to embeddings, a bias of ALiBi or T5 filled. The exit code\n"
    "is 1 if a check fails.",
    options, NULL, "posenc run --tokens 4096 --dtype bf16 config.json"};

static int take_option(void *to, int id, const char *value)
{
    struct run_options *o = to;
    switch (id) {
    case TOKENS:
        if (tool_integer(value, 1, MAX_TOKENS, &o->tokens))
            return TOOL_OK;
        return tool_wrong_usage("--tokens is %s: must be an integer from 1 to %d", value,
                                MAX_TOKENS);
    case START:
        if (tool_integer(value, INT32_MIN, INT32_MAX, &o->start))
            return TOOL_OK;
        return tool_wrong_usage("--start is %s: must be an integer within 32 bits", value);
    case LAYERS:
        if (tool_integer(value, 1, POSENC_CONTRACT_MAX_LAYERS, &o->layers))
            return TOOL_OK;
        return tool_wrong_usage("--layers is %s: must be an integer from 1 to %d", value,
                                (int)POSENC_CONTRACT_MAX_LAYERS);
    case DTYPE:
        o->dtype = tool_dtype(value);
        if (o->dtype)
            return TOOL_OK;
        return tool_wrong_usage("--dtype is %s: must be f32, f16 or bf16", value);
    case SET: o->set = value; return TOOL_OK;
    case JSON: o->json = 1; return TOOL_OK;
    default: o->limit = 1; return TOOL_OK;
    }
}

static int parse(struct run_options *o, int argc, char **argv, int *code)
{
    if (!tool_take_options(&usage, argc, argv, take_option, o, code))
        return 0;
    *code = argc - optind == 1
                ? TOOL_OK
                : tool_wrong_usage("needs one MODEL: got %d operands", argc - optind);
    o->model = argv[optind];
    return *code == TOOL_OK;
}

int tool_run(int argc, char **argv)
{
    struct run run = {.options = {.dtype = POSENC_F32}};
    int code;
    if (!parse(&run.options, argc, argv, &code))
        return code;
    code = model_open(&run.model, run.options.model);
    if (code)
        return code;
    if (run.model.facts.num_sets < 1) {
        code = run_other(&run.model, &run.options);
        model_close(&run.model);
        return code;
    }
    if (!run.options.tokens)
        run.options.tokens = DEFAULT_TOKENS;
    tool_progress("setting up");
    code = run_set_up(&run);
    if (!code)
        code = run_check(&run);
    if (!code)
        code = run_measure(&run);
    tool_progress(NULL);
    if (!code) {
        if (run.options.json)
            run_print_json(&run);
        else
            run_print(&run);
        fflush(stdout);
        model_warn_limit(&run.model, run.model.facts.max_position,
                         run.options.start + run.options.tokens - 1);
        if (!run_passed(&run))
            code = tool_fail(TOOL_REFUSED, "%s: a self-check failed", run.model.name);
    }
    run_tear_down(&run);
    model_close(&run.model);
    return code;
}
