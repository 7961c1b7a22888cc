#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/data/cache_run.txt: what models of transformers do around their key-value cache.

Three kinds of lines, told apart by what stands behind the name:

append   a tensor on its way to attention or into the cache: norm, rotation, scale, in the order of
         FIELDS; `out` is what the model's own attention module made of it.
window   q and k as two `append`s, then attention over 40 tokens that come in `chunks`, through the
         model's own cache of a sliding layer: `out` for each token.
stream   keys of a few first tokens and of the last ones, turned again to their place in the cache
         whenever the oldest of the others goes (Xiao et al. 2023, StreamingLLM): `out` for each
         token that was decoded, and the keys at the end.

Inputs and weights are no part of the file: both sides make them by `values`. Projections are
replaced by their results; where the code asks for float32 it keeps float64, except in cosines and
sines, which stay the float32 numbers that transformers makes. Made with transformers 5.24.0 and
torch 2.15.0.
"""
import os
import sys

import torch
from transformers import DynamicCache
from transformers import masking_utils as masks

import attention_case
from attention_case import DATA, Fixed, Same, columns, facts, model, stay_wide, values, wide

Q, K, V, Q_WEIGHT, K_WEIGHT = 0, 1, 2, 6, 7
NONE, HEAD, PROJECTION = 0, 1, 2
ADJACENT, SPLIT_HALF = 1, 2
LINEAR, LLAMA3, YARN, LONGROPE = 1, 2, 3, 8
FIELDS = {
    "b": 2, "t": 3, "h": 2, "d": 8, "source": K, "norm": 0, "after": 0, "eps": 0, "weight": 0,
    "weight_heads": 1, "plus_one": 0, "scale": 0, "layout": SPLIT_HALF, "out_layout": 0,
    "rotary_dim": 0, "rotary_offset": 0, "base": 10000, "scaling": 0, "factor": 0,
    "attention_factor": 0, "original": 0, "mscale": 0, "mscale_all_dim": 0, "truncate": 1,
    "low": 0, "high": 0, "length": 0}
PLACES = (0, 5, 1023)
lines = attention_case.lines


def settings(**given):
    unknown = set(given) - set(FIELDS)
    assert not unknown, unknown
    made = dict(FIELDS, **given)
    if made["layout"] and not made["rotary_dim"]:
        made["rotary_dim"] = made["d"]
    return made


def put(name, what, numbers, form="%.10g"):
    texts = [form % v for v in torch.as_tensor(numbers, dtype=wide).flatten().tolist()]
    lines.append("%s %s %s" % (name, what, " ".join(texts)))


def put_settings(name, what, made, arrays=None):
    put(name, what, list(made.values()), "%.17g")
    for array, numbers in (arrays or {}).items():
        put(name, array, numbers, "%.17g")


def tensor(made):
    """[B][T][H][D], as a projection gives it."""
    return values(made["source"], made["b"], made["t"], made["h"], made["d"])


def weight(made):
    kind = Q_WEIGHT if made["source"] == Q else K_WEIGHT
    return values(kind, made["weight_heads"] * made["d"])


class Caught:
    """A cache that keeps what it is given, and the queries that meet it."""
    def update(self, k, v, *rest, **more):
        self.k, self.v = k, v
        return k, v

    def get_seq_length(self, *rest):
        return 0


def catch(public, module, rope, made, cache=None, mask=None):
    """Runs the module; gives queries, keys and values as they reach the cache and attention."""
    cache = cache or Caught()
    eager = public.eager_attention_forward

    def spy(module, query, key, value, *rest, **more):
        cache.q = query
        return query.transpose(1, 2), None

    public.eager_attention_forward = spy
    module(torch.zeros(made["b"], made["t"], 4, dtype=wide), rope, mask, cache=cache)
    public.eager_attention_forward = eager
    return cache


def embeddings(rotary, positions, *more):
    """What the model's own rotary module answers, as float32 numbers."""
    made = rotary(torch.zeros(1, 1), torch.tensor([positions]), *more)
    if torch.is_tensor(made):
        return made.to(torch.complex128)
    return tuple(x.to(wide) for x in made)


