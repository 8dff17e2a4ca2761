"""The JSON document of an audit's findings, `findings.json`.

The keys of each entry are the fields of its dataclass, in order, unless stated otherwise. The
parts that a gate reads are defined in `document_rows`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from math import isfinite

from overheard.core.scorer import Score
from overheard.findings.audit import Audit
from overheard.findings.document_format import FORMAT, VERSION
from overheard.findings.finding import ArmRun, Cell, Finding, Refusal
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.findings.threat_verdict import TargetKind

Entry = dict[str, object]


def findings_document(
    audit: Audit,
    arms: Sequence[ArmResult],
    epsilon: Iterable[Entry],
    describe: Callable[[ThreatResult], str],
) -> str:
    """Write the findings of an audit as JSON; NaN and infinity become null.

    Args:
        audit: the audit.
        arms: results of its arms.
        epsilon: one entry per mechanism and group of observers; see `document_rows.EpsilonRow`.
        describe: states the result of a threat in a sentence.

    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": audit.title,
        "subject": audit.subject,
        "made_on": audit.made_on,
        "is_recorded": audit.is_recorded,
        "is_auxiliary_separate": audit.is_auxiliary_separate,
        "release": dict(audit.release),
        "class_names": audit.class_names,
        "arms": [_run(run) for run in audit.arms],
        "summary": [
            _row(row, result.target_kind)
            for arm in arms
            for result in arm.threat_results
            for row in result.rows
        ],
        "verdicts": [
            _verdict(result, describe(result)) for arm in arms for result in arm.threat_results
        ],
        "epsilon": list(epsilon),
        "findings": [_finding(finding) for finding in audit.findings],
        "refusals": [_refusal(refusal) for refusal in audit.refusals],
        "plan": audit.plan,
        "versions": dict(audit.versions),
    }
    entries = (f"{json.dumps(key)}: {_format_value(value)}" for key, value in document.items())
    return "{\n " + ",\n ".join(entries) + "\n}\n"


def to_entry(value: object, *left_out: str) -> Entry:
    """Convert a dataclass to an entry, recursively, without the fields named in `left_out`.

    >>> from overheard.statistics.estimate import Estimate
    >>> to_entry(Estimate(0.5, float("nan"), None, "runs", 4.0), "high")
    {'mean': 0.5, 'low': None, 'basis': 'runs', 'degrees': 4.0}
    """
    kind: type = type(value)
    return {
        name: to_json_value(getattr(value, name))
        for name in _field_names(kind)
        if name not in left_out
    }


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass once, as there are thousands of each."""
    assert is_dataclass(kind)
    return tuple(field.name for field in fields(kind))


def to_json_value(value: object) -> object:
    """Convert a value to JSON types; NaN and infinity become None."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_json_value(item) for name, item in value.items()}
    return to_entry(value) if is_dataclass(value) else value


def _format_value(value: object) -> str:
    """Write a list with one line an entry, and anything else on one line.

    Indenting every number, for 5,000 targets with 100 candidates each, takes 20 times as long.
    """
    if not isinstance(value, list) or not value:
        return json.dumps(value, allow_nan=False)
    lines = (json.dumps(item, allow_nan=False, separators=(",", ":")) for item in value)
    return "[\n  " + ",\n  ".join(lines) + "\n ]"


def _run(run: ArmRun) -> Entry:
    """Convert a run; the accounting of its mechanisms is under `epsilon`."""
    return {
        "arm": run.arm,
        "seed": run.seed,
        "defenses": [to_entry(defense, "accounted") for defense in run.defenses],
        "accuracy": to_json_value(run.accuracy),
        "is_control": run.is_control,
        "control": run.control,
        "control_number": run.control_number,
        "answers": run.answers,
        "missing": run.missing,
        "bytes": to_json_value(run.traffic),
        "seconds": to_json_value(run.seconds),
        "has_truth": run.has_truth,
        "in_clear": to_json_value(run.in_clear),
        "are_defenses_known": run.are_defenses_known,
        "utility": run.utility,
    }


def _row(row: ScoreRow, about: TargetKind) -> Entry:
    """Convert a row, with the target kind after its question."""
    entry: Entry = {}
    for name, value in to_entry(row).items():
        entry[name] = value
        if name == "question":
            entry["about"] = about
    return entry


def _verdict(result: ThreatResult, sentence: str) -> Entry:
    """Convert the verdict on a threat and question in an arm, with its place first."""
    results = result.attack_results
    return {
        "arm": result.arm,
        "observers": list(result.observers),
        "question": result.question,
        "about": result.target_kind,
        "score": results[0].headline if results else "",
        "sentence": sentence,
        **to_entry(result.judgement),
    }


def _finding(finding: Finding) -> Entry:
    """Convert a finding, with the fields of its cell first and its scores last.

    What only the tests of verdicts need is left out.
    """
    scores = [_score(score) for score in finding.scores]
    fields_of_finding = to_entry(
        finding, "cell", "scores", "sent_rounds", "redrawn_fits", "client"
    )
    return {**_cell(finding.cell), **fields_of_finding, "scores": scores}


@lru_cache
def _cell(cell: Cell) -> Mapping[str, object]:
    """Convert a cell once, as it has a finding for each of its targets."""
    return to_entry(cell)


def _score(score: Score) -> Entry:
    """Convert a score, and add its gain."""
    return {**to_entry(score), "gain": to_json_value(score.gain)}


def _refusal(refusal: Refusal) -> Entry:
    """Convert a refusal, with the fields of its cell first."""
    return {**_cell(refusal.cell), **to_entry(refusal, "cell")}
