"""The ground truth of a run, in a file of its own that can be kept back."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.atomic import write_bytes
from overheard.archive.layout import truth_path
from overheard.archive.manifest import told
from overheard.core.errors import TranscriptError
from overheard.core.parties import party
from overheard.core.truth import GroundTruth


@dataclass(frozen=True, slots=True)
class _Counts:
    round: int
    party: str
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Accuracy:
    round: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class _Shifts:
    party: str
    rounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    counts: tuple[_Counts, ...]
    accuracy: tuple[_Accuracy, ...]
    # May be left out, so that whoever writes a truth by hand need not say that nothing shifts.
    shifts: tuple[_Shifts, ...] = ()


_PARSER = TypeAdapter(_Stored)


def write_truth(folder: Path, truth: GroundTruth) -> None:
    """Write the ground truth beside the transcript of a run."""
    stored = _Stored(
        tuple(
            _Counts(number, who, tuple(counts.tolist()))
            for (number, who), counts in truth.counts.items()
        ),
        tuple(_Accuracy(number, share) for number, share in truth.accuracy.items()),
        tuple(_Shifts(who, rounds) for who, rounds in truth.shifts.items()),
    )
    write_bytes(truth_path(folder), _PARSER.dump_json(stored) + b"\n")


def has_truth(folder: Path) -> bool:
    """Whether the ground truth of a run was written, and not kept back."""
    return truth_path(folder).exists()


def read_truth(folder: Path) -> GroundTruth:
    """The ground truth of a run.

    Raises:
        TranscriptError: if it is missing or damaged.

    """
    path = truth_path(folder)
    try:
        stored = _PARSER.validate_json(path.read_bytes())
        counts = {
            (entry.round, party(entry.party)): torch.tensor(entry.labels, dtype=torch.int64)
            for entry in stored.counts
        }
        shifts = {party(entry.party): entry.rounds for entry in stored.shifts}
    except OSError as error:
        raise TranscriptError(
            f"{path} cannot be read ({error.strerror}): without it a run can be attacked, "
            "not scored; copy it from where the run was made"
        ) from error
    except ValidationError as error:
        raise TranscriptError(f"{path} is damaged: {told(error)}; copy it anew") from error
    except ValueError as error:
        raise TranscriptError(f"{path} is damaged: {error}; copy it anew") from error
    accuracy = {entry.round: entry.accuracy for entry in stored.accuracy}
    return GroundTruth(counts, accuracy, shifts)
