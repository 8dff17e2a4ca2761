import math
from functools import partial

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.task import Task
from overheard.learning.models.logistic import Logistic
from overheard_studies.deanonymization.measures import (
    chance_utility,
    mean_absolute_error,
    mean_over_seeds,
    measure_utility,
    top_k_accuracy,
)

TASK = Task((2,), ("a", "b"))
ALWAYS_A = {"1.weight": torch.zeros(2, 2), "1.bias": torch.tensor([1.0, 0.0])}
TEST = Examples(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))


def test_a_constant_model_has_the_accuracy_of_its_label() -> None:
    names = [name for name, _ in Logistic().build(TASK).named_parameters()]
    weights = dict(zip(names, ALWAYS_A.values(), strict=True))
    # Three of four labels are a.
    build = partial(Logistic().build, TASK)
    assert measure_utility("accuracy", build, weights, TEST) == 0.75


def test_chance_has_the_mean_distance_of_a_random_label() -> None:
    # Label 0: (0 + 1 + 2) / 3 = 1; label 1: (1 + 0 + 1) / 3 = 2/3; mean 5/6.
    labels = torch.tensor([0, 1])
    assert chance_utility("absolute_error", labels, 3) == pytest.approx(5 / 6)
    assert chance_utility("top5", labels, 5000) == 0.001
    assert chance_utility("accuracy", labels, 6) == pytest.approx(1 / 6)


def test_one_seed_gives_no_interval() -> None:
    assert mean_over_seeds([0.5]).low is None
    assert mean_over_seeds([0.4, 0.6]).mean == pytest.approx(0.5)


THREE_CLASSES = partial(Logistic().build, Task((2,), ("a", "b", "c")))


def weights_for_logits(*logits: float) -> Weights:
    """Weights with which the model returns these logits for every example."""
    weight, bias = (name for name, _ in THREE_CLASSES().named_parameters())
    return {weight: torch.zeros(3, 2), bias: torch.tensor(logits)}


def labelled(*labels: int) -> Examples:
    return Examples(torch.zeros(len(labels), 2), torch.tensor(labels))


@pytest.mark.parametrize(("k", "share"), [(1, 0.25), (2, 0.75), (3, 1.0)])
def test_top_k_is_the_share_of_labels_among_the_first_k(k: int, share: float) -> None:
    # Ranked b, c, a: of four labels one is b, two are c and one is a.
    weights = weights_for_logits(0.0, 2.0, 1.0)
    assert top_k_accuracy(THREE_CLASSES, weights, labelled(2, 1, 0, 2), k) == share


def test_labels_tied_at_the_last_rank_count_half() -> None:
    # First is b, then a and c on a level: at k = 2 one of both is taken.
    weights = weights_for_logits(1.0, 2.0, 1.0)
    assert top_k_accuracy(THREE_CLASSES, weights, labelled(1), 2) == 1
    assert top_k_accuracy(THREE_CLASSES, weights, labelled(0, 2), 2) == 0.5


@pytest.mark.parametrize("k", [1, 2, 3])
def test_nan_logits_have_accuracy_0(k: int) -> None:
    weights = weights_for_logits(math.nan, math.nan, math.nan)
    assert top_k_accuracy(THREE_CLASSES, weights, labelled(0, 1), k) == 0


@pytest.mark.parametrize("k", [0, 4])
def test_refuses_k_outside_1_to_the_number_of_classes(k: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 3.*got {k}"):
        top_k_accuracy(THREE_CLASSES, weights_for_logits(0.0, 0.0, 0.0), labelled(0), k)


def test_absolute_error_is_that_of_the_expected_rating() -> None:
    # Softmax of (0, 0, ln 2) is (1/4, 1/4, 1/2): 5/4 is expected, which is 5/4, 1/4 and 3/4
    # from the labels 0, 1 and 2.
    weights = weights_for_logits(0.0, 0.0, math.log(2))
    error = mean_absolute_error(THREE_CLASSES, weights, labelled(0, 1, 2))
    assert error == pytest.approx(3 / 4, abs=1e-6)


def test_a_certain_and_correct_model_has_no_absolute_error() -> None:
    assert (
        mean_absolute_error(THREE_CLASSES, weights_for_logits(0.0, 0.0, 90.0), labelled(2, 2))
        == 0
    )
