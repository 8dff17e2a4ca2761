"""The paper's MNIST users at a tiny size, on data that need no download."""

from dataclasses import replace

import pytest

from overheard.data.datasets.digits import Digits
from overheard.learning.models.mlp import Mlp
from overheard_studies.decaf.setting import MNIST, DecafBenchmark, DecafSize
from tests.cli.conftest import overheard

__all__ = ["overheard"]

TINY = DecafSize(rounds=2, seeds=(0,), test=50)


@pytest.fixture(scope="session")
def tiny_benchmark() -> DecafBenchmark:
    return replace(
        MNIST, name="Digits", source=Digits(), model=Mlp((16,)), examples=60, auxiliary=5
    )


@pytest.fixture(scope="session")
def tiny_size() -> DecafSize:
    return TINY
