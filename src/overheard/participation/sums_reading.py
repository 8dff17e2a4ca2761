"""What the sums of a run reveal of single clients and small groups, before any attack."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from overheard.core.parties import Party
from overheard.participation.example_counts import ExampleCounts, solve_example_counts
from overheard.participation.participation import Participation
from overheard.participation.resolution import Resolution, find_resolution
from overheard.participation.smallest_group import find_smallest_group

MAX_OPERATIONS = 1e10
"""Rounds times the square of the clients above which nothing is computed: it takes minutes."""

MAX_CLIENTS = 3_000
"""Clients above which nothing is computed: several matrices have the square of it."""

MAX_ROUNDS = 10_000
"""Sums above which nothing is computed: findings have a number for each."""

MAX_NAMES = 5
"""Clients of a group that are named."""

NOT_EXACT = (
    "This is exact for what stays the same in all rounds, such as numbers of examples. Updates "
    "change with each broadcast, so for them it is an approximation."
)


@final
@dataclass(frozen=True, slots=True)
class SumsReading:
    """What the sums of a run reveal, computed from who took part in which round alone.

    Args:
        clients: number of clients that are in any sum.
        rounds: number of sums.
        smallest_cohort: clients in the smallest sum.
        largest_cohort: clients in the largest sum.
        fixed_groups: number of groups of clients that are always in the same sums; it is
            `clients` if every client takes part in its own way.
        rank: number of linearly independent sums.
        resolution: mean over clients of the share of a client's variance that the sums reveal,
            0 to 1.
        largest_resolution: the same of the client that they reveal most of.
        by_round: the mean resolution after each round.
        amplification: by number of rounds, the median standard error of a client in units of
            the noise of one sum; None = half of the clients are not determined.
        group_at_least: no smaller group of clients can be separated from the others.
        group_at_most: size of the smallest group that was found.
        group: the clients of that group.
        one_apart: number of clients by which two cohorts differ, and alone do so.
        counts_known: number of clients whose number of examples follows exactly; None = the
            totals are hidden, or contradict constant numbers.
        is_weighted: whether clients are weighted by their numbers of examples, which all
            follow; False = numbers of examples are taken as equal.

    """

    clients: int
    rounds: int
    smallest_cohort: int
    largest_cohort: int
    fixed_groups: int
    rank: int
    resolution: float
    largest_resolution: float
    by_round: tuple[float, ...]
    amplification: dict[int, float | None]
    group_at_least: int
    group_at_most: int
    group: tuple[Party, ...]
    one_apart: int
    counts_known: int | None
    is_weighted: bool


def read_sums(participation: Participation) -> SumsReading | None:
    """Return what the sums of a run reveal; None = too many clients and rounds to compute it.

    Sizes are solved first. If all follow, a client is weighted by its size over the mean size;
    otherwise all sizes are taken as equal.
    """
    took_part = participation.took_part
    rounds, clients = took_part.shape
    is_too_large = rounds > MAX_ROUNDS or clients > MAX_CLIENTS
    if is_too_large or rounds * clients**2 > MAX_OPERATIONS:
        return None
    counts = solve_example_counts(participation)
    weights = _weights(participation, counts)
    resolution: Resolution = find_resolution(weights)
    group = find_smallest_group(took_part)
    sizes = participation.cohort_sizes
    return SumsReading(
        clients,
        rounds,
        min(sizes),
        max(sizes),
        np.unique(took_part, axis=1).shape[1],
        int(np.linalg.matrix_rank(took_part.astype(np.float64))),
        resolution.mean,
        resolution.largest,
        tuple(map(float, resolution.by_round.mean(axis=1))),
        resolution.amplification,
        group.at_least,
        group.at_most,
        tuple(participation.clients[number] for number in group.clients),
        len(group.one_apart),
        len(counts.by_client) if counts is not None and counts.is_constant else None,
        _are_all_known(participation, counts),
    )


def _are_all_known(participation: Participation, counts: ExampleCounts | None) -> bool:
    return counts is not None and len(counts.by_client) == len(participation.clients)


def _weights(participation: Participation, counts: ExampleCounts | None) -> np.ndarray:
    weights = participation.took_part.astype(np.float64)
    if counts is None or not _are_all_known(participation, counts):
        return weights
    sizes = np.array([counts.by_client[number] for number in range(weights.shape[1])])
    return weights * (sizes / max(1.0, float(sizes.mean())))


def describe_sums(reading: SumsReading, where: str = "", observers: str = "") -> Iterator[str]:
    """Yield what the sums reveal, in sentences.

    Args:
        reading: what they reveal.
        where: the arm, for the first sentence; "" = the run itself.
        observers: who computes the sums from broadcasts; "" = the server reads them.

    """
    cohort = f"{reading.smallest_cohort:,}"
    if reading.largest_cohort > reading.smallest_cohort:
        cohort += f" to {reading.largest_cohort:,}"
    one = "one sum" if reading.rounds == 1 else f"{reading.rounds:,} sums"
    in_arm = f" in {where}" if where else ""
    begin = f"Known to {observers} from broadcasts:" if observers else "The server reads"
    yield (
        f"{begin} {one}{in_arm}, each of {cohort} of {reading.clients:,} clients. "
        "What follows from who took part in which round:"
    )
    yield _resolution_sentence(reading, observers)
    yield _group_sentence(reading)
    if reading.one_apart:
        yield (
            f"There are two cohorts that differ by one client alone, for {reading.one_apart:,} "
            f"{'client' if reading.one_apart == 1 else 'clients'}: their difference is nearly "
            "the contribution of that client."
        )
    if reading.counts_known is not None:
        yield (
            f"Example counts: the totals of cohorts give the exact number of examples of "
            f"{reading.counts_known:,} of {reading.clients:,} clients."
        )
    yield NOT_EXACT


def _resolution_sentence(reading: SumsReading, observers: str) -> str:
    if reading.fixed_groups == 1:
        learned = "Their sum is known" if observers else "The server learns their sum"
        return (
            "Cohorts do not vary, so nothing separates one client from the others. "
            f"{learned}, and who is in it."
        )
    rounds = reading.rounds
    earlier = sorted({round(rounds * part / 4) for part in (1, 2, 3)} - {0, rounds})
    course = "; ".join(f"{number:,}: {reading.by_round[number - 1]:.2f}" for number in earlier)
    error = reading.amplification.get(rounds)
    median = (
        "half of the clients are not determined by least squares"
        if error is None
        else f"median amplification {error:.2g} times the noise of one sum"
    )
    weights = "their example counts" if reading.is_weighted else "equal sizes"
    return (
        f"Resolution: the sums reveal {reading.resolution:.2f} of a client's variance (0 to 1; "
        f"at most {reading.largest_resolution:.2f} of any client), with {weights}; {median}."
        + (f" By round {course}." if course else "")
    )


def _group_sentence(reading: SumsReading) -> str:
    low, high = reading.group_at_least, reading.group_at_most
    names = ", ".join(reading.group[:MAX_NAMES])
    more = f" and {high - MAX_NAMES:,} more" if high > MAX_NAMES else ""
    if high == 1:
        return f"Smallest group: a single client can be separated from all others ({names})."
    found = f"a weighted sum of {high:,} clients follows ({names}{more})"
    if low == high:
        return f"Smallest group: {found}, and of no smaller group."
    return f"Smallest group: between {low:,} and {high:,} clients. For certain, {found}."


TOO_LARGE = (
    "What the sums reveal of single clients was not computed: there are more than "
    f"{MAX_CLIENTS:,} clients or {MAX_ROUNDS:,} rounds, or rounds times the square of the "
    f"clients is above {MAX_OPERATIONS:,.0f}."
)
