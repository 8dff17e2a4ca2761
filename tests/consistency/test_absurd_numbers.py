"""Numbers that no run has: the check stays right, and ends."""

import pytest
import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.consistency.proof import Reason
from overheard.consistency.statement import StatedStep, parse_algorithm, state_step
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Message
from tests.consistency.runs import Model, TrueRun, as_weights, check, minus, record, simulate


def read_twice(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    """Differences that were read as weights."""
    return minus(minus(local, start), start)


@pytest.mark.parametrize(
    "text",
    [
        "FedAvgM(rate=1e308, momentum=0.9)",
        "FedAvgM(rate=1e200, momentum=0.9)",
        "FedAdam(rate=1e300)",
        "FedAdagrad(rate=1e308)",
    ],
)
def test_absurd_settings_of_a_stated_algorithm_change_no_conclusion(text: str) -> None:
    statement = StatedStep(parse_algorithm(text))
    assert statement.algorithm is not None
    right = check(record(simulate()), statement)
    assert right.finding.endswith("to the next broadcasts by the mean of the replies.")
    wrong = check(record(simulate(), read_twice), statement)
    assert wrong.outcome == "contradicts"
    assert wrong.otherwise == "they are differences that were read as weights"


def scaled(factor: float) -> list[list[Message]]:
    """A run whose numbers are stored in 64 bits, times a factor."""
    run = simulate()
    return record(
        run,
        lambda run, number, local, start: {
            name: factor * (local[name].double() - run.models[number][name].double())
            for name in local
        },
        model=lambda run, number: {
            name: factor * one.double() for name, one in run.models[number].items()
        },
    )


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e150, 1e300, float("inf")])
def test_numbers_that_cannot_be_squared_prove_nothing(factor: float) -> None:
    found = check(scaled(factor))
    assert found.outcome == "cannot tell"
    assert found.reason in {Reason.NO_NEXT_BROADCAST, Reason.UNKNOWN_STEP}
    assert not found.allows_no_leak("updates")


def test_a_broadcast_that_is_not_finite_does_not_hide_the_updates() -> None:
    rounds = record(
        simulate(),
        as_weights,
        model=lambda run, number: {
            name: one + (torch.nan if number > 1 else 0.0)
            for name, one in run.models[number].items()
        },
    )
    assert check(rounds).outcome == "follows"


def test_noise_that_is_larger_than_any_number_is_not_taken_for_stated() -> None:
    mechanism = Mechanism(1e200, 1e100, 1e-5, "server", "server")
    defense = DefenseRecord("dp", "", "server", "", mechanism)
    manifest = Manifest(None, "", None, (defense,), (), None)
    statement = state_step(manifest)
    assert statement.noise == 0
    assert check(record(simulate(), read_twice), statement).outcome == "contradicts"
    assert check(record(simulate()), StatedStep(FedAvg(), 1e30)).outcome == "follows"


def test_hidden_weights_of_a_mean_do_not_explain_replies_of_an_absurd_size() -> None:
    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        return {name: 1e30 * one for name, one in minus(local, start).items()}

    found = check(record(simulate(), store))
    assert found.outcome == "contradicts"
    assert "more than 10,000 times as large as the model" in found.finding
