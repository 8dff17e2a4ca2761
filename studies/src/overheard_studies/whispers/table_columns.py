"""The columns of a table, read from an audit: the distances of every method and the guess."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.findings.audit import Audit
from overheard.plans.plan import UNDEFENDED, Plan
from overheard_studies.estimates import mean_guess_score, mean_score, reproduced_value
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.whispers.methods import DISTANCES, UNIFORM_GUESS, Method
from overheard_studies.whispers.plans import build_finding_filter
from overheard_studies.whispers.published_rows import IMPOSSIBLE_NOTE, PublishedRow


@final
@dataclass(frozen=True, slots=True)
class TableColumn:
    """One arm of an audit, and the published rows for it.

    Args:
        key: prefix of the values' names.
        setting: description of what it was measured on.
        audit: results of the audit.
        plan: plan of the audit.
        published: published rows by method.
        arm: arm of the plan.

    """

    key: str
    setting: str
    audit: Audit
    plan: Plan
    published: Mapping[str, PublishedRow]
    arm: str = UNDEFENDED


def make_distance_values(
    column: TableColumn, methods: Sequence[Method]
) -> list[ReproducedValue]:
    """Return every distance of every method, with the published one, and the guess's."""
    values = []
    for number, method in enumerate(methods):
        row, finding_filter = (
            column.published.get(method.key),
            build_finding_filter(column.plan, number, column.arm),
        )
        note = f"; {IMPOSSIBLE_NOTE}" if row is not None and row.is_impossible else ""
        values += [
            reproduced_value(
                f"{column.key}_{method.key}_{score}",
                f"{column.setting}; {method.key} ({method.published_name}){note}",
                mean_score(column.audit, finding_filter, score),
                None if row is None else row.distance(score),
                "lower",
            )
            for score in DISTANCES
        ]
    first = build_finding_filter(column.plan, 0, column.arm)
    return values + [
        reproduced_value(
            f"{column.key}_{UNIFORM_GUESS}_{score}",
            f"{column.setting}; uninformed guess: uniform over classes",
            mean_guess_score(column.audit, first, score, UNIFORM_GUESS),
            None,
            "lower",
        )
        for score in DISTANCES
    ]
