"""The manifest of a transcript: which run it records, with which settings."""

import platform
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import (
    count_committed_rounds,
    manifest_path,
    path_exists,
    round_folder,
    transcript_folder,
)
from overheard.archive.purge_note import find_purge
from overheard.archive.repeated_keys import find_repeated, refuse_repeated_keys
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.mechanism import ClientSampling, Mechanism, Site
from overheard.core.parties import parse_party
from overheard.core.recipe import Recipe
from overheard.core.settings import (
    Positive,
    PositiveShare,
    RoundNumber,
    Settings,
    Share,
    mistake_text,
)
from overheard.core.task import Task
from overheard.disk.bounded_errors import BOUNDED, describe_errors
from overheard.disk.limits import check_json
from overheard.disk.open_folder import output_error
from overheard.disk.reading import parse_json, read_json_text
from overheard.disk.writing import is_partial, remove_partial_files, write_bytes

FORMAT = 1
"""Format version; increased whenever an older Overheard could misread the files."""

MAX_REPORTED_ERRORS = 12
"""Most errors of a damaged file that a message lists; further ones are counted."""

SIMULATION = "overheard"
"""The framework of runs that Overheard simulates."""

UNTOLD_FRAMEWORK = "not told"
"""The framework of runs of which nobody says what ran them."""

SOFTWARE_FIELDS = frozenset({"overheard", "torch", "python"})
"""The fields for software versions, which do not describe the run itself."""

_OVERHEARD = version("overheard")
_TORCH = version("torch")


@dataclass(frozen=True, slots=True)
class DefenseRecord:
    """One defense of a run."""

    name: str
    settings: str
    """Its repr."""
    enforced_at: Site
    switched_off_by: str
    mechanism: Mechanism | None = None
    """Its noise mechanism; None = it states none."""


@dataclass(frozen=True, slots=True)
class Manifest(Settings):
    """The description of a run: its settings and the software that ran it.

    Args:
        task: the learning task; None if unknown, as for a recording.
        model: the architecture, such as "decaf_cnn" or "package.module:build"; "" if unknown.
        recipe: how clients trained; None if unknown.
        defenses: in the order in which they were applied.
        parties: all parties expected to take part, as known at the start.
        rounds: number of planned rounds; the transcript is complete once rounds 0..rounds are
            committed. The last has the final model and no replies. None = unknown, as for a
            recording; any number of rounds is then complete.
        participation: share of the clients selected in a round; None if unknown.
        failure_rate: simulated probability that a selected client does not reply.
        are_shadows_defended: whether client-side defenses applied to shadow devices too.
        protocol: the protocol with its settings; "fedavg" if clients send weights.
        seed: None for a recording of a run without a seed.
        data: digest of all examples and their partition by round; "" for a recording.
        framework: that ran the federation, with its version.
        left_out: names of model tensors that are no floating-point numbers; they were sent but
            are not in the transcript.
        are_defenses_stated: whether a recording states that `defenses` are all that there are,
            so that () means none and not that nobody told.
        algorithm: the algorithm of a recording with its settings, such as
            "FedProx(mu=0.1, mean='examples')"; "" if unknown, or if `protocol` has it.
        sampling: how the clients of a round were sampled; None = not stated, or `protocol` has
            it.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    task: Task | None
    model: str
    recipe: Recipe | None
    defenses: tuple[DefenseRecord, ...]
    parties: tuple[str, ...]
    rounds: RoundNumber | None
    participation: PositiveShare | None = None
    failure_rate: Share = 0.0
    are_shadows_defended: bool = False
    protocol: str = "fedavg"
    seed: int | None = None
    data: str = ""
    framework: str = SIMULATION
    left_out: tuple[str, ...] = ()
    are_defenses_stated: bool = False
    algorithm: str = ""
    sampling: ClientSampling | None = None
    overheard: str = _OVERHEARD
    torch: str = _TORCH
    python: str = platform.python_version()
    format: Positive = FORMAT

    def check_together(self) -> None:
        """Check the names of parties."""
        for name in self.parties:
            parse_party(name)
        for key, names in (("parties", self.parties), ("left_out", self.left_out)):
            if repeated := find_repeated(names):
                raise ValueError(f"{key} names {repeated[0]} twice")

    @property
    def are_defenses_known(self) -> bool:
        """Whether `defenses` are all that were in force, as far as the run states it."""
        return bool(self.defenses) or self.are_defenses_stated or self.framework == SIMULATION


def describe_differences(
    stored: Manifest, current: Manifest, ignored_fields: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Describe the fields in which two manifests differ, with both values."""
    return tuple(
        f"{name} (stored {printable_excerpt(repr(getattr(stored, name)))}, "
        f"given {printable_excerpt(repr(getattr(current, name)))})"
        for name in (field.name for field in fields(Manifest))
        if name not in ignored_fields and getattr(stored, name) != getattr(current, name)
    )


def begin_run(folder: Path, manifest: Manifest, *, inside: Path) -> int:
    """Start a run in a folder, or continue the same run; return its number of committed rounds.

    What a killed process left half written in it is removed. So no other process may write to
    the same run: see `disk.folder_lock`.

    Args:
        folder: the folder of the run.
        manifest: the manifest of the run.
        inside: the output folder that the folder of the run is in.

    Raises:
        OutputError: if the folder has another run or cannot be written to; it is then left
            unchanged.

    """
    transcript = folder / "transcript"
    if path_exists(manifest_path(transcript)):
        _check_same_run(folder, manifest)
    else:
        _check_no_other_files(transcript)
        write_manifest(transcript, manifest, inside=inside)
    committed = count_committed_rounds(folder)
    # Messages may have been added to the last round after it was committed.
    last = [round_folder(transcript, committed - 1)] if committed else []
    for written in (folder, transcript, *last):
        remove_partial_files(written, inside=inside)
    return committed


