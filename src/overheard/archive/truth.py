"""The ground truth of a run, in a separate file that need not be shared."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import path_exists, read_checked_file, truth_path
from overheard.archive.manifest import describe_validation_error
from overheard.core.errors import DataError, TranscriptError
from overheard.core.parties import Party, parse_party
from overheard.core.truth import GroundTruth
from overheard.disk.writing import write_bytes

MAX_NAME_LENGTH = 200
"""Longest name of a user, attribute or value, in characters."""


@dataclass(frozen=True, slots=True)
class _Counts:
    round: Annotated[int, Field(ge=0)]
    party: str
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Accuracy:
    round: Annotated[int, Field(ge=0)]
    accuracy: Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class _Shifts:
    party: str
    rounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _DrawnFrom:
    """The label shares that a party's examples are drawn from, from a round on."""

    party: str
    round: Annotated[int, Field(ge=0)]
    shares: tuple[Annotated[float, Field(ge=0, le=1)], ...]


@dataclass(frozen=True, slots=True)
class _StoredTruth:
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
    canaries: Annotated[str, Field(max_length=MAX_NAME_LENGTH, pattern="^[0-9a-f]*$")] = ""
    # Only where the shares of a party change: its later rounds have the same.
    drawn_from: tuple[_DrawnFrom, ...] = ()


_PARSER = TypeAdapter(_StoredTruth)


def write_truth(folder: Path, truth: GroundTruth) -> None:
    """Write the ground truth beside the transcript of a run.

    Raises:
        DataError: if a user, an attribute or a value has an invalid name.

    """
    try:
        _check_names(truth.users, truth.attributes)
    except ValueError as error:
        raise DataError(f"{error}; rename it in the data") from error
    stored = _StoredTruth(
        tuple(
            _Counts(number, client, tuple(counts.tolist()))
            for (number, client), counts in truth.counts.items()
        ),
        tuple(_Accuracy(number, share) for number, share in truth.accuracy.items()),
        tuple(_Shifts(client, rounds) for client, rounds in truth.shifts.items()),
        {str(client): user for client, user in truth.users.items()},
        {attribute: dict(values) for attribute, values in truth.attributes.items()},
        {str(client): indices for client, indices in truth.members.items()},
        truth.candidates_digest,
        tuple(_changes_of_shares(truth.drawn_from)),
    )
    write_bytes(truth_path(folder), _PARSER.dump_json(stored) + b"\n")


def has_truth(folder: Path) -> bool:
    """Return whether the ground truth of a run is there."""
    return path_exists(truth_path(folder))


def read_truth(folder: Path) -> GroundTruth:
    """Read the ground truth of a run.

    Raises:
        TranscriptError: if it is missing or damaged, or states something twice.

    """
    path = truth_path(folder)
    if not has_truth(folder):
        raise TranscriptError(
            f"{path} is missing: attacks can run without it, but claims cannot be scored; copy "
            "it from the run"
        )
    try:
        content = read_checked_file(path, folder)
        # JSON allows a key twice, and Python's parsers keep the last one.
        json.loads(content, object_pairs_hook=partial(_refuse_repeated_keys, path))
        stored = _PARSER.validate_json(content)
        _refuse_repetition(path, stored)
        counts = {
            (entry.round, parse_party(entry.party)): torch.tensor(
                entry.labels, dtype=torch.int64
            )
            for entry in stored.counts
        }
        shifts = {parse_party(entry.party): entry.rounds for entry in stored.shifts}
        users = {parse_party(client): user for client, user in stored.users.items()}
        drawn_from = _shares_by_round(stored.drawn_from, counts)
        members = {parse_party(client): indices for client, indices in stored.members.items()}
        if any(
            min(indices, default=0) < 0 or len({*indices}) < len(indices)
            for indices in members.values()
        ):
            raise ValueError("members must be distinct indices of records, from 0")
        _check_names(users, stored.attributes)
    except ValidationError as error:
        raise TranscriptError(
            f"{path} is damaged: {describe_validation_error(error)}; correct it, or copy it "
            "again"
        ) from error
    except (ValueError, OverflowError, RuntimeError) as error:
        raise TranscriptError(
            f"{path} is damaged: {printable_excerpt(str(error))}; correct it, or copy it again"
        ) from error
    accuracy = {entry.round: entry.accuracy for entry in stored.accuracy}
    return GroundTruth(
        counts,
        accuracy,
        shifts,
        users,
        stored.attributes,
        members,
        candidates_digest=stored.canaries,
        has_label_counts=bool(counts),
        drawn_from=drawn_from,
    )


