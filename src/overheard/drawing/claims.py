"""Tables of claims that were not checked against the ground truth."""

from collections.abc import Callable, Sequence

import numpy as np

from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import NO_FIGURE, digits, percent
from overheard.findings.finding import Finding
from overheard.findings.names import called, shown
from overheard.findings.unchecked import claiming, claims_of

UNCHECKED = "Not checked against the ground truth"

DRAWN = 24
"""Targets that a figure or table lists one by one; further ones are left out."""


def claims_tables(
    every: Sequence[Arm], claim_in_words: Callable[[Finding], str]
) -> tuple[Table, ...]:
    """Return one table per attack, with one line per target."""
    return tuple(
        _table(exposure, attack, claim_in_words)
        for arm in every
        for exposure in arm.exposures
        for attack in claiming(exposure)
    )


def _table(exposure: Exposure, attack: str, claim_in_words: Callable[[Finding], str]) -> Table:
    claims = claims_of(exposure, attack)
    more = "" if len(claims) <= DRAWN else f" (the first {DRAWN} of {len(claims)})"
    where = f"{shown(exposure.arm)} · {exposure.title} · {shown(exposure.labels[attack])}"
    return Table(
        f"{UNCHECKED}: {where}{more}",
        ("Target", "Claim"),
        tuple(
            (called(one.target, exposure.observers), claim_in_words(one))
            for one in claims[:DRAWN]
        ),
        2,
    )


def choice_words(finding: Finding) -> str:
    """Describe a claim by its two best candidates, or by its numbers if it has none."""
    if not finding.candidates:
        return ", ".join(map(digits, finding.claimed[:DRAWN])) or NO_FIGURE
    order = np.argsort(-np.array(finding.claimed), kind="stable")[:2]
    first = [
        f"{shown(finding.candidates[index])} ({digits(finding.claimed[index])})"
        for index in order
    ]
    none = finding.none_of_them
    unknown = (
        "" if none is None else f"; none of the candidates with probability {percent(none)}"
    )
    return f"{', then '.join(first)}{unknown}"
