"""Records of which an attacker asks whether somebody trained on them."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows


@final
@dataclass(frozen=True, slots=True)
class Candidates:
    """How many records are asked about.

    Args:
        members: of each client; all that it holds, where it holds fewer.
        outsiders: of nobody.

    """

    members: int = 100
    outsiders: int = 1000

    def __post_init__(self) -> None:
        """Refuse a question that has one answer."""
        if self.members < 1 or self.outsiders < 1:
            raise ValueError(f"members and outsiders are 1 or more, got {self}")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Which they are.

    Args:
        rows: of the training part, in an order that tells nothing.
        members: by client, the places in `rows` of those that it holds.
        outsiders: rows of nobody.

    """

    rows: Rows
    members: tuple[tuple[int, ...], ...]
    outsiders: Rows


def ask_about(
    wanted: Candidates,
    held: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    once: Bool[Tensor, " examples"],
    seed: Seed,
    records: Int[Tensor, " examples"] | None = None,
) -> Asked:
    """Draw the records.

    No outsider is a copy of what somebody holds, nor cut out of the same record.

    Args:
        wanted: how many.
        held: rows of each client.
        free: rows that nobody has so far, clients' among them.
        once: rows of whose content there is no copy: a copy would be in and out at once.
        seed: of the draws.
        records: what each example was cut out of; None = each is a record of its own.

    Raises:
        PlanError: if there are too few that nobody holds.

    """
    out = free & once
    theirs = torch.cat(held)
    out[theirs] = False
    if records is not None:
        out &= ~torch.isin(records, records[theirs])
    rest = out.nonzero().flatten()
    if len(rest) < wanted.outsiders:
        raise PlanError(
            f"candidates: {wanted.outsiders} outsiders are wanted, and nobody holds "
            f"{len(rest)} examples: ask for fewer, or give clients fewer"
        )
    outsiders = _some(rest, wanted.outsiders, seed.child("outsiders"))
    inside = [
        _some(rows[once[rows]], wanted.members, seed.child("members", number))
        for number, rows in enumerate(held)
    ]
    whole = torch.cat([*inside, outsiders])
    order = torch.randperm(len(whole), generator=seed.child("order").generator())
    rows = whole[order]
    members = tuple(tuple(torch.isin(rows, own).nonzero().flatten().tolist()) for own in inside)
    return Asked(rows, members, outsiders)


def _some(rows: Rows, wanted: int, seed: Seed) -> Rows:
    return rows[torch.randperm(len(rows), generator=seed.generator())[:wanted]]
