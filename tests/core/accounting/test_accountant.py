"""Recomputed epsilons are never below the exact one, and close to it without sampling."""

import math
import sys

import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant

from overheard.core.accounting.accountant import (
    account_mechanism,
    format_epsilon,
    gaussian_epsilon,
    renyi_epsilon,
)
from overheard.core.accounting.sampled_accountant import fixed_size_epsilon
from overheard.core.defense import RunParameters
from overheard.core.errors import PlanError
from overheard.core.mechanism import Mechanism
from tests.core.closed_form_epsilon import closed_epsilon


@pytest.mark.parametrize(
    ("noise_multiplier", "rounds"), [(1.0, 1), (5.0, 100), (50.0, 1000), (1e3, 4), (0.5, 3)]
)
def test_gaussian_epsilon_equals_the_closed_form(noise_multiplier: float, rounds: int) -> None:
    # T Gaussians of multiplier z are together mu-GDP with mu = sqrt(T) / z.
    exact = closed_epsilon(math.sqrt(rounds) / noise_multiplier, 1e-5)
    found = gaussian_epsilon(noise_multiplier, rounds, 1e-5)
    assert exact <= found <= exact + 2e-9


@pytest.mark.parametrize(("noise_multiplier", "rounds"), [(1.0, 1), (2.0, 20)])
def test_gaussian_epsilon_is_that_of_the_accountant(
    noise_multiplier: float, rounds: int
) -> None:
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3)
    accountant.compose(GaussianDpEvent(noise_multiplier), rounds)
    # The accountant rounds up on its grid.
    above = accountant.get_epsilon(1e-5)
    assert above - 1e-4 < gaussian_epsilon(noise_multiplier, rounds, 1e-5) <= above


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("noise_multiplier", [1.0, 2.0, 5.0])
def test_fixed_size_epsilon_lies_between_the_exact_one_and_that_without_sampling(
    rate: float, noise_multiplier: float
) -> None:
    # Balle, Barthe and Gaboardi 2018, Theorem 10, tight for replacing one of a sample drawn
    # without replacement: delta' = q delta at epsilon' = log(1 + q (exp(epsilon) - 1)).
    exact = math.log1p(rate * math.expm1(closed_epsilon(1 / noise_multiplier, 1e-5 / rate)))
    without = closed_epsilon(1 / noise_multiplier, 1e-5)
    assert exact <= fixed_size_epsilon(noise_multiplier, 1, 1e-5, rate) <= without


def test_epsilons_are_rounded_up_and_meaningless_ones_marked() -> None:
    assert [format_epsilon(epsilon) for epsilon in (0.0, 1.001, 50.0)] == [
        "0.00",
        "1.01",
        "50.00",
    ]
    assert format_epsilon(50.001) == "50.01 (no protection)"
    assert format_epsilon(1000.1) == format_epsilon(math.inf) == "above 1000 (no protection)"


def test_the_error_without_the_accountant_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(PlanError, match=r"pip install '\.\[dp\]'"):
        gaussian_epsilon(1.0, 1, 1e-5)
    with pytest.raises(PlanError, match=r"pip install '\.\[dp\]'"):
        fixed_size_epsilon(1.0, 1, 1e-5, 0.5)


@pytest.mark.parametrize(
    ("noise_multiplier", "rounds"), [(1.0, 1), (5.0, 100), (50.0, 1000), (0.5, 3)]
)
def test_renyi_epsilon_is_above_the_exact_one_and_above_pld(
    noise_multiplier: float, rounds: int
) -> None:
    exact = closed_epsilon(math.sqrt(rounds) / noise_multiplier, 1e-5)
    loose = renyi_epsilon(noise_multiplier, rounds, 1e-5)
    assert exact <= loose <= 1.35 * exact
    assert gaussian_epsilon(noise_multiplier, rounds, 1e-5) <= loose


def test_replacing_a_client_has_a_sensitivity_of_two_clips() -> None:
    # Sensitivity 2 clips: mu = sqrt(4) * 2 / 4 = 1, and 2 / 4 of one round.
    found = account_mechanism(
        Mechanism(4.0, 3.0, 1e-5, "client", "client"), RunParameters(4, 1.0)
    ).recomputed
    assert found is not None
    assert found.pld == pytest.approx(closed_epsilon(1.0, 1e-5), rel=1e-3)
    assert found.one_round == pytest.approx(closed_epsilon(0.5, 1e-5), rel=1e-3)
    assert found.pld <= found.rdp
    assert found.subsampled is None


@pytest.mark.slow
def test_local_steps_count_like_rounds() -> None:
    often = Mechanism(4.0, 1.0, 1e-5, "client", "client", moves=1.0, unit="record", steps=4)
    once = Mechanism(4.0, 1.0, 1e-5, "client", "client", moves=1.0, unit="record")
    one, other = (
        account_mechanism(often, RunParameters(3, 1.0)),
        account_mechanism(once, RunParameters(12, 1.0)),
    )
    assert one.recomputed is not None
    assert other.recomputed is not None
    assert one.recomputed.pld == other.recomputed.pld
    # mu = sqrt(4) / 4 in a round.
    assert one.recomputed.one_round == pytest.approx(closed_epsilon(0.5, 1e-5), rel=1e-3)


@pytest.mark.slow
def test_sampling_lowers_epsilon_only_if_it_is_secret() -> None:
    run = RunParameters(20, 0.1, sampling_rate=0.1)
    secret = account_mechanism(
        Mechanism(4.0, 1.0, 1e-5, "server", "client", is_drawn=True), run
    )
    known = account_mechanism(Mechanism(4.0, 1.0, 1e-5, "client", "client"), run)
    assert secret.recomputed is not None
    assert known.recomputed is not None
    assert secret.recomputed.subsampled is not None
    assert secret.recomputed.subsampled < 0.5 * secret.recomputed.pld
    assert known.recomputed.subsampled is None
    assert known.recomputed.pld == secret.recomputed.pld


def test_epsilon_without_noise_is_infinite() -> None:
    found = account_mechanism(
        Mechanism(0.0, 1.0, 1e-5, "server", "client", is_drawn=True), RunParameters(2, 1.0)
    )
    assert found.recomputed is not None
    assert found.recomputed.pld == found.recomputed.rdp == math.inf


@pytest.mark.parametrize("asked", [None, 0])
def test_a_run_that_asked_nobody_spends_nothing(asked: int | None) -> None:
    mechanism = Mechanism(1.0, 1.0, 1e-5, "client", "client", stated=0.0)
    found = account_mechanism(mechanism, RunParameters(0, 1.0, asked=asked))
    assert found.recomputed is not None
    assert found.recomputed.smallest == found.recomputed.lower == 0
    assert found.claim == "holds"


@pytest.mark.parametrize("noise", [1e-300, 1e300])
def test_noise_that_is_hard_to_calculate_with_has_bounds(noise: float) -> None:
    mechanism = Mechanism(noise, 1.0, 1e-5, "client", "client", stated=1.0)
    found = account_mechanism(mechanism, RunParameters(3, 1.0))
    assert found.recomputed is not None
    assert found.recomputed.smallest == (math.inf if noise < 1 else 0)
    assert found.claim == ("false" if noise < 1 else "holds")
