"""Seeding of torch's global generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from overheard.core.seeds import Seed


@contextmanager
def seeded(seed: Seed, device: torch.device | None = None) -> Iterator[None]:
    """Seed the global generators (of the CPU and of this GPU), and restore them afterwards.

    Module constructors and dropout draw from these generators only.
    """
    gpu = device if device is not None and device.type == "cuda" else None
    with torch.random.fork_rng(devices=[] if gpu is None else [gpu]):
        torch.default_generator.manual_seed(seed.value)
        if gpu is not None:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed.value)
        yield