def write_manifest(transcript: Path, manifest: Manifest, *, inside: Path | None = None) -> None:
    """Write the manifest of a transcript.

    Args:
        transcript: the folder of the transcript.
        manifest: the manifest.
        inside: the output folder that the transcript is in; None = they are one.

    Raises:
        OutputError: if `read_manifest` would refuse it, a number is not finite, or the disk
            does not allow it.

    """
    path = manifest_path(transcript)
    # Warnings of wrong types are off, as reading the content names them.
    is_usual = manifest.recipe is None or manifest.recipe.precision == "float32"
    left_out = {"recipe": {"precision"}} if manifest.recipe is not None and is_usual else None
    content = _PARSER.dump_json(manifest, indent=2, warnings=False, exclude=left_out) + b"\n"
    check_json(content, str(path), OutputError)
    try:
        parsed = _PARSER.validate_json(content)
    except ValidationError as error:
        raise OutputError(
            f"cannot write {path}: {describe_validation_error(error)}; correct what the run "
            "states"
        ) from error
    # NaN and infinity are no JSON, and become null.
    lost = [
        one.name
        for one in fields(manifest)
        if getattr(parsed, one.name) is None and getattr(manifest, one.name) is not None
    ]
    if lost:
        raise OutputError(
            f"cannot write {path}: {', '.join(lost)} must be a finite number; correct what the "
            "run states"
        )
    write_bytes(path, content, inside=transcript if inside is None else inside)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a transcript, given its folder or the folder of its run.

    Raises:
        TranscriptError: if there is none, or it is damaged or of a newer format.

    """
    transcript = transcript_folder(folder)
    path = manifest_path(transcript)
    if not path_exists(path):
        if purged := find_purge(folder):
            raise TranscriptError(purged)
        raise TranscriptError(
            f"{folder} holds no transcript (no {path.name}): name the folder of a run"
        )
    content = read_json_text(path, TranscriptError, inside=transcript)
    _check_format(path, content)
    try:
        return _PARSER.validate_json(content)
    except ValidationError as error:
        raise TranscriptError(
            f"{path} is damaged: {describe_validation_error(error)}; copy the whole transcript "
            "again"
        ) from error


def is_complete(folder: Path) -> bool:
    """Return whether all planned rounds and the closing broadcast are committed.

    If the number of planned rounds is unknown, any number counts as complete.
    """
    planned = read_manifest(folder).rounds
    return planned is None or count_committed_rounds(folder) == planned + 1


def describe_validation_error(error: ValidationError) -> str:
    """Describe all validation errors with their locations, on one line."""
    errors = describe_errors(error)
    locations = [
        ".".join(str(part) for part in flaw["loc"]) or "the document" for flaw in errors
    ]
    more = (
        [f"and {len(errors) - MAX_REPORTED_ERRORS} more"]
        if len(errors) > MAX_REPORTED_ERRORS
        else []
    )
    described = [
        f"{printable_excerpt(location)}: {printable_excerpt(mistake_text(flaw))}"
        for location, flaw in zip(locations[:MAX_REPORTED_ERRORS], errors, strict=False)
    ]
    return "; ".join(described + more)


def describe_damage(error: ValueError) -> str:
    """Describe why a stored file is damaged, on one line."""
    if isinstance(error, ValidationError):
        return describe_validation_error(error)
    return printable_excerpt(str(error))


def _check_same_run(folder: Path, manifest: Manifest) -> None:
    """Raise unless the folder has the same run.

    Software versions must match only if the run is to be continued, as they may change bits.
    """
    apart_from = SOFTWARE_FIELDS if is_complete(folder) else frozenset()
    differing = describe_differences(read_manifest(folder), manifest, apart_from)
    if differing:
        raise OutputError(
            f"{folder} has another run, which differs in {'; '.join(differing)}: choose "
            "another folder, or remove this one to start again"
        )


def _check_no_other_files(transcript: Path) -> None:
    """Raise if a folder without manifest has files, other than partial ones."""
    try:
        inside = [] if not transcript.exists() else sorted(transcript.iterdir())
    except OSError as error:
        raise output_error(transcript, error) from error
    others = [path.name for path in inside if not is_partial(path)]
    if others:
        raise OutputError(
            f"{transcript} has {others[0]!r} and no manifest, so it is no transcript: choose "
            "another folder, or empty this one"
        )


def _check_format(path: Path, content: bytes) -> None:
    """Raise if the format is newer; checked first, as other fields may then differ."""
    try:
        refuse_repeated_keys(content)
    except ValueError as error:
        raise TranscriptError(
            f"{path} is damaged, it is no valid JSON ({describe_damage(error)}): copy the "
            "whole transcript again"
        ) from error
    document = parse_json(content, str(path), TranscriptError)
    found = document.get("format") if isinstance(document, dict) else None
    if isinstance(found, int) and found > FORMAT:
        writer = printable_excerpt(str(document.get("overheard")))
        raise TranscriptError(
            f"{path} is of format {printable_excerpt(str(found))}, written by overheard "
            f"{writer}; overheard {_OVERHEARD} reads formats up to {FORMAT}: upgrade overheard"
        )


_PARSER: TypeAdapter[Manifest] = TypeAdapter(Annotated[Manifest, BOUNDED])
