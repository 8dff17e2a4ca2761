"""Lower bounds of epsilon from the true and false positive rates of membership attacks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from overheard.findings.finding import Finding
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion

BoundMethod = Literal["curve", "guesses", "rates"]
"""How epsilon is bounded; see `EpsilonBound`."""

THRESHOLDS_PER_END = 32
"""Candidate thresholds from each end of the scores, denser towards the end."""


@dataclass(frozen=True, slots=True)
class ThresholdRates:
    """The true and false positive rates at one threshold.

    Args:
        threshold: records with a larger score are classified as members.
        true_positive_rate: true positive rate: share of members above it, with its exact 95 %
            interval.
        false_positive_rate: false positive rate: share of non-members above it, likewise.

    """

    threshold: float
    true_positive_rate: Estimate
    false_positive_rate: Estimate


@dataclass(frozen=True, slots=True)
class GuessCounts:
    """Counts of guesses about the membership of canaries.

    Args:
        right: correct guesses.
        guessed_in: canaries guessed to be members.
        guessed_out: canaries guessed to be non-members.
        canaries: all canaries, including those without a guess.

    """

    right: int
    guessed_in: int
    guessed_out: int
    canaries: int


@dataclass(frozen=True, slots=True)
class GuessEvidence:
    """The evidence of a bound by guesses: two thresholds and the counts of guesses.

    Args:
        above: canaries with a larger score are guessed to be members; infinite = none. The
            number of guesses decides on those with this score.
        below: canaries with a smaller score are guessed to be non-members; -infinite = none.
        counts: the counts.

    """

    above: float
    below: float
    counts: GuessCounts


@dataclass(frozen=True, slots=True)
class EpsilonBound:
    """A lower bound of epsilon from one attack.

    Args:
        epsilon: the lower bound (0 or more).
        attack: the attack that proves it.
        evidence: the rates or guesses behind it.
        members: number of member records that the bound was computed on.
        non_members: number of non-members, likewise.
        level: the probability with which it may exceed the true epsilon.
        method: "curve" = Mahloujifar et al. 2024, for a claim that is a curve; "guesses" =
            Steinke et al. 2023, for a bare epsilon; "rates" = by error rates.
        estimate: a sharper figure from the same guesses, which is no bound; None = none.

    """

    epsilon: float
    attack: str
    evidence: ThresholdRates | GuessEvidence
    members: int
    non_members: int
    level: float = 0.05
    method: BoundMethod = "guesses"
    estimate: float | None = None


def epsilon_from_rates(
    true_positive_rate: float, false_positive_rate: float, delta: float
) -> float:
    """Return the smallest epsilon that allows a test with these rates.

    An (epsilon, delta)-private mechanism allows TPR <= e^epsilon FPR + delta, and for records
    below the threshold 1 - FPR <= e^epsilon (1 - TPR) + delta (Kairouz, Oh and Viswanath 2015,
    ICML, Theorem 2.1). Jagielski, Ullman and Oprea 2020 (NeurIPS, section 4) turn this into a
    lower bound of epsilon. Returns 0 if neither inequality gives more.

    >>> round(epsilon_from_rates(0.8, 0.1, 0.0), 3)  # ln 8
    2.079

    Args:
        true_positive_rate: at most the true positive rate (0..1).
        false_positive_rate: at least the false positive rate (above 0, at most 1).
        delta: the delta of the mechanism (0..1).

    """
    sides = (
        (true_positive_rate - delta, false_positive_rate),
        (1 - false_positive_rate - delta, 1 - true_positive_rate),
    )
    return max([0.0, *(log(more / less) for more, less in sides if more > 0 and less > 0)])


def bound_epsilon_by_thresholds(
    findings: Sequence[Finding], delta: float
) -> EpsilonBound | None:
    """Compute a lower bound of epsilon from the attacks of some observers in one arm.

    Attack and threshold are chosen on every other member and non-member. The bound is computed
    on the other half, so that the choice needs no correction. Both rates have exact 95 %
    intervals (Clopper and Pearson 1934). The bound uses the unfavorable end of each; as each
    end fails with 2.5 %, the confidence is 95 % or more.

    It bounds the epsilon of single records, and so that of all data of a client, which contain
    them. Records are assumed to be independent given the models; canaries need not be with
    `epsilon.guess_bound`. Members and non-members are assumed to be exchangeable
    (`auditing.run_records`). The bound is conservative: a non-member counts once per run,
    even if several clients are targets. With n records of each kind it never exceeds log(n /
    3.7), and a stronger attack may prove more: a small bound is no proof of privacy.

    Args:
        findings: findings on membership, with the same seeds and targets for each attack. Only
            those from the most rounds are used.
        delta: the delta of the mechanism.

    Returns:
        The bound; None if no finding has two members and two non-members.

    """
    selection, evaluation = _record_halves(findings, 0), _record_halves(findings, 1)
    candidates = [
        (_bound_at_threshold(attack, half, threshold, delta).epsilon, attack, threshold)
        for attack, half in selection.items()
        if attack in evaluation
        for threshold in candidate_thresholds(half.scores)
    ]
    if not candidates:
        return None
    _, attack, threshold = max(candidates)
    return _bound_at_threshold(attack, evaluation[attack], threshold, delta)


@dataclass(frozen=True, slots=True, eq=False)
class _RecordHalf:
    """Scores of half of the records; `non_members` has (targets, non-members) for each run."""

    members: NDArray[np.float64]
    non_members: tuple[NDArray[np.float64], ...]

    @property
    def scores(self) -> NDArray[np.float64]:
        return np.concatenate([self.members, *(run.ravel() for run in self.non_members)])


def _record_halves(findings: Sequence[Finding], parity: int) -> Mapping[str, _RecordHalf]:
    """Return the records at even or odd indices by attack, if both kinds are there."""
    halves = {
        name: _record_half(group, parity)
        for name, group in longest_findings_by_attack(findings).items()
    }
    return {
        name: half
        for name, half in halves.items()
        if len(half.members) and half.non_members and all(run.size for run in half.non_members)
    }


def longest_findings_by_attack(findings: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Return the findings of each attack from the most rounds."""
    attacks = defaultdict[str, list[Finding]](list)
    for finding in findings:
        attacks[finding.cell.attack].append(finding)
    return {name: _findings_of_most_rounds(group) for name, group in attacks.items()}


