"""The findings as files for machines and spreadsheets."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from math import isfinite

from overheard.core.scorer import Score
from overheard.epsilon.entry import epsilon_entry
from overheard.epsilon.epsilon import epsilon_lines
from overheard.findings.document import findings_document
from overheard.findings.exposures import Arm
from overheard.findings.finding import Audit, Finding
from overheard.findings.frame import COLUMNS
from overheard.findings.names import shown

MOST_NUMBERS = 1000
"""Of a claim that stand in a table: those of thousands of records would fill it."""


def as_json(audit: Audit, every: Sequence[Arm]) -> str:
    """All that the audit found, as one document; a figure that is no number is null."""
    return findings_document(audit, every, map(epsilon_entry, epsilon_lines(audit)))


def as_csv(audit: Audit) -> str:
    """One line a finding and score; an empty cell is a figure that is no number.

    A finding without any score, such as that of a control, has one line of its own. Of a
    choice, whom or what the claim names first stands there; all its numbers, and those of a
    claim of more than `MOST_NUMBERS`, are in the document.
    """
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for finding in audit.findings:
        table.writerows(_line(finding, score) for score in finding.scores or (None,))
    return text.getvalue()


def _line(finding: Finding, score: Score | None) -> tuple[str | int | float | None, ...]:
    cell, timeline = finding.cell, finding.timeline
    return (
        _inert(cell.arm),
        cell.seed,
        _inert("; ".join(cell.observers)),
        _inert(cell.attack),
        _inert(cell.settings),
        _inert(cell.question),
        _inert(" ".join(map(str, cell.rounds))),
        _inert(finding.target),
        *([None] * 7 if score is None else _score_cells(score)),
        *_numbers(finding),
        None if finding.low is None else _inert(_listed(finding.low)),
        None if finding.high is None else _inert(_listed(finding.high)),
        str(cell.is_control).lower(),
        finding.true_since,
        None if timeline is None else timeline.since,
        None if timeline is None else timeline.alarm,
        _inert(finding.named),
        _figure(finding.none_of_them),
        None if finding.true_user is None else _inert(finding.true_user),
    )


def _numbers(finding: Finding) -> tuple[str | None, str | None]:
    if finding.candidates or len(finding.claimed) > MOST_NUMBERS:
        return (None, None)
    return (_inert(_listed(finding.claimed)), _inert(_listed(finding.true)))


def _score_cells(score: Score) -> tuple[str | float | None, ...]:
    return (
        _inert(score.name),
        score.better,
        _figure(score.value),
        _figure(score.blind),
        _figure(score.gain),
        _named(score.blinds),
        _named(score.references),
    )


def _figure(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else value


def _listed(numbers: Sequence[float]) -> str:
    # Six digits: each score repeats them, and the document has them in full.
    return " ".join(f"{number:.6g}" for number in numbers)


def _named(values: Mapping[str, float]) -> str:
    return _inert("; ".join(f"{name}: {value!r}" for name, value in values.items()))


def _inert(text: str) -> str:
    """The text as no spreadsheet takes it for a formula, wide signs of Asian scripts included.

    A lone number that begins with a sign is text here too: only figures that we wrote as
    numbers are numbers.
    """
    plain = shown(text)
    return "'" + plain if plain.lstrip(" '")[:1] in tuple("=+-@＝＋－＠") else plain
