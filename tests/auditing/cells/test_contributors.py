"""Who took part follows from the messages alone."""

from collections.abc import Collection

import torch

from overheard.auditing.cells.contributors import find_contributors
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Update,
)
from overheard.core.parties import COHORT, SERVER, Party, client, shadow_device

ROUNDS = (0, 1)
UPDATE = Update({"w": torch.zeros(1)})


def message(number: int, sender: Party, body: MessageBody) -> Message:
    return Message(number, sender, frozenset({SERVER}), body)


def cohort_rounds(messages: Collection[Message], *observers: Party) -> set[int]:
    return set(find_contributors(messages, observers).rounds_of(COHORT, ROUNDS))


def test_a_client_took_part_where_it_sent_an_update():
    messages = (
        message(0, client(0), UPDATE),
        message(0, client(1), MissingReply("late")),
        message(1, client(0), Evaluation({"loss": 1.0})),
        message(1, client(1), UPDATE),
    )
    found = find_contributors(messages, ())
    assert found.rounds_of(client(0), ROUNDS) == {0}
    assert found.rounds_of(client(1), ROUNDS) == {1}
    assert found.rounds_of(client(1), (0,)) == set()


def test_the_cohort_is_the_clients_that_do_not_observe():
    messages = (
        message(0, client(0), UPDATE),
        message(1, client(0), UPDATE),
        message(1, client(1), UPDATE),
    )
    assert cohort_rounds(messages) == {0, 1}
    assert cohort_rounds(messages, client(0)) == {1}
    assert cohort_rounds(messages, client(0), client(1)) == set()


def test_an_aggregate_names_its_clients():
    sums = (
        message(0, COHORT, Aggregate({}, frozenset({client(0)}))),
        message(1, COHORT, Aggregate({}, frozenset({client(0), client(1)}))),
    )
    assert cohort_rounds(sums, client(0)) == {1}


def test_anyone_may_have_taken_part_where_only_global_models_were_recorded():
    models = [message(number, SERVER, Broadcast({})) for number in ROUNDS]
    assert cohort_rounds(models, client(0)) == {0, 1}


def test_shadow_devices_are_no_clients():
    messages = (message(0, shadow_device(0), UPDATE), message(1, client(0), UPDATE))
    assert cohort_rounds(messages) == {1}
