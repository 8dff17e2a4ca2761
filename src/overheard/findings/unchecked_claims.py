"""Claims without a known ground truth, compared with a guess instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.findings.finding import Finding
from overheard.findings.threat_results import ThreatResult


def attacks_with_claims(result: ThreatResult) -> Sequence[str]:
    """Return the full names of the attacks with unchecked claims."""
    return list(dict.fromkeys(finding.cell.attack for finding in result.unchecked_claims))


def select_claims(result: ThreatResult, attack: str) -> Sequence[Finding]:
    """Return the unchecked claims of one attack."""
    return [finding for finding in result.unchecked_claims if finding.cell.attack == attack]


def select_guess(finding: Finding) -> tuple[str, tuple[float, ...]] | None:
    """Return the guess from the attacker's own examples if there is one, else the default."""
    guesses = [(name, numbers) for name, numbers in finding.guesses.items() if numbers]
    return guesses[-1] if guesses else None


@final
@dataclass(frozen=True, slots=True)
class GuessExclusion:
    """How many of an attack's claimed intervals exclude a guess.

    Args:
        guess: name of the guess.
        count: number of intervals that exclude it.
        intervals: number of intervals, one or more.

    """

    guess: str
    count: int
    intervals: int


def count_guess_exclusions(findings: Sequence[Finding]) -> GuessExclusion | None:
    """Count the intervals that exclude `select_guess`; None without intervals or guess."""
    count, intervals, guess_name = 0, 0, ""
    for finding in findings:
        guess, low, high = select_guess(finding), finding.claimed.low, finding.claimed.high
        if low is None or high is None or guess is None:
            continue
        guess_name, numbers = guess
        if len(numbers) != len(low):
            continue
        ends = zip(low, numbers, high, strict=True)
        count += sum(not below <= number <= above for below, number, above in ends)
        intervals += len(numbers)
    return GuessExclusion(guess_name, count, intervals) if intervals else None
