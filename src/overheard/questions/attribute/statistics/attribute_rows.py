"""Summary rows of the balanced accuracy over all targets."""

from collections.abc import Iterable, Sequence

import numpy as np

from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import ControlledFindings, group_with_controls
from overheard.findings.finding import Finding
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.questions.attribute.statistics.attribute_counts import count_by_value
from overheard.statistics.bootstrap import bootstrap_mean


def attribute_rows(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return rows of `balanced_accuracy`, the mean over true values, for each attack and arm.

    The uninformed guess always claims the same value. The control is a reference.
    """
    return tuple(
        row
        for comparison in group_with_controls(findings)
        for row in _balanced_accuracy_rows(comparison, comparison.interval_seed(seed))
    )


def _balanced_accuracy_rows(comparison: ControlledFindings, seed: Seed) -> list[ScoreRow]:
    runs, control = count_by_value(comparison.planned), count_by_value(comparison.control)
    if not runs:
        return []
    references = (
        {CONTROL_NAME: _mean(run.balanced_accuracy().value() for run in control)}
        if control
        else {}
    )
    value = bootstrap_mean([run.balanced_accuracy() for run in runs], seed.child("balanced"))
    blind = {"always the same": _mean(1 / run.correct.shape[1] for run in runs)}
    return [comparison.make_row("balanced_accuracy", "higher", value, blind, references)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
