"""What an attacker has of single users beforehand, cut out of what they would hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.known_users import KnownUsers
from overheard.core.parties import Party, client, shadow
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import Dataset

PriorKind = Literal["random", "chronological", "chronological_within_labels", "profile"]

MOST_PROFILES = 100
"""Labels above which there is no profile a label: a next word is no interest."""


@dataclass(frozen=True, slots=True)
class People:
    """What an attacker has of single users beforehand.

    Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), sections 5.2 and 6.1.

    Args:
        prior: how a user's examples are parted into prior ones, which the attacker has, and
            private ones. "random": by chance; "chronological": the earlier ones are prior, and
            where the data tell no time the order of the file stands for it;
            "chronological_within_labels": the earlier ones of each label; "profile": parted by
            chance, and the attacker sorts all prior examples by label: whom it may name are
            no users but one profile a label, and a client stands for the one that it has most
            of beside the others.
        share: of each user's records that is prior, 0..1 exclusive.
        records: prior records a user at most, those nearest to the private ones; None = all.
        unseen: so many of the clients are users of whom the attacker has nothing.
        holdout: so many users take no part, and the attacker knows that.
        shadow_devices: whether the attacker lets each prior that it has take part in the run
            as a device of its own, those of holdout users too.
        per_label: label-matched users: each has as many private and as many prior examples of
            every label as this; labels and users that have not enough are left out. None = as
            they are.

    """

    prior: PriorKind = "chronological"
    share: float = 0.5
    records: int | None = None
    unseen: int = 0
    holdout: int = 0
    shadow_devices: bool = False
    per_label: int | None = None

    def __post_init__(self) -> None:
        """Refuse a prior of everything or of nothing."""
        if not 0 < self.share < 1:
            raise PlanError(f"people: share lies between 0 and 1, got {self.share}")
        if (self.records or 1) < 1 or (self.per_label or 1) < 1:
            raise PlanError("people: records and per_label must be 1 or more")
        if self.unseen < 0 or self.holdout < 0:
            raise PlanError("people: unseen and holdout must be 0 or more")
        if self.prior == "profile" and (self.shadow_devices or self.unseen or self.per_label):
            raise PlanError(
                "people: a profile is no user: leave out shadow_devices, unseen and per_label"
            )


@final
@dataclass(frozen=True, slots=True)
class Parted:
    """The training part of a data set, parted by user.

    Args:
        prior: rows of prior examples by user number, in the order of time.
        private: marks the examples that clients may hold.

    """

    prior: Mapping[int, Rows]
    private: Bool[Tensor, " examples"]


def part_users(
    dataset: Dataset, free: Bool[Tensor, " examples"], people: People, seed: Seed
) -> Parted:
    """Part the free examples of every user; a record goes to one side whole.

    Raises:
        PlanError: if the data set names no users, or too few are left.

    """
    users, labels = dataset.users, dataset.train.labels
    if users is None:
        raise PlanError("people: the data set names no users: take one that does")
    times = torch.arange(len(users)) if dataset.times is None else dataset.times
    records = torch.arange(len(users)) if dataset.records is None else dataset.records
    if people.per_label is not None:
        free = free & _matched(users, labels, free, 2 * people.per_label, dataset.task.classes)
    private = free.clone()
    prior = dict[int, Rows]()
    for user in np.unique(users[free].numpy()).tolist():
        mine = (free & (users == user)).nonzero().flatten()
        mine = mine[times[mine].argsort(stable=True)]
        if people.per_label is not None:
            mine = _first_of_each(mine, labels, 2 * people.per_label)
            private[(users == user) & ~torch.isin(torch.arange(len(users)), mine)] = False
        known = _prior(mine, records[mine], labels[mine], people, seed.child("user", user))
        private[known.taken] = False
        prior[user] = known.kept
    return Parted(prior, private)


@final
@dataclass(frozen=True, slots=True)
class Who:
    """Who takes part in a run, and what is known of them.

    Args:
        users: who stands behind each client.
        attributes: of every user, by attribute.
        known: what the attacker has.
        devices: rows of what each shadow device holds, in the order of their numbers.

    """

    users: Mapping[Party, str]
    attributes: Mapping[str, Mapping[str, str]]
    known: KnownUsers
    devices: tuple[Rows, ...]


def who_is_known(
    dataset: Dataset, parted: Parted, held: Sequence[Rows], people: People, seed: Seed
) -> Who:
    """Say who takes part and what is known, given what each client holds.

    Raises:
        PlanError: if there are fewer users than are wanted.

    """
    users = dataset.users
    assert users is not None
    if people.prior == "profile":
        return _profiles(dataset, parted, held)
    taking_part = [int(users[rows[0]]) for rows in held if len(rows)]
    order = torch.randperm(len(taking_part), generator=seed.child("unseen").generator())
    unseen = {taking_part[place] for place in order[: people.unseen].tolist()}
    if len(taking_part) - len(unseen) < 2:
        raise PlanError(
            f"people: of {len(taking_part)} clients {len(unseen)} are unseen: leave 2 known"
        )
    others = sorted(parted.prior.keys() - set(taking_part))
    if len(others) < people.holdout:
        raise PlanError(
            f"people: {people.holdout} holdout users are wanted and {len(others)} users take "
            "no part: take fewer clients"
        )
    chance = torch.randperm(len(others), generator=seed.child("holdout").generator())
    holdout = sorted(others[place] for place in chance[: people.holdout].tolist())
    name = _namer(dataset)
    attributes = {
        attribute: {name(user): value for user, value in enumerate(values)}
        for attribute, values in dataset.attributes.items()
    }
    seen = [user for user in sorted(taking_part) if user not in unseen]
    rows = {user: parted.prior[user] for user in (*seen, *holdout)}
    # A device needs an example to take part, and to be known of.
    rows = {user: own for user, own in rows.items() if len(own)}
    known = {name(user) for user in rows}
    devices = tuple(rows.values()) if people.shadow_devices else ()
    return Who(
        {
            client(number): name(int(users[own[0]]))
            for number, own in enumerate(held)
            if len(own)
        },
        attributes,
        KnownUsers(
            {name(user): dataset.train.take(rows[user]) for user in seen if user in rows},
            {name(user): dataset.train.take(rows[user]) for user in holdout if user in rows},
            {shadow(place): name(user) for place, user in enumerate(rows)} if devices else {},
            _embeddings(dataset, rows, name),
            {
                attribute: {who: value for who, value in values.items() if who in known}
                for attribute, values in attributes.items()
            },
        ),
        devices,
    )


def exchanged(held: Sequence[Rows], seed: Seed) -> tuple[Rows, ...]:
    """The same examples dealt anew by chance, as many to each as before.

    The control of an attack on identities: what a client holds says nothing of who it is.
    """
    together = torch.cat(tuple(held))
    mixed = together[torch.randperm(len(together), generator=seed.generator())]
    return tuple(torch.split(mixed, [len(rows) for rows in held]))


@final
@dataclass(frozen=True, slots=True)
class _Prior:
    """Rows that are no longer private, and those of them that the attacker has."""

    taken: Rows
    kept: Rows


def _prior(
    mine: Rows,
    records: Int[Tensor, " _rows"],
    labels: Int[Tensor, " _rows"],
    people: People,
    seed: Seed,
) -> _Prior:
    """Choose a user's prior rows out of all of them, which stand in the order of time."""
    numbers, first = np.unique(records.numpy(), return_index=True)
    order = np.argsort(first)
    ordered = torch.from_numpy(numbers[order])  # (records)
    label = labels[torch.from_numpy(first[order])]  # (records), that of its first example
    by_label = people.prior == "chronological_within_labels" or people.per_label is not None
    strata = label if by_label else torch.zeros_like(label)
    chosen = []
    for stratum in np.unique(strata.numpy()).tolist():
        own = ordered[strata == stratum]
        if people.prior in ("random", "profile"):
            chance = seed.child("stratum", stratum).generator()
            own = own[torch.randperm(len(own), generator=chance)]
        chosen.append(own[: _share(len(own), people)])
    taken = ordered[torch.isin(ordered, torch.cat(chosen))]
    kept = taken if people.records is None else taken[-people.records :]
    return _Prior(mine[torch.isin(records, taken)], mine[torch.isin(records, kept)])


