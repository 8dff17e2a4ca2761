"""Defenses that change a client's update."""

import math
import re
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.defense import Defense, DefenseContext, RunParameters
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.defenses._gaussian import draw_gaussian
from overheard.defenses.compression import Compression
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.local_dp import LocalDp
from overheard.defenses.noise import Noise
from tests.core.closed_form_epsilon import closed_epsilon

MOMENT = DefenseContext(2, client(3), Seed(11))


def defended(
    defense: Defense, delta: dict[str, Tensor], moment: DefenseContext = MOMENT
) -> dict[str, Tensor]:
    return dict(defense.on_update(Update(delta), moment).delta)


@pytest.mark.parametrize("defense", [LocalDp(2.5, 0.0), DpFedavg(clip=2.5)])
def test_clips_a_long_update_over_all_of_its_tensors_and_adds_no_noise(
    defense: Defense,
) -> None:
    # The norm of (3), (4) together is 5; times 2.5 / 5.
    got = defended(defense, {"a": torch.tensor([[3.0]]), "b": torch.tensor(4.0)})
    assert got["a"].tolist() == [[1.5]]
    assert got["b"].item() == 2.0


@pytest.mark.parametrize(
    ("defense", "start", "deviation"), [(LocalDp(2.0, 1.5), 0.0, 3.0), (Noise(0.5), 2.0, 0.5)]
)
def test_noise_has_the_stated_deviation_and_no_bias(
    defense: Defense, start: float, deviation: float
) -> None:
    got = defended(defense, {"a": torch.full((40_000,), start)})["a"].double() - start
    # Five standard errors: of the mean 5 / 200, of the deviation 5 / sqrt(80,000), in units of
    # the deviation.
    assert abs(float(got.mean())) < 0.025 * deviation
    assert abs(float(got.std()) - deviation) < 0.0177 * deviation


def test_sends_size_and_metrics_in_the_clear() -> None:
    update = Update({"a": torch.ones(3)}, examples=40, metrics={"loss": 2.0})
    got = LocalDp().on_update(update, MOMENT)
    assert (got.examples, got.metrics) == (40, {"loss": 2.0})


@pytest.mark.parametrize("defense", [LocalDp(), DpFedavg(), Compression(0.5)])
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_refuses_an_update_with_nonfinite_numbers_and_names_client_and_round(
    defense: Defense, broken: float
) -> None:
    with pytest.raises(ValueError, match="client/3 in round 2"):
        defended(defense, {"a": torch.tensor([1.0, broken])})


@given(
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=6),
    st.floats(1e-3, 1e3),
)
def test_no_clipped_update_is_longer_than_the_clip(numbers: list[float], clip: float) -> None:
    got = defended(LocalDp(clip, 0.0), {"a": torch.tensor(numbers)})["a"].double()
    # float32 rounds each coordinate by up to 6e-8 of itself.
    assert float(got.norm()) <= clip * (1 + 1e-6)


def test_replacing_a_client_has_the_epsilon_of_half_the_noise() -> None:
    promise = LocalDp(clip=1.0, noise_multiplier=4.0).promise(
        RunParameters(rounds=4, participation=1.0)
    )
    found = re.match(r"epsilon (\S+) if all data of one user .* other data, (\S+) if", promise)
    assert found
    # mu = sqrt(4) / (4 / 2) = 1 and sqrt(4) / 4 = 1/2, each rounded up to the next 0.01.
    assert float(found[1]) == pytest.approx(closed_epsilon(1.0, 1e-5), abs=0.011)
    assert float(found[2]) == pytest.approx(closed_epsilon(0.5, 1e-5), abs=0.011)
    assert float(found[1]) >= closed_epsilon(1.0, 1e-5)


@pytest.mark.parametrize("defense", [LocalDp(1.0, 0.0), DpFedavg(1.0, 0.0)])
def test_clipping_alone_has_no_formal_promise(defense: Defense) -> None:
    promise = defense.promise(RunParameters(rounds=1, participation=1.0))
    assert "no formal promise (epsilon infinite)" in promise


