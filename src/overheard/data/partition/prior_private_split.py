"""The split of each user's examples into prior and private ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.content_hash import ContentHashes
from overheard.data.dataset import Dataset
from overheard.data.partition.known_user_settings import KnownUserSettings

MOST_LEFT_OUT = 0.3
"""The largest share of a user's prior and of its private records that nobody holds."""


@final
@dataclass(frozen=True, slots=True)
class PriorPrivateSplit:
    """Prior and private examples of users.

    Args:
        prior: rows of prior examples by user number; empty for a user with too few. They
            are in the order of time (within labels) if the split is by time, otherwise in
            random order. So differences between a user's prior examples are like those between
            its prior and its private examples.
        private: marks the examples that clients may hold.

    """

    prior: Mapping[int, Rows]
    private: Bool[Tensor, " examples"]


def split_prior_private(
    dataset: Dataset,
    contents: ContentHashes,
    free: Bool[Tensor, " examples"],
    known_users: KnownUserSettings,
    smallest: int,
    seed: Seed,
) -> PriorPrivateSplit:
    """Split each user's free examples into prior and private ones, without dividing a record.

    Free examples are those marked by `free`. A record is what several examples may be cut
    from, such as a post. If a user has a single record, it is private. Prior examples beyond
    the limit on records, and copies of private or test examples, are held by nobody. So
    clients hold the same examples whatever the limit.

    Nothing but what users do may tie their prior examples to their private ones. All examples
    of a user are split, and those that are not free are then left out of either part: if the
    rest were split, chance in what is free would show in both. Nobody holds a random share of
    each part, up to `MOST_LEFT_OUT` and drawn by user, or the number of prior examples would
    tell that of private ones. Within labels, the number of a label is that of a random split,
    since an exact share would make the label counts of both parts alike. Neither is needed for
    label-matched users, whose counts are equal, nor for profiles, which are of no user.

    No prior example has the content of any private or test example, since the attacker would
    then hold what it is to infer. Such copies are 1 to 2 % of the prior examples of WISDM, and
    less than 0.1 % of whole blog posts. They are 1 to 2 % of the blogs' windows of ten words,
    such as the opening of a letter; three of four copy a window of the same user.

    Takes 0.1 s for the 350,000 windows of the blogs.

    Args:
        dataset: the data set.
        contents: the hashes of its examples.
        free: marks the examples that may be assigned.
        known_users: which examples are prior ones.
        smallest: the size of the smallest client.
        seed: the seed of the choice.

    Raises:
        PlanError: if the data set names no users, too few users have enough examples of the
            same labels, or clients would hold a random part of a label-matched user's.

    """
    users = dataset.users
    if users is None:
        raise PlanError("people: the data set names no users: choose one that does")
    splits = {
        user: _split_user(dataset, rows, free, known_users, seed.child("user", user))
        for user, rows in _rows_by_user(dataset, users, torch.ones_like(free)).items()
        if bool(free[rows].any())
    }
    private = torch.zeros_like(free)
    private[_concatenate(split.private for split in splits.values())] = True
    held = torch.cat([contents.train[private], contents.test])
    is_allowed = ~torch.isin(contents.train, held)
    prior = {
        user: split.known_rows(is_allowed, known_users.records)
        for user, split in splits.items()
    }
    if known_users.per_label is None:
        return PriorPrivateSplit(prior, private)
    matched = _match_labels(
        dataset, users, PriorPrivateSplit(prior, private), known_users.per_label
    )
    private_count = int(users[matched.private].bincount().max())
    if smallest < private_count:
        raise PlanError(
            f"people: label-matched users have {private_count} private examples each: set "
            f"data.examples to {private_count} or more, or lower per_label"
        )
    return matched


def _rows_by_user(
    dataset: Dataset, users: Int[Tensor, " examples"], free: Bool[Tensor, " examples"]
) -> dict[int, Rows]:
    """Return the free rows of each user who has any, in chronological order."""
    rows = free.nonzero().flatten()
    if dataset.times is not None:
        rows = rows[dataset.times[rows].argsort(stable=True)]
    rows = rows[users[rows].argsort(stable=True)]
    numbers, sizes = np.unique(users[rows].numpy(), return_counts=True)
    user_rows = torch.split(rows, sizes.tolist())
    return dict(zip(numbers.tolist(), user_rows, strict=True))