def build(public, prefix, config, q, k, layer=0):
    """The attention module with q and k in place of what its projections give."""
    module = getattr(public, prefix + "Attention")(config, layer).to(wide).eval()
    v = values(V, k["b"], k["t"], k["h"], k["d"])
    flat = [tensor(q).flatten(2), tensor(k).flatten(2), v.flatten(2)]
    if hasattr(module, "qkv_proj"):
        module.qkv_proj = Fixed(torch.cat(flat, -1))
    else:
        module.q_proj, module.k_proj, module.v_proj = map(Fixed, flat)
    module.o_proj = Same()
    for made, names in ((q, ("q_norm", "query_layernorm")), (k, ("k_norm", "key_layernorm"))):
        for name in names:
            if made["weight"]:
                if hasattr(module, name):
                    getattr(module, name).weight.data = weight(made)
    return module


def config_of(public_config, **more):
    import transformers
    return getattr(transformers, public_config)(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        num_hidden_layers=2, attn_implementation="eager", rms_norm_eps=1e-3, **more)


def write_pair(name, caught, q, k, positions, **arrays):
    arrays = dict(arrays, positions=positions)
    for part, made, x in (("q", q, caught.q), ("k", k, caught.k)):
        put_settings("%s/%s" % (name, part), "append", made, arrays)
        put("%s/%s" % (name, part), "out",
            x.transpose(1, 2) * (made["scale"] or 1))


def family(name, public, prefix, config, layer=0, rotary_args=(), positions=PLACES, arrays=None,
           turned=1, q_scale=0, rotary="RotaryEmbedding", attention=None, **options):
    """Queries of four heads and keys of two through one layer of a model."""
    public = model(public)
    q = settings(source=Q, h=4, scale=q_scale, **options)
    k = settings(source=K, h=2, **options)
    if options.get("norm") == PROJECTION:
        q["weight_heads"], k["weight_heads"] = 4, 2
    rope = embeddings(getattr(public, prefix + rotary)(config), positions, *rotary_args)
    module = build(public, attention or prefix, config, q, k, layer)
    if isinstance(rope, tuple):
        rope = tuple(x.expand(2, -1, -1) for x in rope)
    caught = catch(public, module, rope, q)
    write_pair(name, caught, q, k, [turned * p for p in positions], **(arrays or {}))


def theta(base=10000.0, kind="default", **more):
    return dict(rope_type=kind, rope_theta=base, **more)


def normed():
    head = dict(norm=HEAD, eps=1e-3, weight=1)
    family("qwen3", "qwen3", "Qwen3", config_of("Qwen3Config", rope_parameters=theta(1e6)),
           base=1e6, **head)
    scaling = {"full_attention": theta(1e6, "linear", factor=8.0),
               "sliding_attention": theta(10000.0)}
    config = config_of("Gemma3TextConfig", rope_parameters=scaling, query_pre_attn_scalar=24,
                       layer_types=["sliding_attention", "full_attention"])
    for layer, kind in enumerate(config.layer_types):
        more = dict(base=1e6, scaling=LINEAR, factor=8) if layer else {}
        family("gemma3/" + kind, "gemma3", "Gemma3", config, layer, (kind,),
               q_scale=24 ** -0.5, plus_one=1, **head, **more)
    projection = dict(norm=PROJECTION, eps=1e-3, weight=1)
    family("olmo2", "olmo2", "Olmo2", config_of("Olmo2Config", rope_parameters=theta(5e5)),
           base=5e5, **projection)
    partial = theta(5e6, partial_rotary_factor=0.5)
    family("minimax-m2", "minimax_m2", "MiniMaxM2",
           config_of("MiniMaxM2Config", rope_parameters=partial), base=5e6, rotary_dim=4,
           **projection)
    config = config_of("Exaone4Config", rope_parameters=theta(1e6), sliding_window=4,
                       layer_types=["sliding_attention", "full_attention"])
    family("exaone4/sliding", "exaone4", "Exaone4", config, base=1e6, **head)
    family("exaone4/unrotated", "exaone4", "Exaone4", config, 1, layout=0, **head)


