"""Reads what all targets of an audit together tell, as figures beside the published ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.auditing.summary import summarise
from overheard.core.scorer import Better
from overheard.findings.finding import Audit
from overheard.findings.row import CONTROL, Row
from overheard.papers.figure import Figure
from overheard.papers.reading import BOOTSTRAP
from overheard.plans.plan import UNDEFENDED

PRECISION = "mean_average_precision"

OF_IDENTITY = (PRECISION, "times_chance", "top1", "top5")
"""What Table 3 has of each attack."""


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of an audit, summed up once.

    Args:
        audit: that they sum up.
        rows: by arm, attack and score.

    """

    audit: Audit
    rows: Mapping[tuple[str, str, str], Row]

    def of(self, attack: str, score: str, arm: str = UNDEFENDED) -> Row | None:
        """One of them; None where it was not measured."""
        return self.rows.get((arm, attack, score))

    def figure(
        self,
        name: str,
        setting: str,
        place: tuple[str, str],
        published: float | None = None,
        arm: str = UNDEFENDED,
    ) -> Figure:
        """A row as a figure; one that is not measured says why.

        Args:
            name: of the figure.
            setting: what it was measured on.
            place: the attack as the plan names it, and the score.
            published: by the paper.
            arm: of the plan.

        """
        row = self.of(*place, arm)
        if row is None:
            lacks = self._lacks(place[0], arm)
            return Figure(
                name, f"{setting}: not measured: {lacks}", None, None, None, published, None
            )
        value = row.value
        return Figure(name, setting, value.mean, value.low, value.high, published, row.better)

    def beside(self, name: str, setting: str, attack: str) -> tuple[Figure, ...]:
        """What stands beside an attack's precision: a random order, and the IID control."""
        row = self.of(attack, PRECISION)
        if row is None:
            return ()
        told = {"chance": row.blind, "iid_control": row.references.get(CONTROL)}
        return tuple(
            Figure(f"{name}_{key}", f"{setting}, {words}", told[key], None, None, None, None)
            for key, words in (
                ("chance", "what a random order gets"),
                ("iid_control", "where examples were dealt anew among all users"),
            )
            if told[key] is not None
        )

    def _lacks(self, attack: str, arm: str) -> str:
        lacks = {
            need
            for refusal in self.audit.refusals
            if (refusal.cell.attack, refusal.cell.arm) == (attack, arm)
            for need in refusal.missing
        }
        return "; ".join(sorted(lacks)) or "there is no such figure of it"


def rows_of(audit: Audit) -> Rows:
    """Sum an audit up."""
    rows: Sequence[Row] = summarise(audit.findings, BOOTSTRAP)
    return Rows(audit, {(row.arm, row.attack, row.score): row for row in rows})


def plain(name: str, setting: str, value: float, better: Better | None = None) -> Figure:
    """A number without an interval."""
    return Figure(name, setting, value, None, None, None, better)
