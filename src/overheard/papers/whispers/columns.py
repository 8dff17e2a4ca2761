"""The columns of a table, read from an audit: the distances of every method and the guess."""

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
    """One arm of an audit, and the published rows for it.

    Args:
        key: prefix of the values' names.
        where: description of what it was measured on.
        audit: results of the audit.
        run: plan of the audit.
        printed: published rows by method.
        arm: arm of the plan.

    """

    key: str
    where: str
    audit: Audit
    run: Plan
    printed: Mapping[str, PrintedRow]
    arm: str = UNDEFENDED


def distances(column: Column, methods: Sequence[Method]) -> list[Figure]:
    """Return every distance of every method, with the published one, and the guess's."""
    values = []
    for number, method in enumerate(methods):
        row, finding_filter = (
            column.printed.get(method.key),
            place_of(column.run, number, column.arm),
        )
        note = f"; {IMPOSSIBLE}" if row is not None and row.is_impossible else ""
        values += [
            figure(
                f"{column.key}_{method.key}_{score}",
                f"{column.where}; {method.key} ({method.told}){note}",
                mean(column.audit, finding_filter, score),
                None if row is None else row.of(score),
                "lower",
            )
            for score in SCORES
        ]
    first = place_of(column.run, 0, column.arm)
    return values + [
        figure(
            f"{column.key}_{UNIFORM}_{score}",
            f"{column.where}; uninformed guess: uniform over classes",
            mean_guess(column.audit, first, score, UNIFORM),
            None,
            "lower",
        )
        for score in SCORES
    ]
