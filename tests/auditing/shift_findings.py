"""Shift findings with given evidence."""

from collections.abc import Sequence

from overheard.core.claims import Timeline
from overheard.core.parties import Party, client
from overheard.findings.finding import Cell, ClaimRow, Finding

ROUNDS = (0, 1, 2, 3)
SINCE = 2
TARGET = client(1)


def shift_finding(
    statistic: Sequence[float],
    *,
    seed: int = 0,
    is_control: bool = False,
    target: Party = TARGET,
    threshold: float | None = None,
    rate: float | None = 0.1,
    since: int | None = SINCE,
    attack: str = "planted",
) -> Finding:
    """Return a finding in rounds 0 to 3; evidence above the threshold raises the alarm."""
    evidence = Timeline(
        ROUNDS,
        tuple(map(float, statistic)),
        None if threshold is None else (threshold,) * 4,
        None if threshold is None else rate,
        None
        if threshold is None
        else next((n for n in ROUNDS if statistic[n] > threshold), None),
    )
    cell = Cell("none", seed, (client(0),), attack, "Planted()", "shift", ROUNDS, is_control)
    true = ClaimRow(timeline=Timeline(since=None if is_control else since))
    return Finding(cell, (target,), ClaimRow(timeline=evidence), true)


def peak_finding(value: float, *, seed: int, is_control: bool = False) -> Finding:
    """A finding whose evidence peaks at this value, in the round of the shift."""
    return shift_finding((0.0, 0.0, value, 0.0), seed=seed, is_control=is_control)


def peak_findings(shifted: Sequence[float], control: Sequence[float]) -> list[Finding]:
    """Return a finding and its control for each seed, with these peaks."""
    return [
        finding
        for seed, (with_shift, without) in enumerate(zip(shifted, control, strict=True))
        for finding in (
            peak_finding(with_shift, seed=seed),
            peak_finding(without, seed=seed, is_control=True),
        )
    ]
