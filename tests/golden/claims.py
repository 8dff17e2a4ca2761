"""What attacks claim in a small audit, and how far a claim may be from the stored one.

A claim is bit for bit the same on one machine. Other processors and libraries sum in another
order, and training multiplies the difference.
"""

from collections.abc import Mapping
from dataclasses import astuple
from math import isclose

from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Finding
from tests.golden.rounding import Json, Table, rounded, table

TOLERANCE = 2e-2
"""Largest difference of a number from the stored one, relative to it if it is larger than 1.

Measured with ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 on a processor with
AVX-512: 0.0022 in an interval of a trained estimator, 0.0004 in a loss, 0.00003 elsewhere.
Between two processors: 0.0138 in one end of an interval, which is a ranked error of few virtual
clients and moved by one rank; 0.0022 and less elsewhere.
"""


def claims_of(audit: Audit) -> Mapping[str, Table]:
    """Return all claims of an audit, and why attacks were refused, word for word."""
    return {
        "claims": table(map(_claim, audit.findings)),
        "refusals": table(
            (f"{_place(one.cell)} | {one.target}", list(one.missing)) for one in audit.refusals
        ),
    }


def are_alike(old: Json, new: Json) -> bool:
    """Return whether two values are equal, or are numbers within the tolerance."""
    if isinstance(old, float) and isinstance(new, float):
        return isclose(old, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return old == new


def _claim(finding: Finding) -> tuple[str, Json]:
    timeline, curve = finding.claimed.timeline, finding.claimed.learning_curve
    return (
        f"{_place(finding.cell)} | {finding.target}",
        {
            "claimed": rounded(finding.claimed.numbers),
            "low": rounded(finding.claimed.low),
            "high": rounded(finding.claimed.high),
            "candidates": list(finding.claimed.candidates),
            "none of them": rounded(finding.claimed.none_of_them),
            "timeline": None if timeline is None else rounded(astuple(timeline)),
            "learning curve": None if curve is None else rounded(astuple(curve)),
            "doubt": finding.claimed.doubt,
            "sent rounds": list(finding.sent_rounds),
        },
    )


def _place(cell: Cell) -> str:
    observers, rounds = " and ".join(cell.observers), " ".join(map(str, cell.rounds))
    control = f" | {cell.control or 'permuted'} control {cell.control_number}"
    return (
        f"{cell.arm} | seed {cell.seed} | {observers} | {cell.attack} | rounds {rounds}"
        f"{control if cell.is_control else ''}"
    )
