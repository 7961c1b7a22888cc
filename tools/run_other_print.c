/* SPDX-License-Identifier: MIT */
/* posenc run for models that are not rotated: what was found, for people and as JSON. */
#include "json.h"
#include "run.h"
#include "run_other.h"

#include <stdio.h>
#include <string.h>

static const char *scheme_name(int32_t scheme)
{
    static const char *const names[] = {"no positions", "rotation", "ALiBi", "T5 buckets",
                                        "DeBERTa", "learned table", "sinusoid"};
    return scheme >= 0 && scheme < 7 ? names[scheme] : "?";
}

static int is_bias(const struct work *w)
{
    return w->kind == SCHEME_ALIBI || w->kind == SCHEME_T5;
}

static void print_size(double bytes)
{
    printf(bytes < 0x1p20 ? "%.1f KiB" : "%.1f MiB", bytes * (bytes < 0x1p20 ? 0x1p-10 : 0x1p-20));
}

static void print_contract(const struct other *other, const struct model *model)
{
    const posenc_contract_facts *f = &model->facts;
    printf("contract\n  %-9s %s, %s, %lld layers, %lld heads of %lld\n", "model",
           f->model_type ? f->model_type : "?", scheme_name(f->scheme), (long long)f->num_layers,
           (long long)f->num_heads, (long long)f->head_dim);
    for (int n = 0; n < other->count; n++) {
        printf("  %-9s ", other->work[n].op);
        run_print_wrapped(other->work[n].where);
    }
    if (f->max_position > 0)
        printf("  %-9s %lld positions (%s)\n", "limit", (long long)f->max_position,
               f->max_position_key ? f->max_position_key : "?");
}

static void print_step(const struct work *w)
{
    const int64_t *s = w->x.shape;
    if (is_bias(w))
        printf("\n%s: bias of %lld queries, %lld heads, %lld keys, ", w->op, (long long)s[1],
               (long long)s[2], (long long)s[3]);
    else
        printf("\n%s: rows of %lld tokens at %lld..%lld added to %lld channels, ", w->op,
               (long long)s[1], (long long)w->start, (long long)(w->start + s[1] - 1),
               (long long)s[3]);
    printf("%s, ", tool_dtype_name(w->dtype));
    print_size((double)work_bytes_of(&w->x));
    putchar('\n');
}

static void print_check(const struct work *w)
{
    int equal = work_isas_equal(w);
    printf("self-check: %-6s values  off by %.3f of their bound at most\n",
           w->error <= w->bound ? "ok" : "FAILED", w->error);
    printf("self-check: %-6s ISAs    ", equal ? "ok" : "FAILED");
    if (w->isas == 1)
        printf("only scalar here");
    for (int i = 1, any = 0; i < w->isas; i++)
        if (w->isa_same[i] == equal)
            printf("%s%s", any++ ? ", " : "", posenc_isa_name(w->isa[i]));
    if (w->isas > 1)
        printf(equal ? " equal scalar bit for bit" : " differ from scalar");
    putchar('\n');
}

static void print_line(const struct work *w, const struct measure_result *r, char mark,
                       const char *remark)
{
    printf("%c %-9s %13.0f %9.1f %10.2f%s\n", mark, r->name, (double)w->tokens / r->seconds,
           w->bytes / r->seconds * 1e-9, r->ratio, remark);
}

static void print_results(const struct work *w)
{
    const struct measurement *m = &w->measured;
    char remark[64];
    printf("\n  %-9s %13s %9s %10s\n", w->op, is_bias(w) ? "queries/s" : "tokens/s", "GB/s",
           "of limit");
    for (int i = w->isas - 1; i >= 0; i--)
        print_line(w, &m->result[i], w->isa[i] == posenc_isa_default() ? '*' : ' ', "");
    struct measure_result limit = m->touch[m->limit];
    snprintf(remark, sizeof remark, "   %s (%s)",
             is_bias(w) ? "filling the bytes" : "touching the bytes", limit.name);
    limit.name = "limit";
    print_line(w, &limit, ' ', remark);
}

void other_print(const struct other *other, const struct model *model,
                 const struct run_options *options)
{
    (void)options;
    printf("posenc %s: %s\n\n", posenc_version(), model->name);
    print_contract(other, model);
    for (int n = 0; n < other->count; n++) {
        print_step(&other->work[n]);
        print_check(&other->work[n]);
        print_results(&other->work[n]);
    }
    printf("\n  one thread, its CPU time; medians of interleaved rounds; * is what this\n"
           "  machine uses unless told otherwise\n");
}

static void put_rates(const struct work *w, const struct measure_result *r)
{
    printf("{\"op\": \"%s\", \"isa\": \"%s\", \"tokens_per_second\": ", w->op, r->name);
    json_real((double)w->tokens / r->seconds);
    printf(", \"bytes_per_second\": ");
    json_real(w->bytes / r->seconds);
}

static void put_work(const struct work *w)
{
    const int64_t *s = w->x.shape;
    printf("{\"op\": \"%s\", \"what\": ", w->op);
    json_string(w->where);
    printf(", \"shape\": [%lld, %lld, %lld, %lld], \"dtype\": \"%s\", \"bytes\": %.0f,\n     "
           "\"self_check\": {\"ok\": %s, \"error_of_bound\": ",
           (long long)s[0], (long long)s[1], (long long)s[2], (long long)s[3],
           tool_dtype_name(w->dtype), w->bytes, work_passed(w) ? "true" : "false");
    json_real(w->error);
    printf(", \"isas_equal\": %s}, \"rounds\": %d,\n     \"limit\": ",
           work_isas_equal(w) ? "true" : "false", w->measured.rounds);
    put_rates(w, &w->measured.touch[w->measured.limit]);
    printf("},\n     \"results\": [");
    for (int i = w->isas - 1; i >= 0; i--) {
        printf(i == w->isas - 1 ? "\n      " : ",\n      ");
        put_rates(w, &w->measured.result[i]);
        printf(", \"ratio_to_limit\": ");
        json_real(w->measured.result[i].ratio);
        printf(", \"spread\": ");
        json_real(w->measured.result[i].spread);
        printf(", \"default\": %s}", w->isa[i] == posenc_isa_default() ? "true" : "false");
    }
    printf("]}");
}

void other_print_json(const struct other *other, const struct model *model,
                      const struct run_options *options)
{
    const posenc_contract_facts *f = &model->facts;
    int passed = 1;
    for (int n = 0; n < other->count; n++)
        passed = passed && work_passed(&other->work[n]);
    printf("{\n  \"version\": \"%s\",\n  \"model\": ", posenc_version());
    json_string(model->name);
    printf(",\n  \"contract\": {\"model_type\": ");
    json_string(f->model_type);
    printf(", \"num_layers\": %lld, \"num_heads\": %lld, \"head_dim\": %lld, "
           "\"max_position\": ",
           (long long)f->num_layers, (long long)f->num_heads, (long long)f->head_dim);
    if (f->max_position > 0)
        printf("%lld", (long long)f->max_position);
    else
        printf("null");
    printf("},\n  \"step\": {\"tokens\": %lld, \"start\": %lld, \"dtype\": \"%s\"},\n"
           "  \"self_check\": {\"ok\": %s},\n  \"work\": [",
           (long long)(other->work[0].last - options->start + 1), (long long)options->start,
           tool_dtype_name(options->dtype), passed ? "true" : "false");
    for (int n = 0; n < other->count; n++) {
        printf(n ? ",\n    " : "\n    ");
        put_work(&other->work[n]);
    }
    printf("]\n}\n");
}
