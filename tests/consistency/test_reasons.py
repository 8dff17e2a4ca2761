"""Runs whose next broadcasts are no mean of the replies, and what raises no alarm."""

from collections.abc import Sequence

import pytest
import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.consistency.proof import Reason
from overheard.consistency.statement import StatedStep
from overheard.core.messages import Aggregate, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from tests.consistency.runs import Model, Setting, TrueRun, check, minus, record, simulate

WIDE = {"layer.weight": (60, 50), "layer.bias": (60,)}


def stacked(updates: Sequence[Update], name: str) -> torch.Tensor:
    return torch.stack([one.delta[name] for one in updates])


def median(updates: Sequence[Update]) -> Model:
    return {name: stacked(updates, name).median(0).values for name in updates[0].delta}


def trimmed_mean(updates: Sequence[Update]) -> Model:
    return {
        name: stacked(updates, name).sort(0).values[1:-1].mean(0) for name in updates[0].delta
    }


def krum(updates: Sequence[Update]) -> Model:
    return updates[2].delta


def signs_of_majority(updates: Sequence[Update]) -> Model:
    """Between the replies, but no statistic of the list."""
    return {
        name: 0.5 * one + 0.2 * one.abs() * one.sign() for name, one in median(updates).items()
    }


def hidden_weights(updates: Sequence[Update]) -> Model:
    weights = torch.linspace(0.1, 0.4, len(updates))
    weights = weights / weights.sum()
    return {
        name: (stacked(updates, name) * weights.reshape(-1, *[1] * one.ndim)).sum(0)
        for name, one in updates[0].delta.items()
    }


def as_differences(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    return minus(minus(local, run.models[number]), start)


@pytest.mark.parametrize(
    ("aggregate", "reason"),
    [
        (median, Reason.NOT_A_MEAN),
        (trimmed_mean, Reason.NOT_A_MEAN),
        (krum, Reason.NOT_A_MEAN),
        (hidden_weights, Reason.HIDDEN_COUNTS),
    ],
)
def test_other_aggregations_are_no_contradiction(aggregate, reason: Reason) -> None:
    setting = Setting(clients=6, aggregate=aggregate)
    proof = check(record(simulate(setting)))
    assert (proof.outcome, proof.reason) == ("cannot tell", reason)
    assert proof.allows_no_leak("updates")
    wrong = check(record(simulate(setting), as_differences))
    assert wrong.outcome == "contradicts"
    assert "--kind differences" in wrong.mend


class ChangingRate:
    """Multiplies the mean of the replies by a falling rate."""

    def __init__(self) -> None:
        self.rate = 1.0

    def __call__(self, updates: Sequence[Update]) -> Model:
        self.rate *= 0.7
        examples = [one.examples or 0 for one in updates]
        return {
            name: self.rate
            * sum(
                one.delta[name] * number / sum(examples)
                for one, number in zip(updates, examples, strict=True)
            )
            for name in updates[0].delta
        }


def as_gradients(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    return minus(minus(run.models[number], local), start)


@pytest.mark.parametrize("clients", [1, 4])
def test_a_rate_that_changes_is_told_from_hidden_weights(clients: int) -> None:
    run = simulate(Setting(clients=clients, aggregate=ChangingRate()))
    proof = check(record(run))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.CHANGING_RATE)
    assert proof.allows_no_leak("updates")
    wrong = check(record(run, as_gradients))
    assert wrong.outcome == "contradicts"
    assert "where RATE is the learning rate of the server" in wrong.mend


class Noise:
    """Adds Gaussian noise to the mean by examples."""

    def __init__(self, deviation: float) -> None:
        self.deviation = deviation
        self.generator = torch.Generator().manual_seed(1)

    def __call__(self, updates: Sequence[Update]) -> Model:
        weights = torch.ones(len(updates)) / len(updates)
        return {
            name: (stacked(updates, name) * weights.reshape(-1, *[1] * one.ndim)).sum(0)
            + self.deviation * torch.randn(one.shape, generator=self.generator)
            for name, one in updates[0].delta.items()
        }


def test_noise_of_unstated_size_cannot_be_told() -> None:
    run = simulate(Setting(aggregate=Noise(0.1), shapes=WIDE))
    proof = check(record(run, is_hidden=True))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.NOISE)
    assert proof.allows_no_leak("updates")
    wrong = check(record(run, as_differences, is_hidden=True))
    assert wrong.outcome == "contradicts"
    assert "--kind differences" in wrong.mend


