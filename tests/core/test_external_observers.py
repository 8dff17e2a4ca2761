"""Observers that are no party of the run get what they may read, and nothing else."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    EncryptedMessage,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Timestamps,
    Update,
)
from overheard.core.parties import (
    COHORT,
    NETWORK,
    RELEASE,
    SERVER,
    Party,
    client,
    is_external,
    joining_round,
    late_joiner,
)
from overheard.core.transcript import Transcript

CLIENTS = tuple(map(client, range(3)))

ROUNDS = 4


def model(value: float) -> dict[str, torch.Tensor]:
    return {"w": torch.tensor([value, value])}


def distilled() -> DistilledSet:
    return DistilledSet(torch.zeros(2, 3), torch.zeros(2, 2), torch.zeros(2), torch.ones(2))


BODIES: tuple[MessageBody, ...] = (
    Broadcast(model(1.0)),
    Update(model(2.0), 3),
    Aggregate(model(1.0), frozenset(CLIENTS)),
    distilled(),
    Evaluation({"loss": 1.0}, 5),
    MissingReply("late"),
)

PARTIES = (SERVER, COHORT, *CLIENTS)

drawn = st.lists(
    st.tuples(
        st.integers(0, ROUNDS),
        st.sampled_from(PARTIES),
        st.sets(st.sampled_from(PARTIES), max_size=3),
        st.integers(0, len(BODIES) - 1),
        st.none() | st.floats(0, 9),
    ),
    max_size=12,
)
"""Messages as plain values: objects are made in the tests."""


def transcript_of(rows: list[tuple[int, Party, set[Party], int, float | None]]) -> Transcript:
    return Transcript(
        tuple(
            Message(
                number,
                sender,
                frozenset(readers),
                BODIES[body],
                None if seconds is None else Timestamps(seconds),
            )
            for number, sender, readers, body, seconds in rows
        )
    )


observers = st.sets(
    st.sampled_from(
        (SERVER, *CLIENTS, RELEASE, NETWORK, *(late_joiner(n) for n in range(ROUNDS + 2)))
    ),
    min_size=1,
    max_size=3,
)


def may_read(message: Message, observer: Party, last: int) -> bool:
    """The rule of visibility, stated once more and one observer at a time."""
    if message.sender == observer or observer in message.readers:
        return True
    if not isinstance(message.body, Broadcast):
        return False
    joined = joining_round(observer)
    if observer == RELEASE:
        return message.round == last
    return joined is not None and message.round >= joined


def last_broadcast(transcript: Transcript) -> int:
    return max(
        (m.round for m in transcript.messages if isinstance(m.body, Broadcast)), default=-1
    )


@given(drawn, observers)
def test_an_observer_gets_all_bodies_that_it_may_read_and_no_other(
    rows: list[Any], watching: set[Party]
) -> None:
    transcript = transcript_of(rows)
    last = last_broadcast(transcript)
    allowed = [
        message
        for message in transcript.messages
        if any(may_read(message, one, last) for one in watching)
    ]
    assert list(map(id, transcript.seen_by(*watching).messages)) == list(map(id, allowed))


@given(drawn, observers, st.integers(0, ROUNDS))
def test_a_view_of_some_rounds_shows_no_message_that_the_whole_view_does_not(
    rows: list[Any], watching: set[Party], number: int
) -> None:
    whole = transcript_of(rows).seen_by(*watching)
    part = whole.during((number,))
    shown = {id(m) for m in (*part.messages, *part.closing_broadcasts)}
    assert shown <= {id(m) for m in whole.messages}
    assert set(map(id, part.encrypted)) <= set(map(id, whole.encrypted))


@given(drawn, observers)
def test_encrypted_messages_are_the_sent_ones_that_cannot_be_read(
    rows: list[Any], watching: set[Party]
) -> None:
    transcript = transcript_of(rows)
    view = transcript.seen_by(*watching)
    if NETWORK not in watching:
        assert view.encrypted == ()
    distilled_by = {
        (m.round, m.sender) for m in transcript.messages if isinstance(m.body, DistilledSet)
    }
    read = set(map(id, view.messages))
    sent = [
        (m.round, m.sender, m.times)
        for m in transcript.messages
        if id(m) not in read
        and not isinstance(m.body, MissingReply | Aggregate)
        and (isinstance(m.body, DistilledSet) or (m.round, m.sender) not in distilled_by)
    ]
    expected = sent if NETWORK in watching else []
    assert [(m.round, m.sender, m.times) for m in view.encrypted] == expected


def test_an_envelope_has_no_place_for_content() -> None:
    names = [field.name for field in fields(EncryptedMessage)]
    assert names == ["round", "sender", "receivers", "size", "times"]


def run() -> Iterator[Message]:
    """Three rounds of two clients, the second masked, and the final model."""
    to_all, to_server = frozenset(CLIENTS[:2]), frozenset({SERVER})
    for number in range(3):
        yield Message(number, SERVER, to_all, Broadcast(model(float(number))))
        for sender in CLIENTS[:2]:
            readers = to_server if number != 1 else frozenset[Party]()
            yield Message(number, sender, readers, Update(model(1.0), 3))
    yield Message(3, SERVER, to_all, Broadcast(model(3.0)))


RUN = Transcript(tuple(run()))


def test_the_final_model_alone_is_read_by_whoever_gets_it() -> None:
    view = RUN.seen_by(RELEASE)
    assert [m.round for m in view.messages] == [3]
    assert view.models_after().keys() == {2}
    assert view.observed_rounds(COHORT) == (2,)
    assert view.rounds_with_updates(COHORT) == ()
    assert view.observed_rounds(CLIENTS[0]) == ()
    in_round = view.during((0, 1, 2))
    assert (in_round.messages, in_round.observed_rounds(COHORT)) == ((), (2,))


def test_a_late_joiner_reads_the_mean_updates_from_its_round_on() -> None:
    view = RUN.seen_by(late_joiner(1))
    assert [m.round for m in view.messages] == [1, 2, 3]
    # w(t+1) - w(t) = 1 in each round, of both clients.
    updates = view.updates(COHORT)
    assert updates.keys() == {1, 2}
    assert updates[1].delta["w"].tolist() == [1.0, 1.0]
    assert view.cohort_sizes() == {1: 2, 2: 2}
    assert RUN.seen_by(late_joiner(4)).messages == ()


def test_the_network_sees_senders_and_sizes_alone() -> None:
    view = RUN.seen_by(NETWORK)
    assert view.messages == ()
    assert {m.sender for m in view.encrypted} == {SERVER, *CLIENTS[:2]}
    assert {m.size for m in view.encrypted} == {8}  # two float32
    # A masked update is sent to the server too, which cannot read it.
    assert all(m.receivers == {SERVER} for m in view.encrypted if m.sender != SERVER)
    assert view.observed_rounds(CLIENTS[0]) == (0, 1, 2)
    assert view.observed_rounds(COHORT) == ()
    assert view.updates(COHORT) == {} == view.broadcasts()


def test_whoever_is_also_the_server_reads_its_messages_and_sees_the_masked_ones() -> None:
    view = RUN.seen_by(SERVER, NETWORK)
    assert len(view.messages) == 8  # 4 broadcasts, 2 x 2 updates
    assert [(m.round, m.sender) for m in view.encrypted] == [
        (1, CLIENTS[0]),
        (1, CLIENTS[1]),
    ]


@pytest.mark.parametrize(
    "name", ["late", "late/", "late/-1", "late/01", "late/x", "late/1234567890", "later/1"]
)
def test_only_a_round_number_makes_a_late_joiner(name: str) -> None:
    assert joining_round(Party(name)) is None
    assert not is_external(Party(name))
