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
class Choices:
    """Counts of correct claims and of all claims in one run.

    Args:
        right: correct claims by user and true value.
        asked: all claims by user and true value.

    """

    right: Float[np.ndarray, "people values"]
    asked: Float[np.ndarray, "people values"]

    def balanced_accuracy(self) -> ResampledRun:
        """Return the mean over true values of the rate of correct claims."""
        return ResampledRun(len(self.right), 0, partial(_balanced, self.right, self.asked))


def choices(findings: Iterable[Finding]) -> tuple[Choices, ...]:
    """Count the findings about an attribute, run by run."""
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_seed[finding.cell.seed].append(finding)
    return tuple(_choice(run) for _, run in sorted(by_seed.items()))


def _choice(findings: Sequence[Finding]) -> Choices:
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
    return Choices(*(table.reshape(users, values).astype(np.float64) for table in tables))


def _balanced(
    right: Float[np.ndarray, "people values"],
    asked: Float[np.ndarray, "people values"],
    multiplicities: Int[np.ndarray, "draws people"],
) -> Float[np.ndarray, " draws"]:
    counts = multiplicities @ asked  # (draws, values)
    # Values without a drawn user are left out of the mean.
    rates = (multiplicities @ right) / np.maximum(counts, 1)
    means: Float[np.ndarray, " draws"] = rates.sum(1) / (counts > 0).sum(1)
    return means
