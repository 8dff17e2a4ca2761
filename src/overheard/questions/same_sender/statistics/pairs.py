"""The pairs of targets that claims compare, run by run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from overheard.findings.finding import Finding
from overheard.statistics.matching import Matches


def sender_matches(findings: Iterable[Finding]) -> tuple[Matches, ...]:
    """Every pair of targets that were compared, run by run; of runs with pairs of both kinds.

    A pair that was compared both ways counts twice, and belongs to either person in turn.
    """
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.candidates and finding.true_user is not None:
            by_seed[finding.cell.seed].append(finding)
    every = (_sender_matches(held) for _, held in sorted(by_seed.items()))
    return tuple(held for held in every if held.has_both)


def _sender_matches(findings: Sequence[Finding]) -> Matches:
    users = [finding.true_user for finding in findings]
    matched = dict.fromkeys(
        who for who, one in zip(users, findings, strict=True) if max(one.true) > 0
    )
    people = list(dict.fromkeys([*matched, *users]))
    sizes = [len(finding.claimed) for finding in findings]
    return Matches(
        np.concatenate([finding.claimed for finding in findings]),
        np.concatenate([finding.true for finding in findings]) > 0,
        np.repeat([people.index(who) for who in users], sizes),
        len(matched),
        len(people) - len(matched),
    )
