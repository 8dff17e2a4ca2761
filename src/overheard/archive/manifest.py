"""What a transcript says about the run that it comes from."""

import json
import platform
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.atomic import output_error, partial, write_bytes
from overheard.archive.layout import (
    committed_rounds,
    is_there,
    manifest_path,
    read_inside,
    transcript_folder,
)
from overheard.archive.spelled import spelled
from overheard.core.defense import Defense, Site
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.mechanism import Mechanism
from overheard.core.parties import party
from overheard.core.recipe import Recipe
from overheard.core.task import Task

FORMAT = 1
"""Counts up whenever an older overheard could misread what this one writes."""

MOST_FLAWS = 12
"""Told of a damaged file at most; how many more there are is counted."""

WRITERS = frozenset({"overheard", "torch", "python"})
"""The fields that tell with what a run was made, not what it was."""

_OVERHEARD = version("overheard")
_TORCH = str(torch.__version__)


@dataclass(frozen=True, slots=True)
class DefenseRecord:
    """One defense that was in force."""

    name: str
    settings: str
    """Its repr, which is its record."""
    enforced_at: Site
    switched_off_by: str
    mechanism: Mechanism | None = None
    """Of the noise that it adds; None = it states none."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was run, with which settings, by which versions.

    Args:
        task: what is learned; None where a recording does not tell.
        model: the architecture, such as "decaf_cnn" or "package.module:build"; "" where a
            recording does not tell.
        recipe: how clients trained; None where a recording does not tell.
        defenses: in the order in which they acted.
        parties: everyone who was to take part, as known at the start.
        rounds: how many were planned; the transcript is complete once 0..rounds are
            committed, the last of which holds the final model and no answers. None where a
            recording does not tell: it is then as long as it is.
        participation: share of the clients asked in a round; None where not known.
        failure_rate: how often a client that was asked gave no answer, by design.
        are_shadows_defended: whether defenses that clients enforce acted on shadow devices too.
        protocol: what travels and how, with its settings; "fedavg" where weights do.
        seed: None for a recording of a run that had none.
        data: digest of all examples and who held them when; "" for a recording.
        framework: that ran it, with its version.
        left_out: tensors of the model that are no floating-point numbers, by name: they
            travelled, and are not in the transcript.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    task: Task | None
    model: str
    recipe: Recipe | None
    defenses: tuple[DefenseRecord, ...]
    parties: tuple[str, ...]
    rounds: int | None
    participation: float | None = None
    failure_rate: float = 0.0
    are_shadows_defended: bool = False
    protocol: str = "fedavg"
    seed: int | None = None
    data: str = ""
    framework: str = "overheard"
    left_out: tuple[str, ...] = ()
    overheard: str = _OVERHEARD
    torch: str = _TORCH
    python: str = platform.python_version()
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Refuse parties whose names are unsafe and a number of rounds that cannot be."""
        for name in self.parties:
            party(name)
        if self.rounds is not None and self.rounds < 0:
            raise ValueError(f"a run has 0 rounds or more, got {self.rounds}")


def record(defense: Defense) -> DefenseRecord:
    """Put down one defense as it was in force."""
    return DefenseRecord(
        defense.name,
        repr(defense),
        defense.enforced_at,
        defense.switched_off_by,
        defense.mechanism(),
    )


def differences(
    there: Manifest, here: Manifest, apart_from: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Name the fields in which two runs differ, with both values."""
    return tuple(
        f"{name} (there {spelled(repr(getattr(there, name)))}, "
        f"here {spelled(repr(getattr(here, name)))})"
        for name in (field.name for field in fields(Manifest))
        if name not in apart_from and getattr(there, name) != getattr(here, name)
    )


def begin(folder: Path, manifest: Manifest) -> int:
    """Begin a run in a folder, or see that it holds the same run; tells how many rounds it has.

    Raises:
        OutputError: if the folder holds another run, or cannot be written to; nothing in it is
            then changed.

    """
    transcript = folder / "transcript"
    if is_there(manifest_path(transcript)):
        _refuse_another_run(folder, manifest)
    else:
        _refuse_strangers(transcript)
        write_manifest(transcript, manifest)
    return committed_rounds(folder)


def write_manifest(transcript: Path, manifest: Manifest) -> None:
    """Write the manifest of a transcript."""
    write_bytes(manifest_path(transcript), _PARSER.dump_json(manifest, indent=2) + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """What was run, from a run's folder or a transcript's.

    Raises:
        TranscriptError: if there is none, or it is damaged or of a newer format.

    """
    transcript = transcript_folder(folder)
    path = manifest_path(transcript)
    if not is_there(path):
        raise TranscriptError(
            f"{folder} holds no transcript (no {path.name}): name the folder of a run"
        )
    content = read_inside(path, transcript)
    _refuse_newer(path, content)
    try:
        return _PARSER.validate_json(content)
    except ValidationError as error:
        raise TranscriptError(
            f"{path} is damaged: {told(error)}; copy the transcript anew, whole"
        ) from error


def is_complete(folder: Path) -> bool:
    """Whether every planned round and the closing broadcast are there.

    A recording that does not tell how many were planned is as long as it is.
    """
    planned = read_manifest(folder).rounds
    return planned is None or committed_rounds(folder) == planned + 1


def told(error: ValidationError) -> str:
    """All that is wrong with what was read, each with its place, on one line."""
    flaws = error.errors(include_url=False, include_input=False)
    places = [".".join(str(part) for part in flaw["loc"]) or "the whole" for flaw in flaws]
    more = [f"and {len(flaws) - MOST_FLAWS} more"] if len(flaws) > MOST_FLAWS else []
    told_each = [
        f"{spelled(place)}: {spelled(flaw['msg'])}"
        for place, flaw in zip(places[:MOST_FLAWS], flaws, strict=False)
    ]
    return "; ".join(told_each + more)


def _refuse_another_run(folder: Path, manifest: Manifest) -> None:
    """Other versions may calculate other bits: they may open a run, yet not go on with it."""
    apart_from = WRITERS if is_complete(folder) else frozenset()
    differing = differences(read_manifest(folder), manifest, apart_from)
    if differing:
        raise OutputError(
            f"{folder} holds another run, which differs in {'; '.join(differing)}: choose "
            "another folder, or remove this one to start anew"
        )


def _refuse_strangers(transcript: Path) -> None:
    """Without a manifest there may be nothing but what a kill left of one."""
    try:
        inside = [] if not transcript.exists() else sorted(transcript.iterdir())
    except OSError as error:
        raise output_error(transcript, error) from error
    strange = [path.name for path in inside if path != partial(manifest_path(transcript))]
    if strange:
        raise OutputError(
            f"{transcript} holds {strange[0]!r} and no manifest, so it is no transcript: "
            "choose another folder, or empty this one"
        )


def _refuse_newer(path: Path, content: bytes) -> None:
    """Look at the format before all else: a newer one may differ in everything else."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TranscriptError(
            f"{path} is damaged, it is no JSON ({spelled(str(error))}): copy the transcript "
            "anew, whole"
        ) from error
    found = whole.get("format") if isinstance(whole, dict) else None
    if isinstance(found, int) and found > FORMAT:
        writer = spelled(str(whole.get("overheard")))
        raise TranscriptError(
            f"{path} is of format {spelled(str(found))}, written by overheard {writer}; "
            f"overheard {_OVERHEARD} reads formats up to {FORMAT}: upgrade overheard"
        )


_PARSER = TypeAdapter(Manifest)
