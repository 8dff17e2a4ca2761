"""Candidate records and canaries for membership inference."""

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Settings
from overheard.core.split import Rows
from overheard.data.dataset import Dataset


@final
@dataclass(frozen=True, slots=True)
class CandidateSettings(Settings):
    """The number and kind of candidate records.

    Args:
        members: candidate records of each client; all of its records if it holds fewer. For
            canaries, the average number.
        outsiders: candidate records that no client holds; for canaries, the average number,
            which is at least that of all members.
        canaries: "no" = candidates are records that the split assigned. Otherwise candidates
            are unused records: each is offered to a client, drawn at random, which gets it or
            not by a fair coin, independently of the others and of the split. "labelled" =
            with their own labels, "mislabelled" = with wrong labels, which models memorize
            better, "crafted" = with gradients of their own coordinates in place of their own,
            in arms that add noise: see `core.algorithm.crafted_gradients`.

    """

    members: Positive = 100
    outsiders: Positive = 1000
    canaries: Literal["no", "labelled", "mislabelled", "crafted"] = "no"

    @property
    def are_canaries(self) -> bool:
        """Whether the candidates are canaries, assigned at random."""
        return self.canaries != "no"

    @property
    def canary_odds(self) -> float | None:
        """Expected canaries per client for each held-out one; None without canaries."""
        return self.members / self.outsiders if self.are_canaries else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class CandidateSet:
    """The candidate records.

    Args:
        rows: rows of the training part, in random order.
        members: by client, the positions in `rows` of the records that it holds.
        offered: by client, the positions of the canaries that a fair coin gave to it or held
            out; () = the candidates are no canaries, or were assigned at other odds.

    """

    rows: Rows
    members: tuple[tuple[int, ...], ...]
    offered: tuple[tuple[int, ...], ...] = ()

    @property
    def non_members(self) -> Rows:
        """The candidate records that no client holds."""
        is_outsider = torch.ones(len(self.rows), dtype=torch.bool)
        for places in self.members:
            is_outsider[list(places)] = False
        return self.rows[is_outsider]


def draw_candidates(
    settings: CandidateSettings,
    held: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    unique: Bool[Tensor, " examples"],
    seed: Seed,
    records: Int[Tensor, " examples"] | None = None,
) -> CandidateSet:
    """Draw candidate records from the clients' examples and from unused ones.

    No non-member is a copy of a client's example, or cut from the same record.

    Args:
        settings: the number of candidates.
        held: the rows of each client.
        free: marks rows that are unused or held by clients.
        unique: marks rows whose content occurs once. A copy could be member and non-member.
        seed: the seed of the draws.
        records: the record from which each example was cut; None = one record per example.

    Raises:
        PlanError: if too few examples are unused.

    """
    others = mark_other_records(torch.cat(held), len(free), records)
    rest = (free & unique & others).nonzero().flatten()
    if len(rest) < settings.outsiders:
        raise PlanError(
            f"candidates: {settings.outsiders} outsiders are needed, but only {len(rest)} "
            "examples are unused: lower candidates.outsiders, or the number or size of clients"
        )
    outsiders = _sample_rows(rest, settings.outsiders, seed.child("outsiders"))
    member_rows = [
        _sample_rows(rows[unique[rows]], settings.members, seed.child("members", number))
        for number, rows in enumerate(held)
    ]
    candidates = torch.cat([*member_rows, outsiders])
    order = torch.randperm(len(candidates), generator=seed.child("order").generator())
    rows = candidates[order]
    members = tuple(
        tuple(torch.isin(rows, client_rows).nonzero().flatten().tolist())
        for client_rows in member_rows
    )
    return CandidateSet(rows, members)


