"""Says whom clients stand for, and what an attacker knows of these and of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.known_users import KnownUsers
from overheard.core.parties import Party, client, shadow
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import Dataset
from overheard.data.partition.people import People
from overheard.data.partition.priors import Parted

MOST_PROFILES = 100
"""Labels above which there is no profile a label: a next word is no interest."""


@final
@dataclass(frozen=True, slots=True)
class Who:
    """Who takes part in a run, and what is known of them.

    Args:
        users: who stands behind each client.
        attributes: of every user, by attribute.
        known: what the attacker has.
        devices: rows of what each shadow device holds, in the order of their numbers.
        kept_out: marks the examples of holdout users: they are not public either.

    """

    users: Mapping[Party, str]
    attributes: Mapping[str, Mapping[str, str]]
    known: KnownUsers
    devices: tuple[Rows, ...]
    kept_out: Bool[Tensor, " examples"]


def who_is_known(
    dataset: Dataset, parted: Parted, held: Sequence[Rows], people: People, seed: Seed
) -> Who:
    """Say who takes part and what is known, given what each client holds.

    A user of whom no prior example is left, such as one with a single example, is unknown to
    the attacker, besides those that are unseen.

    Raises:
        PlanError: if there are fewer users than are wanted, or fewer than two are known.

    """
    if people.prior == "profile":
        return _profiles(dataset, parted, held)
    assert dataset.users is not None
    owners = {
        client(number): int(dataset.users[rows[0]])
        for number, rows in enumerate(held)
        if len(rows)
    }
    priors = {user: rows for user, rows in parted.prior.items() if len(rows)}
    seen = _seen(sorted(owners.values()), priors, people, seed.child("unseen"))
    holdout = _holdout(sorted(priors.keys() - set(owners.values())), people, seed)
    names = _names(dataset)
    attributes = {
        attribute: dict(zip(names, values, strict=True))
        for attribute, values in dataset.attributes.items()
    }
    rows = {user: priors[user] for user in (*seen, *holdout)}
    known = {names[user] for user in rows}
    played = tuple(rows) if people.shadow_devices else ()
    return Who(
        {who: names[user] for who, user in owners.items()},
        attributes,
        KnownUsers(
            {names[user]: dataset.train.take(rows[user]) for user in seen},
            {names[user]: dataset.train.take(rows[user]) for user in holdout},
            {shadow(place): names[user] for place, user in enumerate(played)},
            {names[user]: mean for user, mean in _embeddings(dataset, rows).items()},
            {
                attribute: {who: value for who, value in values.items() if who in known}
                for attribute, values in attributes.items()
            },
        ),
        tuple(rows[user] for user in played),
        torch.isin(dataset.users, torch.tensor(holdout, dtype=torch.long)),
    )


def exchanged(held: Sequence[Rows], seed: Seed) -> tuple[Rows, ...]:
    """The same examples dealt anew by chance, and how many each gets likewise.

    The control of an attack on identities: neither what a client holds nor how much of it says
    anything of who it is. How much shows in an update besides: as a number of steps.
    """
    together = torch.cat(tuple(held))
    mixed = together[torch.randperm(len(together), generator=seed.generator())]
    order = torch.randperm(len(held), generator=seed.child("sizes").generator())
    return tuple(torch.split(mixed, [len(held[place]) for place in order.tolist()]))


def _seen(
    taking_part: Sequence[int], priors: Mapping[int, Rows], people: People, seed: Seed
) -> list[int]:
    """Of the users who take part, those whom the attacker knows."""
    order = torch.randperm(len(taking_part), generator=seed.generator())
    unseen = {taking_part[place] for place in order[: people.unseen].tolist()}
    seen = [user for user in taking_part if user in priors and user not in unseen]
    if len(seen) < 2:
        raise PlanError(
            f"people: of {len(taking_part)} clients {len(unseen)} are unseen, and {len(seen)} "
            "of the others have an example for the attacker besides one of their own that no "
            "other is a copy of: leave 2 such users or more, by more clients or fewer unseen"
        )
    return seen


def _holdout(others: Sequence[int], people: People, seed: Seed) -> list[int]:
    """Of users who take no part and have a prior, those whom the attacker knows."""
    if len(others) < people.holdout:
        raise PlanError(
            f"people: {people.holdout} holdout users are wanted and {len(others)} users take "
            "no part: take fewer clients"
        )
    chance = torch.randperm(len(others), generator=seed.child("holdout").generator())
    return sorted(others[place] for place in chance[: people.holdout].tolist())


def _names(dataset: Dataset) -> tuple[str, ...]:
    """What each user is called; also those of whom no example is in the training part."""
    assert dataset.users is not None
    count = int(dataset.users.max()) + 1
    return dataset.user_names or tuple(f"user {number}" for number in range(count))


def _embeddings(dataset: Dataset, rows: Mapping[int, Rows]) -> dict[int, Tensor]:
    """The mean embedding of each user's prior records."""
    if dataset.embeddings is None:
        return {}
    records = dataset.records
    means = {}
    for user, own in rows.items():
        places = own if records is None else torch.from_numpy(np.unique(records[own].numpy()))
        means[user] = dataset.embeddings[places].mean(0)
    return means


def _profiles(dataset: Dataset, parted: Parted, held: Sequence[Rows]) -> Who:
    """One profile a label, made of all prior examples of it."""
    labels, classes = dataset.train.labels, dataset.task.classes
    if classes > MOST_PROFILES:
        raise PlanError(
            f"people: a profile a label makes {classes} of them, and {MOST_PROFILES} are the "
            "most: take another prior"
        )
    pooled = torch.cat(list(parted.prior.values())).sort().values
    counts = torch.stack([labels[own].bincount(minlength=classes) for own in held]).double()
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)  # (clients, labels)
    lift = shares / (counts.sum(0) / counts.sum()).clamp(min=1e-12)
    names = dataset.task.class_names
    kinds = {names[label]: pooled[labels[pooled] == label] for label in range(classes)}
    return Who(
        {
            client(number): names[int(lift[number].argmax())]
            for number, own in enumerate(held)
            if len(own)
        },
        {},
        KnownUsers({name: dataset.train.take(own) for name, own in kinds.items() if len(own)}),
        (),
        torch.zeros(len(labels), dtype=torch.bool),
    )
