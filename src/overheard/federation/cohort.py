"""Who is asked in a round, who answers, and what those who answer learn from."""

from dataclasses import dataclass, replace

import torch

from overheard.core.defense import Defense, Former, Moment
from overheard.core.examples import Examples, joined
from overheard.core.parties import Party
from overheard.federation.federation import Federation
from overheard.learning.cohort import Member

FAILED = "the client failed or was late"
EMPTY = "the client held no examples"


@dataclass(frozen=True, slots=True)
class Cohort:
    """The clients of one round.

    Args:
        pool: what `members` have their rows of.
        members: those who answer, in the order of the clients.
        missing: those who were asked and do not answer, with the reason.

    """

    pool: Examples
    members: tuple[Member, ...]
    missing: dict[Party, str]


def participants(federation: Federation, number: int) -> tuple[int, ...]:
    """Draw who is asked in this round, in the order of the clients."""
    clients = len(federation.clients)
    count = asked(clients, federation.participation)
    generator = federation.seed.child("participants", number).generator()
    return tuple(sorted(torch.randperm(clients, generator=generator)[:count].tolist()))


def asked(clients: int, participation: float) -> int:
    """How many clients are asked in a round."""
    return max(1, round(participation * clients))


def sampling_rate(clients: int, participation: float) -> float:
    """The largest chance that a client was asked in a round, as another client may reckon it.

    So many are asked, no more and no fewer: one who was not asked knows that all of them are
    among the others.

    >>> sampling_rate(5, 0.4), sampling_rate(2, 0.5)
    (0.5, 1.0)
    """
    return min(1.0, asked(clients, participation) / max(1, clients - 1))


def gather(federation: Federation, number: int) -> Cohort:
    """Draw who answers in this round, and let the defenses of the data act."""
    missing, members = dict[Party, str](), list[Member]()
    changed, start = list[Examples](), 0
    acting, clients = _on_data(federation), federation.clients
    public = federation.background
    for index in participants(federation, number):
        party = clients[index]
        rows = federation.rows[number][index]
        if _fails(federation, number, party):
            missing[party] = FAILED
            continue
        if acting:
            data = federation.pool.take(rows)
            former = _former(federation, number, index)
            for defense in acting:
                if defense not in federation.defenses_of(party):
                    continue
                when = moment(federation, defense, number, party)
                data = defense.on_data(data, replace(when, former=former, background=public))
            rows = torch.arange(start, start + len(data))
            start += len(data)
            changed.append(data)
        if len(rows):
            members.append(Member(party, rows))
        else:
            missing[party] = EMPTY
    return Cohort(joined(changed) if changed else federation.pool, tuple(members), missing)


def moment(federation: Federation, defense: Defense, number: int, party: Party) -> Moment:
    """The round and place at which a defense acts, with seeds of its own."""
    seeds = federation.seed
    return Moment(
        number,
        party,
        seeds.child("defense", defense.name, number, party),
        lasting=seeds.child("lasting", defense.name, party),
    )


def _fails(federation: Federation, number: int, party: Party) -> bool:
    generator = federation.seed.child("failure", number, party).generator()
    return float(torch.rand((), generator=generator)) < federation.failure_rate


def _former(federation: Federation, number: int, index: int) -> Former | None:
    """What a client held in the round before its rows last changed."""
    held = federation.rows[number][index]
    for since in range(number, 0, -1):
        before = federation.rows[since - 1][index]
        if not torch.equal(before, held):
            return Former(federation.pool.take(before), since)
    return None


def _on_data(federation: Federation) -> tuple[Defense, ...]:
    """Those that may change examples; where there are none, nobody's data need be copied."""
    return tuple(d for d in federation.defenses if type(d).on_data is not Defense.on_data)
