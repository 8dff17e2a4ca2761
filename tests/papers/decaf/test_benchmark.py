import pytest
import torch

from overheard.data.apportion import apportion
from overheard.data.datasets import fer2013
from overheard.papers.decaf.benchmark import (
    BENCHMARKS,
    CIFAR10,
    FASHION_MNIST,
    FER2013,
    MNIST,
    SKIN_CANCER,
    DecafBenchmark,
)

# Training images of each class: all of MNIST and Fashion-MNIST, the subsets of the others.
THERE = [
    (MNIST, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
    (FASHION_MNIST, [6000] * 10),
    (CIFAR10, [1000] * 10),
    (FER2013, [1392, 152, 1427, 2513, 1682, 1105, 1729]),
    (SKIN_CANCER, [147, 212, 467, 48, 393, 3459, 64]),
]


@pytest.mark.parametrize(
    ("benchmark", "there"), THERE, ids=lambda one: getattr(one, "name", "")
)
def test_the_data_serve_every_user_and_the_attacker(
    benchmark: DecafBenchmark, there: list[int]
) -> None:
    held = sum(
        apportion(torch.tensor(user.true, dtype=torch.float64), benchmark.examples)
        for user in benchmark.users
    )
    left = torch.tensor(there) - held - benchmark.auxiliary
    assert int(left.min()) >= 0


def test_faces_stand_under_their_own_names() -> None:
    # The text lists the table's columns so; our labels have neutral last.
    printed = ("angry", "disgust", "fear", "happy", "neutral", "sad", "surprise")
    assert tuple(printed[column] for column in FER2013.columns) == fer2013.CLASS_NAMES


def test_every_benchmark_has_a_row_a_user_and_a_share_a_label() -> None:
    for benchmark in BENCHMARKS:
        for user in benchmark.users:
            assert len(user.true) == len(benchmark.columns)
