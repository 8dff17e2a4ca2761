"""Accountants of differential privacy."""

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
from overheard.core.accounting.sampled_accountant import PoissonNoise, fixed_size_epsilon
from overheard.core.defense import RunParameters
from overheard.core.errors import PlanError
from overheard.core.mechanism import ClientSampling, Mechanism, PrivacyRelation
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


DELTA = 1e-5


OPACUS = [
    # Noise multiplier, rate, steps, and epsilon by `PRVAccountant.get_epsilon(1e-5,
    # eps_error=0.002, delta_error=1e-9)` of opacus 1.6.0 with the history [(z, rate, steps)].
    (1.1, 1 / 3, 18, 8.540612),
    (1.0, 0.01, 300, 1.070101),
    (1.0, 0.008, 375, 0.927669),
    (1.5, 0.008, 2500, 1.167567),
    (0.8, 0.02, 500, 4.670046),
    (2.0, 0.1, 200, 3.361680),
    (0.6, 0.05, 60, 9.494856),
    (4.0, 0.25, 1000, 10.107489),
    (1.0, 0.05, 1000, 10.988734),
    (3.0, 0.5, 40, 4.966882),
]


FEDAVG: list[tuple[ClientSampling, float, float, int, float]] = [
    # Sampling of clients, noise multiplier, rate, rounds, and epsilon if a client is replaced
    # by another one, by dp-accounting 0.6.0: PLDAccountant(REPLACE_ONE, 1e-4) for Gaussian
    # noise and for Poisson samples, RdpAccountant(REPLACE_ONE) for a fixed number.
    ("poisson", 1.0, 0.1, 50, 7.185539),
    ("poisson", 2.0, 0.05, 200, 2.948817),
    ("poisson", 0.8, 0.02, 100, 3.020125),
    ("poisson", 4.0, 0.3, 100, 7.002234),
    ("fixed", 4.0, 0.1, 20, 2.242123),
    ("fixed", 6.0, 0.05, 300, 2.712565),
    ("fixed", 2.0, 0.02, 100, 2.578880),
    ("none", 4.0, 1.0, 20, 11.480023),
    ("none", 10.0, 1.0, 300, 20.125024),
    ("none", 1.0, 1.0, 1, 9.997256),
]


@pytest.mark.parametrize(("noise", "rate", "steps", "right"), OPACUS)
def test_dp_sgd_of_poisson_samples_has_the_epsilon_of_opacus(
    noise: float, rate: float, steps: int, right: float
) -> None:
    sampled = PoissonNoise(noise, rate, steps, "add-or-remove")
    assert sampled.upper_epsilon(DELTA) == pytest.approx(right, rel=0.01)
    # Opacus allows an error of 0.002 either way.
    assert 0.9 * right < sampled.lower_epsilon(DELTA) <= right + 0.002


@pytest.mark.parametrize(("sampling", "noise", "rate", "rounds", "right"), FEDAVG)
def test_dp_fedavg_has_the_epsilon_of_dp_accounting(
    sampling: ClientSampling, noise: float, rate: float, rounds: int, right: float
) -> None:
    mechanism = Mechanism(noise, 1.0, DELTA, "server", "client", is_drawn=True, stated=1.0)
    found = account_mechanism(mechanism, RunParameters(rounds, rate, rate, sampling)).recomputed
    assert found is not None
    assert found.smallest == pytest.approx(right, rel=0.01)
    assert found.lower <= right * 1.000001
    assert (found.lower > 0.9 * right) == (sampling != "fixed")


