"""How often each value of an attribute was named where it was the true one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.findings.finding import Finding
from overheard.statistics.resample import Resampled


@final
@dataclass(frozen=True, slots=True)
class Choices:
    """How often the true value was named in one run, and how often asked.

    Args:
        right: by person, and by the true value.
        asked: the same.

    """

    right: Float[np.ndarray, "people values"]
    asked: Float[np.ndarray, "people values"]

    def balanced_accuracy(self) -> Resampled:
        """The mean over true values of how often each was named."""
        return Resampled(len(self.right), 0, partial(_balanced, self.right, self.asked))


def choices(findings: Iterable[Finding]) -> tuple[Choices, ...]:
    """One a run, of findings about an attribute."""
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_seed[finding.cell.seed].append(finding)
    return tuple(_choice(held) for _, held in sorted(by_seed.items()))


def _choice(findings: Sequence[Finding]) -> Choices:
    # A true value that the claim did not name stands behind all those that it did.
    true = [
        dict(enumerate(one.candidates)).get(int(np.argmax(one.true)), "") for one in findings
    ]
    _, value = np.unique(true, return_inverse=True)
    _, person = np.unique(
        [one.true_user or one.target for one in findings], return_inverse=True
    )
    right = [
        sum(score.value for score in one.scores if score.name == "accuracy") for one in findings
    ]
    values, people = int(value.max()) + 1, int(person.max()) + 1
    place = person * values + value
    tables = (np.bincount(place, weights, people * values) for weights in (right, None))
    return Choices(*(table.reshape(people, values).astype(np.float64) for table in tables))


def _balanced(
    right: Float[np.ndarray, "people values"],
    asked: Float[np.ndarray, "people values"],
    often: Int[np.ndarray, "draws people"],
) -> Float[np.ndarray, " draws"]:
    counts = often @ asked  # (draws, values)
    # A value of which nobody was drawn counts for nothing.
    rates = (often @ right) / np.maximum(counts, 1)
    means: Float[np.ndarray, " draws"] = rates.sum(1) / (counts > 0).sum(1)
    return means
