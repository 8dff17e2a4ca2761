"""The synthetic audits of which false and true verdicts are counted."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Literal, final

Kind = Literal["shares", "people", "linkage", "records", "shift"]
"""What is claimed. shares: label shares, compared with partitions drawn anew; people: users who
recur in all runs; linkage: senders of targets, within rounds; records: owners of records within
labels, where claims read the labels; shift: the run of a seed with a shift, among controls."""

Rest = Literal["contrasts", "another client", "near the population"]
"""The part of a claim about label shares that does not depend on the truth. contrasts:
correlated between attacks and within runs, and far from even; another client: the shares of
another client, drawn for each attack; near the population: shares that vary little around those
of all clients."""

RUNS = (1, 2, 3, 5, 10)

CLIENTS = (5, 20)

AUDITS = 2000
"""Audits of a cell: of 2.5 %, 50 are expected, with a standard deviation of 7."""

MOST_IN_A_CELL = 76
"""Most p-values in a cell that are small enough for "leaks". An exact test exceeds it in one of
3,600 cells, and a test with 5 % in 99 of 100."""

MOST_TOGETHER = 0.027
"""Largest share of small p-values in all cells of the grid together."""

LEAST_COVERAGE = 0.93
"""Smallest share of 95 % intervals that cover."""

LEAST_GAINING = 0.5
"""With this part of the truth, claims err less than a guess, whatever the rest of them is."""

CONTROLS = {1: 39, 2: 6, 3: 3, 5: 2, 10: 1}
"""Natural controls of a seed with a shift, by the number of seeds: enough to judge."""


@final
@dataclass(frozen=True, slots=True)
class AuditCell:
    """The settings of synthetic audits.

    Args:
        kind: what is claimed.
        runs: number of runs.
        clients: number of clients or people in a run.
        attacks: number of attacks.
        correlation: correlation of the claims of two attacks.
        between: share of the claims' variance that the clients of a run have in common.
        truth: weight of the truth in a claim; 0 = claims have nothing to do with it.
        rest: what the rest of a claim is; see `Rest`.

    """

    kind: Kind
    runs: int
    clients: int
    attacks: int
    correlation: float
    between: float
    truth: float = 0.0
    rest: Rest = "contrasts"

    @property
    def claims_gain(self) -> bool:
        """Whether claims that know this part of the truth err less than a guess."""
        return self.rest == "near the population" or self.truth >= LEAST_GAINING

    @property
    def key(self) -> str:
        """The name of the cell in the file of results."""
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


def share_cells() -> Iterator[AuditCell]:
    """Yield the 140 cells of label shares that differ: one attack has no correlation."""
    for runs, clients, between in product(RUNS, CLIENTS, (0.0, 0.3)):
        yield AuditCell("shares", runs, clients, 1, 0.0, between)
        for attacks, correlation in product((4, 12), (0.0, 0.5, 0.9)):
            yield AuditCell("shares", runs, clients, attacks, correlation, between)


def other_cells() -> Iterator[AuditCell]:
    """Yield the 40 cells of the other questions."""
    kinds: tuple[Kind, ...] = ("people", "linkage", "records", "shift")
    for kind, runs, clients in product(kinds, RUNS, CLIENTS):
        yield AuditCell(kind, runs, clients, 2, 0.5, 0.3)


def power_cells() -> Iterator[AuditCell]:
    """Yield cells in which claims know a part of the truth."""
    rests: tuple[Rest, ...] = ("near the population", "another client", "contrasts")
    for (clients, truth), rest in product(((5, 0.5), (10, 0.2)), rests):
        for correlation in (0.0, 0.5, 0.9) if rest == "contrasts" else (0.0,):
            yield AuditCell("shares", 1, clients, 4, correlation, 0.0, truth, rest)


def null_cells() -> tuple[AuditCell, ...]:
    """Return all cells in which claims have nothing to do with the truth."""
    return (*other_cells(), *share_cells())
