#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Disentangled attention as DebertaV2 of transformers runs it: makes attention_deberta.txt."""
import sys

import numpy as np
import torch
import transformers
from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta

TOKENS, HEADS, CHANNELS, BUCKETS, FARTHEST = 24, 2, 4, 8, 20


def heads_last(x):
    """[heads][tokens][channels] as [tokens][heads][channels]."""
    return x.reshape(HEADS, -1, CHANNELS).transpose(0, 1).detach().numpy().astype(np.float32)


def line(case, name, x):
    print("%s %s %s" % (case, name, " ".join("%.9g" % v for v in np.asarray(x).ravel())))


def run(terms):
    config = transformers.DebertaV2Config(
        hidden_size=HEADS * CHANNELS, num_attention_heads=HEADS, relative_attention=True,
        position_buckets=BUCKETS, max_relative_positions=FARTHEST, pos_att_type=terms,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    torch.manual_seed(len(terms))
    layer = deberta.DisentangledSelfAttention(config).eval()
    hidden = torch.randn(1, TOKENS, HEADS * CHANNELS)
    embeddings = torch.randn(2 * BUCKETS, HEADS * CHANNELS)
    mask = torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool)
    for module in (layer.query_proj, layer.key_proj, layer.value_proj):
        torch.nn.init.normal_(module.weight, std=0.5)
    for module in ("pos_key_proj", "pos_query_proj"):
        if hasattr(layer, module):
            torch.nn.init.normal_(getattr(layer, module).weight, std=0.5)
    out = layer(hidden, mask, rel_embeddings=embeddings)[0]
    case = "+".join(terms)
    line(case, "shape", [TOKENS, HEADS, CHANNELS, BUCKETS, FARTHEST])
    for name, module, source in (("q", "query_proj", hidden), ("k", "key_proj", hidden),
                                 ("v", "value_proj", hidden),
                                 ("position_keys", "pos_key_proj", embeddings),
                                 ("position_queries", "pos_query_proj", embeddings)):
        if hasattr(layer, module):
            projected = layer.transpose_for_scores(getattr(layer, module)(source.reshape(
                1, -1, HEADS * CHANNELS)), HEADS)
            line(case, name, heads_last(projected))
    line(case, "out", out.detach().numpy())


print("# SPDX-License-Identifier: MIT")
print("# Disentangled attention of transformers %s with torch %s, in float32."
      % (transformers.__version__, torch.__version__.split("+")[0]))
for terms in (["c2p"], ["p2c"], ["c2p", "p2c"]):
    run(terms)
sys.stdout.flush()
