"""The summary rows of an audit, as values next to the published ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.auditing.summary import summarise
from overheard.core.scorer import Better
from overheard.findings.finding import Audit
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.papers.figure import Figure
from overheard.papers.reading import BOOTSTRAP
from overheard.plans.plan import UNDEFENDED

PRECISION = "mean_average_precision"

OF_IDENTITY = (PRECISION, "times_chance", "top1", "top5")
"""The scores of Table 3."""


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """All summary rows of an audit.

    Args:
        audit: audit that is summarized.
        rows: rows by arm, attack and score.

    """

    audit: Audit
    rows: Mapping[tuple[str, str, str], ScoreRow]

    def of(self, attack: str, score: str, arm: str = UNDEFENDED) -> ScoreRow | None:
        """Return one row; None if it was not measured."""
        return self.rows.get((arm, attack, score))

    def figure(
        self,
        name: str,
        setting: str,
        place: tuple[str, str],
        published: float | None = None,
        arm: str = UNDEFENDED,
    ) -> Figure:
        """Return a row as a value; the setting of an unmeasured one says why.

        Args:
            name: name of the value.
            setting: description of what it was measured on.
            place: name of the attack in the plan, and the score.
            published: the paper's value.
            arm: arm of the plan.

        """
        row = self.of(*place, arm)
        if row is None:
            reason = self._reason(place[0], arm)
            return Figure(
                name, f"{setting}: not measured: {reason}", None, None, None, published, None
            )
        value = row.value
        return Figure(name, setting, value.mean, value.low, value.high, published, row.better)

    def beside(self, name: str, setting: str, attack: str) -> tuple[Figure, ...]:
        """Return the baselines of an attack's precision: a random order and the IID control."""
        row = self.of(attack, PRECISION)
        if row is None:
            return ()
        baselines = {"chance": row.blind, "iid_control": row.references.get(CONTROL_NAME)}
        return tuple(
            Figure(
                f"{name}_{key}", f"{setting}, {words}", baselines[key], None, None, None, None
            )
            for key, words in (
                ("chance", "a random order"),
                (
                    "iid_control",
                    "the IID control, with examples redistributed at random among all users",
                ),
            )
            if baselines[key] is not None
        )

    def _reason(self, attack: str, arm: str) -> str:
        missing = {
            need
            for refusal in self.audit.refusals
            if (refusal.cell.attack, refusal.cell.arm) == (attack, arm)
            for need in refusal.missing
        }
        return "; ".join(sorted(missing)) or "the attack has no such score"


def rows_of(audit: Audit) -> Rows:
    """Summarize an audit."""
    rows: Sequence[ScoreRow] = summarise(audit.findings, BOOTSTRAP)
    return Rows(audit, {(row.arm, row.attack, row.score): row for row in rows})


def plain(name: str, setting: str, value: float, better: Better | None = None) -> Figure:
    """Make a value without an interval."""
    return Figure(name, setting, value, None, None, None, better)
