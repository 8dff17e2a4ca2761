"""Central DP clips at clients, weights them equally, and scales noise by their number."""

import math
import re
import sys

import pytest
import torch
from torch import Tensor

from overheard.core.defense import DefenseContext, RunParameters
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.defenses.dp_fedavg import DpFedavg
from tests.core.closed_form_epsilon import closed_epsilon

HERE, AT_SERVER = DefenseContext(2, client(3), Seed(11)), DefenseContext(2, SERVER, Seed(12))


def noisy_mean(defense: DpFedavg, delta: dict[str, Tensor], clients: int) -> dict[str, Tensor]:
    """Apply the defense to the mean of this many clients."""
    mean = Aggregate(delta, frozenset(client(number) for number in range(clients)))
    return dict(defense.on_aggregate(mean, AT_SERVER).delta)


def test_clips_a_long_update_and_adds_no_noise_at_the_client() -> None:
    # The norm of (3), (4) together is 5; times 2.5 / 5.
    update = Update({"a": torch.tensor([[3.0]]), "b": torch.tensor([4.0])}, 40)
    update_sent = DpFedavg(clip=2.5).on_update(update, HERE)
    assert update_sent.delta["a"].tolist() == [[1.5]]
    assert update_sent.delta["b"].tolist() == [2.0]


def test_hides_the_size_but_not_the_metrics() -> None:
    update_sent = DpFedavg().on_update(Update({"a": torch.ones(3)}, 40, {"loss": 2.0}), HERE)
    assert update_sent.examples is None
    assert update_sent.metrics == {"loss": 2.0}


@pytest.mark.parametrize(("clients", "deviation"), [(1, 3.0), (2, 1.5), (10, 0.3)])
def test_divides_the_deviation_of_the_noise_by_the_number_of_clients(
    clients: int, deviation: float
) -> None:
    # clip 2 times multiplier 1.5 is 3 on the sum. Five standard errors of 40,000 draws: of the
    # mean 5 / 200, of the deviation 5 / sqrt(80,000), in units of the deviation.
    noise = noisy_mean(DpFedavg(2.0, 1.5), {"a": torch.zeros(40_000)}, clients)["a"].double()
    assert abs(float(noise.mean())) < 0.025 * deviation
    assert abs(float(noise.std()) - deviation) < 0.018 * deviation


def test_draws_different_noise_for_each_tensor_and_round() -> None:
    zeros = {"a": torch.zeros(3), "b": torch.zeros(3)}
    noise = noisy_mean(DpFedavg(), zeros, 2)
    assert not torch.equal(noise["a"], noise["b"])
    mean = Aggregate(zeros, frozenset({client(0), client(1)}))
    later = DpFedavg().on_aggregate(mean, DefenseContext(3, SERVER, Seed(13)))
    assert not torch.equal(noise["a"], later.delta["a"])


def test_without_noise_the_mean_is_unchanged() -> None:
    mean = Aggregate({"a": torch.ones(3)}, frozenset({client(0)}), 7)
    assert DpFedavg(1.0, 0.0).on_aggregate(mean, AT_SERVER) is mean


def promise_of(defense: DpFedavg, rounds: int, sampling_rate: float = 1.0) -> str:
    return defense.promise(
        RunParameters(rounds, participation=0.3, sampling_rate=sampling_rate)
    )


def epsilon_in(promise: str) -> float:
    found = re.match(r"epsilon (\S+) .*against any reader of all global models", promise)
    assert found
    return float(found[1])


def test_replacing_a_client_has_the_epsilon_of_half_the_noise() -> None:
    # mu = sqrt(4) / (4 / 2) = 1, rounded up to the next 0.01.
    epsilon = epsilon_in(promise_of(DpFedavg(1.0, 4.0), 4))
    exact = closed_epsilon(1.0, 1e-5)
    assert exact <= epsilon <= exact + 0.011


@pytest.mark.slow
def test_sampling_lowers_epsilon_and_the_epsilon_without_it_is_stated_too() -> None:
    promise = promise_of(DpFedavg(1.0, 4.0), 20, sampling_rate=0.1)
    # mu = sqrt(20) / (4 / 2) if it is known who was sampled. For 2.24 see `fixed_size_epsilon`.
    known = closed_epsilon(math.sqrt(20) / 2, 1e-5)
    assert epsilon_in(promise) == 2.25
    found = re.search(r"epsilon (\S+) against parties that know who was sampled", promise)
    assert found
    assert known <= float(found[1]) <= known + 0.02
    assert "sampling rate 0.1 (without replacement;" in promise
    assert "accountant dp-accounting RDP" in promise


@pytest.mark.slow
def test_participation_is_not_used_as_the_sampling_rate() -> None:
    # Half of two clients is one: a client that was not sampled knows that the other was.
    half = DpFedavg(1.0, 4.0).promise(RunParameters(rounds=20, participation=0.5))
    assert half == DpFedavg(1.0, 4.0).promise(RunParameters(rounds=20, participation=1.0))


def test_clipping_alone_has_no_formal_promise() -> None:
    assert "no formal promise (epsilon infinite)" in promise_of(DpFedavg(1.0, 0.0), 1)


@pytest.mark.slow
@pytest.mark.parametrize("noise_multiplier", [1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("sampling_rate", [1.0, 0.1])
def test_reports_noise_that_is_far_too_small(
    noise_multiplier: float, sampling_rate: float
) -> None:
    # All of Orekondy et al. 2018, section 7.2, who clip at 50 and train for 200 rounds.
    promise = promise_of(DpFedavg(50.0, noise_multiplier), 200, sampling_rate)
    assert promise.startswith("epsilon above 1000 (no protection) against")


def test_without_the_accountant_says_how_to_install_it_instead_of_an_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    promise = promise_of(DpFedavg(), 1)
    assert promise.startswith("epsilon not computed (")
    assert "pip install '.[dp]'" in promise
