"""The JSON document of an audit's findings, `findings.json`, as it is written and read."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import final

from pydantic import ValidationError, model_validator

from overheard.core.errors import FindingsError
from overheard.core.parties import SERVER
from overheard.disk.bounded_errors import describe_errors
from overheard.disk.limits import FINDINGS, JSON_BYTE
from overheard.disk.reading import parse_json, read_small_file
from overheard.findings.document_rows import (
    DocumentPart,
    FindingRow,
    RecordingRow,
    RefusalRow,
    RunRow,
    SummaryRow,
    VerdictRow,
    check_targets,
)
from overheard.findings.names import shorten
from overheard.findings.privacy.epsilon_rows import CriticismRow, EpsilonRow
from overheard.findings.threat_verdict import NO_LEAK

FORMAT = "overheard findings"

VERSION = 2
"""Increased whenever a reader of the previous version would misread a document."""


@final
class FindingsDocument(DocumentPart):
    """The findings of an audit; the keys of the file are these fields, in order.

    Args:
        format: always `FORMAT`.
        version: always `VERSION`.
        title: title of the audit.
        subject: one sentence on what was audited.
        made_on: the day of the audit; "" = not known.
        is_recorded: whether a recorded run was audited.
        is_auxiliary_separate: whether attackers' own examples are known to be no client's.
        recording: what the check of the recording found; None = runs were simulated.
        release: what the plan states on the release of the results, by name of the field.
        class_names: name of each label.
        arms: one entry per run, controls included.
        summary: one entry per cell and score.
        verdicts: one entry per arm, observers, question and kind of target.
        epsilon: one entry per mechanism and group of observers.
        doctor: faults in the differential privacy of arms; of older versions none are known.
        findings: one entry per claim of an attack that ran; () if the document was read, as
            no reader uses them: reading 495 MiB then takes 8 s and 1.0 GiB of memory.
        refusals: one entry per target of an attack that could not run.
        plan: the plan, as TOML.
        versions: version of each software package.

    """

    format: str
    version: int
    title: str
    subject: str
    made_on: str
    is_recorded: bool
    is_auxiliary_separate: bool
    recording: RecordingRow | None = None
    release: dict[str, str]
    class_names: tuple[str, ...]
    arms: tuple[RunRow, ...]
    summary: tuple[SummaryRow, ...]
    verdicts: tuple[VerdictRow, ...]
    epsilon: tuple[EpsilonRow, ...]
    doctor: tuple[CriticismRow, ...] = ()
    findings: tuple[FindingRow, ...]
    refusals: tuple[RefusalRow, ...]
    plan: str
    versions: dict[str, str]

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of all arms in the document, in its order."""
        rows: tuple[RunRow | SummaryRow | RefusalRow | EpsilonRow, ...]
        rows = (*self.arms, *self.summary, *self.refusals, *self.epsilon)
        return tuple(dict.fromkeys(row.arm for row in rows))

    def to_json(self) -> str:
        """Return the text of the file, with one line for each row and each other value.

        Indenting every number, for 5,000 targets with 100 candidates each, takes 20 times as
        long.
        """
        entries = (f"{json.dumps(key)}: {_value_text(value)}" for key, value in self)
        return "{\n " + ",\n ".join(entries) + "\n}\n"

    @model_validator(mode="after")
    def _check_rows(self) -> "FindingsDocument":
        if flaw := next(_flaws(self), ""):
            raise ValueError(flaw)
        return self


def _flaws(document: FindingsDocument) -> Iterator[str]:
    """Yield which rows are about the same, and which contradict each other, as sentences."""
    yield from _duplicates(document)
    if document.made_on and not _is_day(document.made_on):
        yield f"made_on is {shorten(repr(document.made_on), 40)}, which is no day"
    recording = document.recording
    if recording is not None and not document.is_recorded:
        yield "there is a check of a recording, but is_recorded is false"
    contradicted = (
        recording is not None
        and recording.outcome == "contradicts"
        and not recording.accepted.strip()
    )
    failed = {
        (row.arm, frozenset(row.observers), row.question, row.key.about)
        for row in document.refusals
        if row.kind == "failed" and not row.is_control
    }
    arms = {run.arm for run in document.arms}
    for number, verdict in enumerate(document.verdicts):
        observers = frozenset(verdict.observers)
        if verdict.arm not in arms:
            name = shorten(repr(verdict.arm), 40)
            yield f"verdicts.{number}: there is no run of the arm {name}"
        if verdict.verdict not in NO_LEAK:
            continue
        if (verdict.arm, observers, verdict.question, verdict.about) in failed:
            yield (
                f"verdicts.{number}: verdict {verdict.verdict!r} contradicts a refusal, as an "
                "attack failed"
            )
        # The server reads all messages, and so those that contradict.
        if contradicted and SERVER in observers:
            yield (
                f"verdicts.{number}: verdict {verdict.verdict!r} contradicts the check of the "
                "recording"
            )


