"""Counts of correct claims by user and true attribute value."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.findings.finding import Finding
from overheard.statistics.bootstrap import ResampledRun


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
        dict(enumerate(finding.candidates)).get(int(np.argmax(finding.true)), "")
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
