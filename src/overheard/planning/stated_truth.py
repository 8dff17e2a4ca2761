"""The ground truth of a recording, from a table of what its owners know of their clients."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import final

import torch
from jaxtyping import Int64
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.party_names import read_party_names
from overheard.archive.reader import open_transcript
from overheard.core.errors import DataError, PlanError
from overheard.core.facts import Facts
from overheard.core.messages import Update
from overheard.core.parties import Party
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth, TrueFact
from overheard.data.listed_records import OWNER
from overheard.data.reading.text_table import TextTable, read_text_table
from overheard.questions.target_distribution.true_facts import ClientTargets, state_targets

ROUND = "round"
"""The column of the round, if clients hold other examples in other rounds."""

MOST_NAMED = 5
"""Most parties that a message names."""


def state_label_counts(recording: Path, table: Path) -> GroundTruth:
    """Return the label counts of clients, a row each: `owner`, and a column for each class.

    Columns are in the order of the model's outputs. With a column `round`, a row is of that
    round alone; without it, of all rounds.

    Raises:
        DataError: if the table cannot be read, or a cell is no number of examples.
        PlanError: if a client of the recording has no row, or a row is of no client.
        TranscriptError: if the recording is damaged.

    """
    rows = _Rows(recording, table)
    classes = rows.others((OWNER, ROUND))
    if len(classes) < 2:
        raise DataError(
            f"{table}: has the columns {printable_excerpt(', '.join(rows.table.columns))}: "
            f"give {OWNER!r} and a column for each class, with the number of its examples"
        )
    labels = torch.stack([rows.whole_numbers(one) for one in classes], 1)
    has_rounds = ROUND in rows.table.columns
    rounds = rows.whole_numbers(ROUND).tolist() if has_rounds else [None] * len(rows.owners)
    by_place = dict[tuple[int | None, Party], Tensor]()
    for number, owner, counts in zip(rounds, rows.owners, labels, strict=True):
        if (number, owner) in by_place:
            where = "" if number is None else f" in round {number}"
            raise DataError(f"{table}: has two rows of {owner}{where}: keep one")
        by_place[number, owner] = counts
    found, missing = dict[tuple[int, Party], Tensor](), set[str]()
    for number, sender in rows.updates:
        counts = by_place.get((number if has_rounds else None, sender))
        if counts is None:
            missing.add(f"{sender} in round {number}" if has_rounds else str(sender))
        else:
            found[number, sender] = counts
    _refuse_missing(table, missing)
    return GroundTruth(Facts[TrueFact](LabelCounts(found)))


def state_target_numbers(recording: Path, table: Path) -> GroundTruth:
    """Return how the numbers to predict of clients are distributed, of a row for each example.

    A row has `owner` and the numbers to predict, in the order of the model's outputs, in the
    units of the run.

    Raises:
        DataError: if the table cannot be read, or a cell is no number.
        PlanError: if a client of the recording has no row, or a row is of no client.
        TranscriptError: if the recording is damaged.

    """
    rows = _Rows(recording, table)
    columns = rows.others((OWNER,))
    if not columns:
        raise DataError(f"{table}: give a column for each number to predict beside {OWNER!r}")
    numbers = torch.stack([rows.numbers(one) for one in columns], 1)
    by_owner = defaultdict[Party, list[int]](list)
    for place, owner in enumerate(rows.owners):
        by_owner[owner].append(place)
    senders = {sender for _, sender in rows.updates}
    _refuse_missing(table, {str(one) for one in senders - by_owner.keys()})
    stated = {
        party: state_targets(party, numbers[places]) for party, places in by_owner.items()
    }
    return GroundTruth(Facts[TrueFact](ClientTargets(stated)))


@final
class _Rows:
    """The rows of a table, each of a client of the recording.

    Args:
        recording: the folder of the recording.
        path: the table.

    """

    def __init__(self, recording: Path, path: Path) -> None:
        if not path.is_file():
            raise DataError(f"there is no file {path}: correct the path")
        self._path = path
        self.table: TextTable = read_text_table(path)
        self.table.require(path, (OWNER,))
        self.updates: Sequence[tuple[int, Party]] = [
            (message.round, message.sender)
            for message in open_transcript(recording).messages
            if isinstance(message.body, Update)
        ]
        senders = {sender for _, sender in self.updates}
        if not senders:
            raise PlanError(f"{recording}: has no update of a client, so no client has a truth")
        self.owners: Sequence[Party] = self._named(senders, read_party_names(recording))

    def others(self, known: tuple[str, ...]) -> list[str]:
        """Return the names of all other columns."""
        return [name for name in self.table.columns if name not in known]

    def numbers(self, name: str) -> Tensor:
        """Return the numbers of a column."""
        found = []
        for row, cell in enumerate(self.table.columns[name].cells(), 1):
            try:
                found.append(float(cell))
            except ValueError as error:
                raise DataError(
                    f"{self._path}: column {name!r} must have numbers, and row {row} has "
                    f"{printable_excerpt(cell)!r}: correct it"
                ) from error
        return torch.tensor(found, dtype=torch.float64)

    def whole_numbers(self, name: str) -> Int64[Tensor, " rows"]:
        """Return the whole numbers of a column, each 0 or more."""
        found = self.numbers(name)
        if not bool(found.isfinite().all()) or bool(((found < 0) | (found % 1 > 0)).any()):
            raise DataError(
                f"{self._path}: column {name!r} must have whole numbers from 0: correct it"
            )
        return found.long()

    def _named(self, senders: Collection[Party], names: Mapping[Party, str]) -> Sequence[Party]:
        """Return the client of each row, which may be named as its app names it."""
        by_name = defaultdict[str, list[Party]](list)
        for party in senders:
            for name in (party, party.removeprefix("client/")):
                by_name[name].append(party)
        # The names of the app come first: partition 3 may be another node than client/3.
        given = defaultdict[str, list[Party]](list)
        for party, name in names.items():
            given[name].append(party)
        owners, unknown = list[Party](), dict[str, None]()
        for cell in self.table.columns[OWNER].cells():
            text = cell.strip()
            found = given.get(text) or by_name.get(text, [])
            if len(found) != 1:
                unknown[text] = None
            owners.append(found[0] if found else Party(text))
        if unknown:
            known = sorted({*names.values()} or senders)
            raise PlanError(
                f"{self._path}: {OWNER!r} names {_some(list(unknown))}, and the clients of the "
                f"recording are {_some(known)}: use their names"
            )
        return owners


def _refuse_missing(table: Path, missing: Collection[str]) -> None:
    if missing:
        raise PlanError(
            f"{table}: has no row of {_some(sorted(missing))}, of whom the recording has an "
            "update: add a row for each"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(map(printable_excerpt, names[:MOST_NAMED]))
    return f"{shown} and {more} more" if more > 0 else shown