@final
@dataclass(frozen=True, slots=True)
class _UserSplit:
    """The prior and private rows of one user.

    Args:
        prior: rows that the attacker may know, in the order of `PriorPrivateSplit.prior`.
        records: the record of each of these rows.
        strata: these records, divided into strata: one per label, or a single one. If the
            number of records is limited, the same share of each stratum is taken, from its end.
        private: rows that clients may hold.

    """

    prior: Rows
    records: Int[Tensor, " _rows"]
    strata: tuple[Int[Tensor, " _records"], ...]
    private: Rows

    def known_rows(self, is_allowed: Bool[Tensor, " examples"], limit: int | None) -> Rows:
        """Return the prior rows that the attacker may know, of at most `limit` records."""
        is_kept = is_allowed[self.prior]
        rows, records = self.prior[is_kept], self.records[is_kept]
        if limit is None:
            return rows
        parts = [stratum[torch.isin(stratum, records)] for stratum in self.strata]
        return rows[torch.isin(records, torch.cat(_last_of_each(parts, limit)))]


def _split_user(
    dataset: Dataset,
    rows: Rows,
    free: Bool[Tensor, " examples"],
    known_users: KnownUserSettings,
    seed: Seed,
) -> _UserSplit:
    """Choose the prior and private records of a user.

    Args:
        dataset: the data set.
        rows: all rows of the user, in chronological order.
        free: marks the rows that may be assigned, records as a whole.
        known_users: which records are prior ones.
        seed: the seed of the choice.

    """
    split = _split_records(dataset, rows, known_users, seed)
    kept = free[split.prior]
    if bool(kept.any()) and bool(free[split.private].any()):
        private = split.private[free[split.private]]
        return replace(
            split, prior=split.prior[kept], records=split.records[kept], private=private
        )
    # A user with few records may have none left on a side.
    return _split_records(dataset, rows[free[rows]], known_users, seed)


def _split_records(
    dataset: Dataset, rows: Rows, known_users: KnownUserSettings, seed: Seed
) -> _UserSplit:
    """Split the records of these rows, which are in chronological order."""
    records = rows if dataset.records is None else dataset.records[rows]
    numbers, first = np.unique(records.numpy(), return_index=True)
    order = np.argsort(first)
    ordered = torch.from_numpy(numbers[order])  # (records)
    labels = torch.zeros_like(ordered)
    if known_users.prior == "chronological_within_labels":
        # A record has the label of its first example.
        labels = dataset.train.labels[rows[torch.from_numpy(first[order])]]  # (records)
    generator, share = seed.generator(), known_users.share
    shuffled = torch.randperm(len(ordered), generator=generator)
    prior_labels = labels[shuffled[: _prior_count(len(ordered), share)]]
    if known_users.prior in ("random", "profile") or dataset.times is None:
        ordered, labels = ordered[shuffled], labels[shuffled]
    has_exact_counts = known_users.per_label is not None or known_users.prior == "profile"
    prior, private = list[Tensor](), list[Tensor]()
    for label in np.unique(labels.numpy()).tolist():
        stratum, count = ordered[labels == label], int((prior_labels == label).sum())
        if has_exact_counts:
            count = _prior_count(len(stratum), share)
        prior.append(stratum[:count])
        private.append(stratum[count:].flip(0))
    if not has_exact_counts:
        prior, private = (_thin_out(part, generator) for part in (prior, private))
    is_prior = torch.isin(records, torch.cat(prior))
    ordered_prior = is_prior.nonzero().flatten()[
        _order_by_stratum_position(records[is_prior], prior)
    ]
    return _UserSplit(
        rows[ordered_prior],
        records[ordered_prior],
        tuple(prior),
        rows[torch.isin(records, torch.cat(private))],
    )


