"""No epsilon is below the exact one where that is known, nor far above it without sampling."""

import math
import sys

import pytest

from overheard.core.errors import PlanError
from overheard.defenses._epsilon import gaussian_epsilon, sampled_epsilon, told
from tests.defenses.closed_epsilon import closed_epsilon


@pytest.mark.parametrize(
    ("noise_multiplier", "rounds"), [(1.0, 1), (5.0, 100), (50.0, 1000), (1e3, 4), (0.5, 3)]
)
def test_epsilon_is_that_of_the_closed_formula_for_composed_gaussians(
    noise_multiplier: float, rounds: int
) -> None:
    # T Gaussians of multiplier z are together mu-GDP with mu = sqrt(T) / z.
    exact = closed_epsilon(math.sqrt(rounds) / noise_multiplier, 1e-5)
    assert gaussian_epsilon(noise_multiplier, rounds, 1e-5) == pytest.approx(
        exact, rel=1e-3, abs=1e-4
    )


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("noise_multiplier", [1.0, 2.0, 5.0])
def test_one_round_with_sampling_lies_between_the_exact_and_what_holds_without(
    rate: float, noise_multiplier: float
) -> None:
    # Balle, Barthe and Gaboardi 2018, Theorem 10, tight for replacing one of a sample drawn
    # without replacement: delta' = q delta at epsilon' = log(1 + q (exp(epsilon) - 1)).
    exact = math.log1p(rate * math.expm1(closed_epsilon(1 / noise_multiplier, 1e-5 / rate)))
    without = closed_epsilon(1 / noise_multiplier, 1e-5)
    assert exact <= sampled_epsilon(noise_multiplier, 1, 1e-5, rate) <= without


def test_a_sample_of_everybody_hides_nobody() -> None:
    # Renyi divergences bound a Gaussian less tightly than its exact curve.
    exact = closed_epsilon(math.sqrt(20) / 2, 1e-5)
    assert exact <= sampled_epsilon(2.0, 20, 1e-5, 1.0) <= 1.1 * exact


@pytest.mark.parametrize("rounds", [1, 20])
def test_to_ask_fewer_never_costs_more(rounds: int) -> None:
    # Up to half of the clients: the bound is loose, and drops again where all are asked.
    found = [sampled_epsilon(2.0, rounds, 1e-5, rate) for rate in (0.01, 0.1, 0.25, 0.5)]
    assert found == sorted(found)
    assert len(set(found)) == 4


def test_an_epsilon_is_told_rounded_up_and_one_past_all_use_as_such() -> None:
    assert [told(epsilon) for epsilon in (0.0, 1.001, 50.0)] == ["0.00", "1.01", "50.00"]
    assert told(50.001) == "50.01 (no protection)"
    assert told(1000.1) == told(math.inf) == "above 1000 (no protection)"


def test_without_the_accountant_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(PlanError, match=r"pip install overheard\[dp\]"):
        gaussian_epsilon(1.0, 1, 1e-5)
    with pytest.raises(PlanError, match=r"pip install overheard\[dp\]"):
        sampled_epsilon(1.0, 1, 1e-5, 0.5)
