"""FedNova's factors are those of the paper, worked by hand."""

from dataclasses import replace

import pytest

from overheard.algorithms.fed_nova import FedNova
from overheard.core.algorithm.algorithm import LOCAL_STEPS, ReceivedUpdate
from overheard.core.errors import PlanError
from overheard.core.recipe import Recipe
from overheard.defenses.secure_aggregation import SecureAggregation
from tests.algorithms.by_hand import received

SGD = Recipe(rate=0.1, epochs=1, batch=1)


def reported(update: ReceivedUpdate, steps: float) -> ReceivedUpdate:
    """The update with its number of local steps."""
    return replace(update, update=replace(update.update, metrics={LOCAL_STEPS: float(steps)}))


def test_updates_are_divided_by_their_steps_and_multiplied_by_the_mean_steps() -> None:
    one, other = received(1.0, 1.0, sizes=(1, 3))
    # p = 1/4, 3/4; a = 2, 6; mean a = 0.5 + 4.5 = 5; factors p a_mean / a.
    factors = FedNova().factors((reported(one, 2), reported(other, 6)))
    assert factors == pytest.approx((0.25 * 5 / 2, 0.75 * 5 / 6))


def test_momentum_lengthens_the_reported_steps() -> None:
    # Two steps with momentum 1/2: the first gradient counts 1 + 1/2, the second 1.
    momentum = replace(SGD, momentum=0.5)
    assert FedNova().reported_steps(SGD, 2) == 2
    assert FedNova().reported_steps(momentum, 2) == pytest.approx(2.5)


def test_refuses_other_optimizers_and_masked_updates() -> None:
    adam = replace(SGD, optimizer="adam")
    assert FedNova().conflict(SGD, ()) == ""
    assert "adam" in FedNova().conflict(adam, ())
    assert "secure_aggregation" in FedNova().conflict(SGD, (SecureAggregation(),))


def test_refuses_updates_without_their_steps() -> None:
    with pytest.raises(PlanError, match="local_steps"):
        FedNova().factors(received(1.0))
