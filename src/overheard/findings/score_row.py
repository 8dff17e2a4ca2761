"""A summary row: one score of one attack over all its targets."""

from collections.abc import Mapping
from dataclasses import dataclass

from overheard.core.parties import Party
from overheard.core.scorer import Better
from overheard.findings.finding import Cell
from overheard.statistics.estimate import Estimate

CONTROL_NAME = "IID control"
"""Name of the reference that scores have if a permutation control was run: the same attack's
mean score where examples were permuted among all clients."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score of one attack over all its targets.

    Args:
        arm: arm of the summarised findings.
        observers: observers of the summarised findings.
        attack: attack of the summarised findings.
        question: question of the summarised findings.
        rounds: the observed rounds.
        score: name of the score.
        better: direction of better claims.
        value: mean score.
        uninformed: mean score of each uninformed guess.
        references: mean score of each guess that knows part of the ground truth.
        best_uninformed: mean score of the best single uninformed guess; None if there is none.
        gain: gain over that guess, target by target; above 0 = better than guessing.
        targets: number of different targets.
        seeds: number of different seeds.

    """

    arm: str
    observers: tuple[Party, ...]
    attack: str
    question: str
    rounds: tuple[int, ...]
    score: str
    better: Better
    value: Estimate
    uninformed: Mapping[str, float]
    references: Mapping[str, float]
    best_uninformed: float | None
    gain: Estimate | None
    targets: int
    seeds: int


def row_group(cell: Cell) -> tuple[object, ...]:
    """Return the key of the findings behind one row; planned and control runs share it."""
    return (cell.arm, cell.observers, cell.attack, cell.question, cell.rounds)
