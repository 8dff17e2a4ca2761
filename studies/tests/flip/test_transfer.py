from functools import partial

import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.fitting.share_network import FitSchedule
from overheard.learning.models.mlp import Mlp
from overheard_studies.flip.classifiers import transfer_linear_svm, transfer_network

BUILD = partial(Mlp(hidden=(8,)).build, Task((6,), ("first", "second")))

SCHEDULE = FitSchedule(epochs=20, batch=16)


def collections(name: str, shift: float) -> tuple[Tensor, Tensor]:
    """Two collections of 60 noisy vectors; the first is shifted by `shift` in one dimension."""
    one, other = (
        torch.randn(60, 6, generator=Seed(0).child(name, number).generator())
        for number in range(2)
    )
    one[:, 0] += shift
    return one, other


def network_accuracy(shift: float, learned: float) -> float:
    is_right = transfer_network(
        BUILD, collections("learned", learned), collections("tested", shift), SCHEDULE, Seed(0)
    )
    return float(torch.cat(is_right).double().mean())


def svm_accuracy(shift: float, learned: float) -> float:
    is_right = transfer_linear_svm(
        collections("learned", learned), collections("tested", shift), Seed(0)
    )
    return float(torch.cat(is_right).double().mean())


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [network_accuracy, svm_accuracy])
def test_a_difference_that_both_pairs_share_transfers(accuracy: object) -> None:
    assert callable(accuracy)
    # The means differ by 8 deviations: halfway, 3 of 100,000 normal numbers are wrong.
    assert accuracy(8.0, 8.0) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [network_accuracy, svm_accuracy])
@pytest.mark.parametrize("learned", [0.0, 8.0])
def test_equal_collections_are_classified_at_chance(accuracy: object, learned: float) -> None:
    assert callable(accuracy)
    # 120 fair coins: 0.5, plus or minus 4 deviations of 0.046.
    assert accuracy(0.0, learned) == pytest.approx(0.5, abs=0.19)


@pytest.mark.slow
def test_swapped_collections_are_all_classified_wrongly() -> None:
    one, other = collections("learned", 8.0)
    first, second = transfer_linear_svm((one, other), (other, one), Seed(0))
    assert not first.any()
    assert not second.any()
