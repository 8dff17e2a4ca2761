"""Who is asked in a round, who answers, and what those who answer learn from."""

from dataclasses import dataclass

import torch

from overheard.core.defense import Defense, Moment
from overheard.core.examples import Examples
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
    count = max(1, round(federation.participation * clients))
    generator = federation.seed.child("participants", number).generator()
    return tuple(sorted(torch.randperm(clients, generator=generator)[:count].tolist()))


def gather(federation: Federation, number: int) -> Cohort:
    """Draw who answers in this round, and let the defenses of the data act."""
    missing, members = dict[Party, str](), list[Member]()
    changed, start = list[Examples](), 0
    acting, clients = _on_data(federation), federation.clients
    for index in participants(federation, number):
        party = clients[index]
        rows = federation.rows[number][index]
        if _fails(federation, number, party):
            missing[party] = FAILED
            continue
        if acting:
            data = federation.pool.take(rows)
            for defense in acting:
                data = defense.on_data(data, moment(federation, defense, number, party))
            rows = torch.arange(start, start + len(data))
            start += len(data)
            changed.append(data)
        if len(rows):
            members.append(Member(party, rows))
        else:
            missing[party] = EMPTY
    return Cohort(_joined(changed) if changed else federation.pool, tuple(members), missing)


def moment(federation: Federation, defense: Defense, number: int, party: Party) -> Moment:
    """The round and place at which a defense acts, with a seed of its own."""
    seed = federation.seed.child("defense", defense.name, number, party)
    return Moment(number, party, seed)


def _fails(federation: Federation, number: int, party: Party) -> bool:
    generator = federation.seed.child("failure", number, party).generator()
    return float(torch.rand((), generator=generator)) < federation.failure_rate


def _on_data(federation: Federation) -> tuple[Defense, ...]:
    """Those that may change examples; where there are none, nobody's data need be copied."""
    return tuple(d for d in federation.defenses if type(d).on_data is not Defense.on_data)


def _joined(parts: list[Examples]) -> Examples:
    return Examples(
        torch.cat([part.inputs for part in parts]), torch.cat([part.labels for part in parts])
    )
