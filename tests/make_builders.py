#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs public references and stores their numbers for the tests of the builders.

    pip install torch transformers diffusers rotary-embedding-torch mpmath
    make_builders.py                      tests/data/builders_transformers5.txt
    make_builders.py --vllm FILE          the same, FILE being vLLM's dual_chunk_rope.py
    make_builders.py (transformers 4)     tests/data/builders_transformers4.txt: position ids

Nothing is taken from these packages but what they compute. Made with transformers 5.24.0 and
4.57.1, diffusers 0.42.1, rotary-embedding-torch 0.9.1, torch 2.15.0 and
vLLM 0.33.0.
"""
import os
import sys
import types
from types import SimpleNamespace as Space

import mpmath
import torch
import transformers

mpmath.mp.dps = 60
MAJOR = int(transformers.__version__.split(".")[0])
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data",
                   "builders_transformers%d.txt" % MAJOR)
TEXT, GRID, PLANE = 1, 2, 3
IMAGE_ID, VIDEO_ID, START_ID = 101, 102, 103
lines = []


def put(name, what, values):
    texts = [repr(int(v)) if float(v) == int(v) else repr(float(v)) for v in values]
    lines.append("%s %s %s" % (name, what, " ".join(texts)))


# ------------------------------------------------------------------------------------------------
# Position ids of prompts with images and videos. A prompt is a list of ("text", n),
# ("image", rows, columns) and ("video", frames, rows, columns, seconds a frame).
PROMPTS = {
    "image": [("text", 3), ("image", 4, 2), ("text", 2)],
    "images": [("text", 5), ("image", 6, 4), ("text", 1), ("image", 2, 8), ("text", 7)],
    "ends": [("text", 1), ("image", 3, 5)],
    "video": [("text", 2), ("video", 3, 4, 4, 1), ("text", 3), ("image", 2, 2), ("text", 4)],
    "long": [("text", 1), ("video", 20, 2, 3, 1), ("text", 6), ("video", 2, 2, 2, 1), ("text", 1)],
    "plain": [("text", 9)],
}
SECONDS = {"whole": (2, 4.0), "half": (25, 0.5), "near": (2, 0.285), "third": (1, 1 / 3)}


def tokens_of(prompt):
    """Token ids and kinds: a grid is announced by a start token, the last of the text before it."""
    ids, kinds = [], []
    for i, (kind, *sizes) in enumerate(prompt):
        n = 1
        for size in sizes[:3 if kind == "video" else 2]:
            n *= size
        ids += [{"text": 7, "image": IMAGE_ID, "video": VIDEO_ID}[kind]] * n
        kinds += [{"text": 0, "image": 1, "video": 2}[kind]] * n
        if kind == "text" and i + 1 < len(prompt):
            ids[-1] = START_ID
    return torch.tensor([ids]), torch.tensor([kinds])


def grids(prompt, kind):
    merge = 2
    found = [[1] + p[1:] if kind == "image" else p[1:4] for p in map(list, prompt) if p[0] == kind]
    return torch.tensor([[t, merge * h, merge * w] for t, h, w in found]) if found else None


def segments(prompt, step, plane):
    for kind, *sizes in prompt:
        if kind == "text":
            yield from (TEXT, sizes[0], 0, 0, 0, 0)
        elif kind == "image":
            yield from (GRID, 0, 1, sizes[0], sizes[1], 1)
        else:
            yield from (PLANE if plane else GRID, 0, *sizes[:3], step)


def rope_index(model_class, prompt, tokens_per_second, seconds):
    vision = Space(spatial_merge_size=2, tokens_per_second=tokens_per_second)
    self = Space(config=Space(vision_config=vision, image_token_id=IMAGE_ID,
                              video_token_id=VIDEO_ID, vision_start_token_id=START_ID))
    ids, kinds = tokens_of(prompt)
    arguments = {"image_grid_thw": grids(prompt, "image"), "video_grid_thw": grids(prompt, "video")}
    if seconds is not None:
        arguments["second_per_grid_ts"] = seconds
    if MAJOR >= 5:
        self.get_vision_position_ids = types.MethodType(model_class.get_vision_position_ids, self)
        arguments["mm_token_type_ids"] = kinds
    return model_class.get_rope_index(self, ids, **arguments)


def store_prompt(name, model_class, prompt, step=1, tokens_per_second=1, seconds=None):
    ids, delta = rope_index(model_class, prompt, tokens_per_second, seconds)
    put(name, "segments", segments(prompt, step, MAJOR >= 5))
    for axis, letter in enumerate("thw"):
        put(name, letter, ids[axis, 0].tolist())
    put(name, "delta", delta.flatten().tolist())


def store_prompts():
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLModel
    from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel
    for name, prompt in PROMPTS.items():
        store_prompt("qwen2-vl/" + name, Qwen2VLModel, prompt)
    for name, (per_second, seconds) in SECONDS.items():
        # Version 4 cuts the seconds to a whole number before it multiplies.
        step = per_second * (seconds if MAJOR >= 5 else int(seconds))
        for frames, rows, columns in ((4, 2, 3), (130, 1, 1)):
            prompt = [("text", 2), ("video", frames, rows, columns, seconds), ("text", 3)]
            store_prompt("qwen2.5-vl/%s-%d" % (name, frames), Qwen2_5_VLModel, prompt, step,
                         per_second, [seconds])


# ------------------------------------------------------------------------------------------------
def store_axes():
    """Which axis turns a pair: one whose sine is not 0 when that axis alone is at position 1."""
    from transformers.models.ernie4_5_vl_moe import modeling_ernie4_5_vl_moe as ernie
    from transformers.models.glm4v import modeling_glm4v as glm
    from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2
    from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3
    tried = {
        "qwen2-vl": (qwen2.Qwen2VLRotaryEmbedding, 128, 1, [16, 24, 24], 1),
        "qwen2-vl-narrow": (qwen2.Qwen2VLRotaryEmbedding, 32, 1, [4, 6, 6], 1),
        "glm-4.1v": (glm.Glm4vTextRotaryEmbedding, 128, 0.5, [8, 12, 12], 1),
        "qwen3-vl": (qwen3.Qwen3VLTextRotaryEmbedding, 128, 1, [24, 20, 20], 2),
        "qwen3.5": (qwen3.Qwen3VLTextRotaryEmbedding, 64, 1, [11, 11, 10], 2),
        "qwen3-vl-uneven": (qwen3.Qwen3VLTextRotaryEmbedding, 64, 1, [4, 16, 12], 2),
        "ernie-4.5-vl": (ernie.Ernie4_5_VLMoeTextRotaryEmbedding, 128, 1, [22, 22, 20], 4),
    }
    for name, (kind, width, partial, section, pattern) in tried.items():
        rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section,
                "partial_rotary_factor": partial}
        module = kind(Space(rope_parameters=rope, head_dim=width, max_position_embeddings=1024,
                            hidden_size=width, num_attention_heads=1,
                            standardize_rope_params=lambda: None))
        axes = [-1] * sum(section)
        for axis in range(3):
            ids = torch.zeros(3, 1, 1)
            ids[axis] = 1
            sine = module(torch.zeros(1), ids)[1].flatten()
            adjacent = name.startswith(("ernie", "glm"))
            for i in range(len(axes)):
                if sine[2 * i if adjacent and len(sine) > len(axes) else i] != 0:
                    axes[i] = axis
        put(name, "section", section)
        put(name, "pattern", [pattern])
        put(name, "axis_of_pair", axes)


def store_rotations():
    """Queries that text models rotated by the ids of a prompt with a video and an image."""
    from transformers.models.ernie4_5_vl_moe import modeling_ernie4_5_vl_moe as ernie
    from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2
    from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3
    ids = rope_index(qwen2.Qwen2VLModel, PROMPTS["video"], 1, None)[0]
    q = heads(ids.shape[2], 16)
    for name, module, kind, section, pattern, layout in (
            ("rotated-qwen2-vl", qwen2, qwen2.Qwen2VLRotaryEmbedding, [2, 3, 3], 1, 2),
            ("rotated-qwen3-vl", qwen3, qwen3.Qwen3VLTextRotaryEmbedding, [4, 2, 2], 2, 2),
            ("rotated-ernie-4.5-vl", ernie, ernie.Ernie4_5_VLMoeTextRotaryEmbedding, [3, 3, 2],
             4, 1)):
        rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section}
        rotary = kind(Space(rope_parameters=rope, head_dim=16, max_position_embeddings=1024))
        rotated = module.apply_rotary_pos_emb(q[None, None], q[None, None], *rotary(q, ids))[0]
        put(name, "mrope", [pattern, layout, *section])
        put(name, "q", q.flatten().tolist())
        put(name, "rotated", rotated.flatten().tolist())


# ------------------------------------------------------------------------------------------------
def exact(form, width, base):
    """The frequencies of a form, pairs in order, as the doubles nearest to the formula."""
    block, base, power = width // 4, mpmath.mpf(base), lambda j: mpmath.power(base, -j)
    one = lambda j: power(mpmath.mpf(4 * j) / width)
    if form == "pixtral":
        w = [power(mpmath.mpf(2 * (2 * j + k)) / width) for k in range(2) for j in range(block)]
    elif form == "pixel":
        step = (base / 2 - 1) / max(block - 1, 1)
        w = [mpmath.pi * (1 + step * j) for j in range(block)] * 2
    else:
        w = [one(j) * (2 * mpmath.pi if form == "dinov3" else 1) for j in range(block)] * 2
    return [float(x) for x in w]


def heads(count, width):
    """Numbers of few bits, different enough: [count][width]."""
    return torch.tensor([[((37 * t + 11 * c + 5) % 29 - 14) / 8 for c in range(width)]
                         for t in range(count)])


def store_form(name, form, width, base, grid, q, rotated, coordinates=0):
    """form: a number of POSENC_VISION_*. `coordinates` as in posenc_ids_grid. CLS is left out."""
    put(name, "form", [form, width, base, *grid, coordinates])
    put(name, "inv_freq", exact(name.split("/")[0], width, base))
    put(name, "q", q.flatten().tolist())
    put(name, "rotated", rotated.flatten().tolist())


def store_qwen(width, grid):
    from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen
    rope = {"rope_type": "axial", "rope_theta": 10000.0}
    module = qwen.Qwen2VLVisionRotaryEmbedding(Space(rope_parameters=rope, head_dim=width))
    ids = torch.tensor([[y, x] for y in range(grid[0]) for x in range(grid[1])])
    q = heads(len(ids), width)
    cosine, sine = module(q, ids)
    rotated = qwen.apply_rotary_pos_emb_vision(q[:, None], q[:, None], cosine, sine)[0]
    store_form("qwen/%d" % width, 1, width, 10000, grid, q, rotated)


def store_pixtral(width, grid):
    from transformers.models.pixtral import modeling_pixtral as pixtral
    rope = {"rope_type": "axial", "rope_theta": 10000.0}
    module = pixtral.PixtralVisionRotaryEmbedding(Space(rope_parameters=rope, head_dim=width))
    ids = torch.tensor([[y, x] for y in range(grid[0]) for x in range(grid[1])])
    q = heads(len(ids), width)
    cosine, sine = module(q, ids)
    rotated = pixtral.apply_rotary_pos_emb(q[None, None], q[None, None], cosine, sine, 0)[0]
    store_form("pixtral/%d" % width, 2, width, 10000, grid, q, rotated)


def store_llama4(width, side):
    from transformers.models.llama4 import modeling_llama4 as llama4
    config = Space(image_size=side, patch_size=1, hidden_size=width, num_attention_heads=1,
                   rope_parameters={"rope_theta": 10000.0})
    freqs = llama4.Llama4VisionRotaryEmbedding(config)(torch.zeros(1))
    q = heads(side * side + 1, width)
    rotated = llama4.vision_apply_rotary_emb(q[None, :, None], q[None, :, None], freqs)[0]
    rotated = rotated.reshape(-1, width)
    assert torch.equal(rotated[-1], q[-1])
    store_form("llama4/%d" % width, 3, width, 10000, (side, side), q[:-1], rotated[:-1])


def store_gemma4(width, grid):
    """The ids are the image processor's own: columns first."""
    from transformers.models.gemma4 import image_processing_pil_gemma4 as processing
    from transformers.models.gemma4 import modeling_gemma4 as gemma4
    image = torch.zeros(3, 4 * grid[0], 4 * grid[1], dtype=torch.uint8).numpy()
    processor = processing.Gemma4ImageProcessorPil(patch_size=4, pooling_kernel_size=1,
                                                   do_resize=False)
    ids = torch.as_tensor(processor(image, return_tensors="np")["image_position_ids"])
    ids = ids[:, :grid[0] * grid[1]]
    rope = {"rope_type": "axial", "rope_theta": 100.0}
    module = gemma4.Gemma4VisionRotaryEmbedding(Space(rope_parameters=rope, head_dim=width))
    q = heads(ids.shape[1], width)
    cosine, sine = module(q, ids)
    rotated = gemma4.apply_multidimensional_rope(q[None, :, None], cosine, sine, ids)
    store_form("gemma4/%d" % width, 4, width, 100, grid, q, rotated)


