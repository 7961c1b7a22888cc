/* SPDX-License-Identifier: MIT */
/* posenc run, last step: what was found, for people. */
#include "run.h"

#include <stdio.h>
#include <string.h>

static const char *layout_name(int32_t layout)
{
    return layout == POSENC_ADJACENT ? "adjacent" : "split_half";
}

void run_print_wrapped(const char *text)
{
    int column = 12;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > 12 && column + 1 + word > 80) {
            printf("\n            ");
            column = 12;
        } else if (column > 12) {
            putchar(' ');
            column++;
        }
        printf("%.*s", word, text);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

/* Appends to a text of `size` bytes; what does not fit is cut. */
static void append(char *text, size_t size, const char *format, double value)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, format, value);
}

static void print_scaling(const posenc_rope_params *p, double attention_factor)
{
    char text[256] = "";
    if (p->scaling != POSENC_SCALING_NONE)
        append(text, sizeof text, "factor %.9g, ", p->factor);
    if (p->scaling == POSENC_SCALING_LLAMA3) {
        append(text, sizeof text, "low %.9g, ", p->low_freq_factor);
        append(text, sizeof text, "high %.9g, ", p->high_freq_factor);
    }
    if (p->scaling == POSENC_SCALING_YARN) {
        append(text, sizeof text, "beta %.9g ", p->beta_fast);
        append(text, sizeof text, "to %.9g, ", p->beta_slow);
    }
    if (p->original_max_position > 0)
        append(text, sizeof text, "trained on %.0f, ", p->original_max_position);
    if (attention_factor != 1)
        append(text, sizeof text, "attention factor %.7g, ", attention_factor);
    if (!*text)
        return;
    text[strlen(text) - 2] = 0;
    printf("%12s", "");
    run_print_wrapped(text);
}

static void print_set(const struct run *run, const struct run_set *set)
{
    const posenc_contract_set *f = &set->facts;
    int64_t layers = 0;
    for (int64_t l = 0; l < run->model.facts.num_layers; l++)
        if (run_set_of_layer(run, l) == set - run->sets)
            layers++;
    printf("  %-9s %s, base %.9g, ", f->id, f->rope_type, f->base);
    if (f->rotary_dim == f->head_dim)
        printf("all %d channels", (int)f->head_dim);
    else
        printf("channels %d..%d of %d", (int)f->rotary_offset,
               (int)(f->rotary_offset + f->rotary_dim - 1), (int)f->head_dim);
    printf(", %s, %lld layers\n", layout_name(f->layout), (long long)layers);
    print_scaling(&set->params, set->attention_factor);
}

/* The keys that were assumed, and the warnings in full. */
static void print_notes(const struct run *run)
{
    const posenc_contract_facts *f = &run->model.facts;
    posenc_contract_note note = {.struct_size = sizeof note};
    char text[1024] = "";
    size_t used = 0;
    for (int32_t i = 0; i < f->num_assumed && used < sizeof text; i++)
        if (!posenc_contract_get_assumed(run->model.contract, i, &note, NULL))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s = %s", i ? ", " : "",
                                     note.key, note.value);
    if (*text) {
        printf("  %-9s ", "assumed");
        run_print_wrapped(text);
    }
    for (int32_t i = 0; i < f->num_warnings; i++) {
        if (posenc_contract_get_warning(run->model.contract, i, &note, NULL))
            continue;
        snprintf(text, sizeof text, "%s: %s", note.key, note.text);
        printf("  %-9s ", "warning");
        run_print_wrapped(text);
    }
}

static void print_contract(const struct run *run)
{
    const posenc_contract_facts *f = &run->model.facts;
    int64_t still = 0;
    for (int64_t l = 0; l < f->num_layers; l++)
        if (posenc_contract_layer_set(run->model.contract, l) == POSENC_LAYER_NOT_ROTATED)
            still++;
    printf("contract\n  %-9s %s, %lld layers, %lld query and %lld key heads of %lld\n", "model",
           f->model_type ? f->model_type : "?", (long long)f->num_layers, (long long)f->num_heads,
           (long long)f->num_kv_heads, (long long)f->head_dim);
    for (int32_t s = 0; s < run->num_sets; s++)
        print_set(run, &run->sets[s]);
    if (still)
        printf("  %-9s %lld layers are not rotated\n", "NoPE", (long long)still);
    if (f->max_position > 0)
        printf("  %-9s %lld positions (%s)\n", "limit", (long long)f->max_position,
               f->max_position_key ? f->max_position_key : "?");
    char softmax[256];
    snprintf(softmax, sizeof softmax, "scale %.9g (%s)", f->softmax_scale,
             f->softmax_rule ? f->softmax_rule : "?");
    printf("  %-9s ", "softmax");
    run_print_wrapped(softmax);
    if (f->logit_softcap > 0)
        printf("  %-9s scores are capped at %.9g\n", "cap", f->logit_softcap);
    if (f->sliding_window > 0)
        printf("  %-9s %lld tokens, on the layers that slide\n", "window",
               (long long)f->sliding_window);
    print_notes(run);
}

