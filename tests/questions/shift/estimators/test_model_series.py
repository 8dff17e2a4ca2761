"""Numbers by round need consecutive models, and non-finite ones are left out."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf, nan

import pytest
import torch
from torch import Tensor

from overheard.core.messages import Weights
from overheard.questions.shift.estimators.model_series import ModelComparison, RecentTensors


def first_weight(models: Iterable[Weights]) -> Iterator[Tensor]:
    for weights in models:
        yield weights["w"]


def sum_of(tensors: Sequence[Tensor]) -> float:
    return float(sum(tensors))


def models_of(*values: float) -> list[Weights]:
    return [{"w": torch.tensor(value)} for value in values]


PAIRS, TRIPLES = (ModelComparison(first_weight, sum_of, count) for count in (2, 3))


def test_a_number_needs_the_models_of_the_rounds_before_it() -> None:
    models = models_of(1, 2, 4, 8)
    assert PAIRS.series(range(4), models) == {1: 3, 2: 6, 3: 12}
    assert TRIPLES.series(range(4), models) == {2: 7, 3: 14}


def test_a_gap_starts_anew() -> None:
    models = models_of(1, 2, 4, 8, 16)
    assert PAIRS.series((0, 1, 3, 4, 6), models) == {1: 3, 4: 12}
    assert TRIPLES.series((0, 1, 3, 4, 5), models) == {5: 28}


@pytest.mark.parametrize("value", [nan, inf])
def test_leaves_out_numbers_that_are_not_finite(value: float) -> None:
    assert PAIRS.series(range(4), models_of(1, value, 4, 8)) == {3: 12}


def test_models_may_be_added_one_by_one() -> None:
    recent = RecentTensors(PAIRS)
    values = [recent.add(number, torch.tensor(float(number))) for number in (3, 4, 6, 7)]
    assert values == [None, 7, None, 13]