def _thin_out(
    strata: Sequence[Int[Tensor, " _records"]], generator: torch.Generator
) -> list[Int[Tensor, " _records"]]:
    """Leave out a random share of records, up to `MOST_LEFT_OUT`, from the start of each."""
    count = sum(map(len, strata))
    share = MOST_LEFT_OUT * float(torch.rand((), generator=generator))
    return _last_of_each(strata, count - int(share * count))


def _last_of_each(
    strata: Sequence[Int[Tensor, " _records"]], count: int
) -> list[Int[Tensor, " _records"]]:
    """Return `count` of the records, the same share of each stratum, from its end."""
    positions = torch.cat(
        [torch.arange(len(stratum), 0, -1) / max(1, len(stratum)) for stratum in strata]
    )
    selected = torch.cat(list(strata))[positions.argsort(stable=True)[:count]]
    return [stratum[torch.isin(stratum, selected)] for stratum in strata]


def _order_by_stratum_position(
    records: Int[Tensor, " rows"], strata: Sequence[Int[Tensor, " _records"]]
) -> Int[Tensor, " rows"]:
    """Return the order of rows by the relative position of their record in its stratum.

    So differences between early and late rows are like those between prior and private
    examples. An attack may split a user's prior examples into parts, to learn how much the data
    of one user vary. In this order it learns the right amount.
    """
    prior_records = torch.cat(list(strata))
    positions = torch.cat(
        [torch.arange(len(stratum)) / max(1, len(stratum)) for stratum in strata]
    )
    by_number = prior_records.argsort()
    indices = by_number[torch.searchsorted(prior_records[by_number], records)]
    return positions[indices].argsort(stable=True)


def _prior_count(records: int, share: float) -> int:
    """Return the number of prior records: at least 1 if another record stays private."""
    return min(max(1, round(share * records)), records - 1)


def _match_labels(
    dataset: Dataset, users: Int[Tensor, " examples"], split: PriorPrivateSplit, count: int
) -> PriorPrivateSplit:
    """Keep `count` prior and private examples of each label for each user.

    A label is kept if at least half of the users have enough examples of it. A user is kept if
    it has enough examples of all these labels. Of its prior and its private examples, those
    nearest in time to the other kind are kept.
    """
    labels, classes = dataset.train.labels, dataset.task.classes
    private = _rows_by_user(dataset, users, split.private)
    prior_and_private = [(split.prior[user], rows) for user, rows in private.items()]
    enough = torch.stack(
        [
            torch.stack(
                [labels[rows].bincount(minlength=classes) >= count for rows in pair]
            ).all(0)
            for pair in prior_and_private
        ]
    )  # (users, labels)
    frequent_labels = enough.double().mean(0) >= 0.5
    is_complete = enough[:, frequent_labels].all(1) & frequent_labels.any()
    if int(is_complete.sum()) < 2:
        raise PlanError(
            f"people: no two users have {count} prior and {count} private examples of the "
            "same labels: lower per_label, or choose prior = 'random' or "
            "'chronological_within_labels'"
        )
    chosen_users = [
        user for user, is_chosen in zip(private, is_complete.tolist(), strict=True) if is_chosen
    ]
    is_private = torch.zeros_like(split.private)
    is_private[
        _concatenate(
            _first_of_each_label(private[user], labels, frequent_labels, count)
            for user in chosen_users
        )
    ] = True
    return PriorPrivateSplit(
        {
            user: _first_of_each_label(
                split.prior[user].flip(0), labels, frequent_labels, count
            ).flip(0)
            for user in chosen_users
        },
        is_private,
    )


def _first_of_each_label(
    rows: Rows,
    labels: Int[Tensor, " examples"],
    frequent_labels: Bool[Tensor, " classes"],
    count: int,
) -> Rows:
    """Return the first `count` rows of each frequent label, in the given order."""
    row_labels = labels[rows]
    positions = [
        (row_labels == label).nonzero().flatten()[:count] for label in frequent_labels.nonzero()
    ]
    return rows[torch.cat(positions).sort().values]


def _concatenate(parts: Iterable[Rows]) -> Rows:
    return torch.cat([torch.zeros(0, dtype=torch.long), *parts])
