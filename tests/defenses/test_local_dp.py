"""Local DP clips, adds seeded noise, and states its promise with all conditions."""

import math
import re
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.defense import DefenseContext, RunParameters
from overheard.core.messages import Update
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.local_dp import LocalDp
from tests.core.closed_form_epsilon import closed_epsilon

MOMENT = DefenseContext(2, client(3), Seed(11))


def defended(
    defense: LocalDp, delta: dict[str, Tensor], moment: DefenseContext = MOMENT
) -> dict[str, Tensor]:
    return dict(defense.on_update(Update(delta), moment).delta)


def test_clips_a_long_update_over_all_of_its_tensors() -> None:
    # The norm of (3), (4) together is 5; times 2.5 / 5.
    got = defended(LocalDp(2.5, 0.0), {"a": torch.tensor([[3.0]]), "b": torch.tensor([4.0])})
    assert got["a"].tolist() == [[1.5]]
    assert got["b"].tolist() == [2.0]


def test_noise_has_the_stated_deviation_and_no_bias() -> None:
    draws = 40_000
    got = defended(LocalDp(clip=2.0, noise_multiplier=1.5), {"a": torch.zeros(draws)})[
        "a"
    ].double()
    # Standard deviation 1.5 * 2 = 3. Five standard errors: of the mean 5 * 3 / 200 = 0.075, of
    # the deviation 5 * 3 / sqrt(80,000) = 0.053.
    assert abs(float(got.mean())) < 0.075
    assert abs(float(got.std()) - 3) < 0.053


def test_sends_size_and_metrics_in_the_clear() -> None:
    update = Update({"a": torch.ones(3)}, examples=40, metrics={"loss": 2.0})
    got = LocalDp().on_update(update, MOMENT)
    assert (got.examples, got.metrics) == (40, {"loss": 2.0})


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_refuses_an_update_with_nonfinite_numbers_and_names_client_and_round(
    broken: float,
) -> None:
    with pytest.raises(ValueError, match="client/3 in round 2"):
        defended(LocalDp(), {"a": torch.tensor([1.0, broken])})


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


def test_clipping_alone_has_no_formal_promise() -> None:
    promise = LocalDp(1.0, 0.0).promise(RunParameters(rounds=1, participation=1.0))
    assert "no formal promise (epsilon infinite)" in promise


def test_without_the_accountant_says_how_to_install_it_instead_of_an_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    promise = LocalDp().promise(RunParameters(rounds=1, participation=1.0))
    assert promise.startswith("epsilon not computed (")
    assert "pip install '.[dp]'" in promise
