import pytest
import torch

from overheard.core.seeds import Seed
from overheard.simulation.chunk import DEFAULT_SPLITS
from overheard.simulation.virtual_client import draw_counts


def shares(number: int, classes: int = 10) -> torch.Tensor:
    counts = torch.tensor(draw_counts(number, DEFAULT_SPLITS, (200, 200), classes, Seed(0)))
    return counts / counts.sum()


@pytest.mark.parametrize("split", DEFAULT_SPLITS, ids=repr)
@pytest.mark.parametrize("size", [1, 5])
def test_every_split_allows_small_clients(split, size: int) -> None:
    assert sum(draw_counts(0, (split,), (size, size), 10, Seed(0))) == size


def test_prefers_no_label() -> None:
    # The mean of 600 shares of standard deviation below 0.3 has a standard error of 0.012.
    mean = torch.stack([shares(number) for number in range(600)]).mean(0)
    assert float((mean - 0.1).abs().max()) < 0.04
