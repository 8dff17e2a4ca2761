"""Reasons for and faults of messages."""

from collections.abc import Callable, Sequence

import pytest
import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.consistency import message_faults
from overheard.consistency.message_faults import FaultFinder, SampledReply
from overheard.consistency.proof import MessageFault, Reason
from overheard.consistency.statement import StatedStep
from overheard.core.messages import Aggregate, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from tests.consistency.runs import (
    Model,
    Noise,
    Setting,
    TrueRun,
    as_differences,
    check,
    minus,
    record,
    simulate,
    stacked,
)

WIDE = {"layer.weight": (60, 50), "layer.bias": (60,)}


def median(updates: Sequence[Update]) -> Model:
    return {name: stacked(updates, name).median(0).values for name in updates[0].delta}


def trimmed_mean(updates: Sequence[Update]) -> Model:
    return {
        name: stacked(updates, name).sort(0).values[1:-1].mean(0) for name in updates[0].delta
    }


def krum(updates: Sequence[Update]) -> Model:
    return updates[2].delta


def hidden_weights(updates: Sequence[Update]) -> Model:
    weights = torch.linspace(0.1, 0.4, len(updates))
    weights = weights / weights.sum()
    return {
        name: (stacked(updates, name) * weights.reshape(-1, *[1] * one.ndim)).sum(0)
        for name, one in updates[0].delta.items()
    }


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


def test_noise_of_unstated_size_cannot_be_told() -> None:
    run = simulate(Setting(aggregate=Noise(1, 0.1), shapes=WIDE))
    proof = check(record(run, is_hidden=True))
    assert (proof.outcome, proof.reason) == ("cannot tell", Reason.NOISE)
    assert proof.allows_no_leak("updates")
    wrong = check(record(run, as_differences, is_hidden=True))
    assert wrong.outcome == "contradicts"
    assert "--kind differences" in wrong.mend


def test_noise_of_the_stated_size_follows_and_of_another_does_not() -> None:
    rounds = record(simulate(Setting(aggregate=Noise(1, 0.1), shapes=WIDE)), is_hidden=True)
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


START = torch.linspace(-2.0, 3.0, 40)


def reply(
    sender: Party, numbers: torch.Tensor, examples: int | None = 10, **metrics: float
) -> SampledReply:
    return SampledReply(sender, Update({"w": numbers}, examples, metrics), numbers)


def noise(seed: int) -> torch.Tensor:
    return 0.1 * torch.randn(40, generator=torch.Generator().manual_seed(seed))


def faults_of(
    *rounds: list[SampledReply], is_sound: bool = False, is_unknown: bool = False
) -> tuple[MessageFault, ...]:
    finder = FaultFinder()
    for number, replies in enumerate(rounds):
        finder.add(number, replies, START + number)
    return finder.faults(is_sound=is_sound, is_exact=is_sound, is_unknown=is_unknown)


def test_ordinary_replies_have_no_fault() -> None:
    assert faults_of([reply(client(0), noise(0)), reply(client(1), noise(1))]) == ()


def test_the_zero_update_of_one_client_is_a_warning() -> None:
    (fault,) = faults_of([reply(client(0), noise(0)), reply(client(1), 0 * START)])
    assert fault.sender == client(1)
    assert "zero in every number, in round 0 (of 1 replies)" in fault.fault
    assert not fault.is_refusal


def test_a_client_without_examples_may_send_zeros() -> None:
    assert faults_of([reply(client(0), 0 * START, 0), reply(client(1), noise(1))]) == ()


def test_zeros_in_the_sample_alone_are_no_zero_update() -> None:
    body = Update({"w": torch.tensor([0.0] * 40 + [1.0])}, 10)
    (finder := FaultFinder()).add(0, [SampledReply(client(0), body, 0 * START)], START)
    assert finder.faults(is_sound=False, is_exact=False, is_unknown=False) == ()


@pytest.mark.parametrize(
    ("numbers", "words", "mend"),
    [
        (noise(0) - START, "minus the broadcast", "--kind differences"),
        (noise(0) + START, "the broadcast itself", "--kind weights"),
        ((START * 20).round(), "whole numbers", "codes"),
        ((START * 20).round() - START, "whole numbers", "codes"),
    ],
)
def test_replies_that_cannot_be_are_refused(
    numbers: torch.Tensor, words: str, mend: str
) -> None:
    (fault,) = faults_of([reply(client(0), numbers)])
    assert words in fault.fault
    assert mend in fault.mend
    assert fault.is_refusal


@pytest.mark.parametrize(
    "numbers",
    [
        torch.where(START > 2, noise(0), 0.0),  # sparse
        (noise(0) * 40).round() / 40,  # quantised, on a grid that is not whole
        noise(0).sign() * 0.01,
        noise(0).sign(),  # one bit for each number
    ],
    ids=["sparse", "grid", "signs", "ones"],
)
def test_compressed_updates_are_no_codes(numbers: torch.Tensor) -> None:
    assert faults_of([reply(client(0), numbers)]) == ()


