#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/data/attention_run.txt: attention as torch and transformers compute it, in float64.

A case is a call of posenc_attention: `settings` in the order of FIELDS, arrays that they ask for,
and what the public code answered. Queries, keys, values and tables are no part of the file: both
sides make them by `values`. A query that sees no key has `nan` for its result, whatever the public
code has there: engines differ in it.

Nothing is taken from the public code but what it computes. Projections are replaced by their
results, so that a module's own forward runs on given queries, keys and values; where the code asks
for float32 it keeps float64, so that its own rounding does not stand between it and the truth.
Made with transformers 5.24.0 and torch 2.15.0.
"""
import math
from types import SimpleNamespace as Space

import torch
import torch.nn.functional as F
from torch.nn.attention import bias as torch_bias
from transformers import masking_utils as masks

from attention_case import (ADJACENT, OFFSET, POSITION_KEYS, POSITION_QUERIES, SPLIT_HALF, TABLE,
                            TOP_LEFT, Case, Fixed, Same, columns, empty, facts, heads, mask_of,
                            model, stay_wide, values, wide, write)


# -- torch ---------------------------------------------------------------------------------------
sdpa = F.scaled_dot_product_attention


def sdpa_plain():
    for d, e in ((2, 3), (3, 2), (16, 5), (17, 17), (64, 4), (96, 4)):
        case = Case("sdpa/width-%d" % d, tq=3, d=d, e=e)
        s = case.q @ case.k.transpose(-1, -2) / d ** 0.5
        case.done(sdpa(case.q, case.k, case.v), lse=s.logsumexp(-1), weights=s.softmax(-1))
    case = Case("sdpa/scale", b=2, scale=0.3)
    case.done(sdpa(case.q, case.k, case.v, scale=0.3))
    case = Case("sdpa/groups", hq=6)
    case.done(sdpa(case.q, case.k, case.v, enable_gqa=True))
    case = Case("sdpa/tiled-heads", hq=6, head_map=1)
    case.done(sdpa(case.q, case.k.repeat(1, 3, 1, 1), case.v.repeat(1, 3, 1, 1)))


def sdpa_causal():
    for tq, tk in ((5, 5), (3, 6), (6, 3)):
        seen = torch.ones(tq, tk, dtype=torch.bool)
        align = TOP_LEFT * (tq != tk)
        case = Case("sdpa/is-causal-%d-%d" % (tq, tk), tq=tq, tk=tk, causal=1, align=align)
        case.done(sdpa(case.q, case.k, case.v, is_causal=True))
        case = Case("sdpa/upper-left-%d-%d" % (tq, tk), tq=tq, tk=tk, causal=1, align=align)
        case.done(sdpa(case.q, case.k, case.v, attn_mask=torch_bias.causal_upper_left(tq, tk)))
        case = Case("sdpa/lower-right-%d-%d" % (tq, tk), tq=tq, tk=tk, causal=1)
        out = sdpa(case.q, case.k, case.v, attn_mask=torch_bias.causal_lower_right(tq, tk))
        facts("lower right, rows without a key", tq, tk, out[0, 0, 0].tolist())
        case.done(out, seen.tril(tk - tq))


def sdpa_masks():
    for name, shape in (("full", (2, 2, 4, 5)), ("heads", (2, 1, 4, 5)), ("batch", (1, 2, 4, 5)),
                        ("queries", (2, 2, 1, 5))):
        seen = values(9, *shape) > -0.7
        seen[0, 0, -1] = False
        for kind in ("bool", "float"):
            case = Case("sdpa/%s-mask-%s" % (kind, name), b=2, tq=4)
            mask = seen if kind == "bool" else torch.where(seen, values(10, *shape), -math.inf)
            out = sdpa(case.q, case.k, case.v, attn_mask=mask)
            none = ~seen.any(-1).expand(out.shape[:3])
            facts(case.name, "rows without a key:", out[none][0].tolist())
            case.bias(mask).done(out, seen)


def sdpa_packed():
    """Several sequences in one batch row against calls for each."""
    queries, keys = [0, 3, 3, 4, 8], [0, 3, 5, 9, 13]
    for causal in (0, 1):
        case = Case("sdpa/packed-%d" % causal, tq=8, tk=13, causal=causal, hq=4, hk=2, sequences=4)
        outs = []
        for s in range(4):
            q, k, v = (x[:, :, a:b] for x, a, b in (
                (case.q, queries[s], queries[s + 1]), (case.k, keys[s], keys[s + 1]),
                (case.v, keys[s], keys[s + 1])))
            mask = torch_bias.causal_lower_right(q.shape[2], k.shape[2]) if causal else None
            if q.shape[2]:
                outs.append(sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1),
                                 attn_mask=mask))
        case.array("query_starts", queries).array("key_starts", keys)
        del case.set["query_starts"], case.set["key_starts"]
        case.done(torch.cat(outs, 2))


def flex():
    """flex_attention with its lse, also of rows that see nothing, window and cap by its mods."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    case = Case("flex/window-lse", tq=6, tk=4, hq=4, hk=2, causal=1, left=1, align=TOP_LEFT)
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j <= 1), None, None, 6, 4,
                             device="cpu", BLOCK_SIZE=2)
    out, lse = flex_attention(case.q, case.k, case.v, block_mask=mask, enable_gqa=True,
                              return_lse=True)
    facts("flex_attention, row without a key:", out[0, 0, -1].tolist(), "lse", lse[0, 0].tolist())
    seen = torch.ones(6, 4, dtype=torch.bool).tril().triu(-1)
    lse[..., ~seen.any(-1)] = -math.inf
    case.done(out, seen, lse=lse)

    def score_mod(score, b, h, i, j):
        return 2 * torch.tanh(score / 2) - torch.exp2(-(h + 1) * 4.0) * (i - j).abs()

    case = Case("flex/cap-then-alibi", softcap=2, alibi=4)
    out, lse = flex_attention(case.q, case.k, case.v, score_mod=score_mod, return_lse=True)
    case.done(out, lse=lse)


