"""Pairs of targets that claims compare, by run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from overheard.findings.finding import Finding
from overheard.statistics.roc import ScoredPairs


def collect_sender_pairs(findings: Iterable[Finding]) -> tuple[ScoredPairs, ...]:
    """Collect the compared pairs of each run that has both matching and other pairs.

    A pair compared in both directions counts twice, once for each user.
    """
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.claimed.candidates and finding.true_user is not None:
            by_seed[finding.cell.seed].append(finding)
    runs = (_collect_run(run) for _, run in sorted(by_seed.items()))
    return tuple(run for run in runs if run.has_both_kinds)


def _collect_run(findings: Sequence[Finding]) -> ScoredPairs:
    users = [finding.true_user for finding in findings]
    matched = dict.fromkeys(
        user
        for user, finding in zip(users, findings, strict=True)
        if max(finding.true_numbers) > 0
    )
    ordered = list(dict.fromkeys([*matched, *users]))
    sizes = [len(finding.claimed.numbers) for finding in findings]
    return ScoredPairs(
        np.concatenate([finding.claimed.numbers for finding in findings]),
        np.concatenate([finding.true_numbers for finding in findings]) > 0,
        np.repeat([ordered.index(user) for user in users], sizes),
        len(matched),
        len(ordered) - len(matched),
    )