def _share(records: int, people: People) -> int:
    """How many of these are prior: one at least stays private, and one at least is prior."""
    return min(max(1, round(people.share * records)), records - 1)


def _matched(
    users: Int[Tensor, " examples"],
    labels: Int[Tensor, " examples"],
    free: Bool[Tensor, " examples"],
    wanted: int,
    classes: int,
) -> Bool[Tensor, " examples"]:
    """Mark the examples of users and labels of which there are enough.

    Labels that at least half of the users have enough of are kept, and then the users that
    have enough of all of these.
    """
    kinds = users[free] * classes + labels[free]
    counts = kinds.bincount(minlength=(int(users.max()) + 1) * classes).reshape(-1, classes)
    there = counts.sum(1) > 0
    enough = counts >= wanted  # (users, labels)
    kept = enough[there].double().mean(0) >= 0.5
    able = there & enough[:, kept].all(1)
    if not bool(kept.any()) or int(able.sum()) < 2:
        raise PlanError(
            f"people: no two users have {wanted} examples of the same labels, half of them "
            "private and half of them prior: lower per_label"
        )
    return able[users] & kept[labels]


def _first_of_each(rows: Rows, labels: Int[Tensor, " examples"], count: int) -> Rows:
    """So many of each label, the first, in the order given."""
    kept = [
        (labels[rows] == label).nonzero().flatten()[:count]
        for label in np.unique(labels[rows].numpy()).tolist()
    ]
    return rows[torch.cat(kept).sort().values]


