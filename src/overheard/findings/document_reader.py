"""Reading of `findings.json`, which is treated as an untrusted file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Never, final

from pydantic import ValidationError, model_validator

from overheard.core.errors import FindingsError
from overheard.findings.document_format import FORMAT, VERSION
from overheard.findings.document_rows import (
    DocumentPart,
    EpsilonRow,
    RefusalRow,
    RunRow,
    SummaryRow,
    VerdictRow,
)
from overheard.findings.names import shorten

MAX_BYTES = 2 * 2**30
"""Largest file that is read: four times the largest of this project's own audits."""

SKIPPED_KEYS = frozenset({"blind", "candidates", "claimed", "scores", "timeline", "true"})
"""Keys with lists that no reader uses; they are dropped while reading. Reading 514 MiB, of 36
clients with one user each, then takes 10 s and 1.2 GiB of memory."""


@final
class FindingsDocument(DocumentPart):
    """The parts of an audit's findings that a gate and the evidence read.

    Args:
        title: title of the audit.
        subject: one sentence on what was audited.
        arms: one entry per run, controls included.
        summary: one entry per cell and score.
        refusals: one entry per target of an attack that could not run.
        verdicts: one entry per arm, observers, question and kind of target.
        epsilon: one entry per mechanism and group of observers.
        plan: the plan, as TOML; "" = none was written.
        versions: version of each software package.
        made_on: the day of the audit; "" = not known.
        is_recorded: whether a recorded run was audited.
        is_auxiliary_separate: whether attackers' own examples are known to be no client's.
        release: what the plan states on the release of the results, by name of the field.

    """

    title: str
    subject: str
    arms: tuple[RunRow, ...]
    summary: tuple[SummaryRow, ...]
    refusals: tuple[RefusalRow, ...]
    verdicts: tuple[VerdictRow, ...]
    epsilon: tuple[EpsilonRow, ...]
    plan: str
    versions: dict[str, str]
    made_on: str
    is_recorded: bool
    is_auxiliary_separate: bool
    release: dict[str, str]

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of all arms in the document, in its order."""
        of_runs = [run.arm for run in self.arms]
        of_rows = [row.arm for row in self.summary]
        of_refusals = [refusal.arm for refusal in self.refusals]
        of_epsilon = [row.arm for row in self.epsilon]
        return tuple(dict.fromkeys([*of_runs, *of_rows, *of_refusals, *of_epsilon]))

    @model_validator(mode="after")
    def _check_unique_rows(self) -> "FindingsDocument":
        rows = [(row.key, row.score) for row in self.summary]
        if len(set(rows)) < len(rows):
            raise ValueError("the summary has two rows with the same key and score")
        runs = [
            (run.arm, run.seed, run.is_control, run.control, run.control_number)
            for run in self.arms
        ]
        if len(set(runs)) < len(runs):
            raise ValueError("there are two runs with the same arm and seed")
        places = [
            (row.arm, frozenset(row.observers), row.question, row.about)
            for row in self.verdicts
        ]
        if len(set(places)) < len(places):
            raise ValueError("there are two verdicts on the same question")
        # A recording may state the same defense twice, with equal rows.
        distinct = set(self.epsilon)
        keys = {(row.arm, row.defense, frozenset(row.observers)) for row in distinct}
        if len(keys) < len(distinct):
            raise ValueError("epsilon has two different rows for the same mechanism")
        return self


def read_findings(path: Path) -> FindingsDocument:
    """Read the `findings.json` that `overheard audit` wrote.

    Raises:
        FindingsError: if the file cannot be read, is too large or damaged, has duplicate rows,
            or has another format or version.

    """
    return _validate(_load_document(path), path)


def parse_findings(text: str) -> FindingsDocument:
    """Parse a document that this process wrote, with the same checks as for a file."""
    return _validate(json.loads(text, object_pairs_hook=_unique_keys), Path("the audit"))


def _validate(document: dict[str, object], path: Path) -> FindingsDocument:
    if document.get("format") != FORMAT:
        raise _unreadable(path, f"its format is not {FORMAT!r}")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise FindingsError(
            f"{path}: the findings have version {shorten(repr(version), 40)}, but this "
            f"overheard reads version {VERSION}: run the audit again"
        )
    parts = {name: document[name] for name in FindingsDocument.model_fields if name in document}
    try:
        # Through JSON, where strict mode accepts an array for a tuple.
        return FindingsDocument.model_validate_json(json.dumps(parts, allow_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        problem = first["msg"].removeprefix("Value error, ")
        raise _unreadable(path, f"{where}: {problem}{more}") from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error


def _load_document(path: Path) -> dict[str, object]:
    try:
        if not path.is_file():
            raise _unreadable(path, "there is no such regular file")
        if path.stat().st_size > MAX_BYTES:
            raise _unreadable(path, f"it is larger than {MAX_BYTES // 2**30} GiB")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES)  # the file may grow meanwhile
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        parsed = json.loads(
            content.decode(), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise _unreadable(path, "it is nested too deeply") from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(parsed, dict):
        raise _unreadable(path, "it is not a JSON object")
    return parsed


def _unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an object has a duplicate key")
    return {
        key: value
        for key, value in values.items()
        # A number may have the name of a list, such as a claimed epsilon.
        if key not in SKIPPED_KEYS or not isinstance(value, list | dict)
    }


def _refuse_constant(constant: str) -> Never:
    raise ValueError(f"{constant} is not valid JSON")


def _unreadable(path: Path, why: str) -> FindingsError:
    return FindingsError(
        f"{path}: not valid findings of an audit ({shorten(why, 300)}): give the "
        "findings.json that `overheard audit` wrote; copy it again if it is incomplete, or run "
        "the audit again"
    )
