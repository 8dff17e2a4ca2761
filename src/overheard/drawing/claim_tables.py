"""Tables of claims that were not checked against the ground truth."""

from collections.abc import Callable, Sequence

import numpy as np

from overheard.drawing.figures import ReportTable
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, name_targets
from overheard.findings.number_format import NO_NUMBER, format_number, format_percent
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.findings.unchecked_claims import attacks_with_claims, select_claims

UNCHECKED = "Not checked against the ground truth"

MAX_TARGETS = 24
"""Targets that a figure or table lists one by one; further ones are left out."""


def unchecked_claim_tables(
    arm_results: Sequence[ArmResult], claim_in_words: Callable[[Finding], str]
) -> tuple[ReportTable, ...]:
    """Return one table per attack, with one line per target."""
    return tuple(
        _table(threat_result, attack, claim_in_words)
        for arm in arm_results
        for threat_result in arm.threat_results
        for attack in attacks_with_claims(threat_result)
    )


def _table(
    threat_result: ThreatResult, attack: str, claim_in_words: Callable[[Finding], str]
) -> ReportTable:
    claims = select_claims(threat_result, attack)
    more = "" if len(claims) <= MAX_TARGETS else f" (the first {MAX_TARGETS} of {len(claims)})"
    label = make_printable(threat_result.labels[attack])
    where = f"{make_printable(threat_result.arm)} · {threat_result.title} · {label}"
    return ReportTable(
        f"{UNCHECKED}: {where}{more}",
        ("Target", "Claim"),
        tuple(
            (name_targets(one.targets, threat_result.observers), claim_in_words(one))
            for one in claims[:MAX_TARGETS]
        ),
        2,
    )


def candidate_words(finding: Finding) -> str:
    """Describe a claim by its two best candidates, or by its numbers if it has none."""
    claimed = finding.claimed
    if not claimed.candidates:
        return ", ".join(map(format_number, claimed.numbers[:MAX_TARGETS])) or NO_NUMBER
    order = np.argsort(-np.array(claimed.numbers), kind="stable")[:2]
    first = [
        f"{make_printable(claimed.candidates[index])} ({format_number(claimed.numbers[index])})"
        for index in order
    ]
    none = claimed.none_of_them
    unknown = (
        ""
        if none is None
        else f"; none of the candidates with probability {format_percent(none)}"
    )
    return f"{', then '.join(first)}{unknown}"
