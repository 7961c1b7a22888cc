/* SPDX-License-Identifier: MIT */
/* What multiplies scores and queries of a GGUF model. */
#include "gguf.h"
#include "gguf_arch.h"

#include "../yarn.h"

#include <math.h>

/* The largest models of Gemma 2 and 3 scale by the width of the model, not of its heads. */
static int gemma_scale(struct posenc_gguf_reader *from, posenc_contract_facts *facts)
{
    int64_t embedding = 0;
    double width = (double)facts->head_dim;
    if (facts->num_layers == from->arch->wide_layers) {
        int found = posenc_gguf_integer(from, "embedding_length", 1, INT32_MAX, &embedding);
        if (found <= 0) {
            return found < 0 ? -1
                             : posenc_gguf_refuse_missing(from, "embedding_length",
                                                          "the softmax scale follows from it");
        }
        width = (double)embedding / (double)facts->num_heads;
    }
    facts->softmax_scale = 1.0 / sqrt(width);
    facts->softmax_rule = "query_pre_attn_scalar^-0.5";
    posenc_gguf_assume(from, "query_pre_attn_scalar", width,
                       "of a model with so many layers: no key states it");
    return 0;
}

static void yarn_scale(const struct posenc_set *set, posenc_contract_facts *facts)
{
    posenc_dd g = posenc_yarn_magnitude(set->params.factor, set->mscale_all_dim);
    facts->softmax_scale *= posenc_dd_mul(g, g).hi;
    facts->softmax_rule = "head_dim^-0.5 * yarn_mscale(factor, mscale_all_dim)^2";
}

static int read_softmax(struct posenc_gguf_reader *from, posenc_contract_facts *facts)
{
    static const char key[] = "attention.scale";
    const struct posenc_set *set = &from->reader->contract->sets[0];
    double scale = 0.0;
    int found = posenc_gguf_real(from, key, &scale);
    if (found < 0) {
        return -1;
    }
    if (scale < 0.0) {
        return posenc_gguf_refuse(from, key, "must be > 0, or 0 for the usual one");
    }
    if (from->arch->softmax == POSENC_GGUF_SOFTMAX_GEMMA) {
        return gemma_scale(from, facts);
    }
    facts->softmax_rule = "no scaling of q.k";
    facts->softmax_scale = 1.0;
    if (from->arch->softmax == POSENC_GGUF_SOFTMAX_ONE) {
        return 0;
    }
    if (scale > 0.0) {
        facts->softmax_scale = scale;
        facts->softmax_rule = "attention.scale";
        return 0;
    }
    facts->softmax_scale = 1.0 / sqrt((double)facts->head_dim);
    facts->softmax_rule = "head_dim^-0.5";
    if ((from->arch->flags & POSENC_GGUF_MLA) && facts->num_sets > 0 &&
        set->params.scaling == POSENC_SCALING_YARN && set->mscale_all_dim > 0.0) {
        yarn_scale(set, facts);
    }
    return 0;
}

static int read_cap(struct posenc_gguf_reader *from, posenc_contract_facts *facts)
{
    static const char key[] = "attn_logit_softcapping";
    if (posenc_gguf_real(from, key, &facts->logit_softcap) < 0) {
        return -1;
    }
    return facts->logit_softcap >= 0.0 ? 0 : posenc_gguf_refuse(from, key, "must be >= 0");
}

static int read_query(struct posenc_gguf_reader *from, posenc_contract_facts *facts)
{
    static const char key[] = "attention.temperature_scale";
    static const char length[] = "attention.temperature_length";
    int llama4 = (from->arch->flags & POSENC_GGUF_QUERY_LLAMA4) != 0;
    double factor = llama4 ? 0.1 : 0.0;
    int64_t floor = llama4 ? 8192 : from->reader->contract->sets[0].original_max_position;
    if (!llama4 && !(from->arch->flags & POSENC_GGUF_QUERY_BETA)) {
        return 0;
    }
    int has_factor = posenc_gguf_real(from, key, &factor);
    int has_floor = posenc_gguf_integer(from, length, 1, INT64_C(1) << 53, &floor);
    if (has_factor < 0 || has_floor < 0) {
        return -1;
    }
    if (factor == 0.0) {
        return 0;
    }
    if (floor < 1) {
        return posenc_gguf_refuse_missing(from, length, "the query scale needs it, or yarn");
    }
    if (llama4 && !has_factor) {
        posenc_gguf_assume(from, key, factor, "the constant of this architecture");
    }
    if (llama4 && !has_floor) {
        posenc_gguf_assume(from, length, (double)floor, "the constant of this architecture");
    }
    facts->query_scale_layers = llama4 ? "nope_layers" : "all";
    facts->query_scale_rule =
        llama4 ? "1 + attn_scale*ln(1 + floor((pos+1)/floor_scale))"
               : "1 + llama_4_scaling_beta*ln(1 + floor(pos/original_max_position_embeddings))";
    facts->query_scale_factor = factor;
    facts->query_scale_floor = floor;
    facts->query_scale_offset = llama4;
    return 0;
}

int posenc_gguf_scales(struct posenc_gguf_reader *from)
{
    posenc_contract_facts *facts = &from->reader->contract->facts;
    if (facts->num_heads < 0) {
        return 0;
    }
    return read_softmax(from, facts) < 0 || read_cap(from, facts) < 0 ? -1
                                                                     : read_query(from, facts);
}