def normed_after():
    llama3 = theta(5e5, "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=512)
    config = config_of("Llama4TextConfig", rope_parameters=llama3, no_rope_layers=[1, 1],
                       use_qk_norm=True, attn_temperature_tuning=False)
    after = dict(norm=HEAD, after=1, eps=1e-3)
    family("llama4", "llama4", "Llama4Text", config, layout=ADJACENT, base=5e5, scaling=LLAMA3,
           factor=8, low=1, high=4, original=512, **after)
    family("hunyuan", "hunyuan_v1_dense", "HunYuanDenseV1",
           config_of("HunYuanDenseV1Config", rope_parameters=theta()), weight=1, **after)
    # This model turns the other way: its positions are negative ones.
    family("nanochat", "nanochat", "NanoChat",
           config_of("NanoChatConfig", rope_parameters=theta()), turned=-1, **after)


def plain():
    short, long = [1.0, 1.25, 1.5], [1.5, 4.0, 20.0]
    for name, positions in (("short", PLACES), ("long", (0, 5, 4096))):
        scaling = theta(kind="longrope", short_factor=short, long_factor=long,
                        original_max_position_embeddings=4096, partial_rotary_factor=0.75)
        config = config_of("Phi3Config", rope_parameters=scaling, max_position_embeddings=131072,
                           pad_token_id=0)
        family("phi3/" + name, "phi3", "Phi3", config, positions=positions, rotary_dim=6,
               scaling=LONGROPE, factor=32, original=4096, length=positions[-1] + 1,
               arrays={"short": short, "long": long})
    family("glm4", "glm4", "Glm4",
           config_of("Glm4Config", rope_parameters=theta(partial_rotary_factor=0.5)),
           layout=ADJACENT, rotary_dim=4)
    family("cohere2", "cohere2", "Cohere2",
           config_of("Cohere2Config", rope_parameters=theta(), sliding_window=4,
                     layer_types=["sliding_attention", "full_attention"]), layout=ADJACENT)
    yarn = theta(150000.0, "yarn", factor=32.0, original_max_position_embeddings=4096,
                 truncate=False, beta_fast=32.0, beta_slow=1.0)
    family("gpt-oss", "gpt_oss", "GptOss",
           config_of("GptOssConfig", rope_parameters=yarn), base=150000, scaling=YARN, factor=32,
           original=4096, truncate=0)


def latent():
    """DeepSeek V3: one key part for all heads, which lies in the cache beside a normed latent."""
    from transformers import DeepseekV3Config
    yarn = theta(kind="yarn", factor=8.0, mscale=1.0, mscale_all_dim=0.5, beta_fast=32,
                 beta_slow=1, original_max_position_embeddings=4096)
    config = DeepseekV3Config(
        hidden_size=16, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=None,
        kv_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
        num_hidden_layers=1, max_position_embeddings=512, attn_implementation="eager",
        rope_parameters=yarn)
    public = model("deepseek_v3")
    module = public.DeepseekV3Attention(config, 0).to(wide).eval()
    rope = embeddings(public.DeepseekV3RotaryEmbedding(config), PLACES)
    turned = dict(layout=ADJACENT, out_layout=SPLIT_HALF, rotary_dim=4, scaling=YARN, factor=8,
                  original=4096, mscale=1, mscale_all_dim=0.5)
    q = settings(source=Q, d=10, rotary_offset=6, **turned)
    k = settings(h=1, d=4, **turned)
    # Its norm has an eps that no configuration sets and that is too small to count here.
    c = settings(source=V, h=1, d=12, norm=HEAD, eps=1e-2, weight=1, layout=0)
    module.q_proj = Fixed(tensor(q).flatten(2))
    module.kv_a_proj_with_mqa = Fixed(torch.cat([tensor(c), tensor(k)], -1)[:, :, 0])
    module.kv_a_layernorm.weight.data = weight(c)
    module.kv_a_layernorm.variance_epsilon = 1e-2
    module.kv_b_proj, module.o_proj = Fixed(torch.zeros(2, 3, 2 * 11, dtype=wide)), Same()
    caught = catch(public, module, tuple(x.expand(2, -1, -1) for x in rope), q)
    caught.k, caught.c = caught.v, caught.k
    write_pair("deepseek-v3", caught, q, k, PLACES)
    put_settings("deepseek-v3/latent", "append", c, {"positions": PLACES})
    put("deepseek-v3/latent", "out", caught.c.transpose(1, 2))


# -- a window over 40 tokens ---------------------------------------------------------------------
CHUNKS = (7, 1, 1, 5, 1, 12, 1, 1, 1, 9, 1)


def window(name, public, prefix, config, rotary_args=(), sinks=None, scale=0, **options):
    public = model(public)
    q = settings(source=Q, b=1, t=40, h=4, d=8, **options)
    k = settings(source=K, b=1, t=40, h=2, d=8, **options)
    rotary = getattr(public, prefix + "RotaryEmbedding")(config)
    module = build(public, prefix, config, q, k)
    if sinks is not None:
        module.sinks.data = sinks
    whole = module.q_proj.result, module.k_proj.result, module.v_proj.result
    cache, at, outs = DynamicCache(config=config), 0, []
    function = masks.sliding_window_causal_mask_function(config.sliding_window)
    for n in CHUNKS:
        for part, x in zip((module.q_proj, module.k_proj, module.v_proj), whole):
            part.result = x[:, at:at + n]
        keys, first = cache.get_mask_sizes(n, 0)
        mask = masks.eager_mask(1, n, keys, q_offset=at, kv_offset=first, mask_function=function,
                                dtype=wide)
        rope = embeddings(rotary, range(at, at + n), *rotary_args)
        out, _ = module(torch.zeros(1, n, 4, dtype=wide), rope, mask, cache=cache)
        outs.append(out)
        at += n
    facts(name, "keys kept at the end:", cache.layers[0].keys.shape[2], type(cache.layers[0]))
    put_settings(name + "/q", "side", q)
    put_settings(name + "/k", "side", k)
    put(name, "window", [config.sliding_window, scale, sinks is not None], "%.17g")
    put(name, "chunks", CHUNKS, "%d")
    if sinks is not None:
        put(name, "sinks", sinks, "%.17g")
    put(name, "out", torch.cat(outs, 1))


def windows():
    layers = ["sliding_attention", "sliding_attention"]
    config = config_of("MistralConfig", rope_parameters=theta(), sliding_window=6)
    window("window/mistral", "mistral", "Mistral", config)
    scaling = {"sliding_attention": theta(), "full_attention": theta(1e6)}
    config = config_of("Gemma3TextConfig", rope_parameters=scaling, query_pre_attn_scalar=24,
                       layer_types=layers, sliding_window=5)
    window("window/gemma3", "gemma3", "Gemma3", config, ("sliding_attention",),
           scale=24 ** -0.5, norm=HEAD, eps=1e-3, weight=1, plus_one=1)
    yarn = theta(150000.0, "yarn", factor=32.0, original_max_position_embeddings=4096,
                 truncate=False, beta_fast=32.0, beta_slow=1.0)
    config = config_of("GptOssConfig", rope_parameters=yarn, layer_types=layers, sliding_window=4)
    window("window/gpt-oss", "gpt_oss", "GptOss", config, base=150000, scaling=YARN, factor=32,
           original=4096, truncate=0,
           sinks=torch.tensor([0.5, -1.25, 2.0, -0.375], dtype=wide))


# -- sinks, and keys that are turned again -------------------------------------------------------
def half(x):
    return torch.cat([-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]], -1)