@pytest.mark.parametrize("defense", [LocalDp(), DpFedavg()])
def test_without_the_accountant_says_how_to_install_it_instead_of_an_epsilon(
    defense: Defense, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    promise = defense.promise(RunParameters(rounds=1, participation=1.0))
    assert promise.startswith("epsilon not computed (")
    assert "pip install '.[dp]'" in promise


HERE, AT_SERVER = DefenseContext(2, client(3), Seed(11)), DefenseContext(2, SERVER, Seed(12))


def noisy_mean(defense: DpFedavg, delta: dict[str, Tensor], clients: int) -> dict[str, Tensor]:
    """Apply the defense to the mean of this many clients."""
    mean = Aggregate(delta, frozenset(client(number) for number in range(clients)))
    return dict(defense.on_aggregate(mean, AT_SERVER).delta)


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


def test_replacing_a_client_has_the_epsilon_of_half_the_noise_at_the_server() -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("noise_multiplier", [1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("sampling_rate", [1.0, 0.1])
def test_reports_noise_that_is_far_too_small(
    noise_multiplier: float, sampling_rate: float
) -> None:
    # All of Orekondy et al. 2018, section 7.2, who clip at 50 and train for 200 rounds.
    promise = promise_of(DpFedavg(50.0, noise_multiplier), 200, sampling_rate)
    assert promise.startswith("epsilon above 1000 (no protection) against")


def test_a_long_update_is_not_clipped_and_exceeds_the_noise() -> None:
    got = defended(Noise(0.01), {"a": torch.tensor([1e4, -1e4])})["a"]
    # Five deviations and the rounding of float32 at 10,000, which is 0.0005.
    assert torch.allclose(got, torch.tensor([1e4, -1e4]), rtol=0, atol=0.051)


def test_says_why_there_is_no_epsilon() -> None:
    promise = Noise().promise(RunParameters(rounds=3, participation=1.0))
    assert "no formal promise (epsilon infinite)" in promise
    assert "not clipped" in promise


def test_noise_depends_only_on_name_and_context() -> None:
    part = torch.zeros(3)
    one = draw_gaussian(part, "a", MOMENT)
    assert torch.equal(one, draw_gaussian(part, "a", MOMENT))
    assert not torch.equal(one, draw_gaussian(part, "b", MOMENT))
    assert not torch.equal(
        one, draw_gaussian(part, "a", DefenseContext(2, client(3), Seed(12)))
    )


def compressed(keep: float, delta: dict[str, Tensor]) -> dict[str, Tensor]:
    return dict(Compression(keep).on_update(Update(delta), MOMENT).delta)


def test_sends_the_largest_magnitudes_over_all_tensors() -> None:
    # Of 6 numbers the half are 3: -9, 8 and 3; the first tensor keeps one, the last none.
    got = compressed(
        0.5,
        {
            "a": torch.tensor([[1.0, -9.0], [2.0, 0.5]]),
            "b": torch.tensor([8.0, 3.0]),
        },
    )
    assert got["a"].tolist() == [[0.0, -9.0], [0.0, 0.0]]
    assert got["b"].tolist() == [8.0, 3.0]


@pytest.mark.parametrize(
    ("keep", "params", "count"),
    [
        (0.1, 30, 3),  # in floats 0.1 * 30 exceeds 3
        (0.1, 31, 4),  # 3.1, rounded up
        (0.07, 100, 7),  # in floats 0.07 * 100 exceeds 7
        (1e-9, 5, 1),  # never nothing
        (1.0, 5, 5),
        (0.999, 5, 5),
    ],
)
def test_rounds_the_exact_share_up(keep: float, params: int, count: int) -> None:
    got = compressed(keep, {"a": torch.arange(1.0, params + 1)})["a"]
    assert int((got != 0).sum()) == count


def test_sends_the_first_of_equal_numbers() -> None:
    # 3 of 6: the 5, then the first two of four that measure 2.
    got = compressed(
        0.5, {"a": torch.tensor([1.0, 2.0, -2.0]), "b": torch.tensor([2.0, 5.0, 2.0])}
    )
    assert got["a"].tolist() == [0.0, 2.0, -2.0]
    assert got["b"].tolist() == [0.0, 5.0, 0.0]


@pytest.mark.slow
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    st.lists(st.integers(-4, 4), max_size=12),
    st.integers(1, 100),
)
def test_no_omitted_number_is_larger_than_a_sent_one(
    one: list[int], other: list[int], percent: int
) -> None:
    delta = {
        "a": torch.tensor(one, dtype=torch.float32),
        "b": torch.tensor(other, dtype=torch.float64),
    }
    got = compressed(percent / 100, delta)
    before, after = (torch.cat(tuple(part.values())) for part in (delta, got))
    travels = after != 0
    assert torch.equal(before[travels], after[travels])
    count = -(-percent * len(before) // 100)
    # Where fewer than so many are not 0, some of those that travel are.
    assert int(travels.sum()) == min(count, int((before != 0).sum()))
    if travels.any() and not travels.all():
        assert float(before[~travels].abs().max()) <= float(before[travels].abs().min())
