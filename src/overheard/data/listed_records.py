"""Candidate records that the owner of a recording lists: members and outsiders."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.core.errors import DataError
from overheard.core.examples import Examples
from overheard.core.parties import COHORT, Party

OWNER, MEMBER = "owner", "member"
"""Columns or arrays that name the owner of a record, or only say whether there is one."""

OUTSIDER = frozenset({"", "-", "-1", "none", "nobody", "outsider"})
"""Names of nobody, in small letters."""

TRUE, FALSE = frozenset({"1", "1.0", "true", "yes"}), frozenset({"0", "0.0", "false", "no"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class ListedRecords:
    """Records whose membership is asked, as the owner of a recording lists them.

    Args:
        records: the records, in the form of the data.
        members: by client, the indices of its records; those of unknown owners are under
            `COHORT`. All others are of nobody.

    """

    records: Examples
    members: Mapping[Party, tuple[int, ...]]

    @property
    def are_owners_known(self) -> bool:
        """Whether each member has a known owner."""
        return COHORT not in self.members


def list_records(
    path: Path, records: Examples, members: Mapping[Party, tuple[int, ...]]
) -> ListedRecords:
    """Return the list of these records, each of which must be in it once.

    Whoever trained on a record trained on its copies too. So a member's copy is no outsider,
    and copies would count as several observations of one record.

    Args:
        path: the file, for messages.
        records: the records.
        members: as in `ListedRecords`.

    Raises:
        DataError: if two records have the same inputs and labels.

    """
    first_of, copies = dict[bytes, int](), list[tuple[int, int]]()
    columns = (one.flatten(1) if one.ndim > 1 else one for one in records.tensors())
    for row, parts in enumerate(zip(*(one.numpy() for one in columns), strict=True)):
        first = first_of.setdefault(b"".join(part.tobytes() for part in parts), row)
        if first != row:
            copies.append((first, row))
    if copies:
        first, second = copies[0]
        raise DataError(
            f"{path}: {len(copies)} of {len(records)} records are listed before, such as "
            f"record {second + 1}, which is the same as record {first + 1}: list each record "
            "once. A copy of a member's record is no outsider"
        )
    return ListedRecords(records, members)


def members_of_cells(
    path: Path, name: str, cells: Sequence[str]
) -> Mapping[Party, tuple[int, ...]]:
    """Return the indices of members by client, as the cells of a column tell them.

    Args:
        path: the file, for messages.
        name: `OWNER`: a client, such as "client/3" or 3, or nobody ("none", -1, or empty).
            `MEMBER`: 1 for a record that some client trained on, 0 for others.
        cells: a text for each record.

    Raises:
        DataError: if a cell is neither, or if there are no members or no outsiders.

    """
    found = defaultdict[Party, list[int]](list)
    for row, cell in enumerate(cells):
        text = cell.strip()
        if name == MEMBER:
            if text.lower() not in TRUE | FALSE:
                raise DataError(
                    f"{path}: {name!r} must be 1 (a member) or 0, but one is {text[:40]!r}"
                )
            if text.lower() in TRUE:
                found[COHORT].append(row)
        elif text.lower() not in OUTSIDER:
            party = f"client/{text}" if text.isascii() and text.isdigit() else text
            found[Party(party)].append(row)
    members = sum(map(len, found.values()))
    if not 0 < members < len(cells):
        raise DataError(
            f"{path}: lists {members} members and {len(cells) - members} outsiders by its "
            f"{name!r}: list both. An outsider is a record that no client trained on"
        )
    return {party: tuple(rows) for party, rows in found.items()}