def _refuse_repeated_keys(path: Path, pairs: Sequence[tuple[str, object]]) -> None:
    for key in _repeated(key for key, _ in pairs):
        raise TranscriptError(
            f"{path}: has the key {printable_excerpt(key)!r} twice in one object: keep one"
        )


def _refuse_repetition(path: Path, stored: _StoredTruth) -> None:
    """Refuse what is stated twice: one of two truths is wrong, and nothing says which."""
    stated = {
        "counts": [f"round {one.round} of {one.party}" for one in stored.counts],
        "accuracy": [f"round {one.round}" for one in stored.accuracy],
        "shifts": [one.party for one in stored.shifts],
        "drawn_from": [f"round {one.round} of {one.party}" for one in stored.drawn_from],
    }
    stated |= {
        f"shifts of {one.party}": [f"round {number}" for number in one.rounds]
        for one in stored.shifts
    }
    for key, entries in stated.items():
        if repeated := _repeated(entries):
            more = f" (and {len(repeated) - 1} more)" if len(repeated) > 1 else ""
            raise TranscriptError(
                f"{path}: {printable_excerpt(key)} states {printable_excerpt(repeated[0])} "
                f"twice{more}: keep the one that is right, and remove the other"
            )


def _repeated(entries: Iterable[str]) -> list[str]:
    """Return the entries that occur more than once, in the order of their first repetition."""
    seen, repeated = set[str](), dict[str, None]()
    for one in entries:
        if one in seen:
            repeated[one] = None
        seen.add(one)
    return list(repeated)


def _changes_of_shares(
    drawn_from: Mapping[tuple[int, Party], Float[Tensor, " classes"]],
) -> Iterator[_DrawnFrom]:
    """Yield the shares of each party in its first round, and where they change."""
    latest = dict[Party, Tensor]()
    for number, party in sorted(drawn_from):
        shares = drawn_from[number, party]
        if party not in latest or not torch.equal(latest[party], shares):
            latest[party] = shares
            yield _DrawnFrom(str(party), number, tuple(shares.tolist()))


def _shares_by_round(
    changes: Iterable[_DrawnFrom], counts: Mapping[tuple[int, Party], Int[Tensor, " classes"]]
) -> dict[tuple[int, Party], Float[Tensor, " classes"]]:
    """Return the shares of each party in each of its rounds, from those where they change.

    Raises:
        ValueError: if shares do not fit the label counts.

    """
    by_party = defaultdict[Party, dict[int, Tensor]](dict)
    for change in changes:
        shares = torch.tensor(change.shares, dtype=torch.float64)
        by_party[parse_party(change.party)][change.round] = shares
    shares_by_round = {}
    for (number, party), label_counts in counts.items():
        earlier = [first for first in by_party.get(party, ()) if first <= number]
        if earlier:
            shares = by_party[party][max(earlier)]
            if len(shares) != len(label_counts):
                raise ValueError(f"drawn_from needs one share per label, for {party}")
            shares_by_round[number, party] = shares
    return shares_by_round


def _check_names(
    users: Mapping[Party, str], attributes: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise `ValueError` unless users, attributes and values have short, printable names.

    The names come from data and are shown on terminals and in reports.
    """
    _check_printable("user", users.values())
    _check_printable("attribute", attributes)
    for attribute, values in attributes.items():
        _check_printable("user", values)
        _check_printable(f"value of {attribute}", values.values())


def _check_printable(kind: str, names: Iterable[str]) -> None:
    for name in names:
        if not name.isprintable() or not 0 < len(name) <= MAX_NAME_LENGTH:
            raise ValueError(
                f"{name[:MAX_NAME_LENGTH]!r} is no valid name of a {kind}: names must be "
                f"printable and have 1 to {MAX_NAME_LENGTH} characters"
            )
