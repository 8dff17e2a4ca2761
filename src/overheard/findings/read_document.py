"""Reads the findings that an audit left: a stranger's file, so nothing in it is trusted."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Never, final

from pydantic import ValidationError, model_validator

from overheard.core.errors import FindingsError
from overheard.findings.document import FORMAT, VERSION
from overheard.findings.document_rows import (
    DocumentPart,
    EpsilonRow,
    RefusalRow,
    RunRow,
    SummaryRow,
)
from overheard.findings.names import shortened

MOST_BYTES = 2 * 2**30
"""Of a file that is read: four times the largest that our own audits have left."""

UNREAD = frozenset({"blind", "candidates", "claimed", "scores", "timeline", "true"})
"""What makes findings large and no gate looks at: dropped while reading. To read 514 MiB, of
36 clients that stand for users, then takes 10 s and 1.2 GiB of memory."""


@final
class Findings(DocumentPart):
    """What a gate reads of an audit's findings.

    Args:
        title: of the audit.
        subject: one sentence on what was audited.
        arms: one entry a federation, controls included.
        summary: one entry a place and score.
        refusals: one entry a target of an attack that could not run.
        epsilon: one entry a mechanism and group of observers; None = an earlier writer, which
            told nothing of epsilon.

    """

    title: str
    subject: str
    arms: tuple[RunRow, ...]
    summary: tuple[SummaryRow, ...]
    refusals: tuple[RefusalRow, ...]
    epsilon: tuple[EpsilonRow, ...] | None = None

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Of every arm that anything is said of, in the order of the document."""
        run = [one.arm for one in self.arms]
        heard = [one.arm for one in self.summary]
        refused = [one.arm for one in self.refusals]
        noised = [one.arm for one in self.epsilon or ()]
        return tuple(dict.fromkeys([*run, *heard, *refused, *noised]))

    @model_validator(mode="after")
    def _says_all_once(self) -> "Findings":
        rows = [(row.place, row.score) for row in self.summary]
        if len(set(rows)) < len(rows):
            raise ValueError("the summary has two rows of one attack and score")
        runs = [(run.arm, run.seed, run.is_control) for run in self.arms]
        if len(set(runs)) < len(runs):
            raise ValueError("there are two runs of one arm and seed")
        # A recording may state one and the same defense twice, and then says the same of both.
        lines = set(self.epsilon or ())
        if len({(one.arm, one.defense, frozenset(one.observers)) for one in lines}) < len(
            lines
        ):
            raise ValueError("epsilon has two lines of one mechanism that differ")
        return self


def read_findings(path: Path) -> Findings:
    """What `overheard audit` left in this file.

    Raises:
        FindingsError: if it cannot be read, is too large, damaged, says something twice, or is
            of another format or version.

    """
    return _checked(_document(path), path)


def findings_in(text: str) -> Findings:
    """Read a document that this process wrote, by the same rules as a file."""
    return _checked(json.loads(text, object_pairs_hook=_said_once), Path("the audit"))


def _checked(document: dict[str, object], path: Path) -> Findings:
    if document.get("format") != FORMAT:
        raise _refused(path, f"its format is not {FORMAT!r}")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise FindingsError(
            f"{path}: holds findings of version {shortened(repr(version), 40)}, and this "
            f"overheard reads {VERSION}: audit again, or check by the overheard that wrote it"
        )
    parts = {name: document[name] for name in Findings.model_fields if name in document}
    try:
        # Through JSON, as there an array may stand for a tuple and yet all else is strict.
        return Findings.model_validate_json(json.dumps(parts, allow_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        said = first["msg"].removeprefix("Value error, ")
        raise _refused(path, f"{where}: {said}{more}") from error
    except ValueError as error:
        raise _refused(path, str(error)) from error


def _document(path: Path) -> dict[str, object]:
    try:
        if not path.is_file():
            raise _refused(path, "there is no such plain file")
        if path.stat().st_size > MOST_BYTES:
            raise _refused(path, f"it is larger than {MOST_BYTES // 2**30} GiB")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES)  # no more, should it grow meanwhile
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    try:
        found = json.loads(
            content.decode(), object_pairs_hook=_said_once, parse_constant=_no_number
        )
    except RecursionError as error:
        raise _refused(path, "it is nested too deeply") from error
    except ValueError as error:
        raise _refused(path, str(error)) from error
    if not isinstance(found, dict):
        raise _refused(path, "it is no object")
    return found


def _said_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return {key: value for key, value in found.items() if key not in UNREAD}


def _no_number(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _refused(path: Path, why: str) -> FindingsError:
    return FindingsError(
        f"{path}: holds no findings of an audit ({shortened(why, 300)}): name the "
        "findings.json that `overheard audit` left, and copy it anew if it was cut"
    )
