from functools import partial

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.fitting.fit import FitSchedule
from overheard.learning.initial import initial_weights
from overheard.learning.models.logistic import Logistic
from overheard.papers.flip.pushed_away import AffinityYardstick, lead, yardstick

BUILD = partial(Logistic().build, Task((3,), ("other", "primary")))

SCHEDULE = FitSchedule(epochs=30, batch=8)

A, B1, B2 = 0, 1, 2
"""Which number of an image is high."""


def images(which: int, count: int, name: str) -> torch.Tensor:
    noise = torch.randn(count, 3, generator=Seed(0).child(name, which).generator())
    noise[:, which] += 6
    return noise


def auxiliary(other: int) -> Examples:
    inputs = torch.cat([images(other, 40, "aux"), images(A, 40, "aux")])
    return Examples(inputs, torch.tensor([0] * 40 + [1] * 40))


def test_a_lead_is_the_share_of_pairs_in_which_the_first_is_surer() -> None:
    # Surer of class 0 by 3, 1 | 2, 1: pairs 3>2, 3>1, 1<2, 1=1: (1 + 1 + 0 + 1/2) / 4.
    logits = torch.tensor([[3.0, 0.0], [1.0, 0.0], [5.0, 3.0], [0.0, -1.0]])
    assert lead(logits, 2) == pytest.approx(0.625)


def test_a_model_gives_away_which_class_it_learned_to_set_apart() -> None:
    ruler = yardstick(BUILD, (auxiliary(B1), auxiliary(B2)), SCHEDULE, Seed(1))
    weights = initial_weights(BUILD, Seed(2))
    (name,) = (name for name, one in weights.items() if one.ndim == 2)
    knew_first, knew_second = (
        weights | {name: torch.tensor([high, [6.0, 0.0, 0.0]])}
        for high in ([0.0, 6.0, 0.0], [0.0, 0.0, 6.0])
    )
    assert ruler.names_first(ruler.leads([knew_first, knew_first]))
    assert not ruler.names_first(ruler.leads([knew_second]))


def test_a_model_that_sets_nothing_apart_leads_neither_way() -> None:
    nothing = {name: 0 * one for name, one in initial_weights(BUILD, Seed(2)).items()}
    ruler = AffinityYardstick(BUILD, (images(B1, 5, "x"), images(B2, 7, "x")), 0.5)
    # All ties.
    assert ruler.leads([nothing]).tolist() == [0.5]


def test_own_models_tell_how_far_a_class_would_lead_anyway() -> None:
    # B2 looks like A: a model that learned A beside B1 is sure of B1 alone, and one that
    # learned A beside its like learned little.
    like_a = Examples(
        torch.cat([images(A, 40, "like"), images(A, 40, "aux")]),
        torch.tensor([0] * 40 + [1] * 40),
    )
    ruler = yardstick(BUILD, (auxiliary(B1), like_a), SCHEDULE, Seed(1))
    assert ruler.middle > 0.55


def test_what_own_models_learn_from_is_not_held_up_to_models() -> None:
    one = auxiliary(B1)
    ruler = yardstick(BUILD, (one, auxiliary(B2)), SCHEDULE, Seed(1))
    # The second half of the 40 images of B1, and none of A.
    assert ruler.images[0].equal(one.inputs[20:40])
