"""Schedules of cohorts: who takes part in which round."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from overheard.core.errors import PlanError

PARTS = (2, 5)
"""Cohorts are made of about so many batches: few batches hide more, many vary more."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CohortSchedule:
    """Who takes part in which round.

    Args:
        name: such as "batches of 5".
        description: how cohorts are drawn, in a sentence.
        took_part: (rounds, clients), whether a client takes part in a round.

    """

    name: str
    description: str
    took_part: NDArray[np.bool_]


def propose_schedules(
    clients: int, cohort: int, rounds: int, seed: int = 0
) -> tuple[CohortSchedule, ...]:
    """Return schedules for a federation, from those that vary most to fixed groups.

    - *Random cohorts*, drawn anew in each round, are the baseline.
    - *Fair cohorts* take the clients that took part least often, ties at random.
    - *Batches* are groups of clients that always take part together; the batches that took part
      least often are next, ties at random (So et al. 2023, Securing Secure Aggregation, arXiv
      2106.03328, whose multi-round privacy is the size of a batch). Sizes divide the cohort.
    - *Fixed groups* are batches of a whole cohort, in turn.

    Batches and groups have at least their size: clients that are left over join them.

    Args:
        clients: clients of the federation, 2 or more.
        cohort: clients wanted in a round, 1 to `clients`.
        rounds: number of rounds, 1 or more.
        seed: of all draws.

    Raises:
        PlanError: if a number is out of its range.

    """
    if clients < 2 or rounds < 1 or not 1 <= cohort <= clients:
        raise PlanError(
            f"cohorts need 2 clients or more, 1 round or more, and a cohort of 1 to all "
            f"clients; got {clients:,} clients, {rounds:,} rounds and a cohort of {cohort:,}"
        )
    draws = np.random.default_rng(seed)
    random = np.zeros((rounds, clients), dtype=bool)
    for row in random:
        row[draws.permutation(clients)[:cohort]] = True
    made = [CohortSchedule("random cohorts", "Each round draws its clients anew.", random)]
    fair = _deal(clients, 1, cohort, rounds, draws)
    made.append(CohortSchedule("fair cohorts", "Whoever took part least often is next.", fair))
    for size in _batch_sizes(cohort):
        told = f"Groups of {size:,} always take part together, the least often seen first."
        dealt = _deal(clients, size, cohort // size, rounds, draws)
        made.append(CohortSchedule(f"batches of {size:,}", told, dealt))
    if cohort > 1:
        told = f"Groups of {cohort:,} are made once, and take turns."
        fixed = _deal(clients, cohort, 1, rounds, draws)
        made.append(CohortSchedule(f"fixed groups of {cohort:,}", told, fixed))
    return tuple(made)


def _batch_sizes(cohort: int) -> list[int]:
    """Return the sizes of batches that divide a cohort into about 5 and 2 parts."""
    divisors = [size for size in range(2, cohort // 2 + 1) if cohort % size == 0]
    near = {
        max((one for one in divisors if one <= cohort / parts), default=0) for parts in PARTS
    }
    return sorted(near - {0})


def _deal(
    clients: int, size: int, parts: int, rounds: int, draws: np.random.Generator
) -> NDArray[np.bool_]:
    """Return rounds of as many batches of a size, those that took part least often first."""
    batch_of = np.empty(clients, dtype=int)
    batch_of[draws.permutation(clients)] = np.arange(clients) % (clients // size)
    seen = np.zeros(clients // size)
    took_part = np.zeros((rounds, clients), dtype=bool)
    for row in took_part:
        # The random fractions break ties.
        chosen = np.argsort(seen + draws.random(len(seen)) / 2)[:parts]
        seen[chosen] += 1
        row[:] = np.isin(batch_of, chosen)
    return took_part


@final
@dataclass(frozen=True, slots=True)
class ScheduleCost:
    """What a schedule costs in rounds.

    Args:
        smallest_cohort: clients in the smallest round.
        largest_cohort: clients in the largest round.
        least_rounds: rounds in which the client that takes part least does so.
        most_rounds: the same of the client that takes part most.
        all_seen_after: number of rounds after which every client took part; None = never.
        longest_wait: most rounds between two in which a client takes part, or from the start to
            its first, or from its last to the end.

    """

    smallest_cohort: int
    largest_cohort: int
    least_rounds: int
    most_rounds: int
    all_seen_after: int | None
    longest_wait: int


def find_cost(took_part: NDArray[np.bool_]) -> ScheduleCost:
    """Return what a schedule costs in rounds.

    Args:
        took_part: (rounds, clients).

    """
    rounds, clients = took_part.shape
    sizes, often = took_part.sum(axis=1), took_part.sum(axis=0)
    first = np.where(often > 0, took_part.argmax(axis=0), rounds)
    waits = [
        np.diff([-1, *np.flatnonzero(took_part[:, client]), rounds]).max() - 1
        for client in range(clients)
    ]
    return ScheduleCost(
        int(sizes.min()),
        int(sizes.max()),
        int(often.min()),
        int(often.max()),
        int(first.max()) + 1 if first.max() < rounds else None,
        int(max(waits)),
    )