# -- transformers --------------------------------------------------------------------------------
def gpt_oss():
    sinks = torch.tensor([0.5, -1.25, 2.0, -0.375], dtype=wide)
    for name, function, left in (("full", masks.causal_mask_function, -1),
                                 ("window", masks.sliding_window_causal_mask_function(2), 1)):
        for tq in (5, 2):
            case = Case("gpt-oss/%s-%d" % (name, tq), tq=tq, hq=4, causal=1, left=left)
            mask, seen = mask_of(function, tq, 5, 5 - tq)
            out, weights = model("gpt_oss").eager_attention_forward(
                case.module(sinks=sinks), case.q, case.k, case.v, mask, scaling=0.5)
            k = case.k.repeat_interleave(2, 1)
            scores = case.q @ k.transpose(-1, -2) * 0.5 + torch.where(seen, 0, -math.inf)
            s = torch.cat([scores, sinks.view(1, 4, 1, 1).expand(1, 4, tq, 1)], -1)
            case.array("sinks", sinks).done(out.transpose(1, 2), lse=s.logsumexp(-1),
                                            weights=weights)


def gemma2():
    for name, function, left in (("full", masks.causal_mask_function, -1),
                                 ("window", masks.sliding_window_causal_mask_function(3), 2)):
        case = Case("gemma2/" + name, tq=6, tk=6, hq=4, causal=1, left=left, softcap=1.5,
                    scale=0.75)
        mask, _ = mask_of(function, 6, 6)
        out, weights = model("gemma2").eager_attention_forward(
            case.module(), case.q, case.k, case.v, mask, scaling=0.75, softcap=1.5)
        case.done(out.transpose(1, 2), weights=weights)


