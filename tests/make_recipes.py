#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the systems that recipes are named after and writes their float32 frequencies.

    make_recipes.py hf > data/frequencies_hf.txt                needs transformers and torch
    make_recipes.py vllm FOLDER > data/frequencies_vllm.txt     needs torch and vLLM's package

FOLDER holds the package `vllm` as unpacked. Of it only the classes of rotary embeddings run; what
they import and do not need for a table stands here in their place. Records are those of
make_frequencies.py. Both files were written with torch 2.15 on a CPU, transformers 5.24, vLLM 0.33.
"""
import importlib
import random
import sys
import types

import torch

import make_frequencies as records

SCALINGS = ["default", "linear", "llama3", "yarn", "ntk", "ntk", "ntk", "dynamic", "longrope",
            "proportional"]
WIDTHS = [16, 64, 80, 96, 128, 256]
BASES = [10000.0, 150000.0, 500000.0, 1000000.0, 8000000.0]
LENGTHS = [2048.0, 4096.0, 8192.0, 32768.0]


def cases(scalings, recipe):
    """Parameters of every scaling, a handful each."""
    random.seed(20260829)
    for scaling in scalings:
        for _ in range(8):
            p = dict(records.FIELDS, scaling=scaling, rotary_dim=random.choice(WIDTHS),
                     base=random.choice(BASES), recipe=recipe)
            if scaling:
                p["factor"] = random.choice([1.5, 2.0, 4.0, 8.0, 32.0, 40.0])
            if scaling in (2, 3, 7, 8):
                p["original_max_position"] = random.choice(LENGTHS)
            if scaling == 3:
                p["truncate"] = random.randint(0, 1)
            if scaling == 6:
                p["mixed_exponent"] = random.choice([0.625, 0.65, 1.5])
            if scaling in (7, 8):
                p["length"] = int(p["original_max_position"] * random.choice([0.5, 1, 1.1, 3, 8]))
            if scaling == 8:
                pairs = range(p["rotary_dim"] // 2)
                for field in ("short_factors", "long_factors"):
                    p[field] = [round(random.uniform(1, 60), 3) for _ in pairs]
            if scaling == 9:
                p["factor"] = p["factor"] if recipe == 1 else 1.0
                p["rotating_pairs"] = p["rotary_dim"] // 8
            yield p


def write(p, inv_freq, attention):
    records.write_set(SCALINGS[p["scaling"]], p)
    print("attention", "%.17g" % attention)
    print("inv_freq_f32", len(inv_freq), *["%.9g" % w for w in inv_freq.tolist()])


def parameters_of(p):
    block = {"rope_type": SCALINGS[p["scaling"]], "rope_theta": p["base"]}
    if p["scaling"]:
        block["factor"] = p["factor"]
    if p["scaling"] in (2, 3, 8):
        block["original_max_position_embeddings"] = int(p["original_max_position"])
    if p["scaling"] == 2:
        block.update({key: p[key] for key in ("low_freq_factor", "high_freq_factor")})
    if p["scaling"] == 3:
        block["truncate"] = bool(p["truncate"])
    if p["scaling"] == 8:
        block.update(short_factor=p["short_factors"], long_factor=p["long_factors"])
    if p["scaling"] == 9:
        block["partial_rotary_factor"] = 2 * p["rotating_pairs"] / p["rotary_dim"]
    return block


def hf():
    """The modules of models for what the running length changes, else the functions they call."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    for p in cases([0, 1, 2, 3, 7, 8, 9], 1):
        config = LlamaConfig(hidden_size=p["rotary_dim"], num_attention_heads=1,
                             head_dim=p["rotary_dim"], rope_parameters=parameters_of(p),
                             max_position_embeddings=int(p["original_max_position"]))
        if p["scaling"] == 9:
            write(p, *ROPE_INIT_FUNCTIONS["proportional"](config))
            continue
        module = LlamaRotaryEmbedding(config)
        module(torch.zeros(1), torch.tensor([[p.get("length", 1) - 1]]))
        write(p, module.inv_freq, module.attention_scaling)