def test_what_leads_on_as_it_is_stored_is_no_fault() -> None:
    assert faults_of([reply(client(0), noise(0) - START)], is_sound=True) == ()


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (lambda first: first, "the sender's round before, number for number"),
        (lambda first: first - 1.0, "which the sender sent in its round before"),
        (lambda first: torch.full((40,), -1.0), "the broadcast of the round before, untrained"),
    ],
    ids=["update", "model", "broadcast"],
)
def test_what_a_client_sends_again_is_told(
    second: Callable[[torch.Tensor], torch.Tensor], words: str
) -> None:
    others = [[reply(client(1), noise(number))] for number in (5, 6)]
    # The broadcast of round 1 is larger than that of round 0 by 1 in every number.
    sent = [[reply(client(0), one)] for one in (noise(0), second(noise(0)))]
    rounds = [[*one, *other] for one, other in zip(sent, others, strict=True)]
    (fault,) = faults_of(*rounds)
    assert (fault.round, fault.sender) == (1, client(0))
    assert words in fault.fault


def test_a_reply_sent_again_is_refused_if_no_step_leads_on() -> None:
    rounds = [
        [reply(client(0), noise(0)), reply(client(1), noise(number))] for number in (5, 6)
    ]
    assert [one.is_refusal for one in faults_of(*rounds, is_unknown=True)] == [True]
    assert [one.is_refusal for one in faults_of(*rounds)] == [False]


def test_another_number_of_examples_among_the_metrics_is_told() -> None:
    odd = faults_of([reply(client(0), noise(0), 10, **{"fit.num-examples": 640.0})])
    assert ["another number of examples" in one.fault for one in odd] == [True]
    assert not odd[0].is_refusal
    assert faults_of([reply(client(0), noise(0), 10, num_examples=10.0, loss=3.0)]) == ()


def test_small_models_are_not_searched() -> None:
    finder = FaultFinder()
    finder.add(0, [reply(client(0), torch.zeros(4))], torch.ones(4))
    assert finder.faults(is_sound=False, is_exact=False, is_unknown=False) == ()


def test_one_example_of_each_client_is_told() -> None:
    (fault,) = faults_of([reply(client(0), noise(0), 1), reply(client(1), noise(1), 1)])
    assert "in all 2 replies the reply reports one example" in fault.fault
    assert not fault.is_refusal
    assert faults_of([reply(client(0), noise(0), 1), reply(client(1), noise(1), 2)]) == ()


def test_of_more_clients_than_are_kept_the_latest_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_faults, "KEPT_NUMBERS", 2 * len(START))
    clients = [client(number) for number in range(4)]
    same = [reply(party, noise(number)) for number, party in enumerate(clients)]
    (fault,) = faults_of(same, same[2:])
    assert fault.fault == f"in all 2 replies {message_faults.REPEATED}"
    assert faults_of(same, same[:2]) == ()


def test_two_clients_with_one_reply_are_a_warning() -> None:
    replies = [
        reply(client(0), noise(0)),
        reply(client(1), noise(0)),
        reply(client(2), noise(2)),
    ]
    found = faults_of(replies, is_sound=True)
    assert [one.sender for one in found] == [client(0), client(1)]
    assert all("the same as that of another client" in one.fault for one in found)
    assert not any(one.is_refusal for one in found)


def test_a_round_that_is_recorded_twice_is_a_warning() -> None:
    finder = FaultFinder()
    replies = [reply(client(0), noise(0)), reply(client(1), noise(1))]
    finder.add(0, replies, START)
    finder.add(1, replies, START)
    finder.add(2, [reply(client(0), noise(2)), reply(client(1), noise(3))], START)
    (fault,) = finder.faults(is_sound=True, is_exact=True, is_unknown=False)
    assert fault.fault.startswith("the broadcast and all replies are those of the round before")
    assert (fault.round, fault.sender, fault.is_refusal) == (1, None, False)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_replies_of_16_bits_are_a_warning_where_the_rounding_is_large(
    kind: torch.dtype,
) -> None:
    generator = torch.Generator().manual_seed(0)
    broadcast = torch.randn(40, generator=generator)

    def sent(scale: float) -> torch.Tensor:
        trained = broadcast + scale * torch.randn(40, generator=generator)
        return trained.to(kind).float() - broadcast

    def found(numbers: torch.Tensor) -> list[str]:
        finder = FaultFinder()
        finder.add(0, [reply(client(0), numbers), reply(client(1), 2 * noise(0))], broadcast)
        faults = finder.faults(is_sound=True, is_exact=True, is_unknown=False)
        assert not any(one.is_refusal for one in faults)
        return [one.fault for one in faults]

    (fault,) = found(sent(0.002))
    assert "numbers of 16 bits" in fault
    assert found(sent(10.0)) == []
    assert found(0.002 * torch.randn(40, generator=generator)) == []