static void print_step(const struct run *run)
{
    const struct run_options *o = &run->options;
    printf("\nstep\n  %lld token%s at %lld", (long long)o->tokens, o->tokens == 1 ? "" : "s",
           (long long)o->start);
    if (o->tokens > 1)
        printf("..%lld", (long long)(o->start + o->tokens - 1));
    printf(", %lld layer%s", (long long)run->num_layers, run->num_layers == 1 ? "" : "s");
    if (run->rotated_layers < run->num_layers)
        printf(" (%lld rotated)", (long long)run->rotated_layers);
    printf(", %s, ", tool_dtype_name(o->dtype));
    double bytes = run->bytes / 2;
    printf(bytes < 0x1p20 ? "%.1f KiB" : "%.1f MiB", bytes * (bytes < 0x1p20 ? 0x1p-10 : 0x1p-20));
    printf(" of Q and K to rotate\n  cosine and sine made once for all layers: %.3g us\n",
           1e6 * run->rows_seconds);
}

static const char *verdict(int good)
{
    return good ? "self-check: ok    " : "self-check: FAILED";
}

/* "avx2, avx512": the ISAs that differ from scalar, or all beside it. */
static void list_isas(const struct run *run, int differing)
{
    const struct run_check *c = &run->check;
    const char *comma = "";
    for (int i = differing ? 0 : 1; i < run->isas; i++) {
        int same = c->isa_rows[i] && c->isa_rotation[i] && c->isa_attention[i];
        if (same == differing)
            continue;
        printf("%s%s", comma, posenc_isa_name(run->isa[i]));
        comma = ", ";
    }
}

static void print_check(const struct run *run)
{
    const struct run_check *c = &run->check;
    int equal = run_isas_equal(run), good;
    printf("\n%s rows       off by %.4f x 2^-24 at most, %.3f allowed\n",
           verdict(c->row_error <= c->row_bound), c->row_error, c->row_bound);
    printf("%s rotation   off by %.3f of its bound at most\n", verdict(c->rotation_error <= 1),
           c->rotation_error);
    good = c->attention_error <= c->attention_bound;
    printf("%s attention  off by %.2f x 2^-24 at most", verdict(good), c->attention_error);
    if (!good)
        printf(", %.0f allowed", c->attention_bound);
    printf("\n");
    printf("%s ISAs       ", verdict(equal));
    if (run->isas == 1) {
        printf("only scalar here\n");
        return;
    }
    list_isas(run, !equal);
    printf(equal ? " equal scalar bit for bit\n" : " differ from scalar\n");
}

static void print_line(const struct run *run, const char *name, char mark, double seconds,
                       double ratio, const char *remark)
{
    double tokens = (double)(run->options.tokens * run->rotated_layers) / seconds;
    printf("%c %-9s %13.0f %9.1f %10.2f%s\n", mark, name, tokens, run->bytes / seconds * 1e-9,
           ratio, remark);
}

void run_print(const struct run *run)
{
    int chosen = run_default_isa(run);
    char remark[64];
    printf("posenc %s: %s\n\n", posenc_version(), run->model.name);
    print_contract(run);
    print_step(run);
    print_check(run);
    printf("\n  %-9s %13s %9s %10s\n", "rotation", "tokens/s", "GB/s", "of limit");
    for (int i = run->isas - 1; i >= 0; i--) {
        const struct measure_result *r = &run->measured.result[i];
        print_line(run, r->name, i == chosen ? '*' : ' ', r->seconds, r->ratio, "");
    }
    const struct measure_result *limit = &run->measured.touch[run->measured.limit];
    snprintf(remark, sizeof remark, "   touching the bytes (%s)", limit->name);
    print_line(run, "limit", ' ', limit->seconds, limit->ratio, remark);
    printf("\n  one thread, its CPU time; tokens through one layer; medians of %d interleaved\n  "
           "rounds; "
           "* is what this machine uses unless told otherwise\n",
           run->measured.rounds);
    if (run->measured.result[chosen].ratio > 1.02)
        printf("  above 1: the kernel fetches ahead, the plain pass over the bytes does not\n");
}
