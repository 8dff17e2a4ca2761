from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
import torch

from overheard.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.consistency import collector
from overheard.consistency.message_faults import FaultFinder
from overheard.consistency.proof import Reason
from overheard.consistency.statement import StatedStep
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.messages import Update
from overheard.core.parties import SERVER, Party, client
from tests.consistency.runs import (
    Model,
    Setting,
    Store,
    TrueRun,
    as_differences,
    as_weights,
    check,
    minus,
    model_after,
    record,
    simulate,
)

ALGORITHMS: tuple[Algorithm, ...] = (
    FedAvg(),
    FedAvg(rate=0.5),
    FedAvg(mean="equal"),
    FedAvgM(rate=0.7, momentum=0.8),
    FedAdam(rate=0.02),
    FedAdam(rate=0.02, bias_correction=False),
    FedYogi(rate=0.02),
    FedAdagrad(rate=0.02),
)


def as_weights_read_as_differences(
    run: TrueRun, number: int, local: Model, start: Model
) -> Model:
    return local


def true_model(run: TrueRun, number: int) -> Model:
    return run.models[number]


def as_gradients(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    return {name: (run.models[number][name] - local[name]) / 0.25 for name in local}


def as_gradients_read_as_weights(
    run: TrueRun, number: int, local: Model, start: Model
) -> Model:
    return minus(as_gradients(run, number, local, start), start)


def model_of_the_round_before(run: TrueRun, number: int) -> Model:
    return run.models[max(number - 1, 0)]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_the_replies_of_each_listed_server_lead_to_its_next_broadcasts(
    algorithm: Algorithm,
) -> None:
    rounds = record(simulate(Setting(algorithm)))
    proof, stated = check(rounds), check(rounds, StatedStep(algorithm))
    assert proof.outcome == stated.outcome == "follows"
    assert stated.best is None
    step = proof.best.step if proof.best else proof.stated and proof.stated.step
    assert step is not None
    assert step.algorithm == algorithm.name
    assert step.fitted.get("rate", 1.0) == pytest.approx(getattr(algorithm, "rate", 1.0), 1e-4)
    assert not proof.is_refused
    assert proof.allows_no_leak("updates")


def label_of(value: object) -> str:
    """Return the name of a function, or the text of a value."""
    return getattr(value, "__name__", repr(value))


MISREAD = [
    (ALGORITHMS, as_differences, true_model, "--kind differences", {"reading": "differences"}),
    (ALGORITHMS, as_weights_read_as_differences, true_model, "--kind weights", {}),
    (ALGORITHMS[:4], as_weights, model_after, 'saved = "after"', {"saved": "after"}),
    (ALGORITHMS[4:], as_gradients, true_model, "", {"reading": "gradients"}),
    (ALGORITHMS, as_weights, model_of_the_round_before, "", {"base": -1}),
]
"""Algorithms, what is stored of replies and models, the remedy and the step that is found."""


@pytest.mark.parametrize(
    ("algorithm", "store", "model", "mend", "step"),
    [(one, *rest) for algorithms, *rest in MISREAD for one in algorithms],
    ids=label_of,
)
def test_what_was_misread_is_found_and_mended(
    algorithm: Algorithm,
    store: Store,
    model: Callable[[TrueRun, int], Model],
    mend: str,
    step: Mapping[str, object],
) -> None:
    proof = check(record(simulate(Setting(algorithm)), store, model=model))
    assert proof.outcome == "contradicts"
    assert proof.is_refused
    assert not proof.allows_no_leak("updates")
    assert mend in proof.mend
    assert proof.best is not None
    assert {name: getattr(proof.best.step, name) for name in step} == step
    assert "reading" not in step or proof.best.step.algorithm == algorithm.name


REFUSED = {
    "zero in every number": lambda run, number, local, start: minus(start, start),
    "the same, number for number": lambda run, number, local, start: minus(
        run.models[number + 1], start
    ),
    "whole numbers": lambda run, number, local, start: {
        name: (one * 30).round() - start[name] for name, one in local.items()
    },
    "NaN": lambda run, number, local, start: {
        name: torch.full_like(one, torch.nan) for name, one in local.items()
    },
}


@pytest.mark.parametrize("words", REFUSED)
def test_replies_that_cannot_be_are_refused(words: str) -> None:
    proof = check(record(simulate(), REFUSED[words]))
    assert proof.outcome == "contradicts"
    assert words in proof.finding
    assert words != "whole numbers" or "codes are multiplied" in proof.mend


GRADIENTS = [(one, 4, true_model) for one in ALGORITHMS[:4]]
GRADIENTS += [(FedAvg(), clients, model_after) for clients in (1, 4)]


@pytest.mark.parametrize(("algorithm", "clients", "model"), GRADIENTS, ids=label_of)
@pytest.mark.parametrize("store", [as_gradients, as_gradients_read_as_weights])
def test_gradients_are_found_with_their_rate(
    algorithm: Algorithm, clients: int, model: Callable[[TrueRun, int], Model], store: Store
) -> None:
    proof = check(record(simulate(Setting(algorithm, clients=clients)), store, model=model))
    assert proof.outcome == "contradicts"
    # The server moves by its rate times 0.25 times the gradient.
    rate = 0.25 * float(getattr(algorithm, "rate", 1.0))
    assert f"--kind gradients --rate {rate:g}" in proof.mend
    assert ('saved = "after"' in proof.mend) == (model is model_after)


@pytest.mark.parametrize("back", [1, 2, 3])
def test_replies_that_all_began_earlier_are_found(back: int) -> None:
    run = simulate(Setting(rounds=8, begins=lambda number, party: max(0, number - back)))
    proof = check(record(run))
    assert proof.outcome == "contradicts"
    assert proof.best is not None
    assert proof.best.step.base == back
    assert "began_in" in proof.mend


@pytest.mark.parametrize("back", [1, 2])
def test_each_reply_that_began_earlier_is_named(back: int) -> None:
    late = {client(1), client(3)}

    def begins(number: int, party: Party) -> int:
        return max(0, number - back) if party in late else number

    proof = check(record(simulate(Setting(rounds=6, begins=begins))))
    assert proof.outcome == "contradicts"
    assert "began_in" in proof.mend
    assert {one.sender for one in proof.faults} == late
    assert all("in rounds 1, 2, 3, 4, 5" in one.fault for one in proof.faults)


@pytest.mark.parametrize("algorithm", ALGORITHMS[:3], ids=repr)
def test_single_replies_that_are_differences_are_named(algorithm: Algorithm) -> None:
    run = simulate(Setting(algorithm))

    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        true = minus(local, start)
        is_other = local is run.weights[number][client(2)]
        return minus(true, start) if is_other else true

    proof = check(record(run, store))
    assert proof.outcome == "contradicts"
    assert proof.best is not None
    assert proof.best.step.reading == "differences"
    assert {one.sender for one in proof.faults if one.is_refusal} == {client(2)}


@pytest.mark.parametrize("is_whole", [True, False])
def test_clients_without_a_reply_in_some_rounds_are_told_of(is_whole: bool) -> None:
    rounds = record(simulate(Setting(clients=6)))
    for number, messages in enumerate(rounds):
        lost = set() if is_whole else {client(number % 6), client((number + 3) % 6)}
        readers = messages[0].readers - lost
        kept = [one for one in messages[1:] if one.sender not in lost]
        rounds[number] = [replace(messages[0], readers=readers), *kept]
    proof = check(rounds)
    is_told = any("not all clients of the recording have a reply" in s for s in proof.sentences)
    assert is_told is not is_whole
    assert (proof.outcome == "follows") is is_whole


def test_a_reading_that_follows_makes_no_fault_of_each_reply() -> None:
    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        # The change of one client is so large that its update is not nearly minus the model.
        factor = 30 if local is run.weights[number][client(2)] else 1
        change = minus(local, run.models[number])
        return minus({name: factor * one for name, one in change.items()}, start)

    def mean(updates: Sequence[Update]) -> Model:
        factors = (1, 1, 30, 1)
        return {
            name: sum(
                (f * one.delta[name] for f, one in zip(factors, updates, strict=True)),
                torch.tensor(0.0),
            )
            / len(factors)
            for name in updates[0].delta
        }

    proof = check(record(simulate(Setting(aggregate=mean)), store, is_hidden=True))
    assert "--kind differences" in proof.mend
    assert not any("nearly minus the broadcast" in one for one in proof.sentences)


def test_hidden_numbers_of_examples_cannot_be_told() -> None:
    proof = check(record(simulate(), is_hidden=True))
    assert proof.outcome == "cannot tell"
    assert proof.reason is Reason.HIDDEN_COUNTS
    assert proof.allows_no_leak("updates")


def test_what_a_user_accepts_is_not_refused() -> None:
    rounds = record(simulate(), as_differences)
    proof = check(rounds, StatedStep(accept="the log of the run proves it"))
    assert proof.outcome == "contradicts"
    assert not proof.is_refused
    assert any("the log of the run proves it" in one for one in proof.sentences)


@pytest.mark.parametrize("lost", range(5))
def test_a_round_without_its_broadcast_is_left_out(lost: int) -> None:
    rounds = record(simulate())
    rounds[lost] = [one for one in rounds[lost] if one.sender != SERVER]
    proof = check(rounds)
    assert proof.outcome == "follows"
    assert proof.stated is not None
    # Neither the round itself nor the one before has its next broadcast.
    assert set(proof.stated.residuals) == {0, 1, 2, 3, 4} - {lost, lost - 1}


@pytest.mark.parametrize("idle", [0, 2])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_rounds_without_replies_are_no_contradiction(algorithm: Algorithm, idle: int) -> None:
    setting = Setting(algorithm, absent=lambda number, party: number == idle)
    proof = check(record(simulate(setting)))
    assert proof.outcome != "contradicts"


def test_a_model_that_changes_its_tensors_is_read_anew() -> None:
    first, second = record(simulate()), record(simulate(Setting(shapes={"w": (7, 8)})))
    later = [
        [replace(one, round=one.round + len(first)) for one in messages] for messages in second
    ]
    assert check([*first, *later]).outcome == "follows"


@pytest.mark.parametrize("store", [as_weights, as_differences])
def test_a_recording_that_begins_later_is_checked(store: Store) -> None:
    run = simulate(Setting(FedAvgM(rate=0.7, momentum=0.8), rounds=7))
    proof = check(record(run, store)[2:])
    assert proof.outcome == ("follows" if store is as_weights else "contradicts")
    assert check(record(simulate(), only=client(2))[2:]).reason is Reason.REPLIES_UNSEEN


@pytest.mark.parametrize(
    ("scale", "outcome"), [(1e-40, "cannot tell"), (1e-5, "cannot tell"), (1e30, "contradicts")]
)
def test_replies_of_another_size_than_the_change_are_no_models_after_it(
    scale: float, outcome: str
) -> None:
    generator = torch.Generator().manual_seed(1)

    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        return {
            name: scale * torch.randn(one.shape, generator=generator)
            for name, one in local.items()
        }

    proof = check(record(simulate(), store))
    assert proof.outcome == outcome
    assert proof.best is None
    assert ("10,000 times as large" in proof.finding) == (scale > 1)


def test_tensors_that_only_some_rounds_have_break_no_memory() -> None:
    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        kept = minus(local, start)
        return {name: one for name, one in kept.items() if number != 2 or "head" not in name}

    algorithm = FedAvgM(rate=0.7, momentum=0.8)
    proof = check(record(simulate(Setting(algorithm)), store), StatedStep(algorithm))
    assert proof.outcome == "follows"


def test_a_long_recording_is_judged_by_rounds_that_are_spread_over_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "MOST_ROUNDS", 16)
    proof = check(record(simulate(Setting(rounds=60))))
    assert proof.outcome == "follows"
    assert proof.stated is not None
    numbers = list(proof.stated.residuals)
    assert 8 <= len(numbers) <= 16
    # Each second of the rounds, and each of their four quarters, has its share.
    assert 0.3 <= sum(one % 2 for one in numbers) / len(numbers) <= 0.7
    assert {one // 15 for one in numbers} == {0, 1, 2, 3}


def test_a_long_recording_of_which_each_second_round_is_misread_does_not_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "MOST_ROUNDS", 8)

    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        delta = minus(local, start)
        return delta if number % 2 else {name: -one for name, one in delta.items()}

    assert check(record(simulate(Setting(rounds=30)), store)).outcome != "follows"


def test_of_many_replies_a_smaller_sample_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "KEPT_NUMBERS", 2**10)
    rounds = record(simulate(Setting(clients=9, shapes={"w": (600,)})))
    evidence = collector.EvidenceCollector(StatedStep(), FaultFinder())
    for messages in rounds[:2]:
        evidence.add(messages)
    assert check(rounds).outcome == "follows"
    monkeypatch.setattr(collector, "KEPT_NUMBERS", 2**12)
    evidence.add(rounds[2])
    ((_, kept, _),) = evidence.kept
    assert kept.deltas.shape == (9, 200)


@pytest.mark.parametrize("algorithm", [FedAvgM(rate=1.0, momentum=0.5), FedAdam(), FedAvg(0.5)])
def test_a_stated_algorithm_that_a_plain_mean_contradicts_is_named(
    algorithm: Algorithm,
) -> None:
    proof = check(record(simulate()), StatedStep(algorithm))
    assert proof.outcome == "follows"
    assert any(
        f"the run states {algorithm.__class__.__name__}" in one.fault for one in proof.faults
    )