def candidate_thresholds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Select scores as candidate thresholds, in order and denser towards both ends."""
    levels = np.unique(scores)
    ranks = np.unique(np.geomspace(1, len(levels), THRESHOLDS_PER_END).round().astype(int)) - 1
    indices = np.unique(np.concatenate([ranks, len(levels) - 1 - ranks]))
    selected: NDArray[np.float64] = levels[indices]
    return selected


def _findings_of_most_rounds(findings: Sequence[Finding]) -> list[Finding]:
    rounds = max((one.cell.rounds for one in findings), key=lambda these: (len(these), these))
    return [one for one in findings if one.cell.rounds == rounds]


def _record_half(findings: Sequence[Finding], parity: int) -> _RecordHalf:
    runs = defaultdict[int, list[NDArray[np.float64]]](list)
    inside = []
    for one in findings:
        scores, true = np.array(one.claimed.numbers), np.array(one.true_numbers)
        inside.append(scores[true == 1][parity::2])
        runs[one.cell.seed].append(scores[true == -1][parity::2])
    return _RecordHalf(np.concatenate(inside), tuple(np.stack(run) for run in runs.values()))


def _bound_at_threshold(
    attack: str, half: _RecordHalf, threshold: float, delta: float
) -> EpsilonBound:
    members, outsiders = len(half.members), sum(run.shape[1] for run in half.non_members)
    found = estimate_proportion(float((half.members > threshold).sum()), members)
    # For each non-member, the share of targets that it is classified as a member of.
    passed = estimate_proportion(
        sum(float((run > threshold).mean(0).sum()) for run in half.non_members), outsiders
    )
    assert found.low is not None
    assert passed.high is not None
    epsilon = epsilon_from_rates(found.low, passed.high, delta)
    return EpsilonBound(
        epsilon,
        attack,
        ThresholdRates(threshold, found, passed),
        members,
        outsiders,
        method="rates",
    )