def turn(x, positions, base=10000.0):
    """x [H][T][D] at those positions."""
    d = x.shape[-1]
    angles = positions.to(wide)[:, None] * base ** (-torch.arange(0, d, 2, dtype=wide) / d)
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + half(x) * angles.sin()


def stream(name, keep, slots, tokens):
    """Keys lie rotated by their place. When room is short the oldest but the first `keep` goes, and
    those behind it are turned by one place, each time on top of what was done to them."""
    q = settings(source=Q, b=1, t=tokens, h=4)
    k = settings(source=K, b=1, t=tokens, h=2)
    queries, keys = tensor(q)[0].transpose(0, 1), tensor(k)[0].transpose(0, 1)
    v = values(V, tokens, 2, 8).transpose(0, 1)
    held, held_v, held_t, outs = keys[:, :0], v[:, :0], [], []
    for t in range(tokens):
        if held.shape[1] == slots:
            held = torch.cat([held[:, :keep],
                              turn(held[:, keep + 1:], torch.full((slots - keep - 1,), -1))], 1)
            held_v = torch.cat([held_v[:, :keep], held_v[:, keep + 1:]], 1)
            del held_t[keep]
        place = torch.tensor([held.shape[1]])
        held = torch.cat([held, turn(keys[:, t:t + 1], place)], 1)
        held_v = torch.cat([held_v, v[:, t:t + 1]], 1)
        held_t.append(t)
        query = turn(queries[:, t:t + 1], place)
        score = query @ held.repeat_interleave(2, 0).transpose(1, 2) * 8 ** -0.5
        outs.append((score.softmax(-1) @ held_v.repeat_interleave(2, 0))[:, 0])
    fresh = turn(keys[:, held_t], torch.arange(slots))
    assert (fresh - held).abs().max() < 1e-12
    put_settings(name + "/q", "side", q)
    put_settings(name + "/k", "side", k)
    put(name, "stream", [keep, slots, tokens], "%d")
    put(name, "keys", held.transpose(0, 1))
    put(name, "out", torch.stack(outs))


