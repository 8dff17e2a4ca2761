"""A transcript's parties and views."""

from overheard.core.messages import Message, MissingReply
from overheard.core.parties import SERVER, client
from overheard.core.transcript import Transcript

LATE = MissingReply("late")


def test_parties_are_all_senders_and_readers_sorted():
    transcript = Transcript(
        (
            Message(0, client(2), frozenset({SERVER}), LATE),
            Message(0, client(1), frozenset(), LATE),
            Message(1, SERVER, frozenset({client(5)}), LATE),
        )
    )
    assert transcript.parties() == (client(1), client(2), client(5), SERVER)


def test_an_empty_transcript_has_no_parties_and_empty_views():
    assert Transcript(()).parties() == ()
    assert Transcript(()).seen_by(SERVER).messages == ()


def test_a_view_keeps_the_order_of_messages():
    messages = tuple(Message(n, client(n), frozenset({SERVER}), LATE) for n in (3, 1, 2))
    assert Transcript(messages).seen_by(SERVER).messages == messages
