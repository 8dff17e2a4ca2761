"""Reads the columns of a table off an audit: every method's distances, and the guess's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.findings.finding import Audit
from overheard.papers.figure import Figure
from overheard.papers.reading import figure, mean, mean_guess
from overheard.papers.whispers.methods import SCORES, UNIFORM, Method
from overheard.papers.whispers.plans import place_of
from overheard.papers.whispers.printed import IMPOSSIBLE, PrintedRow
from overheard.plans.plan import UNDEFENDED, Plan


@final
@dataclass(frozen=True, slots=True)
class Column:
    """One audit of one arm, and what the paper printed of it.

    Args:
        key: with which the names of its figures begin.
        where: what it was measured on.
        audit: what was found.
        run: the plan.
        printed: rows of the paper's table by method.
        arm: of the plan.

    """

    key: str
    where: str
    audit: Audit
    run: Plan
    printed: Mapping[str, PrintedRow]
    arm: str = UNDEFENDED


def distances(column: Column, methods: Sequence[Method]) -> list[Figure]:
    """Every distance of every method, each beside what was printed; then the guess's."""
    figures = []
    for number, method in enumerate(methods):
        row, place = (
            column.printed.get(method.key),
            place_of(column.run, number, column.arm),
        )
        mark = f"; {IMPOSSIBLE}" if row is not None and row.is_impossible else ""
        figures += [
            figure(
                f"{column.key}_{method.key}_{score}",
                f"{column.where}; {method.key} ({method.told}){mark}",
                mean(column.audit, place, score),
                None if row is None else row.of(score),
                "lower",
            )
            for score in SCORES
        ]
    heard = place_of(column.run, 0, column.arm)
    return figures + [
        figure(
            f"{column.key}_{UNIFORM}_{score}",
            f"{column.where}; all classes alike, a guess that heard nothing",
            mean_guess(column.audit, heard, score, UNIFORM),
            None,
            "lower",
        )
        for score in SCORES
    ]
