"""The clients of a round and the examples on which they train."""

from dataclasses import dataclass, replace

import torch

from overheard.core.defense import Defense, DefenseContext, PreviousData
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.own_code.defense_results import check_returned_examples
from overheard.core.own_code.guard import explain_failures
from overheard.core.parties import Party
from overheard.federation.federation import Federation
from overheard.learning.training_job import ClientTask

CLIENT_FAILED = "the client failed or was late"
NO_EXAMPLES = "the client held no examples"
ON_DATA = "it takes Examples and a DefenseContext and returns Examples"
"""What this method of a defense must take and return."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """The clients of one round.

    Args:
        pool: examples to which the rows of `clients` refer.
        clients: the clients that train, in the order of the federation's clients.
        missing: the sampled clients that send no update, with the reason.

    """

    pool: Examples
    clients: tuple[ClientTask, ...]
    missing: dict[Party, str]


def draw_participants(federation: Federation, number: int) -> tuple[int, ...]:
    """Sample the clients of this round, and return their indices in order."""
    clients = len(federation.clients)
    count = participants_per_round(clients, federation.participation)
    generator = federation.seed.child("participants", number).generator()
    return tuple(sorted(torch.randperm(clients, generator=generator)[:count].tolist()))


def participants_per_round(clients: int, participation: float) -> int:
    """Return how many clients are sampled per round."""
    return max(1, round(participation * clients))


def sampling_rate(clients: int, participation: float) -> float:
    """Return an upper bound on the probability that a client was sampled in a round.

    Another client may know more than the sampling: the number of sampled clients is fixed, so a
    client that was not sampled knows that all of them are among the others.

    >>> sampling_rate(5, 0.4), sampling_rate(2, 0.5)
    (0.5, 1.0)
    """
    return min(1.0, participants_per_round(clients, participation) / max(1, clients - 1))


def sample_cohort(federation: Federation, number: int) -> Cohort:
    """Sample the cohort of this round, and apply the defenses that change examples."""
    missing, training = dict[Party, str](), list[ClientTask]()
    changed, start = list[Examples](), 0
    data_defenses, clients = _data_defenses(federation), federation.clients
    background = federation.background
    for index in draw_participants(federation, number):
        party = clients[index]
        rows = federation.rows[number][index]
        if _fails(federation, number, party):
            missing[party] = CLIENT_FAILED
            continue
        if data_defenses:
            data = federation.pool.take(rows)
            previous = _previous_data(federation, number, index)
            for defense in data_defenses:
                if defense not in federation.defenses_of(party):
                    continue
                context = defense_context(federation, defense, number, party)
                context = replace(context, previous_data=previous, background=background)
                with explain_failures(f"defense {defense.name}: on_data", ON_DATA):
                    data = defense.on_data(data, context)
                check_returned_examples(defense, data)
            rows = torch.arange(start, start + len(data))
            start += len(data)
            changed.append(data)
        if len(rows):
            training.append(ClientTask(party, rows))
        else:
            missing[party] = NO_EXAMPLES
    return Cohort(
        concatenate_examples(changed) if changed else federation.pool, tuple(training), missing
    )


def defense_context(
    federation: Federation, defense: Defense, number: int, party: Party
) -> DefenseContext:
    """Build the context in which a defense acts: round, party and the defense's own seeds."""
    seed = federation.seed
    return DefenseContext(
        number,
        party,
        seed.child("defense", defense.name, number, party),
        persistent_seed=seed.child("lasting", defense.name, party),
    )


def _fails(federation: Federation, number: int, party: Party) -> bool:
    generator = federation.seed.child("failure", number, party).generator()
    return float(torch.rand((), generator=generator)) < federation.failure_rate


def _previous_data(federation: Federation, number: int, index: int) -> PreviousData | None:
    """Return the examples that a client held before its rows last changed, if they did."""
    current = federation.rows[number][index]
    for since in range(number, 0, -1):
        before = federation.rows[since - 1][index]
        if not torch.equal(before, current):
            return PreviousData(federation.pool.take(before), since)
    return None


def _data_defenses(federation: Federation) -> tuple[Defense, ...]:
    """Return the defenses that may change examples; without any, no data are copied."""
    return tuple(d for d in federation.defenses if type(d).on_data is not Defense.on_data)
