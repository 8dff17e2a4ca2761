"""No epsilon is below the exact one where that is known, nor far above it without sampling."""

import math
import sys

import pytest

from overheard.core.accountant import (
    account,
    gaussian_epsilon,
    renyi_epsilon,
    sampled_epsilon,
    told,
)
from overheard.core.defense import Run
from overheard.core.errors import PlanError
from overheard.core.mechanism import Mechanism
from tests.core.closed_epsilon import closed_epsilon


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


@pytest.mark.slow
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
    with pytest.raises(PlanError, match=r"pip install 'overheard\[dp\]'"):
        gaussian_epsilon(1.0, 1, 1e-5)
    with pytest.raises(PlanError, match=r"pip install 'overheard\[dp\]'"):
        sampled_epsilon(1.0, 1, 1e-5, 0.5)


@pytest.mark.parametrize(
    ("noise_multiplier", "rounds"), [(1.0, 1), (5.0, 100), (50.0, 1000), (0.5, 3)]
)
def test_renyi_divergences_bound_the_exact_epsilon_from_above_and_no_tighter_than_pld(
    noise_multiplier: float, rounds: int
) -> None:
    exact = closed_epsilon(math.sqrt(rounds) / noise_multiplier, 1e-5)
    loose = renyi_epsilon(noise_multiplier, rounds, 1e-5)
    assert exact <= loose <= 1.35 * exact
    assert gaussian_epsilon(noise_multiplier, rounds, 1e-5) <= loose


def test_what_replaces_a_client_is_reckoned_from_clip_noise_rounds_and_delta() -> None:
    # Moved by 2 clips: mu = sqrt(4) * 2 / 4 = 1, and 2 / 4 of one round.
    found = account(Mechanism(4.0, 3.0, 1e-5, "client", "client"), Run(4, 1.0)).recomputed
    assert found is not None
    assert found.pld == pytest.approx(closed_epsilon(1.0, 1e-5), rel=1e-3)
    assert found.one_round == pytest.approx(closed_epsilon(0.5, 1e-5), rel=1e-3)
    assert found.pld <= found.rdp
    assert found.drawn is None


@pytest.mark.slow
def test_local_steps_count_as_rounds_do() -> None:
    often = Mechanism(4.0, 1.0, 1e-5, "client", "client", moves=1.0, unit="record", steps=4)
    once = Mechanism(4.0, 1.0, 1e-5, "client", "client", moves=1.0, unit="record")
    one, other = account(often, Run(3, 1.0)), account(once, Run(12, 1.0))
    assert one.recomputed is not None
    assert other.recomputed is not None
    assert one.recomputed.pld == other.recomputed.pld
    # mu = sqrt(4) / 4 in a round.
    assert one.recomputed.one_round == pytest.approx(closed_epsilon(0.5, 1e-5), rel=1e-3)


@pytest.mark.slow
def test_a_draw_of_clients_lowers_epsilon_only_where_it_counts() -> None:
    run = Run(20, 0.1, sampling_rate=0.1)
    secret = account(Mechanism(4.0, 1.0, 1e-5, "server", "client", is_drawn=True), run)
    known = account(Mechanism(4.0, 1.0, 1e-5, "client", "client"), run)
    assert secret.recomputed is not None
    assert known.recomputed is not None
    assert secret.recomputed.drawn is not None
    assert secret.recomputed.drawn < 0.5 * secret.recomputed.pld
    assert known.recomputed.drawn is None
    assert known.recomputed.pld == secret.recomputed.pld


def test_no_noise_comes_to_infinity_and_is_no_error() -> None:
    found = account(Mechanism(0.0, 1.0, 1e-5, "server", "client", is_drawn=True), Run(2, 1.0))
    assert found.recomputed is not None
    assert found.recomputed.pld == found.recomputed.rdp == math.inf


def test_without_an_accountant_nothing_is_recomputed_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    held = account(Mechanism(4.0, 1.0, 1e-5, "client", "client"), Run(2, 1.0))
    assert held.recomputed is None
