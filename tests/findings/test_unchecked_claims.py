"""Claimed intervals are compared with the best uninformed guess."""

from dataclasses import replace

from overheard.core.parties import client
from overheard.findings.finding import Finding
from overheard.findings.unchecked_claims import (
    GuessExclusion,
    count_guess_exclusions,
)
from tests.runs.audits import shares_finding

GUESS = {"uniform": (0.5, 0.5), "auxiliary prior": (0.25, 0.75)}


def claim(*shares: float, reach: float | None = None) -> Finding:
    finding = shares_finding("recorded", client(0), (1.0, 0.0), shares, reach=reach)
    return replace(finding, true=None, scores=(), guesses=GUESS)


def test_counts_the_intervals_that_exclude_the_guess() -> None:
    # 0.6 and 0.4 +- 0.1 exclude 0.25 and 0.75; 0.3 and 0.7 +- 0.1 do not.
    exclusion = count_guess_exclusions([claim(0.6, 0.4, reach=0.1), claim(0.3, 0.7, reach=0.1)])
    assert exclusion == GuessExclusion("auxiliary prior", 2, 4)
