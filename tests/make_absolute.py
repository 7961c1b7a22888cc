#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/data/absolute_run.txt: sinusoids, resampled tables and row numbers as transformers,
diffusers and torch compute them. usage: make_absolute.py (with these packages installed)"""
import inspect
import os

import diffusers
import torch
import transformers
from diffusers.models import embeddings
from transformers.models.m2m_100 import modeling_m2m_100 as m2m
from transformers.models.marian import modeling_marian as marian
from transformers.models.whisper import modeling_whisper as whisper

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = [[5, 6, 1, 7], [1, 1, 9, 8]]


def text(values):
    return " ".join("%.9g" % v for v in torch.as_tensor(values).flatten().tolist())


def timesteps():
    steps = torch.tensor([0.0, 1.0, 17.25, 999.0])
    for dim, flip, shift, scale in ((16, 0, 1, 1), (16, 1, 0, 1), (7, 0, 1, 1), (10, 1, 0, 1000)):
        name = "timestep_%d_%d_%d_%d" % (dim, flip, shift, scale)
        values = embeddings.get_timestep_embedding(
            steps, dim, flip_sin_to_cos=bool(flip), downscale_freq_shift=shift, scale=scale)
        yield "%s form %d %d %d %d" % (name, dim, flip, shift, scale)
        yield "%s steps %s" % (name, text(steps))
        yield "%s rows %s" % (name, text(values))


def grids():
    keywords = {}
    if "output_type" in inspect.signature(embeddings.get_2d_sincos_pos_embed).parameters:
        keywords["output_type"] = "pt"
    plain = embeddings.get_2d_sincos_pos_embed(16, (2, 3), **keywords)
    scaled = embeddings.get_2d_sincos_pos_embed(
        16, (2, 3), interpolation_scale=2.0, base_size=4, **keywords)
    video = embeddings.get_3d_sincos_pos_embed(32, (3, 2), 2, 1.875, 1.0, **keywords)
    yield "grid_2d rows %s" % text(plain)
    yield "grid_2d_scaled rows %s" % text(scaled)
    yield "grid_3d rows %s" % text(video)


def tables():
    yield "m2m100 rows %s" % text(m2m.M2M100SinusoidalPositionalEmbedding.get_embedding(6, 10, 1))
    table = marian.MarianSinusoidalPositionalEmbedding(6, 7)
    for name in ("_init_weight", "create_weight"):
        if hasattr(table, name):
            made = getattr(table, name)()
            table.weight = table.weight if made is None else torch.nn.Parameter(made)
            break
    yield "marian rows %s" % text(table.weight)
    yield "whisper rows %s" % text(whisper.sinusoids(6, 10))


def resampled():
    generator = torch.Generator().manual_seed(1)
    source = torch.randn(1, 3, 4, 5, generator=generator)
    yield "resample table %s" % text(source[0].permute(1, 2, 0))
    for rows, columns in ((4, 5), (7, 9), (2, 3), (1, 1), (5, 4)):
        for corners in (True, False):
            values = torch.nn.functional.interpolate(
                source, size=(rows, columns), mode="bilinear", align_corners=corners)
            yield "resample %s.%dx%d %s" % ("corners" if corners else "centres", rows, columns,
                                            text(values[0].permute(1, 2, 0)))


def row_numbers():
    module = m2m.M2M100SinusoidalPositionalEmbedding
    create = getattr(m2m, "create_position_ids_from_input_ids", None)
    if create is None:
        create = module.create_position_ids_from_input_ids
    tokens = torch.tensor(TOKENS)
    for past in (0, 3):
        yield "row_numbers past.%d %s" % (past, text(create(tokens, 1, past)))


def main():
    with open(os.path.join(HERE, "data", "absolute_run.txt"), "w") as out:
        out.write("# SPDX-License-Identifier: MIT\n# Computed by transformers %s, diffusers %s and "
                  "torch %s.\n" % (transformers.__version__, diffusers.__version__,
                                   torch.__version__.split("+")[0]))
        for part in (timesteps, grids, tables, resampled, row_numbers):
            out.writelines(line + "\n" for line in part())


main()