@pytest.mark.parametrize(("_", "noise", "rate", "steps", "right"), FEDAVG[1:3])
def test_dp_sgd_with_a_replaced_record_has_the_epsilon_of_dp_accounting(
    _: str, noise: float, rate: float, steps: int, right: float
) -> None:
    # A replaced record moves the sum of a batch as a replaced client moves that of a cohort.
    # `tests.epsilon.test_forty_claims` holds batches of a fixed size against these values too.
    mechanism = Mechanism(
        noise, 1.0, DELTA, "client", "client", 2.0, "record", steps, stated=1.0,
        record_sampling="poisson", record_rate=rate,
    )  # fmt: skip
    found = account_mechanism(mechanism, RunParameters(1, 1.0, sampling="none")).recomputed
    assert found is not None
    assert found.smallest == pytest.approx(right, rel=0.01)
    assert 0.9 * right < found.lower <= right * 1.000001


def test_bounds_of_one_draw_enclose_the_closed_form() -> None:
    # Removing a unit: delta(e) = q delta_G(log(1 + (exp(e) - 1) / q)) for one Gaussian of mu =
    # 1 (Balle, Barthe and Gaboardi 2018, Theorem 8); delta_G(1) = 0.12693674, so with q = 0.1
    # epsilon is log(1 + 0.1 (e - 1)) = 0.15854 at delta = 0.012693674.
    exact = math.log1p(0.1 * math.expm1(1.0))
    once = PoissonNoise(1.0, 0.1, 1, "add-or-remove")
    assert once.lower_epsilon(0.012693674) <= exact <= once.upper_epsilon(0.012693674)
    assert once.upper_epsilon(0.012693674) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("relation", ["add-or-remove", "replace-one"])
def test_a_sample_of_all_is_no_sample(relation: PrivacyRelation) -> None:
    # Twenty draws of noise 4 are one Gaussian of mu = sqrt(20) / 4: epsilon 5.0408.
    mechanism = Mechanism(4.0, 1.0, DELTA, "client", "client", moves=1.0)
    plain = account_mechanism(mechanism, RunParameters(20, 1.0)).recomputed
    assert plain is not None
    everybody = PoissonNoise(4.0, 1.0, 20, relation)
    assert everybody.upper_epsilon(DELTA) == pytest.approx(plain.pld, rel=0.005)
    assert 0.9 * plain.pld < everybody.lower_epsilon(DELTA) <= plain.pld


def test_a_huge_epsilon_has_no_upper_bound_and_a_large_lower_one() -> None:
    silent = PoissonNoise(1e-3, 0.01, 100, "add-or-remove")
    assert silent.upper_epsilon(DELTA) == math.inf
    assert 50 < silent.lower_epsilon(DELTA) < math.inf


def test_no_lower_bound_is_known_of_a_delta_that_the_accountant_cuts_off() -> None:
    noise = PoissonNoise(1.0, 0.01, 10, "add-or-remove")
    assert noise.lower_epsilon(1e-16) == 0
    assert 0 < noise.lower_epsilon(1e-12) < noise.upper_epsilon(1e-12) < math.inf


@pytest.mark.parametrize("relation", ["add-or-remove", "replace-one"])
def test_bounds_hold_for_more_draws_than_are_composed(
    relation: PrivacyRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = PoissonNoise(1.0, 0.01, 300, relation)
    lower, upper = noise.lower_epsilon(DELTA), noise.upper_epsilon(DELTA)
    module = "overheard.core.accounting.sampled_accountant"
    monkeypatch.setattr(f"{module}.MAX_DRAWS_BELOW", 200)
    monkeypatch.setattr(f"{module}.MAX_DRAWS_ABOVE", 200)
    assert 0 < noise.lower_epsilon(DELTA) < lower
    assert noise.upper_epsilon(DELTA) > upper


@pytest.mark.parametrize("moves", [1.0, 2.0])
def test_a_billion_sampled_draws_are_accounted_for_by_looser_bounds(moves: float) -> None:
    mechanism = Mechanism(
        1e6,
        1.0,
        DELTA,
        "client",
        "client",
        moves,
        "record",
        10**6,
        record_sampling="poisson",
        record_rate=0.01,
    )
    run = RunParameters(rounds=1000, participation=1.0)
    bound = account_mechanism(mechanism, run).recomputed
    assert bound is not None
    assert 0 < bound.against_everybody < 1
