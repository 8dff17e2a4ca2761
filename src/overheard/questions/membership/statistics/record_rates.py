"""How many of all records together are told right, with intervals over records."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overheard.findings.finding import Finding
from overheard.questions.membership.scorer import FALSE_POSITIVES
from overheard.statistics.estimate import LEVEL, Estimate
from overheard.statistics.exact import proportion


@dataclass(frozen=True, slots=True)
class RecordRates:
    """Rates over the records of all targets and runs, each with an exact 95 % interval.

    The unit is the record: those of one client are taken as independent given its model, which
    says nothing of other clients or runs (`statistics.estimate` does). A record of nobody is
    asked of every client's model, and counts once a run. Intervals are Clopper and Pearson's.
    That of a share of members takes the threshold as given; how far the false-positive rate
    there may be off is told by `passing`.

    Args:
        found: the share of members above the threshold, by the names of `FALSE_POSITIVES` as
            far as they were scored.
        passing: by the same names, the true rate of false positives there: the threshold lets
            just so large a share of the records of nobody pass, and few of them tell a small
            rate badly.
        accuracy: the mean of the shares of both kinds that are told right where a score above
            0 says that a record was trained on; the interval joins one of each kind, at half
            the error each, so it is wider than it need be.
        members: records that were trained on.
        outsiders: records of nobody, of all runs.

    """

    found: Mapping[str, Estimate]
    passing: Mapping[str, Estimate]
    accuracy: Estimate
    members: int
    outsiders: int


def record_rates(findings: Sequence[Finding]) -> RecordRates:
    """The rates of one attack in one arm, from the same rounds.

    Args:
        findings: of membership, one or more, each with records of both kinds.

    """
    runs = defaultdict[int, list[NDArray[np.float64]]](list)
    for finding in findings:
        runs[finding.cell.seed].append(_claimed(finding, -1))
    outside = [np.stack(run) for run in runs.values()]  # of each run (targets, outsiders)
    inside = [_claimed(finding, 1) for finding in findings]
    members, outsiders = sum(map(len, inside)), sum(run.shape[1] for run in outside)
    half = 1 - (1 - LEVEL) / 2
    hits = sum(float((own > 0).sum()) for own in inside)
    # Of each record of nobody, the share of targets of whom it is told right.
    kept = sum(float((run <= 0).mean(0).sum()) for run in outside)
    names = {score.name for score in findings[0].scores}
    rates = {name: rate for rate, name in FALSE_POSITIVES if name in names}
    return RecordRates(
        {name: _found(findings, inside, name) for name in rates},
        {name: proportion(rate * outsiders, outsiders) for name, rate in rates.items()},
        _mean(proportion(hits, members, half), proportion(kept, outsiders, half)),
        members,
        outsiders,
    )


def _claimed(finding: Finding, kind: int) -> NDArray[np.float64]:
    """What is claimed of records of this kind: 1 = the target's, -1 = nobody's."""
    scores: NDArray[np.float64] = np.array(finding.claimed)[np.array(finding.true) == kind]
    return scores


def _found(
    findings: Sequence[Finding], inside: Sequence[NDArray[np.float64]], name: str
) -> Estimate:
    shares = [
        score.value for finding in findings for score in finding.scores if score.name == name
    ]
    sizes = [len(own) for own in inside]
    return proportion(float(np.dot(shares, sizes)), sum(sizes))


def _mean(one: Estimate, other: Estimate) -> Estimate:
    """Of two shares; the ends of both are there, as each was told of trials."""
    assert one.low is not None
    assert one.high is not None
    assert other.low is not None
    assert other.high is not None
    return Estimate(
        (one.mean + other.mean) / 2, (one.low + other.low) / 2, (one.high + other.high) / 2
    )
