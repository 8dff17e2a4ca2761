"""Lets code that draws from torch's global generators draw from a seed."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from overheard.core.seeds import Seed


@contextmanager
def seeded(seed: Seed, device: torch.device | None = None) -> Iterator[None]:
    """Start the global generators (the cpu's, and this GPU's) here, and put them back after.

    Constructors of modules, and dropout, know no other generator.
    """
    gpu = device if device is not None and device.type == "cuda" else None
    with torch.random.fork_rng(devices=[] if gpu is None else [gpu]):
        torch.default_generator.manual_seed(seed.value)
        if gpu is not None:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed.value)
        yield