def test_noise_of_the_stated_size_follows_and_of_another_does_not() -> None:
    rounds = record(simulate(Setting(aggregate=Noise(0.1), shapes=WIDE)), is_hidden=True)
    # Four replies: noise of 0.4 on their sum is noise of 0.1 on their mean.
    assert check(rounds, StatedStep(FedAvg(), noise=0.4)).outcome == "follows"
    assert check(rounds, StatedStep(FedAvg(), noise=0.5)).reason is Reason.NOISE


def test_partial_participation_follows() -> None:
    setting = Setting(clients=5, absent=lambda number, party: party == client((number * 2) % 5))
    assert check(record(simulate(setting))).outcome == "follows"


def test_a_clients_own_recording_cannot_be_told() -> None:
    proof = check(record(simulate(), only=client(1)))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.REPLIES_UNSEEN)
    assert not proof.allows_no_leak("updates")
    assert proof.allows_no_leak("means")


def test_a_clients_own_recording_of_differences_read_as_weights_is_refused() -> None:
    proof = check(record(simulate(), as_differences, only=client(1)))
    assert proof.outcome == "contradicts"
    assert "--kind differences" in proof.mend


def test_a_lost_reply_cannot_be_told() -> None:
    rounds = record(simulate())
    proof = check([[one for one in sent if one.sender != client(3)] for sent in rounds])
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.REPLIES_UNSEEN)


def test_one_round_cannot_be_told() -> None:
    proof = check(record(simulate(Setting(rounds=1)), is_closed=False))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.NO_NEXT_BROADCAST)
    assert not proof.allows_no_leak("updates")


def test_without_updates_nothing_can_be_told() -> None:
    rounds = record(simulate())
    proof = check([[one for one in sent if one.sender == SERVER] for sent in rounds])
    assert proof.reason is Reason.NO_UPDATES


def test_a_buffer_of_late_replies_cannot_be_told() -> None:
    kept = list[Update]()

    def late(updates: Sequence[Update]) -> Model:
        """Use half of the replies one round later."""
        used = [*kept, *updates[:2]]
        kept[:] = updates[2:]
        return {name: stacked(used, name).mean(0) for name in updates[0].delta}

    proof = check(record(simulate(Setting(aggregate=late, clients=4))))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.ASYNCHRONOUS)


def test_an_aggregate_that_leads_on_follows() -> None:
    run, rounds = simulate(), list[list[Message]]()
    for number, messages in enumerate(record(run)):
        mean = minus(run.models[min(number + 1, 5)], run.models[number])
        cohort = frozenset(one.sender for one in messages[1:])
        masked = [Message(one.round, one.sender, frozenset(), one.body) for one in messages[1:]]
        body = Aggregate(mean, cohort, 145)
        total = [Message(number, COHORT, frozenset({SERVER}), body)] if cohort else []
        rounds.append([messages[0], *masked, *total])
    assert check(rounds).outcome == "follows"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_broadcasts_of_16_bits_are_no_contradiction(dtype: torch.dtype) -> None:
    run = simulate()
    models = [
        {name: one.to(dtype).float() for name, one in model.items()} for model in run.models
    ]
    assert check(record(run, model=lambda run, number: models[number])).outcome == "follows"


