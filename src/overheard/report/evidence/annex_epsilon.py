"""Differential privacy in the annex: epsilon as claimed, recomputed, and proven by attacks."""

from collections.abc import Iterable
from math import floor, inf

from overheard.core.accounting.accountant import format_epsilon
from overheard.core.mechanism import RELATIONS, UNITS
from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.findings.privacy.epsilon_rows import EpsilonRow, EpsilonVerdict
from overheard.report.doctor_section import doctor_blocks
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
)

VERDICT_WORDS: dict[EpsilonVerdict, str] = {
    "flawed": "guarantees nothing",
    "outside guarantee": "guarantees nothing against these observers, who read values without "
    "noise",
    "false": "false: no epsilon as small as the claimed one is true for the settings",
    "violated": "refuted: attacks on canaries prove a larger epsilon",
    "contradicted": "doubtful: attacks prove a larger epsilon if records are independent",
    "estimate": "doubtful: attacks on canaries find a larger epsilon, but how they are counted "
    "was changed after the canaries were drawn",
    "not confirmed": "not confirmed: the claim is below an upper bound and may be true",
    "holds": "not refuted by these attacks, which proves no protection",
    "not tested": "not measured: there was no membership attack by these observers",
    "refused": "not measured: no membership attack could run",
    "not exchangeable": "not measured: members and non-members may differ in distribution",
    "unchecked": "not measured: the members are not known",
    "unaccounted": "no upper bound is known",
}

BROKEN: tuple[EpsilonVerdict, ...] = (
    "flawed",
    "outside guarantee",
    "false",
    "violated",
    "contradicted",
    "estimate",
)
"""Verdicts on claims that do not hold or are doubtful."""


def broken_claims_blocks(findings: FindingsDocument) -> tuple[SectionBlock, ...]:
    """Return a sentence on each claim that does not hold or is doubtful; () = there is none."""
    sentences = mechanism_sentences([row for row in findings.epsilon if row.verdict in BROKEN])
    title = "Claims of differential privacy that do not hold or are doubtful"
    return (SectionBlock(title, sentences),) if sentences else ()


def mechanism_sentences(rows: Iterable[EpsilonRow]) -> tuple[str, ...]:
    """Return a sentence on each mechanism with its result, each once."""
    return tuple(
        dict.fromkeys(
            f"Arm “{make_printable(row.arm)}”: {make_printable(row.defense)}, for "
            f"{UNITS[row.unit]}. Result: {_result(row)}."
            for row in rows
        )
    )


def epsilon_section(findings: FindingsDocument) -> AnnexSection:
    """Return the doctor's faults, and a row for each mechanism and group of observers."""
    title = "Differential privacy"
    # A recording may state the same defense twice, with equal rows.
    rows = [_row(one) for one in dict.fromkeys(findings.epsilon)]
    faults = doctor_blocks(findings.doctor)
    if not rows:
        none = "No defense of this audit adds noise for which an epsilon could be stated."
        return AnnexSection(title, (*faults, SectionBlock("", (none,))))
    table = limited_table(
        "Epsilon: claimed, recomputed from the settings, and proven by attacks",
        ("Arm and mechanism", "Observers", "Claimed", "Recomputed", "Proven", "Result"),
        rows,
    )
    reading = (
        "Claimed: what the run states. Recomputed: an upper bound from the settings, by the "
        "privacy loss of Gaussian noise. A claim is false only if it is below a lower bound of "
        "what the settings give. Proven: a lower bound from attacks, at 95 % confidence: over "
        "all rows together if it is from canaries, else in each row. "
        "A small lower bound is no proof of privacy."
    )
    return AnnexSection(title, (*faults, SectionBlock("", (reading,), (table,))))


def _row(row: EpsilonRow) -> tuple[str, ...]:
    return (
        f"{_mechanism(row)}, delta {row.delta:g}",
        observer_words(row.observers),
        _claimed(row),
        _recomputed(row),
        _proven(row),
        _result(row),
    )


def _proven(row: EpsilonRow) -> str:
    """Return the lower bound, and the estimate by canary clients, which is no bound."""
    bound, proven = row.measured, NO_NUMBER
    if bound is not None:
        proven = f"{floor(bound.at_least * 100) / 100:.2f} or more"
    if not row.estimated:
        return proven
    first = row.estimated[0]
    ends = (first.epsilon.mean, first.epsilon.low, first.epsilon.high)
    mean, low, high = ("above 1000" if one is None else f"{one:.2f}" for one in ends)
    return (
        f"{proven}; estimated by {first.canaries:,} canary clients, no bound: {mean} ({low} to "
        f"{high})"
    )


def _mechanism(row: EpsilonRow) -> str:
    of_rounds = f", {row.rounds_text}" if row.rounds_text else ""
    return (
        f"{make_printable(row.arm)}: {make_printable(row.defense)}, for {UNITS[row.unit]}"
        f"{'' if row.relation is None else f', {RELATIONS[row.relation]}'}{of_rounds}"
    )


def _result(row: EpsilonRow) -> str:
    reason = f": {make_printable(row.reason)}" if row.reason else ""
    return f"{VERDICT_WORDS[row.verdict]}{reason}"


def _claimed(row: EpsilonRow) -> str:
    if row.claimed is None:
        return NO_NUMBER
    return f"{row.claimed:g}{' per round' if row.claimed_for == 'round' else ''}"


def _recomputed(row: EpsilonRow) -> str:
    if not row.is_recomputed:
        return NO_NUMBER
    found = format_epsilon(min(inf if one is None else one for one in (row.pld, row.rdp)))
    sampled = "" if row.drawn is None else f"; with sampling {format_epsilon(row.drawn)}"
    return f"{found}{sampled}"
