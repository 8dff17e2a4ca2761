"""One row for each mechanism: epsilon claimed, recomputed, proven and estimated."""

from collections.abc import Sequence
from math import floor

from overheard.core.accounting.accountant import format_epsilon
from overheard.core.mechanism import UNITS
from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.epsilon.client_estimate_table import estimate_text
from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER

COLUMN_NAMES = (
    "Arm and mechanism",
    "Unit",
    "Relation",
    "Rounds",
    "Delta",
    "Claimed",
    "Recomputed",
    "Proven",
    "Estimated",
)

_NOTE = (
    "Claimed: what is stated. Recomputed: an upper bound from the settings, against those who "
    "know the sampled clients. Proven: the largest lower bound from attacks of any observer "
    "that the mechanism covers. Estimated: by canary clients, which is no bound. Only figures "
    "of one row can be compared: all are for its unit, relation, rounds and delta."
)


def mechanism_blocks(lines: Sequence[EpsilonResult]) -> tuple[SectionBlock, ...]:
    """Return a table with a row for each mechanism; () if none adds noise."""
    by_mechanism: dict[tuple[str, str], list[EpsilonResult]] = {}
    for line in lines:
        by_mechanism.setdefault((line.arm, line.defense.settings), []).append(line)
    if not by_mechanism:
        return ()
    table = ReportTable(
        "Epsilon of each mechanism: claimed, recomputed, proven, estimated",
        COLUMN_NAMES,
        tuple(map(_row, by_mechanism.values())),
        5,
    )
    return (SectionBlock("Epsilon in one row", (_NOTE,), (table,)),)


def _row(lines: Sequence[EpsilonResult]) -> tuple[str, ...]:
    first = lines[0]
    mechanism, run = first.accounted.mechanism, first.accounted.run
    name = first.defense.settings.partition("(")[0]
    return (
        make_printable(f"{first.arm}: {name}"),
        UNITS[mechanism.unit],
        mechanism.relation_words,
        run.rounds_text,
        f"{mechanism.delta:g}",
        _claimed(first),
        _recomputed(first),
        _proven(lines),
        _estimated(lines),
    )


def _claimed(line: EpsilonResult) -> str:
    mechanism = line.accounted.mechanism
    if mechanism.stated is None:
        return NO_NUMBER
    return f"{mechanism.stated:g}" + (" a round" if mechanism.stated_for == "round" else "")


def _recomputed(line: EpsilonResult) -> str:
    mechanism, found = line.accounted.mechanism, line.accounted.recomputed
    if mechanism.flaw:
        return "none: " + make_printable(mechanism.flaw)
    return NO_NUMBER if found is None else format_epsilon(found.against_everybody)


def _proven(lines: Sequence[EpsilonResult]) -> str:
    """Return the largest bound of observers that are covered; the others are promised none."""
    bounds = [
        line.lower_bound.epsilon
        for line in lines
        if line.lower_bound is not None and line.accounted.mechanism.covers(line.observers)
    ]
    return f"{floor(max(bounds) * 100) / 100:.2f} or more" if bounds else NO_NUMBER


def _estimated(lines: Sequence[EpsilonResult]) -> str:
    found = [one for line in lines for one in line.estimates]
    if not found:
        return NO_NUMBER
    return estimate_text(max(found, key=lambda one: one.epsilon.mean).epsilon)
