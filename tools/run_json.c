/* SPDX-License-Identifier: MIT */
/* posenc run --json: the facts of the text as one JSON object. */
#include "json.h"
#include "run.h"

#include <stdio.h>

static void print_integer(const char *key, int64_t value)
{
    if (value < 0)
        printf("\"%s\": null, ", key);
    else
        printf("\"%s\": %lld, ", key, (long long)value);
}

static void print_set(const struct run_set *set)
{
    const posenc_contract_set *f = &set->facts;
    printf("{\"id\": ");
    json_string(f->id);
    printf(", \"rope_type\": ");
    json_string(f->rope_type);
    printf(", \"theta\": ");
    json_real(f->base);
    printf(
        ", \"rotary_dim\": %d, \"rotary_offset\": %d, \"layout\": \"%s\", \"attention_factor\": ",
        (int)f->rotary_dim, (int)f->rotary_offset,
        f->layout == POSENC_ADJACENT ? "adjacent" : "split_half");
    json_real(set->attention_factor);
    putchar('}');
}

static void print_contract(const struct run *run)
{
    const posenc_contract_facts *f = &run->model.facts;
    printf("  \"contract\": {\"model_type\": ");
    json_string(f->model_type);
    printf(", ");
    print_integer("num_layers", f->num_layers);
    print_integer("num_heads", f->num_heads);
    print_integer("num_kv_heads", f->num_kv_heads);
    print_integer("head_dim", f->head_dim);
    print_integer("max_position", f->max_position);
    printf("\"softmax_scale\": ");
    json_real(f->softmax_scale);
    printf(", \"assumed\": %d, \"warnings\": %d,\n    \"rope\": [", (int)f->num_assumed,
           (int)f->num_warnings);
    for (int32_t s = 0; s < run->num_sets; s++) {
        printf(s ? ",\n      " : "\n      ");
        print_set(&run->sets[s]);
    }
    printf("]},\n");
}

static void print_check(const struct run *run)
{
    const struct run_check *c = &run->check;
    printf("  \"self_check\": {\"ok\": %s, \"row_error\": ", run_passed(run) ? "true" : "false");
    json_real(c->row_error);
    printf(", \"row_bound\": ");
    json_real(c->row_bound);
    printf(", \"error_unit\": ");
    json_real(0x1p-24);
    printf(",\n    \"rotation_error_of_bound\": ");
    json_real(c->rotation_error);
    printf(", \"attention_error\": ");
    json_real(c->attention_error);
    printf(", \"attention_bound\": ");
    json_real(c->attention_bound);
    printf(", \"isas_equal\": %s},\n", run_isas_equal(run) ? "true" : "false");
}

static void print_result(const struct run *run, const struct measure_result *r)
{
    printf("\"isa\": \"%s\", \"tokens_per_second\": ", r->name);
    json_real((double)(run->options.tokens * run->rotated_layers) / r->seconds);
    printf(", \"bytes_per_second\": ");
    json_real(run->bytes / r->seconds);
}

void run_print_json(const struct run *run)
{
    const struct run_options *o = &run->options;
    printf("{\n  \"version\": \"%s\",\n  \"model\": ", posenc_version());
    json_string(run->model.name);
    printf(",\n");
    print_contract(run);
    printf("  \"step\": {\"tokens\": %lld, \"start\": %lld, \"layers\": %lld, \"rotated_layers\": "
           "%lld, "
           "\"dtype\": \"%s\",\n    \"bytes\": %.0f, \"rows_seconds\": ",
           (long long)o->tokens, (long long)o->start, (long long)run->num_layers,
           (long long)run->rotated_layers, tool_dtype_name(o->dtype), run->bytes);
    json_real(run->rows_seconds);
    printf("},\n");
    print_check(run);
    printf("  \"rounds\": %d,\n  \"limit\": {", run->measured.rounds);
    print_result(run, &run->measured.touch[run->measured.limit]);
    printf("},\n  \"results\": [");
    for (int i = run->isas - 1; i >= 0; i--) {
        printf(i == run->isas - 1 ? "\n    {" : ",\n    {");
        print_result(run, &run->measured.result[i]);
        printf(", \"ratio_to_limit\": ");
        json_real(run->measured.result[i].ratio);
        printf(", \"spread\": ");
        json_real(run->measured.result[i].spread);
        printf(", \"default\": %s}", i == run_default_isa(run) ? "true" : "false");
    }
    printf("]\n}\n");
}
