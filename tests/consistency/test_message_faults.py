from collections.abc import Callable

import pytest
import torch

from overheard.consistency import message_faults
from overheard.consistency.message_faults import FaultFinder, SampledReply
from overheard.consistency.proof import MessageFault
from overheard.core.messages import Update
from overheard.core.parties import Party, client

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