class Anything:
    """Stands for what a table does not need: every attribute and every call is False or itself."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: False

    def __bool__(self):
        return False


class CustomOp(torch.nn.Module):
    @staticmethod
    def register(name):
        return lambda cls: cls

    def __init__(self, *args, **kwargs):
        super().__init__()

    @classmethod
    def enabled(cls):
        return False


MODEL = types.SimpleNamespace(max_model_len=None)  # the longest that vLLM serves


def stand_ins():
    """The modules that vLLM's rotary classes import from the rest of it."""
    config = types.SimpleNamespace(model_config=MODEL)
    contents = {
        "vllm": {}, "vllm.model_executor": {}, "vllm.model_executor.layers": {}, "vllm.utils": {},
        "vllm.logger": {"init_logger": lambda name: Anything()},
        "vllm.model_executor.custom_op": {"CustomOp": CustomOp},
        "vllm.platforms": {"current_platform": Anything()},
        "vllm._aiter_ops": {"rocm_aiter_ops": Anything()},
        "vllm.utils.torch_utils": {"direct_register_custom_op": lambda **kwargs: None},
        "vllm.config": {"get_current_vllm_config": lambda: config},
    }
    for name, attributes in contents.items():
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__path__ = []
        module.__dict__.update(attributes)


def vllm_class(folder, module, name):
    package = "vllm.model_executor.layers.rotary_embedding"
    if package not in sys.modules:
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [folder + "/" + package.replace(".", "/")]
    return getattr(importlib.import_module(package + "." + module), name)


VLLM = {0: ("base", "RotaryEmbedding"), 1: ("linear_scaling_rope", "LinearScalingRotaryEmbedding"),
        2: ("llama3_rope", "Llama3RotaryEmbedding"),
        3: ("yarn_scaling_rope", "YaRNScalingRotaryEmbedding"),
        4: ("dynamic_ntk_alpha_rope", "DynamicNTKAlphaRotaryEmbedding"),
        5: ("ntk_scaling_rope", "NTKScalingRotaryEmbedding"),
        6: ("ntk_scaling_rope", "NTKScalingRotaryEmbedding"),
        7: ("dynamic_ntk_scaling_rope", "DynamicNTKScalingRotaryEmbedding"),
        8: ("phi3_long_rope_scaled_rope", "Phi3LongRoPEScaledRotaryEmbedding"),
        9: ("gemma4_rope", "Gemma4RotaryEmbedding")}


def vllm_arguments(p):
    """Keywords of the class; tables of 8 positions, where the length enters nothing else."""
    r, s, trained = p["rotary_dim"], p["factor"], int(p["original_max_position"])
    given = dict(head_size=r, rotary_dim=r, max_position_embeddings=8, base=p["base"],
                 is_neox_style=True, dtype=torch.float32)
    given.update({
        0: {}, 1: dict(scaling_factors=s), 4: dict(scaling_alpha=s), 5: dict(scaling_factor=s),
        2: dict(scaling_factor=s, low_freq_factor=p["low_freq_factor"],
                high_freq_factor=p["high_freq_factor"], orig_max_position=trained),
        3: dict(scaling_factor=s, max_position_embeddings=trained, truncate=bool(p["truncate"])),
        6: dict(scaling_factor=s, mixed_b=p.get("mixed_exponent")),
        7: dict(scaling_factor=s, max_trained_positions=trained,
                max_position_embeddings=max(p.get("length", 0), trained)),
        8: dict(original_max_position_embeddings=trained, max_position_embeddings=int(trained * s),
                short_factor=p.get("short_factors"), long_factor=p.get("long_factors")),
        9: dict(rotary_dim=2 * p.get("rotating_pairs", 0))}[p["scaling"]])
    return given


def vllm(folder):
    """The frequencies are the second operand of the product that makes the angles."""
    product, seen = torch.einsum, []
    torch.einsum = lambda text, t, w: (seen.append((t[:2], w)), product(text, t[:8], w))[1]
    stand_ins()
    for p in cases(range(10), 2):
        MODEL.max_model_len = p.get("length")
        del seen[:]
        module = vllm_class(folder, *VLLM[p["scaling"]])(**vllm_arguments(p))
        is_long = p["scaling"] == 8 and module.use_long_rope
        attention = getattr(module, "mscale", 1.0)
        if p["scaling"] == 8:
            attention = module.long_mscale if is_long else module.short_mscale
        steps, inv_freq = seen[1 if is_long else 0]
        assert p["scaling"] == 1 or steps[1] == 1
        write(p, inv_freq, attention)


if __name__ == "__main__":
    print("# SPDX-License-Identifier: MIT")
    print("# Written by tests/make_recipes.py", sys.argv[1])
    {"hf": hf, "vllm": vllm}[sys.argv[1]](*sys.argv[2:])