def _namer(dataset: Dataset) -> Callable[[int], str]:
    """What a user is called."""

    def name(user: int) -> str:
        return dataset.user_names[user] if dataset.user_names else f"user {user}"

    return name


def _embeddings(
    dataset: Dataset, rows: Mapping[int, Rows], name: Callable[[int], str]
) -> dict[str, Tensor]:
    """The mean embedding of each user's prior records."""
    if dataset.embeddings is None:
        return {}
    records = dataset.records
    means = {}
    for user, own in rows.items():
        places = own if records is None else torch.from_numpy(np.unique(records[own].numpy()))
        means[name(user)] = dataset.embeddings[places].mean(0)
    return means


def _profiles(
    dataset: Dataset,
    parted: Parted,
    held: Sequence[Rows],
) -> Who:
    """One profile a label, made of all prior examples of it."""
    labels, classes = dataset.train.labels, dataset.task.classes
    if classes > MOST_PROFILES:
        raise PlanError(
            f"people: a profile a label is too many of them, {classes} and not up to "
            f"{MOST_PROFILES}: take another prior"
        )
    pooled = torch.cat(list(parted.prior.values())).sort().values
    counts = torch.stack([labels[own].bincount(minlength=classes) for own in held]).double()
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)  # (clients, labels)
    lift = shares / (counts.sum(0) / counts.sum()).clamp(min=1e-12)
    names = dataset.task.class_names
    present = [label for label in range(classes) if bool((labels[pooled] == label).any())]
    return Who(
        {
            client(number): names[int(lift[number].argmax())]
            for number, own in enumerate(held)
            if len(own)
        },
        {},
        KnownUsers(
            {
                names[label]: dataset.train.take(pooled[labels[pooled] == label])
                for label in present
            }
        ),
        (),
    )