def store_dinov3(width, grid):
    from transformers.models.dinov3_vit import modeling_dinov3_vit as dinov3
    config = Space(rope_theta=100.0, hidden_size=width, num_attention_heads=1, image_size=8,
                   patch_size=1)
    module = dinov3.DINOv3ViTRopePositionEmbedding(config).eval()
    q = heads(grid[0] * grid[1], width)
    cosine, sine = module(torch.zeros(1, 3, *grid))
    rotated = dinov3.apply_rotary_pos_emb(q[None, None], q[None, None], cosine, sine)[0]
    store_form("dinov3/%d" % width, 6, width, 100, grid, q, rotated, 1)


def store_pixel(width, grid):
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
    module = RotaryEmbedding(dim=width // 2, freqs_for="pixel", max_freq=10)
    q = heads(grid[0] * grid[1], width)
    rotated = apply_rotary_emb(module.get_axial_freqs(*grid), q.reshape(*grid, width))
    store_form("pixel/%d" % width, 7, width, 10, grid, q, rotated.detach(), 2)


def store_axial(name, widths, ids):
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_flux import FluxPosEmbed
    ids = torch.tensor(ids, dtype=torch.float32)
    q = heads(len(ids), sum(widths))
    rotated = apply_rotary_emb(q[None, None], FluxPosEmbed(10000, list(widths))(ids))
    put(name, "widths", widths)
    put(name, "ids", ids.T.flatten().tolist())
    put(name, "inv_freq", [float(mpmath.power(10000, -mpmath.mpf(2 * j) / width))
                           for width in widths for j in range(width // 2)])
    put(name, "q", q.flatten().tolist())
    put(name, "rotated", rotated.flatten().tolist())


# ------------------------------------------------------------------------------------------------
def store_temperature():
    from transformers.models.llama4 import modeling_llama4 as llama4
    from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale
    seen = []

    def capture(module, query, *rest, **kwargs):
        seen.append(query)
        return query.transpose(1, 2), None

    llama4.ALL_ATTENTION_FUNCTIONS.register("capture", capture)
    config = transformers.Llama4TextConfig(
        hidden_size=8, num_attention_heads=1, num_key_value_heads=1, head_dim=8, floor_scale=8,
        attn_scale=0.1, no_rope_layers=[0], num_hidden_layers=1)
    config._attn_implementation = "capture"
    layer = llama4.Llama4TextAttention(config, 0)
    torch.nn.init.eye_(layer.q_proj.weight)
    with torch.no_grad():
        layer(torch.ones(1, 200, 8), None, None)
    put("llama4", "temperature", [0.1, 8, 1])
    put("llama4", "positions", range(200))
    put("llama4", "scale", seen[0][0, 0, :, 0].tolist())
    positions = torch.tensor([[0, 1, 16383, 16384, 32767, 32768, 49151, 131071, 262143, 1000000]])
    put("ministral3", "temperature", [0.1, 16384, 0])
    put("ministral3", "positions", positions[0].tolist())
    put("ministral3", "scale", get_llama_4_attn_scale(positions, 0.1, 16384)[0, 0, :, 0].tolist())


def store_mask():
    from transformers.generation.utils import GenerationMixin
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1],
                         [0, 0, 0, 0, 0, 0], [1, 0, 1, 0, 1, 1]])
    prepare = GenerationMixin._prepare_position_ids_for_generation
    self = Space(config=Space(is_encoder_decoder=False))
    ids = prepare(self, mask, {"attention_mask": mask, "input_ids": mask})
    put("mask", "mask", mask.flatten().tolist())
    put("mask", "ids", ids.flatten().tolist())


def store_dual_chunk(path):
    """Frequency 1 alone: the sine of the first channel of a rotated (0, 1) tells the position."""
    def module(name, **names):
        made = types.ModuleType(name)
        made.__dict__.update(names)
        sys.modules[name] = made

    class CustomOp(torch.nn.Module):
        register = staticmethod(lambda name: lambda kind: kind)

    for name in ("vllm", "vllm.model_executor", "vllm.model_executor.layers", "made"):
        module(name, __path__=[])
    module("vllm.model_executor.custom_op", CustomOp=CustomOp)
    module("made.common", rotate_gptj=None,
           rotate_neox=lambda x: torch.cat((-x[..., 1:], x[..., :1]), dim=-1))
    torch.cuda.current_device = torch.accelerator.current_device_index = lambda: 0
    real = torch.device
    torch.device = lambda name: real("cpu")
    code = types.ModuleType("made.dual")
    code.__package__ = "made"
    exec(compile(open(path).read(), path, "exec"), code.__dict__)
    for chunk, local in ((64, 8), (12, 5), (12, 6), (40, 39)):
        rope = code.DualChunkRotaryEmbedding(2, 2, 400, 10000.0, True, torch.float64, chunk, local)
        positions = torch.arange(300)[None]
        q = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(1, 300, 1)
        queries, keys = rope.forward_native(positions, q, q)
        name = "dual/%d-%d" % (chunk, local)
        kinds = list(queries.reshape(300, 5, 2).unbind(1))
        assert torch.equal(kinds[0], keys.reshape(300, 2))
        put(name, "chunk", [chunk, local])
        for kind, rotated in enumerate(kinds, 1):
            tried = torch.arange(400, dtype=torch.float)
            distance = (rotated[:, None, 0] + tried.sin()).abs() + (rotated[:, None, 1] -
                                                                     tried.cos()).abs()
            assert distance.min(1).values.max() < 1e-6
            put(name, "kind%d" % kind, distance.argmin(1).tolist())


store_prompts()
if MAJOR >= 5:
    store_axes()
    store_rotations()
    for width, grid in ((16, (3, 4)), (72, (2, 3))):
        for store in (store_qwen, store_pixtral, store_gemma4, store_dinov3, store_pixel):
            store(width, grid)
    store_llama4(16, 4)
    store_llama4(88, 3)
    store_axial("flux", (16, 56, 56), [[0, 0, 0], [0, 3, 4], [1, 60, 2], [0, 31, 63]])
    store_axial("four", (8, 4, 8, 12), [[0, 1, 2, 3], [9, 30, 4, 5], [100, 0, 1, 63]])
    store_temperature()
    store_mask()
    if "--vllm" in sys.argv:
        store_dual_chunk(sys.argv[-1])
with open(OUT, "w") as out:
    out.write("# SPDX-License-Identifier: MIT\n# Numbers of references that were run: "
              "../make_builders.py with transformers %s.\n" % transformers.__version__)
    out.writelines(line + "\n" for line in lines)
