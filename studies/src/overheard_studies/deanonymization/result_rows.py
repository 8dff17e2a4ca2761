"""The summary rows of an audit, as values next to the published ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.auditing.summary import summarise
from overheard.core.scorer import Better
from overheard.findings.audit import Audit
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.plans.plan import UNDEFENDED
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.reproduced_value import ReproducedValue

PRECISION = "mean_average_precision"

IDENTITY_SCORES = (PRECISION, "times_chance", "top1", "top5")
"""The scores of Table 3."""


@final
@dataclass(frozen=True, slots=True)
class ResultRows:
    """All summary rows of an audit.

    Args:
        audit: audit that is summarized.
        rows: rows by arm, attack and score.

    """

    audit: Audit
    rows: Mapping[tuple[str, str, str], ScoreRow]

    def find(self, attack: str, score: str, arm: str = UNDEFENDED) -> ScoreRow | None:
        """Return one row; None if it was not measured."""
        return self.rows.get((arm, attack, score))

    def reproduced_value(
        self,
        name: str,
        setting: str,
        place: tuple[str, str],
        published: float | None = None,
        arm: str = UNDEFENDED,
    ) -> ReproducedValue:
        """Return a row as a value; the setting of an unmeasured one says why.

        Args:
            name: name of the value.
            setting: description of what it was measured on.
            place: name of the attack in the plan, and the score.
            published: the paper's value.
            arm: arm of the plan.

        """
        row = self.find(*place, arm)
        if row is None:
            reason = self._reason(place[0], arm)
            return ReproducedValue(
                name, f"{setting}: not measured: {reason}", None, None, None, published, None
            )
        value = row.value
        return ReproducedValue(
            name, setting, value.mean, value.low, value.high, published, row.better
        )

    def baseline_values(
        self, name: str, setting: str, attack: str
    ) -> tuple[ReproducedValue, ...]:
        """Return the baselines of an attack's precision: a random order and the IID control."""
        row = self.find(attack, PRECISION)
        if row is None:
            return ()
        baselines = {"chance": row.blind, "iid_control": row.references.get(CONTROL_NAME)}
        return tuple(
            ReproducedValue(
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


def build_result_rows(audit: Audit) -> ResultRows:
    """Summarize an audit."""
    rows: Sequence[ScoreRow] = summarise(audit.findings, BOOTSTRAP_SEED)
    return ResultRows(audit, {(row.arm, row.attack, row.score): row for row in rows})


def value_without_interval(
    name: str, setting: str, value: float, better: Better | None = None
) -> ReproducedValue:
    """Make a value without an interval."""
    return ReproducedValue(name, setting, value, None, None, None, better)