def windows():
    function = masks.sliding_window_causal_mask_function(4)
    for tq in (9, 2):
        case = Case("mistral/window-%d" % tq, tq=tq, tk=9, causal=1, left=3)
        mask, _ = mask_of(function, tq, 9, 9 - tq)
        out, _ = model("mistral").eager_attention_forward(case.module(), case.q, case.k, case.v,
                                                          mask, scaling=0.5)
        case.done(out.transpose(1, 2))
    case = Case("mistral/two-sided", tq=8, tk=8, left=2, right=2)
    mask, _ = mask_of(masks.sliding_window_bidirectional_mask_function(2), 8, 8)
    out, _ = model("mistral").eager_attention_forward(case.module(), case.q, case.k, case.v, mask,
                                                      scaling=0.5)
    case.done(out.transpose(1, 2))
    case = Case("mistral/evicted", tq=2, tk=5, causal=1, left=3, first_key=4, align=OFFSET,
                offset=7)
    mask = masks.eager_mask(1, 2, 5, q_offset=7, kv_offset=4, mask_function=function, dtype=wide)
    out, _ = model("mistral").eager_attention_forward(case.module(), case.q, case.k, case.v, mask,
                                                      scaling=0.5)
    case.done(out.transpose(1, 2))


def padded():
    """Rows of a batch that end early: counts against transformers' padding mask."""
    counts = [6, 3]
    padding = torch.arange(6)[None] < torch.tensor(counts)[:, None]
    for causal, function in enumerate((masks.bidirectional_mask_function,
                                       masks.causal_mask_function)):
        case = Case("padded/%d" % causal, b=2, tq=6, tk=6, causal=causal,
                    align=TOP_LEFT * causal)
        mask, _ = mask_of(function, 6, 6, b=2, padding=padding)
        out, _ = model("mistral").eager_attention_forward(case.module(), case.q, case.k, case.v,
                                                          mask, scaling=0.5)
        case.array("counts", counts).done(out.transpose(1, 2))


def llama4():
    from transformers import Llama4TextConfig
    case = Case("llama4/temperature", tq=6, tk=6, hq=4, e=4, causal=1)
    config = Llama4TextConfig(hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                              head_dim=4, num_hidden_layers=1, attn_temperature_tuning=True,
                              floor_scale=2, attn_scale=0.5, no_rope_layers=[0],
                              attn_implementation="eager")
    module = model("llama4").Llama4TextAttention(config, 0).to(wide)
    module.q_proj, module.k_proj, module.v_proj = (Fixed(columns(x)) for x in
                                                   (case.q, case.k, case.v))
    module.o_proj = Same()
    mask, _ = mask_of(masks.causal_mask_function, 6, 6)
    eager, given = model("llama4").eager_attention_forward, []

    def spy(module, query, *rest, **more):
        given.append(query)
        return eager(module, query, *rest, **more)

    model("llama4").eager_attention_forward = spy
    out, weights = module(empty(case, 16), None, mask)
    model("llama4").eager_attention_forward = eager
    temperature = (given[0] / case.q)[:, 0, :, 0].to(torch.float32)
    facts("llama4's temperatures", temperature.tolist())
    case.array("temperature", temperature)
    case.done(heads(out, 4), weights=weights)
    # A chunk is a sequence: nobody sees beyond its own.
    case = Case("llama4/chunks", tq=8, tk=8, hq=4, causal=1, sequences=3)
    mask, _ = mask_of(masks.chunked_causal_mask_function(3, torch.zeros(1, dtype=torch.long)), 8, 8)
    out, _ = eager(case.module(), case.q, case.k, case.v, mask, scaling=0.5)
    for what in ("query_starts", "key_starts"):
        case.arrays[what] = [0, 3, 6, 8]
    case.done(out.transpose(1, 2))


def bloom():
    from transformers import BloomConfig
    config = BloomConfig(hidden_size=24, n_head=6, n_layer=1, hidden_dropout=0.0,
                         attention_dropout=0.0)
    module = model("bloom").BloomAttention(config, 0).to(wide)
    module.dense = Same()
    plain = [1, 1, 1, 1, 1, 1]
    for name, row in (("plain", plain), ("padded", [0, 0, 1, 0, 1, 1])):
        case = Case("bloom/" + name, b=2, tq=6, tk=6, hq=6, hk=6, e=4, causal=1, alibi=2)
        padding = torch.tensor([row, plain]) > 0
        mask, seen = mask_of(masks.causal_mask_function, 6, 6, b=2, padding=padding)
        alibi = model("bloom").build_alibi_tensor(padding.long(), 6, wide)
        module.query_key_value = Fixed(torch.stack(
            [x.transpose(1, 2) for x in (case.q, case.k, case.v)], 3).flatten(2))
        out, weights = module(empty(case, 24), empty(case, 24), alibi, mask)
        if name != "plain":
            case.bias(padding[:, None, None])
            positions = ((padding.cumsum(-1) - 1) * padding).tolist()
            case.array("key_positions", positions)
            facts("bloom, rows of padding:", out[0, 0].tolist())
        case.done(heads(out, 6), seen, weights=weights)


