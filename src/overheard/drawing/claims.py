"""Claims that nobody could hold against the truth, beside what one would guess."""

from collections.abc import Callable, Sequence

import numpy as np

from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import NO_FIGURE, digits, percent
from overheard.findings.finding import Finding
from overheard.findings.names import called, shown
from overheard.findings.unchecked import claiming, claims_of

UNCHECKED = "Nothing was checked against the truth"

DRAWN = 24
"""Targets told one by one in a figure or table; more are no longer looked at one by one."""


def claims_tables(
    every: Sequence[Arm], claim_in_words: Callable[[Finding], str]
) -> tuple[Table, ...]:
    """A table an attack, a line a target."""
    return tuple(
        _table(exposure, attack, claim_in_words)
        for arm in every
        for exposure in arm.exposures
        for attack in claiming(exposure)
    )


def _table(exposure: Exposure, attack: str, claim_in_words: Callable[[Finding], str]) -> Table:
    held = claims_of(exposure, attack)
    more = "" if len(held) <= DRAWN else f" (the first {DRAWN} of {len(held)})"
    where = f"{shown(exposure.arm)} · {exposure.title} · {shown(exposure.labels[attack])}"
    return Table(
        f"{UNCHECKED}: {where}{more}",
        ("Target", "Claim"),
        tuple(
            (called(one.target, exposure.observers), claim_in_words(one))
            for one in held[:DRAWN]
        ),
        2,
    )


def choice_words(finding: Finding) -> str:
    """The two candidates that a claim speaks for most, or the claim's numbers."""
    if not finding.candidates:
        return ", ".join(map(digits, finding.claimed[:DRAWN])) or NO_FIGURE
    order = np.argsort(-np.array(finding.claimed), kind="stable")[:2]
    first = [
        f"{shown(finding.candidates[place])} ({digits(finding.claimed[place])})"
        for place in order
    ]
    none = finding.none_of_them
    nobody = "" if none is None else f"; none of them with a chance of {percent(none)}"
    return f"{', then '.join(first)}{nobody}"