def half_types():
    """How far a bfloat16 run of a model is from its float64 run: rounded after every step."""
    public, options = model("qwen3"), dict(norm=HEAD, eps=1e-6, weight=1)
    config = config_of("Qwen3Config", rope_parameters=theta(1e6))
    q, k = settings(source=Q, h=4, **options), settings(**options)
    rotary = public.Qwen3RotaryEmbedding(config)
    exact = catch(public, build(public, "Qwen3", config, q, k), tuple(
        x.expand(2, -1, -1) for x in embeddings(rotary, PLACES)), q).k
    module = build(public, "Qwen3", config, q, k).to(torch.bfloat16)
    for part in (module.q_proj, module.k_proj, module.v_proj):
        part.result = part.result.to(torch.bfloat16)
    rope = tuple(x.expand(2, -1, -1) for x in rotary(torch.zeros(1, 1, dtype=torch.bfloat16),
                                                     torch.tensor([PLACES])))
    rounded = catch(public, module, rope, q).k
    once = exact.to(torch.bfloat16)
    for what, x in (("as transformers runs", rounded), ("rounded once", once)):
        facts("qwen3 in bfloat16,", what, "largest error / largest key:",
              float((x.to(wide) - exact).abs().max() / exact.abs().max()))


def main():
    stay_wide()
    to = torch.Tensor.to
    torch.Tensor.to = lambda x, *rest, **more: (
        x if x.dtype == wide and rest == (torch.float32,) else to(x, *rest, **more))
    for part in (normed, normed_after, plain, latent, windows, half_types):
        part()
    stream("stream/plain", 2, 7, 20)
    stream("stream/no-sinks", 0, 5, 14)
    with open(os.path.join(DATA, "cache_run.txt"), "w", encoding="utf-8") as out:
        out.write("# SPDX-License-Identifier: MIT\n"
                  "# Keys, queries and attention around caches as transformers ran them, by "
                  "../run_cache.py.\n")
        out.writelines(line + "\n" for line in lines)
    print(len(lines), "lines", file=sys.stderr)


if __name__ == "__main__":
    main()