def mpt():
    from transformers import DynamicCache, MptConfig
    for most in (8, 16):
        cached = 4 * (most == 16)
        tq = 6 - cached
        case = Case("mpt/%d-%d" % (most, tq), tq=tq, tk=6, hq=6, hk=6, e=4, causal=1, alibi=3,
                    max_bias=most)
        config = MptConfig(d_model=24, n_heads=6, n_layers=1, max_seq_len=16)
        module = model("mpt").MptAttention(config, 0).to(wide)
        k, v, cache = case.k[:, :, cached:], case.v[:, :, cached:], DynamicCache()
        if cached:
            cache.update(case.k[:, :, :cached], case.v[:, :, :cached], 0)
        module.Wqkv, module.out_proj = Fixed(columns(case.q, k, v)), Same()
        alibi = model("mpt").build_mpt_alibi_tensor(6, 16, most).to(wide)
        mask = ~torch.ones(tq, 6, dtype=torch.bool).tril(cached)[None, None]
        out, weights = module(empty(case, 24), alibi, cache, mask)
        case.done(heads(out, 6), weights=weights)


def falcon():
    from transformers import FalconConfig
    for form in (2, 5):
        case = Case("falcon/%d" % form, b=2, tq=6, tk=6, hq=6, hk=6, e=4, causal=1, alibi=form,
                    alibi_scale=0.5)
        config = FalconConfig(hidden_size=24, num_attention_heads=6, num_hidden_layers=1,
                              alibi=True, multi_query=False, attn_implementation="eager")
        module = model("falcon").FalconAttention(config, 0).to(wide)
        module.dense = Same()
        module.query_key_value = Fixed(torch.stack(
            [x.transpose(1, 2) for x in (case.q, case.k, case.v)], 3).flatten(2))
        alibi = model("falcon").build_alibi_tensor(torch.ones(2, 6, dtype=torch.long), 6, wide)
        mask, _ = mask_of(masks.causal_mask_function, 6, 6, b=2)
        out, weights = module(empty(case, 24), alibi, mask, output_attentions=True)
        case.done(heads(out, 6), weights=weights)


def t5():
    from transformers import T5Config
    for name, decoder, buckets in (("encoder", False, 12), ("decoder", True, 10)):
        case = Case("t5/" + name, tq=10, tk=10, e=4, causal=int(decoder), scale=1,
                    t5=1 + decoder, t5_buckets=buckets, t5_distance=8)
        config = T5Config(d_model=8, d_kv=4, num_heads=2, dropout_rate=0.0, is_decoder=decoder,
                          relative_attention_num_buckets=buckets,
                          relative_attention_max_distance=8,
                          attn_implementation="eager")
        module = model("t5").T5Attention(config, True, 0).to(wide).eval()
        module.q, module.k, module.v, module.o = (
            Fixed(columns(case.q)), Fixed(columns(case.k)), Fixed(columns(case.v)), Same())
        module.relative_attention_bias.weight.data = values(TABLE, buckets, 2)
        mask = mask_of(masks.causal_mask_function, 10, 10)[0] if decoder else None
        out, _, weights = module(empty(case, 8), mask=mask)
        case.done(heads(out, 2), weights=weights)
    case = Case("t5/decoding", tq=2, tk=10, e=4, causal=1, scale=1, t5=2, t5_buckets=10,
                t5_distance=8)
    bias = module.compute_bias(2, 10, past_seen_tokens=8)
    out, weights = model("t5").eager_attention_forward(
        module, case.q, case.k, case.v, mask_of(masks.causal_mask_function, 2, 10, 8)[0],
        scaling=module.scaling, position_bias=bias)
    case.done(out.transpose(1, 2), weights=weights)