def _duplicates(document: FindingsDocument) -> Iterator[str]:
    rows = [(row.key, row.score) for row in document.summary]
    if len(set(rows)) < len(rows):
        yield "the summary has two rows with the same key and score"
    runs = [
        (run.arm, run.seed, run.is_control, run.control, run.control_number)
        for run in document.arms
    ]
    if len(set(runs)) < len(runs):
        yield "there are two runs with the same arm and seed"
    places = [
        (row.arm, frozenset(row.observers), row.question, row.about)
        for row in document.verdicts
    ]
    if len(set(places)) < len(places):
        yield "there are two verdicts on the same question"
    # A recording may state the same defense twice, with equal rows.
    distinct = set(document.epsilon)
    keys = {(row.arm, row.defense, frozenset(row.observers)) for row in distinct}
    if len(keys) < len(distinct):
        yield "epsilon has two different rows for the same mechanism"


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _value_text(value: object) -> str:
    if isinstance(value, DocumentPart):
        return _line(value)
    if not isinstance(value, tuple) or not value or not isinstance(value[0], DocumentPart):
        return json.dumps(value, allow_nan=False)
    return "[\n  " + ",\n  ".join(map(_line, value)) + "\n ]"


def _line(row: DocumentPart) -> str:
    return json.dumps(row.model_dump(), allow_nan=False, separators=(",", ":"))


def read_findings(path: Path) -> FindingsDocument:
    """Read the `findings.json` that `overheard audit` wrote, which may be an untrusted file.

    Raises:
        FindingsError: if the file cannot be read, is too large or damaged, has duplicate rows,
            or has another format or version.

    """
    document = _load(path)
    if document.get("format") != FORMAT:
        raise _unreadable(path, f"its format is not {FORMAT!r}")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise FindingsError(
            f"{path}: the findings have version {shorten(repr(version), 40)}, but this "
            f"overheard reads version {VERSION}: run the audit again"
        )
    claims = document.get("findings")
    if not isinstance(claims, list) or not all(isinstance(one, dict) for one in claims):
        raise _unreadable(path, "findings: it is no list of objects")
    try:
        # Through JSON, where strict mode accepts an array for a tuple.
        parts = {
            name: document[name] for name in FindingsDocument.model_fields if name in document
        }
        text = json.dumps({**parts, "findings": ()}, allow_nan=False)
        return FindingsDocument.model_validate_json(text)
    except ValidationError as error:
        raise _unreadable(path, describe_flaw(error)) from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error


def describe_flaw(error: ValidationError) -> str:
    """Return the first thing that is wrong with findings, and where."""
    first = describe_errors(error)[0]
    where = ".".join(str(step) for step in first["loc"]) or "the whole"
    more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    problem = first["msg"].removeprefix("Value error, ")
    return f"{where}: {problem}{more}"


def _load(path: Path) -> dict[str, object]:
    content = read_small_file(path, FindingsError, part=FINDINGS, weight=JSON_BYTE)
    try:
        parsed = parse_json(
            content,
            "the file",
            FindingsError,
            part=FINDINGS,
            make_object=_unique_keys,
            refuses_nan=True,
        )
    except FindingsError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(parsed, dict):
        raise _unreadable(path, "it is not a JSON object")
    return parsed


def _unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an object has a duplicate key")
    if "scores" not in values:
        return values
    _check_names(values)
    # Findings, alone to have scores, are dropped while reading: they would fill the memory.
    return {}


def _check_names(finding: Mapping[str, object]) -> None:
    """Check whom a claim is about, as its names go into releases."""
    targets, observers = (_names(finding.get(key, [])) for key in ("targets", "observers"))
    check_targets(str(finding.get("target")), targets, observers)


def _names(value: object) -> list[str]:
    names = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    if names != value:
        raise ValueError("'targets' and 'observers' of a finding must be lists of names")
    return names


def _unreadable(path: Path, why: str) -> FindingsError:
    return FindingsError(
        f"{path}: not valid findings of an audit ({shorten(why, 300)}): give the "
        "findings.json that `overheard audit` wrote; copy it again if it is incomplete, or run "
        "the audit again"
    )
