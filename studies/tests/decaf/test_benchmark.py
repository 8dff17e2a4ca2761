import pytest
import torch

from overheard.data.datasets import fer2013
from overheard.data.draws import apportion
from overheard_studies.decaf.setting import (
    BENCHMARKS,
    CIFAR10,
    FASHION_MNIST,
    FER2013,
    MNIST,
    SKIN_CANCER,
    DecafBenchmark,
)

# Training images of each class: all of MNIST and Fashion-MNIST, the subsets of the others.
AVAILABLE = [
    (MNIST, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
    (FASHION_MNIST, [6000] * 10),
    (CIFAR10, [1000] * 10),
    (FER2013, [1392, 152, 1427, 2513, 1682, 1105, 1729]),
    (SKIN_CANCER, [147, 212, 467, 48, 393, 3459, 64]),
]


@pytest.mark.parametrize(
    ("benchmark", "available"), AVAILABLE, ids=lambda one: getattr(one, "name", "")
)
def test_the_data_are_enough_for_every_user_and_the_attacker(
    benchmark: DecafBenchmark, available: list[int]
) -> None:
    held = sum(
        apportion(torch.tensor(user.true_percents, dtype=torch.float64), benchmark.examples)
        for user in benchmark.users
    )
    left = torch.tensor(available) - held - benchmark.auxiliary
    assert int(left.min()) >= 0


def test_the_columns_of_faces_match_the_class_names() -> None:
    # The order of the table's columns in the text; the source has neutral last.
    text_order = ("angry", "disgust", "fear", "happy", "neutral", "sad", "surprise")
    assert tuple(text_order[column] for column in FER2013.label_columns) == fer2013.CLASS_NAMES


def test_every_user_has_a_share_for_each_label() -> None:
    for benchmark in BENCHMARKS:
        for user in benchmark.users:
            assert len(user.true_percents) == len(benchmark.label_columns)
