from functools import partial

import pytest
import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.fitting.fit import FitSchedule
from overheard.learning.models.mlp import Mlp
from overheard.papers.flip.transfer import told_by_network, told_by_plane

BUILD = partial(Mlp(hidden=(8,)).build, Task((6,), ("first", "second")))

SCHEDULE = FitSchedule(epochs=20, batch=16)


def collections(place: str, shift: float) -> tuple[Tensor, Tensor]:
    """Two times 60 noisy vectors, the first moved up by `shift` in its first number."""
    one, other = (
        torch.randn(60, 6, generator=Seed(0).child(place, number).generator())
        for number in range(2)
    )
    one[:, 0] += shift
    return one, other


def network(shift: float, learned: float) -> float:
    told = told_by_network(
        BUILD, collections("learned", learned), collections("tested", shift), SCHEDULE, Seed(0)
    )
    return float(torch.cat(told).double().mean())


def plane(shift: float, learned: float) -> float:
    told = told_by_plane(collections("learned", learned), collections("tested", shift), Seed(0))
    return float(torch.cat(told).double().mean())


@pytest.mark.slow
@pytest.mark.parametrize("right", [network, plane])
def test_what_sets_collections_apart_in_both_places_is_found(right: object) -> None:
    assert callable(right)
    # 8 deviations apart, halfway: a normal number is wrong in 3 of 100,000.
    assert right(8.0, 8.0) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("right", [network, plane])
@pytest.mark.parametrize("learned", [0.0, 8.0])
def test_collections_that_are_alike_are_told_apart_by_a_guess(
    right: object, learned: float
) -> None:
    assert callable(right)
    # 120 fair coins: 0.5, give or take 4 deviations of 0.046.
    assert right(0.0, learned) == pytest.approx(0.5, abs=0.19)


@pytest.mark.slow
def test_the_order_of_the_collections_is_kept() -> None:
    one, other = collections("learned", 8.0)
    first, second = told_by_plane((one, other), (other, one), Seed(0))
    assert not first.any()
    assert not second.any()
