#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/gguf from tests/data/configs: what llama.cpp's converter says of positions.

    pip install gguf; python3 tests/make_gguf.py

Headers only: the metadata that bears on positions, a few keys that do not, and those small tensors
that change frequencies. Keys follow convert_hf_to_gguf.py of llama.cpp, whose files hold no more.
"""
import json
import math
import os
import sys

import gguf
import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, BIG = gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG


class File:
    """One file: a writer, the flattened config, and tensors in the order of writing."""

    def __init__(self, name, arch, config):
        self.name, self.arch, self.tensors = name, arch, []
        self.config = {**config, **config.get("text_config", {})}
        self.entries = []

    def key(self, suffix, kind, value):
        self.entries = [e for e in self.entries if e[0] != suffix]
        self.entries.append((suffix, kind, value))

    def u32(self, suffix, value):
        self.key(suffix, "uint32", int(value))

    def f32(self, suffix, value):
        self.key(suffix, "float32", float(value))

    def text(self, suffix, value):
        self.key(suffix, "string", value)

    def list(self, suffix, values):
        self.key(suffix, "array", values)

    def get(self, *keys, default=None):
        for key in keys:
            if self.config.get(key) is not None:
                return self.config[key]
        return default

    def tensor(self, name, values):
        self.tensors.append((name, numpy.array(values, dtype=numpy.float32), None))

    def shape_only(self, name, shape):
        self.tensors.append((name, None, shape))

    def write(self, endian=NORMAL, version=3, suffix=""):
        writer = gguf.GGUFWriter(None, self.arch, endianess=endian)
        writer.add_type("model")
        writer.add_name(self.name)
        for key, kind, value in self.entries:
            getattr(writer, "add_" + kind)(f"{self.arch}.{key}", value)
        writer.add_token_list(["<s>", "</s>", "a"])
        writer.add_token_scores([0.0, -1.0, -2.0])
        writer.add_bool("tokenizer.ggml.add_bos_token", True)
        for name, values, shape in self.tensors:
            shape = values.shape if shape is None else shape
            size = 4 * int(numpy.prod(shape))
            writer.add_tensor_info(name, shape, numpy.dtype(numpy.float32), size)
        path = os.path.join(HERE, "data", "gguf", self.name + suffix + ".gguf")
        writer.write_header_to_file(path)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        self.finish(path, endian, version)

    def finish(self, path, endian, version):
        order = "big" if endian == BIG else "little"
        with open(path, "rb") as file:
            data = bytearray(file.read())
        data[4:8] = version.to_bytes(4, order)
        for _, values, _ in self.tensors:
            if values is not None:
                data += b"\0" * (-len(data) % 32)
                data += values.astype(">f4" if endian == BIG else "<f4").tobytes()
        with open(path, "wb") as file:
            file.write(data)


def rope_block(file):
    block = file.get("rope_parameters", "rope_scaling", default={})
    return block.get("full_attention", block)


def scaling(file):
    block = rope_block(file)
    kind, factor = block.get("rope_type", block.get("type")), block.get("factor")
    if kind == "linear" and factor is not None:
        file.text("rope.scaling.type", "linear")
        file.f32("rope.scaling.factor", factor)
    elif kind == "yarn" and factor is not None:
        file.text("rope.scaling.type", "yarn")
        file.f32("rope.scaling.factor", factor)
        file.u32("rope.scaling.original_context_length", block["original_max_position_embeddings"])
        for key in ("beta_fast", "beta_slow"):
            if key in block:
                file.f32("rope.scaling.yarn_" + key, block[key])
    elif kind in ("su", "longrope"):
        file.text("rope.scaling.type", "longrope")


def common(file):
    """What every class writes."""
    file.u32("block_count", file.get("num_hidden_layers", "n_layer", "n_layers", "num_layers"))
    file.u32("embedding_length", file.get("hidden_size", "n_embd", "n_embed", "d_model"))
    file.u32("attention.head_count",
             file.get("num_attention_heads", "n_head", "n_heads", "num_heads"))
    for suffix, keys in (("context_length", ("max_position_embeddings", "n_ctx", "n_positions",
                                             "max_seq_len", "seq_length")),
                         ("attention.head_count_kv", ("num_key_value_heads", "num_kv_heads"))):
        if file.get(*keys) is not None:
            file.u32(suffix, file.get(*keys))
    base = rope_block(file).get("rope_theta", file.get("rope_theta"))
    if base is not None:
        file.f32("rope.freq_base", base)
    if file.get("head_dim") is not None:
        file.u32("attention.key_length", file.get("head_dim"))
        file.u32("attention.value_length", file.get("head_dim"))
    scaling(file)


def width(file):
    return file.get("head_dim") or (file.get("hidden_size", "n_embd") //
                                    file.get("num_attention_heads", "n_head"))


def llama3_factors(file):
    block = rope_block(file)
    if block.get("rope_type") != "llama3":
        return
    dim, base = width(file), numpy.float32(block.get("rope_theta", file.get("rope_theta")))
    even = numpy.arange(0, dim, 2, dtype=numpy.float32)
    freqs = numpy.float32(1) / base ** (even / numpy.float32(dim))
    low, high, factor = (block[k] for k in ("low_freq_factor", "high_freq_factor", "factor"))
    old = file.get("original_max_position_embeddings", default=8192)
    factors = []
    for freq in freqs:
        wavelen = numpy.float32(2 * math.pi) / freq
        if wavelen < old / high:
            factors.append(1)
        elif wavelen > old / low:
            factors.append(factor)
        else:
            smooth = (old / wavelen - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    file.tensor("rope_freqs.weight", factors)


def llama(file):
    common(file)
    file.u32("vocab_size", 3)
    file.u32("rope.dimension_count", width(file))
    llama3_factors(file)


def mistral3(file):
    llama(file)
    block = rope_block(file)
    file.f32("rope.scaling.yarn_log_multiplier", block["mscale_all_dim"])
    file.f32("attention.temperature_scale", block["llama_4_scaling_beta"])


def granite(file):
    llama(file)
    file.f32("attention.scale", file.get("attention_multiplier"))


def deepseek2(file):
    common(file)
    rank, nope, rope = (file.get(k) for k in ("kv_lora_rank", "qk_nope_head_dim",
                                              "qk_rope_head_dim"))
    file.u32("attention.head_count_kv", 1)
    file.u32("attention.kv_lora_rank", rank)
    file.u32("attention.key_length", rank + rope)
    file.u32("attention.value_length", rank)
    file.u32("attention.key_length_mla", nope + rope)
    file.u32("attention.value_length_mla", file.get("v_head_dim"))
    file.u32("rope.dimension_count", rope)
    if "mscale_all_dim" in rope_block(file):
        file.f32("rope.scaling.yarn_log_multiplier", 0.1 * rope_block(file)["mscale_all_dim"])


def chatglm(file):
    common(file)
    file.u32("context_length", file.get("max_position_embeddings", "seq_length"))
    file.u32("attention.head_count_kv", file.get("multi_query_group_num", "num_key_value_heads"))
    file.u32("rope.dimension_count", width(file) * file.get("partial_rotary_factor", default=0.5))
    file.f32("rope.freq_base", 10000 * file.get("rope_ratio", default=1))


def unscaled(file):
    common(file)
    file.text("rope.scaling.type", "none")


def falcon(file):
    common(file)
    file.u32("context_length", 2048)
    file.u32("attention.head_count_kv", file.get("num_kv_heads", "n_head_kv", default=1))


def partial(file):
    """Part of the head by a fraction; no base, which has the default."""
    common(file)
    part = file.get("rotary_pct", "partial_rotary_factor", "rope_pct")
    file.u32("rope.dimension_count", int(part * width(file)))


def phi2(file):
    common(file)
    count = file.get("rotary_dim")
    if count is None:
        part = rope_block(file).get("partial_rotary_factor", file.get("partial_rotary_factor"))
        count = int(part * file.get("hidden_size")) // file.get("num_attention_heads")
    file.u32("rope.dimension_count", count)
    file.u32("attention.head_count_kv", file.get("num_attention_heads", "n_head"))


def phi3(file):
    common(file)
    file.entries = [e for e in file.entries if e[0] != "rope.scaling.type"]
    block, longest = rope_block(file), file.get("max_position_embeddings")
    original = file.get("original_max_position_embeddings")
    scale = longest / original
    file.u32("rope.scaling.original_context_length", original)
    file.u32("rope.dimension_count", width(file))
    file.u32("attention.sliding_window", file.get("sliding_window", default=0))
    file.f32("rope.scaling.attn_factor", math.sqrt(1 + math.log(scale) / math.log(original)))
    file.tensor("rope_factors_long.weight", block["long_factor"])
    file.tensor("rope_factors_short.weight", block["short_factor"])


def minicpm(file):
    common(file)
    block = rope_block(file)
    file.u32("rope.dimension_count", width(file))
    file.tensor("rope_factors_long.weight", block["long_factor"])
    file.tensor("rope_factors_short.weight", block["short_factor"])


def windowed(file):
    common(file)
    file.u32("attention.sliding_window", file.get("sliding_window"))
    if file.get("attn_logit_softcapping"):
        file.f32("attn_logit_softcapping", file.get("attn_logit_softcapping"))


def gemma3(file):
    windowed(file)
    file.f32("rope.freq_base_swa", file.get("rope_local_base_freq"))


def gemma4(file):
    common(file)
    slides = [kind == "sliding_attention" for kind in file.get("layer_types")]
    full, local = file.get("global_head_dim"), file.get("head_dim")
    block = file.get("rope_parameters")
    turning = int(full * block["full_attention"]["partial_rotary_factor"] / 2)
    file.u32("attention.sliding_window", file.get("sliding_window"))
    file.list("attention.sliding_window_pattern", slides)
    file.u32("attention.key_length", full)
    file.u32("attention.value_length", full)
    file.u32("attention.key_length_swa", local)
    file.u32("attention.value_length_swa", local)
    file.list("attention.head_count_kv",
              [file.get("num_key_value_heads" if s else "num_global_key_value_heads")
               for s in slides])
    file.u32("rope.dimension_count", full)
    file.u32("rope.dimension_count_swa", local)
    file.f32("rope.freq_base_swa", block["sliding_attention"]["rope_theta"])
    file.tensor("rope_freqs.weight", [1.0] * turning + [1e30] * (full // 2 - turning))


def mimo2(file):
    common(file)
    pattern = file.get("hybrid_layer_pattern")
    kv, local = file.get("num_key_value_heads"), file.get("swa_num_key_value_heads")
    file.list("attention.head_count_kv", [local if slides else kv for slides in pattern])
    file.u32("attention.sliding_window", file.get("sliding_window"))
    file.list("attention.sliding_window_pattern", pattern)
    file.u32("rope.dimension_count", int(width(file) * file.get("partial_rotary_factor")))
    file.f32("rope.freq_base_swa", file.get("swa_rope_theta"))


def modern_bert(file):
    unscaled(file)
    file.u32("attention.sliding_window", file.get("local_attention"))
    file.u32("attention.sliding_window_pattern", file.get("global_attn_every_n_layers"))
    file.f32("rope.freq_base", file.get("global_rope_theta"))
    file.f32("rope.freq_base_swa", file.get("local_rope_theta"))
    file.key("attention.causal", "bool", False)


def nomic_bert(file):
    common(file)
    file.u32("context_length", 2048)
    file.f32("rope.freq_base", file.get("rotary_emb_base"))
    file.key("attention.causal", "bool", False)


def sections(file):
    common(file)
    block = rope_block(file)
    part = block.get("partial_rotary_factor", file.get("partial_rotary_factor", default=1.0))
    file.u32("rope.dimension_count", int(width(file) * part))
    file.list("rope.dimension_sections", (block["mrope_section"] + [0, 0])[:4])


def qwen35(file):
    sections(file)
    file.u32("full_attention_interval", file.get("full_attention_interval"))


def rotary_dim(file):
    common(file)
    file.u32("rope.dimension_count", file.get("rotary_dim"))


def learned(file):
    common(file)
    rows = file.get("max_position_embeddings", "n_positions")
    rows -= file.config.get("model_type") == "roberta" and file.get("pad_token_id") + 1
    file.u32("context_length", rows)
    file.shape_only("position_embd.weight", (rows, file.get("hidden_size", "n_embd")))


def bloom(file):
    common(file)
    heads = file.get("n_head", "num_attention_heads")
    file.u32("attention.head_count_kv", heads)


def mpt(file):
    common(file)
    attention = file.get("attn_config", default={})
    file.f32("attention.max_alibi_bias",
             attention.get("alibi_bias_max", 8) if attention.get("alibi") else 0.0)


def jamba(file):
    common(file)
    offset, period = file.get("attn_layer_offset"), file.get("attn_layer_period")
    layers, kv = file.get("num_hidden_layers"), file.get("num_key_value_heads")
    file.list("attention.head_count_kv",
              [kv if i % period == offset else 0 for i in range(layers)])


def t5(file):
    common(file)
    file.u32("context_length", file.get("n_positions", default=512))
    file.u32("attention.key_length", file.get("d_kv"))
    file.u32("attention.value_length", file.get("d_kv"))
    file.u32("attention.relative_buckets_count", file.get("relative_attention_num_buckets"))
    heads, buckets = file.get("num_heads"), file.get("relative_attention_num_buckets")
    for side in ("enc", "dec"):
        file.shape_only(side + ".blk.0.attn_rel_b.weight", (heads, buckets))


MODELS = {
    "bert-base": ("bert", learned), "bloom-176b": ("bloom", bloom),
    "chatglm3-6b-32k": ("chatglm", chatglm), "codellama-7b": ("llama", llama),
    "command-r-v01": ("command-r", unscaled), "deepseek-coder-6.7b": ("llama", llama),
    "deepseek-r1": ("deepseek2", deepseek2), "deepseek-v2-lite": ("deepseek2", deepseek2),
    "ernie-4.5-0.3b": ("ernie4_5", common), "falcon-7b": ("falcon", falcon),
    "gemma-2b": ("gemma", common), "gemma2-9b": ("gemma2", windowed),
    "gemma3-12b": ("gemma3", gemma3), "gemma4-26b-a4b": ("gemma4", gemma4),
    "glm-4.1v-9b": ("glm4", sections), "glm-5": ("glm-dsa", deepseek2),
    "glm-9b-cogview4": ("chatglm", chatglm), "gpt-j-6b": ("gptj", rotary_dim),
    "gpt-neox-20b": ("gptneox", partial), "gpt-oss-20b": ("gpt-oss", windowed),
    "gpt2": ("gpt2", learned), "granite-3.3-8b": ("granite", granite),
    "internlm2.5-7b": ("internlm2", common), "jamba-tiny": ("jamba", jamba),
    "llama-2-7b": ("llama", llama), "llama-3.1-8b": ("llama", llama),
    "llama4-scout": ("llama4", llama), "mimo-v2-flash": ("mimo2", mimo2),
    "minicpm4-8b": ("minicpm", minicpm), "minimax-m3": ("minimax-m3", rotary_dim),
    "ministral3-3b": ("mistral3", mistral3), "mistral-7b-v0.1": ("llama", llama),
    "mixtral-8x7b": ("llama", llama), "modernbert-base": ("modern-bert", modern_bert),
    "mpt-7b": ("mpt", mpt), "mt5-small": ("t5", t5),
    "nomic-embed-text-v1.5": ("nomic-bert", nomic_bert), "olmo2-7b": ("olmo2", common),
    "phi-1.5": ("phi2", phi2), "phi-2": ("phi2", phi2), "phi-3.5-mini": ("phi3", phi3),
    "qwen2-7b": ("qwen2", common), "qwen2-vl-2b": ("qwen2vl", sections),
    "qwen3-32b": ("qwen3", common), "qwen3-vl-32b": ("qwen3vl", sections),
    "qwen3.5-27b": ("qwen35", qwen35), "roberta-base": ("bert", learned),
    "smollm3-3b": ("smollm3", llama), "stablelm-2-1.6b": ("stablelm", partial),
    "starcoder2": ("starcoder2", common), "t5-small": ("t5", t5),
    "yarn-llama-2-7b-64k": ("llama", llama),
}


def main():
    os.makedirs(os.path.join(HERE, "data", "gguf"), exist_ok=True)
    for name, (arch, fill) in MODELS.items():
        with open(os.path.join(HERE, "data", "configs", name + ".json"), encoding="utf-8") as text:
            file = File(name, arch, json.load(text))
        fill(file)
        file.write()
        if name in ("llama-3.1-8b", "gemma4-26b-a4b", "deepseek-v2-lite"):
            file.write(endian=BIG, suffix="-big")
            file.write(endian=BIG, version=2, suffix="-big-v2")
            file.write(version=2, suffix="-v2")
    return 0


if __name__ == "__main__":
    sys.exit(main())
