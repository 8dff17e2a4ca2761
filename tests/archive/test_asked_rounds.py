"""A round that was asked of clients counts, whether its replies were stored or not."""

import torch

from overheard.archive.asked_rounds import AskedRounds, count_asked_rounds
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Update,
)
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.transcript import Transcript

WEIGHTS = {"w": torch.zeros(1)}
SENT, REPLY, LOST = Broadcast(WEIGHTS), Update(WEIGHTS), MissingReply("it failed")
ONE, TWO = client(0), client(1)


def count(*messages: tuple[int, Party, MessageBody]) -> AskedRounds:
    return count_asked_rounds(
        Transcript(
            tuple(
                Message(
                    number,
                    sender,
                    frozenset({ONE, TWO} if sender == SERVER else {SERVER}),
                    body,
                )
                for number, sender, body in messages
            )
        ),
        (SERVER, ONE, TWO),
    )


def test_the_closing_model_asks_nobody() -> None:
    found = count((0, SERVER, SENT), (0, ONE, REPLY), (0, TWO, REPLY), (1, SERVER, SENT))
    assert found == AskedRounds(rounds=1, most=1, clients=2, share=1.0)
    assert found.are_all_asked


def test_rounds_without_a_stored_reply_count() -> None:
    found = count(
        (0, SERVER, SENT), (0, ONE, LOST), (0, TWO, REPLY),
        (1, SERVER, SENT),  # nothing came back
        (2, SERVER, SENT), (2, ONE, REPLY), (2, TWO, LOST),
    )  # fmt: skip
    assert (found.rounds, found.most) == (3, 2)
    # Four of six replies were asked for as far as is known.
    assert found.share == 4 / 6
    assert not found.are_all_asked


def test_the_clients_behind_an_aggregate_were_asked() -> None:
    behind = Aggregate(WEIGHTS, frozenset({ONE, TWO}))
    found = count((0, COHORT, behind), (1, ONE, REPLY), (1, ONE, Evaluation({})))
    assert found == AskedRounds(rounds=2, most=2, clients=2, share=3 / 4)


def test_a_recording_without_messages_has_asked_nobody() -> None:
    assert count() == AskedRounds(rounds=0, most=0, clients=2, share=1.0)
