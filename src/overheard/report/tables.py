"""Exports of the findings as JSON and CSV."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from math import isfinite

from overheard.core.scorer import Score
from overheard.epsilon.entry import epsilon_entry
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.document import findings_document
from overheard.findings.finding import Audit, Finding
from overheard.findings.frame import COLUMNS
from overheard.findings.names import make_printable
from overheard.findings.threat_results import ArmResult

MOST_NUMBERS = 1000
"""Longest claim in a CSV cell, in numbers; a claim about thousands of records is left out."""


def as_json(audit: Audit, every: Sequence[ArmResult]) -> str:
    """Return all results of the audit as one JSON document; NaN and infinity become null."""
    return findings_document(audit, every, map(epsilon_entry, epsilon_results(audit)))


def as_csv(audit: Audit) -> str:
    """Return one line per finding and score; NaN and infinity become empty cells.

    A finding without scores, such as that of a control, has one line. For a claim with
    candidates only the top candidate is listed. All its numbers, and those of claims with more
    than `MOST_NUMBERS`, are in the JSON document.
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
        _inert(finding.top_candidate),
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
        _figure(score.best_uninformed),
        _figure(score.gain),
        _named(score.blinds),
        _named(score.references),
    )


def _figure(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else value


def _listed(numbers: Sequence[float]) -> str:
    # Six digits, since every score repeats them; the JSON document has full precision.
    return " ".join(f"{number:.6g}" for number in numbers)


def _named(values: Mapping[str, float]) -> str:
    return _inert("; ".join(f"{name}: {value!r}" for name, value in values.items()))


def _inert(text: str) -> str:
    """Escape text that a spreadsheet would take for a formula, full-width signs included.

    Text that is a signed number is escaped too; real figures are written as numbers instead.
    """
    plain = make_printable(text)
    return "'" + plain if plain.lstrip(" '")[:1] in tuple("=+-@＝＋－＠") else plain
