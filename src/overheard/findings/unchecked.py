"""Claims that nobody could hold against the truth, held against a guess instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.findings.exposures import Exposure
from overheard.findings.finding import Finding


def claiming(exposure: Exposure) -> Sequence[str]:
    """The full names of the attacks with claims that were not checked."""
    return list(dict.fromkeys(one.cell.attack for one in exposure.claims))


def claims_of(exposure: Exposure, attack: str) -> Sequence[Finding]:
    """What one attack claims, unchecked."""
    return [one for one in exposure.claims if one.cell.attack == attack]


def told_guess(finding: Finding) -> tuple[str, tuple[float, ...]] | None:
    """The guess of the attacker's own examples where it has some, else the customary one."""
    told = [(name, numbers) for name, numbers in finding.blind.items() if numbers]
    return told[-1] if told else None


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many of the intervals that an attack states leave a guess out.

    Args:
        guess: its name.
        count: of the intervals that leave it out.
        intervals: how many there are, one or more.

    """

    guess: str
    count: int
    intervals: int


def left_out(findings: Sequence[Finding]) -> LeftOut | None:
    """Held against `told_guess`; None where there are no intervals or no guess."""
    count, intervals, which = 0, 0, ""
    for one in findings:
        guess = told_guess(one)
        if one.low is None or one.high is None or guess is None:
            continue
        which, numbers = guess
        if len(numbers) != len(one.low):
            continue
        ends = zip(one.low, numbers, one.high, strict=True)
        count += sum(not low <= number <= high for low, number, high in ends)
        intervals += len(numbers)
    return LeftOut(which, count, intervals) if intervals else None
