"""The form in which findings are written for machines: one JSON document an audit.

Each entry has the fields of its dataclass as keys, in their order, but for what is said here.
What a gate reads of it stands in `document_rows`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite

from overheard.core.scorer import Score
from overheard.findings.exposures import About, Arm
from overheard.findings.finding import ArmRun, Audit, Finding, Refusal
from overheard.findings.row import Row

FORMAT = "overheard findings"

VERSION = 1
"""Goes up when a reader of the last version would misread a document."""

Entry = dict[str, object]


def findings_document(audit: Audit, every: Sequence[Arm], epsilon: Iterable[Entry]) -> str:
    """All that the audit found, as one document; a figure that is no number is null.

    Args:
        audit: what to tell.
        every: its arms, and what they gave away.
        epsilon: an entry a mechanism and group of observers; see `document_rows.EpsilonRow`.

    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": audit.title,
        "subject": audit.subject,
        "class_names": audit.class_names,
        "arms": [_run(run) for run in audit.arms],
        "summary": [
            _row(row, held.about)
            for arm in every
            for held in arm.exposures
            for row in held.rows
        ],
        "epsilon": list(epsilon),
        "findings": [_finding(finding) for finding in audit.findings],
        "refusals": [_refusal(refusal) for refusal in audit.refusals],
        "plan": audit.plan,
        "versions": dict(audit.versions),
    }
    parts = (f"{json.dumps(key)}: {_laid_out(value)}" for key, value in document.items())
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def entry_of(record: object, *left_out: str) -> Entry:
    """A dataclass as an entry: its fields, and theirs, but for those of its own left out.

    >>> from overheard.statistics.estimate import Estimate
    >>> entry_of(Estimate(0.5, float("nan"), None), "high")
    {'mean': 0.5, 'low': None}
    """
    assert is_dataclass(record)
    names = (field.name for field in fields(record))
    return {name: plain(getattr(record, name)) for name in names if name not in left_out}


def plain(value: object) -> object:
    """The value as JSON has it; a figure that is no number is None."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    return entry_of(value) if is_dataclass(value) else value


def _laid_out(value: object) -> str:
    """A list with a line an entry, anything else on one line.

    To indent every number, of 5,000 targets with 100 candidates each, takes 20 times as long.
    """
    if not isinstance(value, list) or not value:
        return json.dumps(value, allow_nan=False)
    lines = (json.dumps(one, allow_nan=False, separators=(",", ":")) for one in value)
    return "[\n  " + ",\n  ".join(lines) + "\n ]"


def _run(run: ArmRun) -> Entry:
    """A run; what its mechanisms come to stands under `epsilon`."""
    return {
        "arm": run.arm,
        "seed": run.seed,
        "defenses": [entry_of(defense, "accounted") for defense in run.defenses],
        "accuracy": plain(run.accuracy),
        "is_control": run.is_control,
        "answers": run.answers,
        "missing": run.missing,
        "bytes": plain(run.traffic),
        "seconds": plain(run.seconds),
        "has_truth": run.has_truth,
    }


def _row(row: Row, about: About) -> Entry:
    """A row, and whom it is about behind its question."""
    entry: Entry = {}
    for name, value in entry_of(row).items():
        entry[name] = value
        if name == "question":
            entry["about"] = about
    return entry


def _finding(finding: Finding) -> Entry:
    """A finding, with the fields of its cell in front, and its scores last."""
    scores = [_score(score) for score in finding.scores]
    own = entry_of(finding, "cell", "scores")
    return {**entry_of(finding.cell), **own, "scores": scores}


def _score(score: Score) -> Entry:
    """A score, and its gain."""
    return {**entry_of(score), "gain": plain(score.gain)}


def _refusal(refusal: Refusal) -> Entry:
    """A refusal, with the fields of its cell in front."""
    return {**entry_of(refusal.cell), **entry_of(refusal, "cell")}
