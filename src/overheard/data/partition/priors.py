"""Cuts what an attacker has of each user out of what the users would hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset
from overheard.data.partition.people import People


@final
@dataclass(frozen=True, slots=True)
class Parted:
    """The training part of a data set, parted by user.

    Args:
        prior: rows of prior examples by user number, in such an order that an earlier piece is
            to a later one what prior examples are to private ones; none of a user who has too
            few.
        private: marks the examples that clients may hold.

    """

    prior: Mapping[int, Rows]
    private: Bool[Tensor, " examples"]


def part_users(
    dataset: Dataset, free: Bool[Tensor, " examples"], people: People, seed: Seed
) -> Parted:
    """Part the free examples of every user; a record goes to one side whole.

    Of a user with one record that is private. What the attacker does not get, as it is limited
    in records or a copy, goes to nobody: a client holds the same whatever the limit.

    No prior example has the content of a private or a test example, whoever's: the attacker
    would know of a secret for certain what it is to infer. Of the prior examples of WISDM 1 to
    2 % are such copies, of the blogs' windows of ten words, such as the opening of a letter,
    1 to 2 % (the user's own in three of four cases), of whole posts less than 0.1 %.

    Takes 0.1 s for the 350,000 windows of the blogs.

    Raises:
        PlanError: if the data set names no users, or too few have enough of the same labels.

    """
    users = dataset.users
    if users is None:
        raise PlanError("people: the data set names no users: take one that does")
    cuts = {
        user: _cut(dataset, rows, people, seed.child("user", user))
        for user, rows in _by_user(dataset, users, free).items()
    }
    private = free.clone()
    private[_together(cut.taken for cut in cuts.values())] = False
    known = ~_copies(dataset, private)
    prior = {user: cut.kept(known, people.records) for user, cut in cuts.items()}
    if people.per_label is None:
        return Parted(prior, private)
    return _matched(dataset, users, Parted(prior, private), people.per_label)


def _by_user(
    dataset: Dataset, users: Int[Tensor, " examples"], free: Bool[Tensor, " examples"]
) -> dict[int, Rows]:
    """The free rows of each user who has any, in the order of time."""
    rows = free.nonzero().flatten()
    if dataset.times is not None:
        rows = rows[dataset.times[rows].argsort(stable=True)]
    rows = rows[users[rows].argsort(stable=True)]
    numbers, sizes = np.unique(users[rows].numpy(), return_counts=True)
    own = torch.split(rows, sizes.tolist())
    return dict(zip(numbers.tolist(), own, strict=True))


@final
@dataclass(frozen=True, slots=True)
class _Cut:
    """How one user's rows are cut.

    Args:
        taken: those that are no longer private, in the order of `Parted.prior`.
        records: of each of these.
        strata: the records among these in parts that are limited alike, in each those that the
            attacker is to have first, last.

    """

    taken: Rows
    records: Int[Tensor, " _rows"]
    strata: tuple[Int[Tensor, " _records"], ...]

    def kept(self, known: Bool[Tensor, " examples"], limit: int | None) -> Rows:
        """Those that the attacker has: may be known, and of so many records at most."""
        may = known[self.taken]
        rows, records = self.taken[may], self.records[may]
        if limit is None:
            return rows
        parts = [stratum[torch.isin(stratum, records)] for stratum in self.strata]
        # Of each part the same share, from its end.
        order = torch.cat(
            [torch.arange(len(part), 0, -1) / max(1, len(part)) for part in parts]
        )
        nearest = torch.cat(parts)[order.argsort(stable=True)[:limit]]
        return rows[torch.isin(records, nearest)]


def _cut(dataset: Dataset, rows: Rows, people: People, seed: Seed) -> _Cut:
    """Choose a user's prior records out of all of them, whose rows are in the order of time."""
    records = rows if dataset.records is None else dataset.records[rows]
    numbers, first = np.unique(records.numpy(), return_index=True)
    order = np.argsort(first)
    ordered = torch.from_numpy(numbers[order])  # (records)
    labels = torch.zeros_like(ordered)
    if people.prior == "chronological_within_labels":
        # A record has the label of its first example.
        labels = dataset.train.labels[rows[torch.from_numpy(first[order])]]  # (records)
    strata = []
    for label in np.unique(labels.numpy()).tolist():
        own = ordered[labels == label]
        if people.prior in ("random", "profile"):
            own = own[torch.randperm(len(own), generator=seed.generator())]
        strata.append(own[: _share(len(own), people.share)])
    is_taken = torch.isin(records, torch.cat(strata))
    in_order = is_taken.nonzero().flatten()[_order(records[is_taken], strata)]
    return _Cut(rows[in_order], records[in_order], tuple(strata))


def _order(
    records: Int[Tensor, " rows"], strata: Sequence[Int[Tensor, " _records"]]
) -> Int[Tensor, " rows"]:
    """Sort rows by how far through its stratum the record of each stands.

    So an earlier piece is to a later one what prior examples are to private ones: the earlier
    ones, those of every label, or some by chance. Whoever cuts a prior into pieces to learn how
    one user differs from itself meets the difference that there is.
    """
    taken = torch.cat(list(strata))
    through = torch.cat([torch.arange(len(own)) / max(1, len(own)) for own in strata])
    by_number = taken.argsort()
    places = by_number[torch.searchsorted(taken[by_number], records)]
    return through[places].argsort(stable=True)


def _share(records: int, share: float) -> int:
    """How many of these are prior: one at least stays private, and one at least is prior."""
    return min(max(1, round(share * records)), records - 1)


def _copies(dataset: Dataset, private: Bool[Tensor, " examples"]) -> Bool[Tensor, " examples"]:
    """Mark the training examples whose content a private or a test example has."""
    keys = content_keys(dataset.train.inputs)
    return torch.isin(keys, torch.cat([keys[private], content_keys(dataset.test.inputs)]))


def _matched(
    dataset: Dataset, users: Int[Tensor, " examples"], parted: Parted, wanted: int
) -> Parted:
    """Leave so many examples of each label on both sides of each user.

    Labels of which at least half of the users have enough are kept, and then the users that
    have enough of all of these. Those nearest to the other side in time are left.
    """
    labels, classes = dataset.train.labels, dataset.task.classes
    private = _by_user(dataset, users, parted.private)
    sides = [(parted.prior[user], rows) for user, rows in private.items()]
    enough = torch.stack(
        [
            torch.stack(
                [labels[rows].bincount(minlength=classes) >= wanted for rows in both]
            ).all(0)
            for both in sides
        ]
    )  # (users, labels)
    kept = enough.double().mean(0) >= 0.5
    able = enough[:, kept].all(1) & kept.any()
    if int(able.sum()) < 2:
        raise PlanError(
            f"people: no two users have {wanted} prior and {wanted} private examples of the "
            "same labels: lower per_label, or take a prior that goes by chance or within labels"
        )
    chosen = [user for user, is_able in zip(private, able.tolist(), strict=True) if is_able]
    left = torch.zeros_like(parted.private)
    left[_together(_first(private[user], labels, kept, wanted) for user in chosen)] = True
    return Parted(
        {
            user: _first(parted.prior[user].flip(0), labels, kept, wanted).flip(0)
            for user in chosen
        },
        left,
    )


def _first(
    rows: Rows,
    labels: Int[Tensor, " examples"],
    kept: Bool[Tensor, " classes"],
    wanted: int,
) -> Rows:
    """So many rows of each label that is kept, the first, in the order given."""
    own = labels[rows]
    places = [(own == label).nonzero().flatten()[:wanted] for label in kept.nonzero()]
    return rows[torch.cat(places).sort().values]


def _together(parts: Iterable[Rows]) -> Rows:
    return torch.cat([torch.zeros(0, dtype=torch.long), *parts])
