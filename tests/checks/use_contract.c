/* SPDX-License-Identifier: MIT */
/* A consumer of the installed reader: a small config becomes a plan. */
#include <posenc/contract.h>
#include <stdio.h>
#include <string.h>

static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 256, "
                             "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                             "\"num_hidden_layers\": 2, \"max_position_embeddings\": 2048, "
                             "\"rope_theta\": 10000.0}";

int main(void)
{
    posenc_error error = {0, ""};
    posenc_contract *contract = NULL;
    posenc_rope_params params;
    posenc_plan *plan = NULL;
    int32_t pairs;
    posenc_rope_params_init(&params);
    if (posenc_contract_parse(&contract, config, strlen(config), &error) ||
        posenc_contract_plan_params(contract, 0, &params, &error) ||
        posenc_plan_create(&plan, &params, &error)) {
        puts(error.text);
        return 1;
    }
    pairs = posenc_plan_pairs(plan);
    posenc_plan_free(plan);
    posenc_contract_free(contract);
    return pairs != 32;
}
