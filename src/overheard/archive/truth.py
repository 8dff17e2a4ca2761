"""The ground truth of a run, in a separate file that need not be shared."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from pydantic import ConfigDict, Field, TypeAdapter
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import path_exists, truth_path
from overheard.archive.manifest import describe_damage
from overheard.archive.ranges import (
    MAX_EXAMPLES,
    ExampleCount,
    RecordIndex,
    RoundNumber,
    Share,
)
from overheard.archive.repeated_keys import find_repeated, refuse_repeated_keys
from overheard.core.errors import DataError, TranscriptError
from overheard.core.facts import Facts
from overheard.core.parties import Party, is_client, is_shadow_device, parse_party
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth, TrueFact
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_bytes

MAX_NAME_LENGTH = 200
"""Longest name of a user, attribute or value, in characters."""


SHARES_TOLERANCE = 1e-3
"""How far the sum of a party's label shares may be from 1, as they may be rounded by hand."""


@dataclass(frozen=True, slots=True)
class _Counts:
    round: RoundNumber
    party: str
    labels: Annotated[tuple[ExampleCount, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class _Accuracy:
    round: RoundNumber
    accuracy: Share


@dataclass(frozen=True, slots=True)
class _Shifts:
    party: str
    rounds: tuple[RoundNumber, ...]


@dataclass(frozen=True, slots=True)
class _DrawnFrom:
    """The label shares that a party's examples are drawn from, from a round on."""

    party: str
    round: RoundNumber
    shares: tuple[Share, ...]


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
    members: Mapping[str, tuple[RecordIndex, ...]] = field(default_factory=dict)
    canaries: Annotated[str, Field(max_length=MAX_NAME_LENGTH, pattern="^[0-9a-f]*$")] = ""
    # Only where the shares of a party change: its later rounds have the same.
    drawn_from: tuple[_DrawnFrom, ...] = ()


_PARSER = TypeAdapter(_StoredTruth)


def write_truth(folder: Path, truth: GroundTruth, *, inside: Path | None = None) -> None:
    """Write the ground truth beside the transcript of a run.

    Args:
        folder: the folder of the run.
        truth: the ground truth.
        inside: the output folder that the folder of the run is in; None = they are one.

    Raises:
        DataError: if `read_truth` would refuse it, or return another one.

    """
    users, attributes = truth.facts.get(UsersOfClients), truth.facts.get(Attributes)
    owners, shifts = truth.facts.get(RecordOwners), truth.facts.get(Shifts)
    counts, drawn = truth.facts.get(LabelCounts), truth.facts.get(DrawnShares)
    stored = _StoredTruth(
        ()
        if counts is None
        else tuple(
            _Counts(number, client, tuple(held.tolist()))
            for (number, client), held in counts.counts.items()
        ),
        tuple(_Accuracy(number, share) for number, share in truth.accuracy.items()),
        () if shifts is None else tuple(_Shifts(*shift) for shift in shifts.shifts.items()),
        {} if users is None else {str(client): user for client, user in users.users.items()},
        {} if attributes is None else attributes.attributes,
        {} if owners is None else {str(one): rows for one, rows in owners.members.items()},
        "" if owners is None else owners.digest,
        ()
        if drawn is None
        else tuple(
            _DrawnFrom(party, number, tuple(stated[number].tolist()))
            for party, stated in drawn.shares.items()
            for number in sorted(stated)
        ),
    )
    # Warnings of wrong types are off, as reading the content names them.
    content = _PARSER.dump_json(stored, warnings=False) + b"\n"
    try:
        _parse_truth(content)
    except ValueError as error:
        raise DataError(
            f"the ground truth cannot be written: {describe_damage(error)}; correct it in the "
            "data"
        ) from error
    write_bytes(truth_path(folder), content, inside=folder if inside is None else inside)


def has_truth(folder: Path) -> bool:
    """Return whether the ground truth of a run is there."""
    return path_exists(truth_path(folder))


def read_truth(folder: Path) -> GroundTruth:
    """Read the ground truth of a run.

    Raises:
        TranscriptError: if it is missing or damaged, or contradicts itself.

    """
    path = truth_path(folder)
    if not has_truth(folder):
        raise TranscriptError(
            f"{path} is missing: attacks can run without it, but claims cannot be scored; copy "
            "it from the run"
        )
    content = read_json_text(path, TranscriptError, inside=folder)
    try:
        return _parse_truth(content)
    except ValueError as error:
        raise TranscriptError(
            f"{path} is damaged: {describe_damage(error)}; correct it, or copy it again"
        ) from error


def _parse_truth(content: str | bytes) -> GroundTruth:
    """Parse the content of a file of ground truth.

    Raises:
        ValueError: if it is damaged, or a value contradicts another one.

    """
    refuse_repeated_keys(content)
    stored = _PARSER.validate_json(content)
    _refuse_repetition(stored)
    _check_names(stored.users.values(), stored.attributes)
    _check_parties(stored)
    _check_counts(stored.counts)
    _check_members(stored.members)
    return GroundTruth(
        Facts(tuple(_facts(stored))), {entry.round: entry.accuracy for entry in stored.accuracy}
    )


def _facts(stored: _StoredTruth) -> Iterator[TrueFact]:
    counts = LabelCounts(
        {
            (entry.round, Party(entry.party)): torch.tensor(entry.labels, dtype=torch.int64)
            for entry in stored.counts
        }
    )
    if counts.counts:
        yield counts
    if stored.drawn_from:
        yield _drawn_shares(stored.drawn_from, counts)
    if stored.users:
        yield UsersOfClients({Party(client): user for client, user in stored.users.items()})
    if stored.attributes:
        yield Attributes(stored.attributes)
    if stored.shifts:
        yield Shifts({Party(entry.party): entry.rounds for entry in stored.shifts})
    if stored.members or stored.canaries:
        members = {Party(client): indices for client, indices in stored.members.items()}
        yield RecordOwners(members, digest=stored.canaries)


def _check_parties(stored: _StoredTruth) -> None:
    """Raise `ValueError` unless all parties are clients, or devices that take part as such."""
    named = {
        "counts": [one.party for one in stored.counts],
        "shifts": [one.party for one in stored.shifts],
        "users": stored.users,
        "members": stored.members,
        "drawn_from": [one.party for one in stored.drawn_from],
    }
    for key, names in named.items():
        for name in dict.fromkeys(names):
            party = parse_party(name)
            if not (is_client(party) or is_shadow_device(party)):
                raise ValueError(
                    f"{key} names {printable_excerpt(name)}, which is no client: only clients "
                    "hold examples"
                )


def _check_counts(counts: Sequence[_Counts]) -> None:
    """Raise `ValueError` unless counts are of the same labels, and their sums are possible."""
    for entry in counts:
        if len(entry.labels) != len(counts[0].labels):
            raise ValueError(
                f"counts of {entry.party} in round {entry.round} are of {len(entry.labels)} "
                f"labels, but the first ones are of {len(counts[0].labels)}"
            )
        if sum(entry.labels) >= MAX_EXAMPLES:
            raise ValueError(
                f"counts of {entry.party} in round {entry.round} sum to {sum(entry.labels)}, "
                f"but at most {MAX_EXAMPLES - 1} examples are possible"
            )


def _check_members(members: Mapping[str, Sequence[int]]) -> None:
    for party, indices in members.items():
        if len({*indices}) < len(indices):
            raise ValueError(f"members of {party} must be distinct indices of records, from 0")


def _refuse_repetition(stored: _StoredTruth) -> None:
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
        if repeated := find_repeated(entries):
            more = f" (and {len(repeated) - 1} more)" if len(repeated) > 1 else ""
            raise ValueError(
                f"{printable_excerpt(key)} states {printable_excerpt(repeated[0])} "
                f"twice{more}: keep the one that is right, and remove the other"
            )
    for one in stored.shifts:
        if list(one.rounds) != sorted(one.rounds):
            raise ValueError(f"shifts of {one.party} has rounds that are not in order")


def _drawn_shares(stated: Iterable[_DrawnFrom], counts: LabelCounts) -> DrawnShares:
    """Return the shares that examples are drawn from.

    Raises:
        ValueError: if shares do not fit the label counts.

    """
    by_party = defaultdict[Party, dict[int, Tensor]](dict)
    for one in stated:
        party, total = Party(one.party), math.fsum(one.shares)
        if abs(total - 1) > SHARES_TOLERANCE:
            raise ValueError(
                f"drawn_from states shares of {party} in round {one.round} that sum to "
                f"{total:.6g}: shares sum to 1"
            )
        rounds = counts.rounds_of(party)
        if one.round > max(rounds, default=-1):
            raise ValueError(
                f"drawn_from states shares of {party} in round {one.round}, but there are no "
                "label counts that they apply to"
            )
        if len(one.shares) != len(counts.counts[max(rounds), party]):
            raise ValueError(f"drawn_from needs one share per label, for {party}")
        by_party[party][one.round] = torch.tensor(one.shares, dtype=torch.float64)
    return DrawnShares(by_party)


def _check_names(users: Iterable[str], attributes: Mapping[str, Mapping[str, str]]) -> None:
    """Raise `ValueError` unless users, attributes and values have short, printable names.

    The names come from data and are shown on terminals and in reports.
    """
    _check_printable("user", users)
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
