"""The ground truth of a run, in a separate file that need not be shared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from overheard.archive.atomic import write_bytes
from overheard.archive.layout import is_there, read_inside, truth_path
from overheard.archive.manifest import told
from overheard.archive.spelled import spelled
from overheard.core.errors import DataError, TranscriptError
from overheard.core.parties import Party, party
from overheard.core.truth import GroundTruth

LONGEST_NAME = 200
"""Longest name of a user, attribute or value, in characters."""


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
    # Optional, for ground truths written by hand.
    shifts: tuple[_Shifts, ...] = ()
    # By party; then by attribute and user.
    users: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Indices of member records by party, and the digest of the list of candidate records.
    members: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    canaries: Annotated[str, Field(max_length=LONGEST_NAME, pattern="^[0-9a-f]*$")] = ""


_PARSER = TypeAdapter(_Stored)


def write_truth(folder: Path, truth: GroundTruth) -> None:
    """Write the ground truth beside the transcript of a run.

    Raises:
        DataError: if a user, an attribute or a value has an invalid name.

    """
    try:
        _check_names(truth.users, truth.attributes)
    except ValueError as error:
        raise DataError(f"{error}; rename it in the data") from error
    stored = _Stored(
        tuple(
            _Counts(number, client, tuple(counts.tolist()))
            for (number, client), counts in truth.counts.items()
        ),
        tuple(_Accuracy(number, share) for number, share in truth.accuracy.items()),
        tuple(_Shifts(client, rounds) for client, rounds in truth.shifts.items()),
        {str(client): user for client, user in truth.users.items()},
        {attribute: dict(values) for attribute, values in truth.attributes.items()},
        {str(client): indices for client, indices in truth.members.items()},
        truth.canaries,
    )
    write_bytes(truth_path(folder), _PARSER.dump_json(stored) + b"\n")


def has_truth(folder: Path) -> bool:
    """Return whether the ground truth of a run is there."""
    return is_there(truth_path(folder))


def read_truth(folder: Path) -> GroundTruth:
    """Read the ground truth of a run.

    Raises:
        TranscriptError: if it is missing or damaged.

    """
    path = truth_path(folder)
    if not has_truth(folder):
        raise TranscriptError(
            f"{path} is missing: attacks can run without it, but claims cannot be scored; copy "
            "it from the run"
        )
    try:
        stored = _PARSER.validate_json(read_inside(path, folder))
        counts = {
            (entry.round, party(entry.party)): torch.tensor(entry.labels, dtype=torch.int64)
            for entry in stored.counts
        }
        shifts = {party(entry.party): entry.rounds for entry in stored.shifts}
        users = {party(client): user for client, user in stored.users.items()}
        members = {party(client): indices for client, indices in stored.members.items()}
        if any(
            min(indices, default=0) < 0 or len({*indices}) < len(indices)
            for indices in members.values()
        ):
            raise ValueError("members must be distinct indices of records, from 0")
        _check_names(users, stored.attributes)
    except ValidationError as error:
        raise TranscriptError(f"{path} is damaged: {told(error)}; copy it again") from error
    except (ValueError, OverflowError, RuntimeError) as error:
        raise TranscriptError(
            f"{path} is damaged: {spelled(str(error))}; copy it again"
        ) from error
    accuracy = {entry.round: entry.accuracy for entry in stored.accuracy}
    return GroundTruth(
        counts,
        accuracy,
        shifts,
        users,
        stored.attributes,
        members,
        canaries=stored.canaries,
        are_counts_told=bool(counts),
    )


def _check_names(
    users: Mapping[Party, str], attributes: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise `ValueError` unless users, attributes and values have short, printable names.

    The names come from data and are shown on terminals and in reports.
    """
    _check("user", users.values())
    _check("attribute", attributes)
    for attribute, values in attributes.items():
        _check("user", values)
        _check(f"value of {attribute}", values.values())


def _check(kind: str, names: Iterable[str]) -> None:
    for name in names:
        if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
            raise ValueError(
                f"{name[:LONGEST_NAME]!r} is no valid name of a {kind}: names must be "
                f"printable and have 1 to {LONGEST_NAME} characters"
            )
