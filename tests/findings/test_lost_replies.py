"""A message that never arrived, and one that arrived and was not stored, are two things."""

from overheard.core.messages import Message, MessageBody, MissingReply, UnstoredMessage, Update
from overheard.core.parties import SERVER, client
from overheard.findings.lost_replies import (
    LostReply,
    describe_lost_replies,
    doubt_by_lost_replies,
    find_lost_replies,
)

TO_SERVER = frozenset({SERVER})


def message(number: int, sender: int, body: MessageBody) -> Message:
    return Message(number, client(sender), TO_SERVER, body)


def test_missing_and_unrecorded_replies_are_listed_by_party_and_reason() -> None:
    found = find_lost_replies(
        [
            message(0, 1, MissingReply("late")),
            message(0, 2, UnstoredMessage("weights", "NaN")),
            message(1, 2, UnstoredMessage("weights", "NaN")),
        ]
    )
    assert found == (
        LostReply(client(2), (0, 1), True, "NaN", (SERVER,)),
        LostReply(client(1), (0,), False, "late"),
    )
    assert list(describe_lost_replies(found)) == [
        "client/2, rounds 0, 1: not recorded: NaN.",
        "client/1, round 0: missing: late.",
    ]


def test_only_unrecorded_replies_that_observers_read_stand_against_no_leak() -> None:
    missing = LostReply(client(1), (0,), False, "late")
    unrecorded = LostReply(client(2), (0, 1), True, "NaN", (SERVER,))
    assert doubt_by_lost_replies([missing], (SERVER,)) == ""
    assert doubt_by_lost_replies([unrecorded], (client(3),)) == ""
    found = doubt_by_lost_replies([missing, unrecorded], (SERVER,))
    assert found.startswith("2 replies that arrived are not recorded")
    assert found.endswith("client/2 sent")


def test_a_masked_reply_is_complete_only_where_its_readers_read_fewer_updates() -> None:
    masked = message(0, 1, UnstoredMessage("masked", "masked"))
    other, clear = message(0, 2, masked.body), message(0, 3, Update({}))
    # One client that sends its weights in clear makes the others no less masked.
    assert find_lost_replies([masked, other, clear]) == ()
    # Nothing was masked in a round in which the server reads the updates of the others.
    (hidden,) = find_lost_replies([masked, clear])
    assert (hidden.party, hidden.is_unrecorded) == (client(1), True)


def test_a_text_lists_few_and_counts_the_others() -> None:
    lost = [LostReply(client(number), (0, 1), False, "late") for number in range(23)]
    *listed, last = describe_lost_replies(lost)
    assert len(listed) == 20
    assert last == "6 more replies are missing or not recorded."
