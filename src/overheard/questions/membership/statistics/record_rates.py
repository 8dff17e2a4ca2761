"""Rates and AUC over the records of all targets, with intervals over records."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overheard.findings.finding import Finding
from overheard.questions.membership.scorer import FALSE_POSITIVE_RATES
from overheard.statistics.estimate import CONFIDENCE_LEVEL, Estimate
from overheard.statistics.exact_intervals import estimate_auc_of_trials, estimate_proportion


@dataclass(frozen=True, slots=True)
class RecordRates:
    """Rates over the records of all targets and runs, each with a 95 % interval.

    The unit is the record. Records of one client are treated as independent given its model;
    the intervals do not cover other clients or runs (`statistics.estimate` does). A non-member
    is tested against every client's model and counts once per run. Intervals of rates are
    those of Clopper and Pearson. The interval of a true positive rate takes the threshold as
    fixed; `false_positive_rates` gives the uncertainty of the false positive rate there.

    Args:
        true_positive_rates: true positive rate by name in `FALSE_POSITIVE_RATES`, over the
            findings that have this score. In other runs, fewer canaries may be non-members.
        false_positive_rates: by the same names, the false positive rate at the threshold, over
            the runs of these findings. The threshold fixes its value in the sample; with few
            non-members the population value is uncertain.
        accuracy: the mean of the shares of members and non-members classified correctly, with
            scores above 0 as members. The interval combines one of each, at half the error
            each, so it is conservative.
        members: number of members of all targets and runs.
        non_members: number of non-members of all runs.

    """

    true_positive_rates: Mapping[str, Estimate]
    false_positive_rates: Mapping[str, Estimate]
    accuracy: Estimate
    members: int
    non_members: int

    def auc(self, value: float) -> Estimate:
        """Return this mean AUC with its score interval (`estimate_auc_of_trials`)."""
        return estimate_auc_of_trials(value, self.members, self.non_members)


def estimate_record_rates(findings: Sequence[Finding]) -> RecordRates:
    """Estimate the rates of one attack in one arm, from the same rounds.

    Args:
        findings: findings on membership, one or more, each with members and non-members.

    """
    runs = defaultdict[int, list[NDArray[np.float64]]](list)
    for finding in findings:
        runs[finding.cell.seed].append(_scores_of(finding, -1))
    non_member_scores = [
        np.stack(run) for run in runs.values()
    ]  # per run (targets, non_members)
    member_scores = [_scores_of(finding, 1) for finding in findings]
    members, non_members = (
        sum(map(len, member_scores)),
        sum(run.shape[1] for run in non_member_scores),
    )
    half = 1 - (1 - CONFIDENCE_LEVEL) / 2
    hits = sum(float((scores > 0).sum()) for scores in member_scores)
    # For each non-member, the share of targets for which it is classified correctly.
    correct = sum(float((run <= 0).mean(0).sum()) for run in non_member_scores)
    true_positive_rates, false_positive_rates = dict[str, Estimate](), dict[str, Estimate]()
    for rate, name in FALSE_POSITIVE_RATES:
        scored = [
            (score.value, len(scores), finding.cell.seed)
            for finding, scores in zip(findings, member_scores, strict=True)
            for score in finding.scores
            if score.name == name
        ]
        if scored:
            shares, sizes, seeds = zip(*scored, strict=True)
            found = float(np.dot(shares, sizes))
            true_positive_rates[name] = estimate_proportion(found, sum(sizes))
            compared = sum(len(runs[seed][0]) for seed in set(seeds))
            false_positive_rates[name] = estimate_proportion(rate * compared, compared)
    return RecordRates(
        true_positive_rates,
        false_positive_rates,
        _mean_of_two(
            estimate_proportion(hits, members, half),
            estimate_proportion(correct, non_members, half),
        ),
        members,
        non_members,
    )


def _scores_of(finding: Finding, kind: int) -> NDArray[np.float64]:
    """Return the scores of records of this kind: 1 = members, -1 = non-members."""
    scores: NDArray[np.float64] = np.array(finding.claimed.numbers)[
        np.array(finding.true_numbers) == kind
    ]
    return scores


def _mean_of_two(one: Estimate, other: Estimate) -> Estimate:
    """Return the mean of two shares; both have intervals, as both come from trials."""
    assert one.low is not None
    assert one.high is not None
    assert other.low is not None
    assert other.high is not None
    return Estimate(
        (one.mean + other.mean) / 2, (one.low + other.low) / 2, (one.high + other.high) / 2
    )