def deberta_case(name, kinds, t, d, buckets, distance, share=False, old=False,
                 **settings):
    from transformers import DebertaConfig, DebertaV2Config
    case = Case("deberta/" + name, tq=t, tk=t, d=d, e=d, c2p=int("c2p" in kinds),
                p2c=int("p2c" in kinds), buckets=max(buckets, 0), distance=distance, **settings)
    config = (DebertaConfig if old else DebertaV2Config)(
        hidden_size=2 * d, num_attention_heads=2, relative_attention=True,
        position_buckets=buckets, max_relative_positions=distance, pos_att_type=kinds,
        share_att_key=share, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    public = model("deberta" if old else "deberta_v2")
    module = public.DisentangledSelfAttention(config).to(wide).eval()
    span = 2 * (buckets if buckets > 0 else distance)
    content = {"query": columns(case.q), "key": columns(case.k), "value": columns(case.v)}
    position = {"query": values(POSITION_QUERIES, 1, span, 2 * d),
                "key": values(POSITION_KEYS, 1, span, 2 * d)}

    class Projection(torch.nn.Module):
        def __init__(self, what):
            super().__init__()
            self.what = what

        def forward(self, x):
            return position[self.what] if x.shape[1] == span else content[self.what]

    for what in content:
        setattr(module, what + "_proj", Projection(what))
    if not share:
        module.pos_key_proj, module.pos_query_proj = Projection("key"), Projection("query")
    relative = None
    if old:  # its rows are cut to the span in use before they are projected
        module.in_proj = Fixed(columns(torch.cat([case.q, case.k, case.v], -1)))
        cut = slice(distance - min(t, distance), distance + min(t, distance))
        module.pos_proj, module.pos_q_proj = (Fixed(position[x][:, cut]) for x in
                                              ("key", "query"))
        relative = public.build_relative_position(case.q, case.k)
    assert span != t
    out, weights = module(empty(case, 2 * d), torch.ones(1, 1, t, t), output_attentions=True,
                          relative_pos=relative,
                          rel_embeddings=torch.zeros(span, 2 * d, dtype=wide))
    case.done(heads(out, 2), weights=weights)


def deberta():
    both = ["c2p", "p2c"]
    deberta_case("log", both, 14, 12, 4, 9)
    deberta_case("log-shared", both, 14, 12, 6, 12, share=True)
    deberta_case("plain", both, 11, 12, -1, 4)
    deberta_case("plain-shared", both, 7, 12, -1, 5, share=True)
    deberta_case("c2p", ["c2p"], 12, 8, 4, 9)
    deberta_case("p2c", ["p2c"], 12, 8, 4, 9)
    deberta_case("odd-buckets", both, 13, 12, 5, 9)
    deberta_case("v1", both, 11, 12, -1, 4, old=True)
    deberta_case("v1-p2c", ["p2c"], 7, 8, -1, 9, old=True)
    deberta_case("rounded-scale", both, 9, 8, 4, 7, slack=1e-7)  # torch's root is a float32


def rows_of(cos, sin):
    """posenc's rows: the cosines of all pairs, then the sines."""
    return torch.cat([cos, sin], -1).to(torch.float32)


def llama():
    from transformers import LlamaConfig
    rope = model("llama").LlamaRotaryEmbedding(LlamaConfig(
        hidden_size=16, num_attention_heads=2, head_dim=8))
    cos, sin = rope(torch.zeros(1, 1), torch.arange(7)[None] + 3)
    for cached in (0, 4):
        case = Case("llama/rope-%d" % cached, tq=3, tk=7, hq=4, d=8, causal=1, rope=SPLIT_HALF,
                    rope_channels=8, rotate_from=cached)
        _, k = model("llama").apply_rotary_pos_emb(case.k, case.k, cos.to(wide), sin.to(wide))
        q, _ = model("llama").apply_rotary_pos_emb(case.q, case.q, cos[:, 4:].to(wide),
                                                   sin[:, 4:].to(wide))
        k = torch.cat([case.k[:, :, :cached], k[:, :, cached:]], 2)
        mask, _ = mask_of(masks.causal_mask_function, 3, 7, 4)
        out, weights = model("llama").eager_attention_forward(case.module(), q, k, case.v, mask,
                                                              scaling=8 ** -0.5)
        case.array("key_rows", rows_of(cos[0, :, :4], sin[0, :, :4]))
        case.array("query_rows", rows_of(cos[0, 4:, :4], sin[0, 4:, :4]))
        case.done(out.transpose(1, 2), weights=weights)


def deepseek_v3():
    from transformers import DeepseekV3Config
    config = DeepseekV3Config(
        hidden_size=16, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=None,
        kv_lora_rank=4, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, num_hidden_layers=1,
        max_position_embeddings=64, attn_implementation="eager",
        rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
                         "mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 32, "beta_slow": 1,
                         "original_max_position_embeddings": 8})
    cos, sin = model("deepseek_v3").DeepseekV3RotaryEmbedding(config)(
        torch.zeros(1, 1), torch.arange(6)[None])
    module = model("deepseek_v3").DeepseekV3Attention(config, 0).to(wide).eval()
    multiplier = module.scaling * 10 ** 0.5
    case = Case("deepseek-v3/mla", tq=6, tk=6, d=10, e=5, causal=1, rope=ADJACENT, rope_offset=6,
                rope_channels=4, multiplier=multiplier, common=6)
    module.q_proj = Fixed(columns(case.q))
    module.kv_a_proj_with_mqa = Fixed(torch.cat([torch.zeros(1, 6, 4, dtype=wide),
                                                 case.k[:, 0, :, 6:]], -1))
    module.kv_a_layernorm, module.o_proj = Same(), Same()
    module.kv_b_proj = Fixed(torch.cat([case.k[..., :6], case.v], -1).transpose(1, 2).flatten(2))
    mask, _ = mask_of(masks.causal_mask_function, 6, 6)
    out, weights = module(empty(case, 16), (cos.to(wide), sin.to(wide)), mask)
    for what in ("query_rows", "key_rows"):
        case.array(what, rows_of(cos[0, :, :2], sin[0, :, :2]))
    facts("deepseek-v3's multiplier", multiplier, "largest cosine", float(cos.max()))
    case.done(heads(out, 2), weights=weights)


