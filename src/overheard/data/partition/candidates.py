"""Records of which an attacker asks whether somebody trained on them."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
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
        members: of each client; all that it holds, where it holds fewer. Of canaries as many on
            average.
        outsiders: of nobody; of canaries on average.
        canaries: "no" asks about what the split gave to clients. Else records that nobody has
            are put in by chance beside it: each goes to one client or to none, whatever becomes
            of the others and however the split is. "labelled" = as they are, "mislabelled" =
            each with a label that is not its own, by which a model knows it the better.

    """

    members: int = 100
    outsiders: int = 1000
    canaries: Literal["no", "labelled", "mislabelled"] = "no"

    def __post_init__(self) -> None:
        """Refuse a question that has one answer."""
        if self.members < 1 or self.outsiders < 1:
            raise ValueError(f"members and outsiders are 1 or more, got {self}")

    @property
    def are_canaries(self) -> bool:
        """Whether they are put in by chance."""
        return self.canaries != "no"

    @property
    def canary_odds(self) -> float | None:
        """How many canaries a client gets for one that goes nowhere, on average."""
        return self.members / self.outsiders if self.are_canaries else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class CandidateSet:
    """Which they are.

    Args:
        rows: of the training part, in an order that tells nothing.
        members: by client, the places in `rows` of those that it holds.

    """

    rows: Rows
    members: tuple[tuple[int, ...], ...]

    @property
    def outsiders(self) -> Rows:
        """Those of nobody."""
        nobodys = torch.ones(len(self.rows), dtype=torch.bool)
        for own in self.members:
            nobodys[list(own)] = False
        return self.rows[nobodys]


def ask_about(
    wanted: Candidates,
    held: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    once: Bool[Tensor, " examples"],
    seed: Seed,
    records: Int[Tensor, " examples"] | None = None,
) -> CandidateSet:
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
    return CandidateSet(rows, members)


def put_in(
    wanted: Candidates,
    clients: int,
    free: Bool[Tensor, " examples"],
    once: Bool[Tensor, " examples"],
    seed: Seed,
    records: Int[Tensor, " examples"] | None = None,
) -> CandidateSet:
    """Draw canaries, and deal each to a client or to nobody by a die of its own.

    So where one went tells nothing of where another did, and those of nobody are what a
    client's would have been: the experiment of Steinke, Nasr and Jagielski 2023 (NeurIPS,
    Algorithm 1), with several clients. No two are cut out of the same record.

    Args:
        wanted: how many.
        clients: how many.
        free: rows that nobody has.
        once: rows of whose content there is no copy.
        seed: of the draws.
        records: what each example was cut out of; None = each is a record of its own.

    Raises:
        PlanError: if there are too few that nobody has.

    """
    rest = _some((free & once).nonzero().flatten(), len(free), seed.child("rows"))
    if records is not None:
        _, first = np.unique(records[rest].numpy(), return_index=True)
        rest = rest[torch.from_numpy(np.sort(first))]
    inside = clients * wanted.members
    if len(rest) < inside + wanted.outsiders:
        raise PlanError(
            f"candidates: {inside + wanted.outsiders} canaries are wanted, and attackers leave "
            f"{len(rest)} records that can be some: ask for fewer"
        )
    rows = rest[: inside + wanted.outsiders]
    die = seed.child("dealt").generator()
    faces = torch.randint(len(rows), (len(rows),), generator=die)
    owners = faces.div(wanted.members, rounding_mode="floor")  # from `clients` on: nobody
    members = (owners == number for number in range(clients))
    return CandidateSet(rows, tuple(tuple(own.nonzero().flatten().tolist()) for own in members))


def mislabelled(
    labels: Int[Tensor, " examples"], rows: Rows, classes: int, seed: Seed
) -> Int[Tensor, " examples"]:
    """The labels, but in these rows, where each other label is equally likely."""
    steps = torch.randint(1, classes, (len(rows),), generator=seed.generator())
    return labels.index_copy(0, rows, (labels[rows] + steps) % classes)


def _some(rows: Rows, wanted: int, seed: Seed) -> Rows:
    return rows[torch.randperm(len(rows), generator=seed.generator())[:wanted]]
