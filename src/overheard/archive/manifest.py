"""What a transcript says about the run that it comes from."""

import json
import platform
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.atomic import write_bytes
from overheard.archive.layout import is_there, manifest_path, read_inside, transcript_folder
from overheard.core.defense import Defense, Site
from overheard.core.errors import TranscriptError
from overheard.core.parties import party
from overheard.core.recipe import Recipe
from overheard.core.task import Task

FORMAT = 1
"""Counts up whenever an older overheard could misread what this one writes."""

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


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was run, with which settings, by which versions.

    Args:
        model: the architecture, such as "decaf_cnn" or "package.module:build".
        recipe: how clients trained; None where a recording does not tell.
        defenses: in the order in which they acted.
        parties: everyone who took part.
        rounds: how many were planned; the transcript is complete once 0..rounds are
            committed, the last of which holds the final model and no answers.
        participation: share of the clients asked in a round; None where not known.
        failure_rate: how often a client that was asked gave no answer, by design.
        are_shadows_defended: whether defenses that clients enforce acted on shadow devices too.
        protocol: what travels and how, with its settings; "fedavg" where weights do.
        seed: None for a recording of a run that had none.
        data: digest of all examples and who held them when; "" for a recording.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    task: Task
    model: str
    recipe: Recipe | None
    defenses: tuple[DefenseRecord, ...]
    parties: tuple[str, ...]
    rounds: int
    participation: float | None = None
    failure_rate: float = 0.0
    are_shadows_defended: bool = False
    protocol: str = "fedavg"
    seed: int | None = None
    data: str = ""
    overheard: str = _OVERHEARD
    torch: str = _TORCH
    python: str = platform.python_version()
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Refuse parties whose names are unsafe and a number of rounds that cannot be."""
        for name in self.parties:
            party(name)
        if self.rounds < 0:
            raise ValueError(f"a run has 0 rounds or more, got {self.rounds}")


def record(defense: Defense) -> DefenseRecord:
    """Put down one defense as it was in force."""
    return DefenseRecord(
        defense.name, repr(defense), defense.enforced_at, defense.switched_off_by
    )


def differences(
    there: Manifest, here: Manifest, apart_from: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Name the fields in which two runs differ, with both values."""
    return tuple(
        f"{name} (there {getattr(there, name)!r}, here {getattr(here, name)!r})"
        for name in (field.name for field in fields(Manifest))
        if name not in apart_from and getattr(there, name) != getattr(here, name)
    )


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


def told(error: ValidationError) -> str:
    """All that is wrong with what was read, each with its place, on one line."""
    return "; ".join(
        f"{'.'.join(str(part) for part in flaw['loc']) or 'the whole'}: {flaw['msg']}"
        for flaw in error.errors(include_url=False, include_input=False)
    )


def _refuse_newer(path: Path, content: bytes) -> None:
    """Look at the format before all else: a newer one may differ in everything else."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TranscriptError(
            f"{path} is damaged, it is no JSON ({error}): copy the transcript anew, whole"
        ) from error
    found = whole.get("format") if isinstance(whole, dict) else None
    if isinstance(found, int) and found > FORMAT:
        raise TranscriptError(
            f"{path} is of format {found}, written by overheard {whole.get('overheard')}; "
            f"overheard {_OVERHEARD} reads formats up to {FORMAT}: upgrade overheard"
        )


_PARSER = TypeAdapter(Manifest)