def assign_canaries(
    dataset: Dataset,
    settings: CandidateSettings,
    clients: int,
    is_suitable: Bool[Tensor, " examples"],
    seed: Seed,
    *,
    at_odds: bool = False,
) -> tuple[CandidateSet, Dataset]:
    """Draw canaries, and assign each at random to one client or to none.

    A client is drawn for each canary first, and may be known to anybody. A fair coin then
    decides whether the client gets it: this is the experiment of Steinke, Nasr and Jagielski
    2023 (NeurIPS, Algorithm 1), with several clients. Coins are independent, so members and
    non-members are exchangeable. Further non-members are offered to nobody, if there are to be
    more of them than members. No two canaries are cut from the same record.

    Also return the data set, in which mislabelled canaries have their wrong labels.

    Args:
        dataset: the data set.
        settings: the number of canaries.
        clients: the number of clients.
        is_suitable: marks unused rows whose content occurs once.
        seed: the seed of the draws.
        at_odds: whether to assign canaries as older versions did: each at once to one client or
            to none, with the odds of `settings`, for which fewer bounds hold.

    Raises:
        PlanError: if too few examples are unused.

    """
    suitable = is_suitable.nonzero().flatten()
    rest = _sample_rows(suitable, len(suitable), seed.child("rows"))
    if dataset.records is not None:
        _, first = np.unique(dataset.records[rest].numpy(), return_index=True)
        rest = rest[torch.from_numpy(np.sort(first))]
    member_count = clients * settings.members
    held_out = settings.outsiders if at_odds else max(settings.outsiders, member_count)
    if len(rest) < member_count + held_out:
        raise PlanError(
            f"candidates: {member_count + held_out} canaries are needed, but only "
            f"{len(rest)} unused records are suitable: lower candidates.members or "
            "candidates.outsiders"
        )
    rows = rest[: member_count + held_out]
    if settings.canaries == "mislabelled":
        dataset = _mislabel(dataset, rows, seed.child("labels"))
    if at_odds:
        generator = seed.child("dealt").generator()
        draws = torch.randint(len(rows), (len(rows),), generator=generator)
        # `clients` or more: no client.
        owners = draws.div(settings.members, rounding_mode="floor")
        return CandidateSet(rows, _positions_by_client(owners, clients)), dataset
    drawn_for = torch.randint(
        clients, (2 * member_count,), generator=seed.child("offered").generator()
    )
    coins = torch.randint(2, (2 * member_count,), generator=seed.child("coins").generator())
    owners = torch.where(coins == 1, drawn_for, clients)
    offered = _positions_by_client(drawn_for, clients)
    return CandidateSet(rows, _positions_by_client(owners, clients), offered), dataset


def _positions_by_client(
    owners: Int[Tensor, " canaries"], clients: int
) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple((owners == number).nonzero().flatten().tolist()) for number in range(clients)
    )


def add_canaries(
    client_rows: tuple[Rows, ...], candidate_set: CandidateSet
) -> tuple[Rows, ...]:
    """Append to the rows of each client the canaries that it got."""
    return tuple(
        torch.cat([rows, candidate_set.rows[list(places)]])
        for rows, places in zip(client_rows, candidate_set.members, strict=True)
    )


def mark_other_records(
    rows: Rows, count: int, records: Int[Tensor, " examples"] | None
) -> Bool[Tensor, " examples"]:
    """Mark the examples of all records from which none of these rows was cut.

    Args:
        rows: rows of the training part.
        count: the number of its examples.
        records: the record from which each example was cut; None = one record per example.

    """
    is_other = torch.ones(count, dtype=torch.bool)
    is_other[rows] = False
    return is_other if records is None else is_other & ~torch.isin(records, records[rows])


def _mislabel(dataset: Dataset, rows: Rows, seed: Seed) -> Dataset:
    """Replace the labels of these rows of the training part by wrong ones, equally likely."""
    train, classes = dataset.train, dataset.task.classes
    steps = torch.randint(1, classes, (len(rows),), generator=seed.generator())
    labels = train.labels.index_copy(0, rows, (train.labels[rows] + steps) % classes)
    return replace(dataset, train=replace(train, labels=labels))


def _sample_rows(rows: Rows, count: int, seed: Seed) -> Rows:
    return rows[torch.randperm(len(rows), generator=seed.generator())[:count]]
