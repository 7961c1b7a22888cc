/* SPDX-License-Identifier: MIT */
/* posenc inspect: the schemes that are not rotations, as JSON and as text. */
#include "inspect.h"

#include <posenc/builders.h>
#include <stdlib.h>

int inspect_slopes(struct inspection *inspection)
{
    const struct model *model = &inspection->model;
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    posenc_error error = {0, ""};
    int64_t heads = model->facts.num_heads;
    if (posenc_contract_get_alibi(model->contract, &alibi, NULL)) {
        return TOOL_OK;
    }
    inspection->slopes = malloc((size_t)heads * sizeof *inspection->slopes);
    if (!inspection->slopes) {
        return tool_fail(TOOL_SYSTEM, "no memory for %lld slopes", (long long)heads);
    }
    if (posenc_alibi_slopes(inspection->slopes, 0, heads, heads, alibi.max_bias, &error)) {
        return tool_fail_library(model->name, &error);
    }
    return TOOL_OK;
}

static void put_alibi(const struct inspection *inspection)
{
    const struct model *model = &inspection->model;
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    fputs(",\n  \"alibi\": ", stdout);
    if (posenc_contract_get_alibi(model->contract, &alibi, NULL)) {
        fputs("null", stdout);
        return;
    }
    printf("{\"bias_max\": %.17g, \"slopes\": ", alibi.max_bias);
    for (int64_t k = 0; k < model->facts.num_heads; k++) {
        printf("%s%.17g", k ? ", " : "[", inspection->slopes[k]);
    }
    fputs("],\n    \"bias\": ", stdout);
    inspect_put_string(alibi.bias);
    printf(", \"bias_multiplied_by_softmax_scale\": %s}", alibi.scaled ? "true" : "false");
}

static void put_t5(const struct model *model)
{
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    fputs(",\n  \"t5\": ", stdout);
    if (posenc_contract_get_t5(model->contract, &t5, NULL)) {
        fputs("null", stdout);
        return;
    }
    printf("{\"num_buckets\": %d, \"max_distance\": %lld, \"table_shape\": [%d, %lld],"
           " \"encoder\": %s, \"decoder\": %s, \"per_layer\": %s}",
           t5.num_buckets, (long long)t5.max_distance, t5.num_buckets,
           (long long)model->facts.num_heads, t5.encoder ? "{\"bidirectional\": true}" : "null",
           t5.decoder ? "{\"bidirectional\": false}" : "null", t5.per_layer ? "true" : "false");
}

static void put_learned(const struct model *model)
{
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    fputs(",\n  \"learned\": ", stdout);
    if (posenc_contract_get_learned(model->contract, &learned, NULL)) {
        fputs("null", stdout);
        return;
    }
    printf("{\"table_rows\": %lld, \"dim\": %d, \"position_offset\": %lld,"
           " \"usable_positions\": %lld, \"applies_to\": ",
           (long long)learned.table_rows, learned.dim, (long long)learned.position_offset,
           (long long)learned.usable_positions);
    inspect_put_string(learned.applies_to);
    putchar('}');
}

static void put_sinusoidal(const struct model *model)
{
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    fputs(",\n  \"sinusoidal\": ", stdout);
    if (posenc_contract_get_sinusoidal(model->contract, &waves, NULL)) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"kind\": ", stdout);
    inspect_put_string(waves.kind);
    printf(", \"dim\": %d, \"rows\": ", waves.dim);
    inspect_put_count(waves.rows);
    printf(", \"row_offset\": %lld, \"freq_divisor\": ", (long long)waves.row_offset);
    inspect_put_string(waves.freq_divisor);
    fputs(", \"applies_to\": ", stdout);
    inspect_put_string(waves.applies_to);
    putchar('}');
}

static void put_deberta(const struct model *model)
{
    posenc_contract_deberta deberta = {.struct_size = sizeof deberta};
    fputs(",\n  \"deberta\": ", stdout);
    if (posenc_contract_get_deberta(model->contract, &deberta, NULL)) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"position_buckets\": ", stdout);
    inspect_put_count(deberta.position_buckets);
    fputs(", \"max_relative_positions\": ", stdout);
    inspect_put_count(deberta.max_relative_positions);
    fputs(", \"pos_att_type\": ", stdout);
    inspect_put_string(deberta.pos_att_type);
    putchar('}');
}

void inspect_json_schemes(const struct inspection *inspection)
{
    const struct model *model = &inspection->model;
    put_alibi(inspection);
    put_t5(model);
    put_learned(model);
    put_sinusoidal(model);
    put_deberta(model);
}

static void say_tables(const struct model *model)
{
    posenc_contract_learned learned = {.struct_size = sizeof learned};
    posenc_contract_sinusoidal waves = {.struct_size = sizeof waves};
    if (!posenc_contract_get_sinusoidal(model->contract, &waves, NULL)) {
        inspect_line("sinusoidal", "%d channels, %s, frequencies over %s, row = position + "
                     "%lld%s%s",
                     waves.dim, waves.kind, waves.freq_divisor, (long long)waves.row_offset,
                     waves.applies_to ? ", in the " : "", waves.applies_to ? waves.applies_to : "");
    }
    if (!posenc_contract_get_learned(model->contract, &learned, NULL)) {
        inspect_line("learned", "%lld rows of %d channels, row = position + %lld: %lld "
                     "positions%s%s",
                     (long long)learned.table_rows, learned.dim, (long long)learned.position_offset,
                     (long long)learned.usable_positions, learned.applies_to ? ", in the " : "",
                     learned.applies_to ? learned.applies_to : "");
    }
}

void inspect_text_schemes(const struct model *model)
{
    posenc_contract_alibi alibi = {.struct_size = sizeof alibi};
    posenc_contract_t5 t5 = {.struct_size = sizeof t5};
    posenc_contract_deberta deberta = {.struct_size = sizeof deberta};
    if (!posenc_contract_get_alibi(model->contract, &alibi, NULL)) {
        inspect_line("alibi", "bias %s, slopes down to 2^-%.9g, added %s the softmax scale",
                     alibi.bias, alibi.max_bias, alibi.scaled ? "before" : "after");
    }
    if (!posenc_contract_get_t5(model->contract, &t5, NULL)) {
        inspect_line("t5 bias", "%d buckets up to distance %lld%s%s, %s", t5.num_buckets,
                     (long long)t5.max_distance, t5.encoder ? ", both sides in the encoder" : "",
                     t5.decoder ? ", causal in the decoder" : "",
                     t5.per_layer ? "a table in each layer" : "one table for all layers");
    }
    if (!posenc_contract_get_deberta(model->contract, &deberta, NULL)) {
        inspect_line("deberta", "%d position buckets, distances up to %lld, %s",
                     deberta.position_buckets, (long long)deberta.max_relative_positions,
                     deberta.pos_att_type ? deberta.pos_att_type : "no position scores");
    }
    say_tables(model);
}
