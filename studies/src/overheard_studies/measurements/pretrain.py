"""Pretrain the transformer of bloggers on posts of others.

python -m overheard_studies.measurements.pretrain DATA base.safetensors
OVERHEARD_STUDIES_BASE=base.safetensors overheard reproduce overheard/adapters --data DATA
"""

import sys
from functools import partial
from pathlib import Path

import torch

from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.data.datasets.blogs import Blogs
from overheard.learning.models.transformer import Transformer, pretrain

WINDOWS = 64_000
"""Windows of other bloggers' posts."""


def main(data: Path, base: Path) -> None:
    """Write the weights to a file."""
    blogs = Blogs(task="next_word").load(data)
    assert blogs.background is not None
    rows = torch.randperm(len(blogs.background), generator=Seed(0).generator())[:WINDOWS]
    recipe = Recipe(rate=0.001, epochs=1, batch=64, optimizer="adam")
    build = partial(Transformer().build, blogs.task)
    pretrain(build, blogs.background.take(rows), recipe, base, seed=Seed(0))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
