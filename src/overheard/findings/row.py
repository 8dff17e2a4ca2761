"""What one attack got out of all its targets, by one figure of merit."""

from collections.abc import Mapping
from dataclasses import dataclass

from overheard.core.parties import Party
from overheard.core.scorer import Better
from overheard.findings.finding import Cell
from overheard.statistics.estimate import Estimate

CONTROL = "IID control"
"""The reference that every figure has where the control ran: what the same attack gets where
the clients' examples were dealt anew among all of them, so that nobody is who he seems."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one attack got out of all its targets, by one figure of merit.

    Args:
        arm: of the findings below.
        observers: of the findings below.
        attack: of the findings below.
        question: of the findings below.
        rounds: listened to.
        score: name of the figure of merit.
        better: its direction.
        value: mean of the figure.
        blinds: mean of the figure for each guess that heard nothing.
        references: mean of the figure for each guess told a part of the truth.
        blind: mean for the best single blind guess; None where there is none.
        gain: how much better than that guess, taken target by target; above 0 = it leaks.
        targets: how many different targets.
        seeds: how many different seeds.

    """

    arm: str
    observers: tuple[Party, ...]
    attack: str
    question: str
    rounds: tuple[int, ...]
    score: str
    better: Better
    value: Estimate
    blinds: Mapping[str, float]
    references: Mapping[str, float]
    blind: float | None
    gain: Estimate | None
    targets: int
    seeds: int


def place_of(cell: Cell) -> tuple[object, ...]:
    """What the findings that one row sums up have in common; not whether they are controls."""
    return (cell.arm, cell.observers, cell.attack, cell.question, cell.rounds)
