from functools import partial

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.fitting.share_network import FitSchedule
from overheard.learning.initialization import initial_weights
from overheard.learning.models.logistic import Logistic
from overheard_studies.flip.classifiers import AffinityTest, compute_affinity, fit_affinity_test

BUILD = partial(Logistic().build, Task((3,), ("other", "primary")))

SCHEDULE = FitSchedule(epochs=30, batch=8)

A, B1, B2 = 0, 1, 2
"""The index of the high value of an image."""


def images(high: int, count: int, name: str) -> torch.Tensor:
    noise = torch.randn(count, 3, generator=Seed(0).child(name, high).generator())
    noise[:, high] += 6
    return noise


def auxiliary(other: int) -> Examples:
    inputs = torch.cat([images(other, 40, "aux"), images(A, 40, "aux")])
    return Examples(inputs, torch.tensor([0] * 40 + [1] * 40))


def test_affinity_is_the_share_of_pairs_in_which_the_first_has_more_confidence() -> None:
    # Confidence in class 0 is 3, 1 | 2, 1: pairs 3>2, 3>1, 1<2, 1=1: (1 + 1 + 0 + 1/2) / 4.
    logits = torch.tensor([[3.0, 0.0], [1.0, 0.0], [5.0, 3.0], [0.0, -1.0]])
    assert compute_affinity(logits, 2) == pytest.approx(0.625)


def test_a_model_reveals_the_other_class_of_its_task() -> None:
    affinity_test = fit_affinity_test(BUILD, (auxiliary(B1), auxiliary(B2)), SCHEDULE, Seed(1))
    weights = initial_weights(BUILD, Seed(2))
    (name,) = (name for name, one in weights.items() if one.ndim == 2)
    knew_first, knew_second = (
        weights | {name: torch.tensor([row, [6.0, 0.0, 0.0]])}
        for row in ([0.0, 6.0, 0.0], [0.0, 0.0, 6.0])
    )
    assert affinity_test.decides_first(
        affinity_test.measure_affinities([knew_first, knew_first])
    )
    assert not affinity_test.decides_first(affinity_test.measure_affinities([knew_second]))


def test_a_model_without_information_has_an_affinity_of_one_half() -> None:
    zero_model = {name: 0 * one for name, one in initial_weights(BUILD, Seed(2)).items()}
    affinity_test = AffinityTest(BUILD, (images(B1, 5, "x"), images(B2, 7, "x")), 0.5)
    # All ties.
    assert affinity_test.measure_affinities([zero_model]).tolist() == [0.5]


def test_the_threshold_accounts_for_a_class_that_resembles_the_primary_one() -> None:
    # B2 looks like A. A model of A and B1 is confident about B1 only, and a model of A and
    # B2 learns little.
    like_a = Examples(
        torch.cat([images(A, 40, "like"), images(A, 40, "aux")]),
        torch.tensor([0] * 40 + [1] * 40),
    )
    affinity_test = fit_affinity_test(BUILD, (auxiliary(B1), like_a), SCHEDULE, Seed(1))
    assert affinity_test.threshold > 0.55


def test_training_images_of_the_attacker_are_not_test_images() -> None:
    one = auxiliary(B1)
    affinity_test = fit_affinity_test(BUILD, (one, auxiliary(B2)), SCHEDULE, Seed(1))
    # The second half of the 40 images of B1, and none of A.
    assert affinity_test.images[0].equal(one.inputs[20:40])
