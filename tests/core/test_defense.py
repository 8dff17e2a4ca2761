"""Defenses and their mechanisms."""

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest
import torch

from overheard.core.defense import (
    DefenseContext,
    PreviousData,
    RunParameters,
)
from overheard.core.errors import OutputError, PlanError, WorkerError
from overheard.core.examples import Examples
from overheard.core.failures import DEBUG_VARIABLE, describe_internal_error, is_internal_error
from overheard.core.mechanism import Mechanism
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed


@pytest.mark.parametrize("since", [0, 4])
def test_refuses_data_replaced_before_round_1_or_in_the_future(since: int):
    former = PreviousData(Examples(torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)), since)
    with pytest.raises(ValueError, match="in round 1 to 3"):
        DefenseContext(3, SERVER, Seed(0), former)


@pytest.mark.parametrize("rate", [0.0, 1.1, float("nan")])
def test_refuses_a_sampling_rate_out_of_range(rate: float):
    with pytest.raises(ValueError, match="sampling_rate"):
        RunParameters(rounds=1, participation=1.0, sampling_rate=rate)


LOCAL = Mechanism(1.0, 2.0, 1e-5, "client", "client")


CENTRAL = replace(LOCAL, noised_at="server")


def test_noise_at_the_server_does_not_cover_the_server_and_colluders() -> None:
    assert CENTRAL.covers(())
    assert CENTRAL.covers((client(1), client(2)))
    assert not CENTRAL.covers((SERVER,))
    assert not CENTRAL.covers((client(1), SERVER))


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise_multiplier": -1.0},
        {"noise_multiplier": nan},
        {"noise_multiplier": inf},
        {"clip": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"moves": 0.0},
        {"steps": 0},
        {"stated": -0.1},
        {"stated": nan},
    ],
)
def test_refuses_settings_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be "):
        replace(LOCAL, **wrong)  # type: ignore[arg-type]


def test_refuses_sampling_with_several_noise_draws_a_round() -> None:
    # The clients are sampled once a round, not anew for each local step.
    with pytest.raises(ValueError, match="is_drawn to False or steps to 1"):
        Mechanism(1.0, 1.0, 1e-5, "server", "client", is_drawn=True, steps=2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"record_sampling": "poisson", "record_rate": 0.1}, "set unit to 'record'"),
        ({"unit": "record", "record_sampling": "poisson"}, "record_rate is the share"),
        ({"unit": "record", "record_rate": 0.1}, "record_rate is the share"),
        ({"unit": "record", "record_sampling": "none", "record_rate": 0.1}, "and only then"),
        ({"unit": "record", "record_sampling": "fixed", "record_rate": 1.5}, "at most 1"),
    ],
)
def test_refuses_a_sampling_of_records_that_is_not_whole(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        replace(LOCAL, **changes)


def test_the_relation_follows_from_the_sensitivity() -> None:
    assert LOCAL.relation == "replace-one"
    assert replace(LOCAL, moves=1.0).relation == "add-or-remove"


def test_says_what_failed_with_the_class_and_the_message_on_one_printable_line(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv(DEBUG_VARIABLE)
    error = ArithmeticError("singular\n\x1b[31m matrix")
    told = describe_internal_error("the attack llg", error)
    assert told == "the attack llg failed: ArithmeticError: singular \\x1b[31m matrix"
    assert describe_internal_error("it", KeyError()) == "it failed: KeyError"
    assert len(describe_internal_error("it", ValueError("x" * 10_000))) < 400


def test_is_raised_in_tests_and_with_debug():
    with pytest.raises(ArithmeticError):
        describe_internal_error("the attack llg", ArithmeticError("singular"))


@pytest.mark.parametrize("error", [PlanError("mend"), OutputError("full"), OSError("disk")])
def test_what_a_user_can_correct_is_no_failure_and_always_raised(
    error: Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(DEBUG_VARIABLE)
    assert not is_internal_error(error)
    with pytest.raises(type(error)):
        describe_internal_error("the attack llg", error)


def test_training_that_fails_in_a_worker_is_a_failure_of_the_attack_that_asked_for_it():
    assert is_internal_error(WorkerError("training failed"))