def deepseek_v4():
    """Keys are the values, stored rotated; the result is turned back at the query's place."""
    v4 = model("deepseek_v4")
    case = Case("deepseek-v4/turned-back", tq=5, tk=5, hq=4, hk=1, d=10, e=10, causal=1, left=2,
                same=1, rope=ADJACENT, rope_offset=6, rope_channels=4, slack=1e-6)
    angles = torch.arange(5)[:, None] * torch.tensor([1.0, 0.25], dtype=wide)[None]
    cos, sin = angles.cos()[None], angles.sin()[None]
    sinks = torch.tensor([0.5, -1.25, 2.0, -0.375], dtype=wide)
    module = Space(
        head_dim=10, rope_layer_type="main", q_a_norm=Same(), q_a_proj=Same(),
        q_b_proj=Fixed(columns(case.q)), q_b_norm=Same(), kv_norm=Same(), compressor=None,
        kv_proj=Fixed(columns(v4.apply_rotary_pos_emb(case.k, cos, -sin))), training=False,
        attention_dropout=0.0, scaling=10 ** -0.5, sliding_window=3, sinks=sinks,
        num_key_value_groups=4, o_a_proj=Same(), o_b_proj=Same(),
        config=Space(_attn_implementation="eager", o_groups=1))
    mask, _ = mask_of(masks.sliding_window_causal_mask_function(3), 5, 5)
    out, weights = v4.DeepseekV4Attention.forward(module, empty(case, 4), {"main": (cos, sin)},
                                                  None, mask)
    for what in ("query_rows", "output_rows"):
        case.array(what, rows_of(cos[0], sin[0]))
    case.array("sinks", sinks).done(heads(out, 4), weights=weights)


stay_wide()
for run in (sdpa_plain, sdpa_causal, sdpa_masks, sdpa_packed, flex, gpt_oss, gemma2, windows,
            padded, llama4, bloom, mpt, falcon, t5, deberta, llama, deepseek_v3, deepseek_v4):
    with torch.no_grad():
        run()
write()
