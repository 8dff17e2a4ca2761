"""Reads the findings that an audit left: a stranger's file, so nothing in it is trusted."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Never, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from overheard.core.errors import FindingsError
from overheard.core.parties import COHORT
from overheard.core.scorer import Better
from overheard.report.exposures import About
from overheard.report.names import shortened
from overheard.report.tables import FORMAT, VERSION

MOST_BYTES = 2 * 2**30
"""Of a file that is read: four times the largest that our own audits have left."""

UNREAD = frozenset({"blind", "candidates", "claimed", "scores", "timeline", "true"})
"""What makes findings large and no gate looks at: dropped while reading. To read 514 MiB, of
36 clients that stand for users, then takes 10 s and 1.2 GiB of memory."""

Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Part(BaseModel):
    """A part of the document. Keys that we do not know are those of a later writer."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


@final
class Bounds(_Part):
    """A figure with its interval; None = no number, or no interval."""

    mean: float | None
    low: float | None
    high: float | None

    @model_validator(mode="after")
    def _in_order(self) -> "Bounds":
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"the interval ends at {self.high} before it begins at {self.low}")
        return self


@dataclass(frozen=True, slots=True)
class Place:
    """Who asked what of whom.

    Args:
        arm: name of the federation's variant.
        observers: who pooled what they read, in the order of the alphabet.
        attack: its name in the plan.
        question: name of its scorer.
        about: each client by itself, or all of them as one.
        rounds: that were listened to.

    """

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    about: About
    rounds: tuple[int, ...]


@final
class SummaryRow(_Part):
    """What one attack got out of all its targets, by one score; see `audit.row.Row`."""

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    about: About
    rounds: tuple[Count, ...]
    score: str
    better: Better
    value: Bounds
    gain: Bounds | None
    targets: Count
    seeds: Count

    @property
    def place(self) -> Place:
        """Who asked what of whom."""
        observers = tuple(sorted(self.observers))
        return Place(self.arm, observers, self.attack, self.question, self.about, self.rounds)


@final
class RefusalRow(_Part):
    """An attack that could not run on one target; see `audit.finding.Refusal`."""

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    rounds: tuple[Count, ...]
    target: str
    missing: tuple[str, ...]

    @property
    def place(self) -> Place:
        """Who would have asked what of whom."""
        observers = tuple(sorted(self.observers))
        about: About = "cohort" if self.target == COHORT else "clients"
        return Place(self.arm, observers, self.attack, self.question, about, self.rounds)


@final
class Sent(_Part):
    """Bytes that travelled in a run."""

    up: Count
    down: Count


@final
class Took(_Part):
    """Seconds of a run."""

    wall: Annotated[float, Field(ge=0)] | None


@final
class RunRow(_Part):
    """One federation; see `audit.finding.ArmRun`. Earlier writers counted no bytes, no time."""

    arm: str
    seed: Count
    is_control: bool
    accuracy: dict[Count, Annotated[float, Field(ge=0, le=1)] | None]
    bytes: Sent | None = None
    seconds: Took | None = None


@final
class Findings(_Part):
    """What a gate reads of an audit's findings.

    Args:
        title: of the audit.
        subject: one sentence on what was audited.
        arms: one entry a federation, controls included.
        summary: one entry a place and score.
        refusals: one entry a target of an attack that could not run.

    """

    title: str
    subject: str
    arms: tuple[RunRow, ...]
    summary: tuple[SummaryRow, ...]
    refusals: tuple[RefusalRow, ...]

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Of every arm that was run, listened to or refused, in the order of the document."""
        run = [one.arm for one in self.arms]
        heard = [one.arm for one in self.summary]
        refused = [one.arm for one in self.refusals]
        return tuple(dict.fromkeys([*run, *heard, *refused]))

    @model_validator(mode="after")
    def _says_all_once(self) -> "Findings":
        rows = [(row.place, row.score) for row in self.summary]
        if len(set(rows)) < len(rows):
            raise ValueError("the summary has two rows of one attack and score")
        runs = [(run.arm, run.seed, run.is_control) for run in self.arms]
        if len(set(runs)) < len(runs):
            raise ValueError("there are two runs of one arm and seed")
        return self


def read_findings(path: Path) -> Findings:
    """What `overheard audit` left in this file.

    Raises:
        FindingsError: if it cannot be read, is too large, damaged, says something twice, or is
            of another format or version.

    """
    document = _document(path)
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
