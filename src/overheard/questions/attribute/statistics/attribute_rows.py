"""Summary rows of the balanced accuracy over all targets."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import ControlledFindings, group_with_controls
from overheard.findings.finding import Finding
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.statistics.bootstrap import ResampledRun, bootstrap_mean


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


@final
@dataclass(frozen=True, slots=True)
class AttributeCounts:
    """Counts of correct claims and of all claims in one run.

    Args:
        correct: correct claims by user and true value.
        total: all claims by user and true value.

    """

    correct: Float[np.ndarray, "people values"]
    total: Float[np.ndarray, "people values"]

    def balanced_accuracy(self) -> ResampledRun:
        """Return the mean over true values of the rate of correct claims."""
        return ResampledRun(
            len(self.correct), 0, partial(_balanced_accuracy, self.correct, self.total)
        )


def count_by_value(findings: Iterable[Finding]) -> tuple[AttributeCounts, ...]:
    """Count the findings about an attribute, run by run."""
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_seed[finding.cell.seed].append(finding)
    return tuple(_count_run(run) for _, run in sorted(by_seed.items()))


def _count_run(findings: Sequence[Finding]) -> AttributeCounts:
    # A true value outside the candidates has an index beyond them.
    true = [
        dict(enumerate(finding.claimed.candidates)).get(
            int(np.argmax(finding.true_numbers)), ""
        )
        for finding in findings
    ]
    _, value = np.unique(true, return_inverse=True)
    _, user = np.unique(
        [finding.true_user or finding.target for finding in findings], return_inverse=True
    )
    is_correct = [
        sum(score.value for score in finding.scores if score.name == "accuracy")
        for finding in findings
    ]
    values, users = int(value.max()) + 1, int(user.max()) + 1
    index = user * values + value
    tables = (np.bincount(index, weights, users * values) for weights in (is_correct, None))
    return AttributeCounts(
        *(table.reshape(users, values).astype(np.float64) for table in tables)
    )


def _balanced_accuracy(
    right: Float[np.ndarray, "people values"],
    asked: Float[np.ndarray, "people values"],
    multiplicities: Int[np.ndarray, "draws people"],
) -> Float[np.ndarray, " draws"]:
    counts = multiplicities @ asked  # (draws, values)
    # Values without a drawn user are left out of the mean.
    rates = (multiplicities @ right) / np.maximum(counts, 1)
    means: Float[np.ndarray, " draws"] = rates.sum(1) / (counts > 0).sum(1)
    return means
