"""How far canary clients show in what a run released."""

from dataclasses import dataclass, field
from typing import Literal, final

from overheard.findings.document_rows import (
    DocumentPart,
    Figure,
    IntervalEstimate,
    PositiveCount,
    Size,
)

CanaryEvidence = Literal["all rounds together", "best round", "own updates"]
"""What the direction of a canary is compared with: the sum over rounds of what the global model
changed by; the change in one round, where the cosine is largest; or the sum of its own updates
as the server read them."""


@final
@dataclass(frozen=True, slots=True)
class CanaryScores:
    """The cosines of canary clients in one run.

    Args:
        evidence: what the directions are compared with.
        scores: of each canary that took part, the cosine less its mean for a canary that did
            not, over its deviation for such a one.
        false_alarms: for each score, the probability of as large a one for a canary that did
            not take part.
        dimension: number of weights.
        rounds: number of rounds that were read.

    """

    evidence: CanaryEvidence
    scores: tuple[float, ...] = field(repr=False)
    false_alarms: tuple[float, ...] = field(repr=False)
    dimension: int
    rounds: int


@final
class ClientEstimateRow(DocumentPart):
    """An estimate of the epsilon of a client; see `epsilon.client_estimate`. It is no bound.

    Args:
        epsilon: with its 95 % interval; None = infinite.
        evidence: what the directions of canaries were compared with.
        canaries: number of canaries, over all runs.
        deviation: the deviation of their scores; 1 = as the estimate assumes.
        is_doubted: whether it is further from 1 than chance allows.
        lower: the lower bound by seen thresholds, an estimate too; None = infinite.
        dimension: number of weights.
        rounds: number of rounds that were read.

    """

    epsilon: IntervalEstimate
    evidence: CanaryEvidence
    canaries: PositiveCount
    deviation: Figure
    is_doubted: bool
    lower: Size
    dimension: PositiveCount
    rounds: PositiveCount
