"""The command `cohorts` compares schedules, and says what it needs."""

import json
from pathlib import Path

import pytest

from overheard.planning.cohorts import predicted_error
from tests.cli.conftest import Command, assert_user_error

NUMBERS = ("--clients", "6", "--cohort", "2", "--rounds", "8", "--classes", "3")


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw so few clients that a prediction takes milliseconds."""
    monkeypatch.setattr(predicted_error, "PRIOR_DRAWS", 500)
    monkeypatch.setattr(predicted_error, "TEST_DRAWS", 50)


def test_schedules_are_side_by_side_with_what_is_assumed(overheard: Command):
    said = overheard("cohorts", *NUMBERS)
    assert said.code == 0, said.err
    flat = " ".join(said.out.split())
    for words in ("random cohorts", "fixed groups of 2", "It was stated, not measured"):
        assert words in flat


def test_json_has_the_cohorts_and_the_error_as_a_share_of_the_guess(overheard: Command):
    said = overheard("cohorts", *NUMBERS, "--json")
    content = json.loads(said.out)
    assert [len(one["cohorts"]) for one in content["schedules"]] == [8, 8, 8]
    last = content["schedules"][0]["predicted"][-1]
    assert last["of_guess"] == pytest.approx(last["error"] / last["guess"])


def test_missing_numbers_are_named_with_a_command_that_works(overheard: Command):
    said = overheard("cohorts", "--clients", "6")
    assert said.code == 2
    assert "overheard cohorts --clients 20 --cohort 10 --rounds 80" in said.err


def test_a_cohort_of_more_than_all_clients_is_refused(overheard: Command):
    said = overheard("cohorts", "--clients", "6", "--cohort", "7", "--rounds", "8")
    assert_user_error(said, "a cohort of 1 to all clients", "a cohort of 7")


def test_a_plan_states_its_clients_itself(overheard: Command, tmp_path: Path):
    said = overheard("cohorts", tmp_path / "plan.toml", "--alpha", "0.1")
    assert said.code == 2
    assert "data.split in the plan" in said.err
