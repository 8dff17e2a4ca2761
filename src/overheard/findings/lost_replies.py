"""The messages that a run lacks: those that never arrived, and those that were not stored."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MissingReply,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import Party, is_client
from overheard.findings.names import make_printable, shorten

MAX_ROWS = 1000
"""Most rows of lost replies that an audit keeps; unrecorded ones come first."""

MAX_SENTENCES = 20
"""Most lost replies that a text lists, one sentence each; of more it gives the number."""

MAX_LENGTH = 200
"""Longest reason that a text shows, in characters: it may quote what a party sent."""


@final
@dataclass(frozen=True, slots=True)
class LostReply:
    """Messages of one party that a run lacks, for one reason.

    Args:
        party: the sender.
        rounds: the rounds, in order; a round counts once for each of its messages.
        is_unrecorded: True = the messages arrived, and their content is not stored, so an
            attack of their readers was not tried. False = they never arrived.
        reason: why.
        readers: the parties that could read them; () = nobody.

    """

    party: Party
    rounds: tuple[int, ...]
    is_unrecorded: bool
    reason: str
    readers: tuple[Party, ...] = ()


def find_lost_replies(messages: Iterable[Message]) -> tuple[LostReply, ...]:
    """Return the messages that a run lacks, unrecorded ones first, by party and reason.

    A message that is masked by secure aggregation or encryption is complete as it is, as its
    readers cannot read its content. It is unrecorded where they can read as many updates of its
    round or more: nothing was masked there, and no client can hide by a claim to be masked.
    """
    lost = defaultdict[tuple[bool, Party, str, tuple[Party, ...]], list[int]](list)
    messages = list(messages)
    # By round and reader, how many more updates are in clear than are masked.
    clear = Counter[tuple[int, Party]]()
    for one in messages:
        for reader in one.readers:
            clear[one.round, reader] += isinstance(one.body, Update) - _is_masked(one)
    for one in messages:
        body = one.body
        if isinstance(body, MissingReply):
            lost[False, one.sender, body.reason, ()].append(one.round)
        elif isinstance(body, UnstoredMessage):
            is_alone = any(clear[one.round, reader] >= 0 for reader in one.readers)
            if not _is_masked(one) or is_alone:
                readers = tuple(sorted(one.readers - {one.sender}))
                lost[True, one.sender, body.reason, readers].append(one.round)
    found = [
        LostReply(party, tuple(sorted(rounds)), is_unrecorded, reason, readers)
        for (is_unrecorded, party, reason, readers), rounds in lost.items()
    ]
    return tuple(sorted(found, key=lambda one: not one.is_unrecorded))


def describe_lost_replies(lost: Sequence[LostReply]) -> Iterator[str]:
    """Yield one sentence for each party and reason, and how many more there are."""
    for one in lost[:MAX_SENTENCES]:
        state = "not recorded" if one.is_unrecorded else "missing"
        reason = shorten(one.reason, MAX_LENGTH) or "no reason was stated"
        yield f"{make_printable(one.party)}, {_rounds_text(one.rounds)}: {state}: {reason}."
    if len(lost) > MAX_SENTENCES:
        rest = sum(len(one.rounds) for one in lost[MAX_SENTENCES:])
        yield f"{rest:,} more replies are missing or not recorded."


def describe_unlisted_replies(messages: Iterable[Message]) -> Iterator[str]:
    """Yield which clients were sent a model, and have no message in its round.

    A recorder lists each reply that it cannot store, and each one that never arrives. So the
    line of such a client was left out or removed. A round in which no client sends anything has
    the final model alone.
    """
    asked, heard = defaultdict[int, set[Party]](set), defaultdict[int, set[Party]](set)
    for one in messages:
        heard[one.round].add(one.sender)
        if isinstance(one.body, Broadcast):
            asked[one.round] |= one.readers
        elif isinstance(one.body, Aggregate):
            heard[one.round] |= one.body.cohort
    unlisted = defaultdict[Party, list[int]](list)
    for number in sorted(asked):
        if any(map(is_client, heard[number])):
            for party in sorted(filter(is_client, asked[number] - heard[number])):
                unlisted[party].append(number)
    by_rounds = defaultdict[tuple[int, ...], list[Party]](list)
    for party, rounds in unlisted.items():
        by_rounds[tuple(rounds)].append(party)
    for numbers, parties in list(by_rounds.items())[:MAX_SENTENCES]:
        yield (
            f"{_names(parties, MAX_SENTENCES)}, {_rounds_text(numbers)}: a model was sent, and "
            "neither a reply nor why there is none is recorded."
        )
    if len(by_rounds) > MAX_SENTENCES:
        rest = sum(map(len, list(by_rounds.values())[MAX_SENTENCES:]))
        yield f"So it is for {rest:,} more clients."


def doubt_by_lost_replies(lost: Iterable[LostReply], observers: Sequence[Party]) -> str:
    """Return why it must not be said that nothing leaks to observers; "" if it may be."""
    unread = [
        one for one in lost if one.is_unrecorded and not set(observers).isdisjoint(one.readers)
    ]
    count, parties = sum(len(one.rounds) for one in unread), {one.party for one in unread}
    if not count:
        return ""
    replies = "1 reply that arrived is" if count == 1 else f"{count:,} replies that arrived are"
    return (
        f"{replies} not recorded, so no attack was tried on what {_names(sorted(parties))} sent"
    )


def _names(parties: Sequence[Party], most: int = 3) -> str:
    more = f" and {len(parties) - most:,} more" if len(parties) > most else ""
    return ", ".join(map(make_printable, parties[:most])) + more


def _is_masked(message: Message) -> bool:
    return isinstance(message.body, UnstoredMessage) and message.body.kind == "masked"


def _rounds_text(rounds: Sequence[int]) -> str:
    numbers = sorted(set(rounds))
    first = ", ".join(map(str, numbers[:5]))
    more = f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else ""
    return f"round{'s' if len(numbers) > 1 else ''} {first}{more}"