@pytest.mark.parametrize(("height", "outcome"), [(20, "follows"), (1000, "cannot tell")])
def test_coarse_broadcasts_follow_if_the_mean_can_be_seen_in_them(
    height: float, outcome: str
) -> None:
    run = simulate()
    # Near 20, numbers of bfloat16 are 0.125 apart, near 1000 they are 4 apart. The model
    # changes by some 0.1 in a round.
    models = [
        {name: (one + height).bfloat16().float() for name, one in model.items()}
        for model in run.models
    ]

    def true_difference(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        return minus(local, run.models[number])

    proof = check(record(run, true_difference, model=lambda run, number: models[number]))
    assert proof.outcome == outcome
    assert outcome == "follows" or proof.reason is Reason.ROUNDING


def test_running_statistics_of_batch_norms_are_left_out() -> None:
    setting = Setting(shapes={"layer.weight": (20, 10), "norm.running_var": (20,)})
    run = simulate(setting)
    own = [
        {**model, "norm.running_var": torch.full((20,), float(number))}
        for number, model in enumerate(run.models)
    ]
    assert check(record(run, model=lambda run, number: own[number])).outcome == "follows"


def test_tensors_that_some_clients_keep_are_left_out() -> None:
    run = simulate()

    def without_head(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        return {name: one for name, one in minus(local, start).items() if "head" not in name}

    assert check(record(run, without_head)).outcome == "follows"


def test_tensors_that_the_server_does_not_change_are_left_out() -> None:
    run = simulate()
    frozen = [{**model, "head.weight": run.models[0]["head.weight"]} for model in run.models]
    assert check(record(run, model=lambda run, number: frozen[number])).outcome == "follows"


def test_sparse_updates_follow() -> None:
    def top(delta: torch.Tensor) -> torch.Tensor:
        return torch.where(delta.abs() > delta.abs().quantile(0.9), delta, 0.0)

    def aggregate(updates: Sequence[Update]) -> Model:
        total = sum(one.examples or 0 for one in updates)
        return {
            name: sum(top(one.delta[name]) * ((one.examples or 0) / total) for one in updates)
            for name in updates[0].delta
        }

    def store(run: TrueRun, number: int, local: Model, start: Model) -> Model:
        return {name: top(one) for name, one in minus(local, start).items()}

    # The differences of weights are rounded, so that the smallest kept number may differ.
    assert check(record(simulate(Setting(aggregate=aggregate)), store)).outcome == "follows"


def test_equal_weights_are_told_if_the_numbers_of_examples_differ() -> None:
    proof = check(record(simulate(Setting(FedAvg(mean="equal")))))
    assert proof.outcome == "follows"
    assert ["equal weights" in one.fault for one in proof.faults] == [True]
    stated = check(
        record(simulate(Setting(FedAvg(mean="equal")))), StatedStep(FedAvg(mean="equal"))
    )
    assert stated.faults == ()


def test_a_model_that_never_changes_is_told() -> None:
    run = simulate()
    proof = check(record(run, model=lambda run, number: run.models[0]))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.UNKNOWN_STEP)
    assert "the same" in proof.faults[0].fault


def test_an_algorithm_that_is_not_the_stated_one_is_told() -> None:
    proof = check(record(simulate(Setting(FedAvg(rate=0.5)))), StatedStep(FedAvg()))
    assert proof.outcome == "follows"
    assert proof.best is not None
    assert proof.best.step.fitted["rate"] == pytest.approx(0.5, 1e-5)
    assert "states FedAvg(rate=1.0" in proof.faults[0].fault
    assert not proof.faults[0].is_refusal


def test_the_stated_algorithm_is_no_other_one_in_a_recording_that_begins_later() -> None:
    stated = FedAvgM(rate=0.7, momentum=0.8)
    rounds = record(simulate(Setting(stated, rounds=7)))[2:]
    assert check(rounds, StatedStep(stated)).faults == ()
    assert len(check(rounds, StatedStep(FedAvgM(rate=0.7, momentum=0.5))).faults) == 1


def test_the_readers_of_a_broadcast_tell_who_was_asked() -> None:
    run = simulate(Setting(absent=lambda number, party: party == Party("client/0")))
    # The missing reply of client 0 was late, so its weights are in no mean.
    assert check(record(run)).outcome == "follows"
