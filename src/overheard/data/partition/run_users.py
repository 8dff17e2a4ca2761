"""The users behind the clients, and what the attacker knows of them and of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import Party, client, shadow_device
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import Dataset
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.prior_private_split import PriorPrivateSplit

MAX_PROFILES = 100
"""The most labels for which label profiles make sense: a next word is no interest."""


@final
@dataclass(frozen=True, slots=True)
class RunUsers:
    """The users behind the clients of a run, and what the attacker knows of users.

    Args:
        users: the user behind each client.
        attributes: the value of every user, by attribute.
        known: the attacker's prior knowledge.
        shadow_rows: the rows that each shadow device holds, in the order of their numbers.
        is_holdout: marks the examples of holdout users, which are never public.

    """

    users: Mapping[Party, str]
    attributes: Mapping[str, Mapping[str, str]]
    known: KnownUsers
    shadow_rows: tuple[Rows, ...]
    is_holdout: Bool[Tensor, " examples"]


def identify_users(
    dataset: Dataset,
    split: PriorPrivateSplit,
    client_rows: Sequence[Rows],
    known_users: KnownUserSettings,
    seed: Seed,
) -> RunUsers:
    """Identify the user behind each client, and choose the users whom the attacker knows.

    A user without prior examples, such as one with a single example, is unknown to the
    attacker, as are the unseen ones.

    Raises:
        PlanError: if there are too few holdout users, or fewer than two known clients.

    """
    if known_users.prior == "profile":
        return _label_profiles(dataset, split, client_rows)
    assert dataset.users is not None
    owners = {
        client(number): int(dataset.users[rows[0]])
        for number, rows in enumerate(client_rows)
        if len(rows)
    }
    priors = {user: rows for user, rows in split.prior.items() if len(rows)}
    seen = _select_known(sorted(owners.values()), priors, known_users, seed.child("unseen"))
    holdout = _select_holdout(sorted(priors.keys() - set(owners.values())), known_users, seed)
    names = _user_names(dataset)
    attributes = {
        attribute: dict(zip(names, values, strict=True))
        for attribute, values in dataset.attributes.items()
    }
    rows = {user: priors[user] for user in (*seen, *holdout)}
    known = {names[user] for user in rows}
    shadow_users = tuple(rows) if known_users.shadow_devices else ()
    return RunUsers(
        {party: names[user] for party, user in owners.items()},
        attributes,
        KnownUsers(
            {names[user]: dataset.train.take(rows[user]) for user in seen},
            {names[user]: dataset.train.take(rows[user]) for user in holdout},
            {shadow_device(number): names[user] for number, user in enumerate(shadow_users)},
            {names[user]: mean for user, mean in _mean_embeddings(dataset, rows).items()},
            {
                attribute: {user: value for user, value in values.items() if user in known}
                for attribute, values in attributes.items()
            },
        ),
        tuple(rows[user] for user in shadow_users),
        torch.isin(dataset.users, torch.tensor(holdout, dtype=torch.long)),
    )


def permute_examples(client_rows: Sequence[Rows], seed: Seed) -> tuple[Rows, ...]:
    """Permute examples and sizes among clients at random.

    The permutation control of identity attacks: neither the examples of a client nor their
    number reveal its user. The number must be permuted too, since it shows in an update as the
    number of steps.
    """
    pooled = torch.cat(tuple(client_rows))
    permuted = pooled[torch.randperm(len(pooled), generator=seed.generator())]
    order = torch.randperm(len(client_rows), generator=seed.child("sizes").generator())
    return tuple(torch.split(permuted, [len(client_rows[index]) for index in order.tolist()]))


def draw_background(
    dataset: Dataset,
    unused: Bool[Tensor, " examples"],
    client_rows: tuple[Rows, ...],
    count: int | None,
    seed: Seed,
) -> Rows:
    """Draw rows of users who take no part, if the data set has no public examples."""
    if dataset.background is not None or count is None:
        return torch.zeros(0, dtype=torch.long)
    if dataset.users is None:
        raise PlanError(
            "background: the data set has no public examples, and names no users from whom "
            "they could be drawn: leave background out"
        )
    present = dataset.users[torch.cat(client_rows)]
    available = (unused & ~torch.isin(dataset.users, present)).nonzero().flatten()
    if len(available) < count:
        raise PlanError(
            f"background: {count} public examples are needed, but users who take no part have "
            f"{len(available)}: lower background, or take fewer clients"
        )
    return available[torch.randperm(len(available), generator=seed.generator())[:count]]


def _select_known(
    taking_part: Sequence[int],
    priors: Mapping[int, Rows],
    known_users: KnownUserSettings,
    seed: Seed,
) -> list[int]:
    """Return the users who take part and whom the attacker knows."""
    order = torch.randperm(len(taking_part), generator=seed.generator())
    unseen = {taking_part[index] for index in order[: known_users.unseen].tolist()}
    seen = [user for user in taking_part if user in priors and user not in unseen]
    if len(seen) < 2:
        raise PlanError(
            f"people: of {len(taking_part)} clients {len(unseen)} are unseen, and {len(seen)} "
            "of the others have prior examples, but at least 2 are needed: take more clients "
            "or fewer unseen ones"
        )
    return seen


def _select_holdout(
    others: Sequence[int], known_users: KnownUserSettings, seed: Seed
) -> list[int]:
    """Return known users who take no part, drawn from those with prior examples."""
    if len(others) < known_users.holdout:
        raise PlanError(
            f"people: {known_users.holdout} holdout users are needed, but {len(others)} users "
            "with prior examples take no part: take fewer clients, or lower holdout"
        )
    order = torch.randperm(len(others), generator=seed.child("holdout").generator())
    return sorted(others[index] for index in order[: known_users.holdout].tolist())


def _user_names(dataset: Dataset) -> tuple[str, ...]:
    """Return the name of each user, including users without training examples."""
    assert dataset.users is not None
    count = int(dataset.users.max()) + 1
    return dataset.user_names or tuple(f"user {number}" for number in range(count))


def _mean_embeddings(dataset: Dataset, rows: Mapping[int, Rows]) -> dict[int, Tensor]:
    """Return the mean embedding of each user's prior records."""
    if dataset.embeddings is None:
        return {}
    records = dataset.records
    means = {}
    for user, user_rows in rows.items():
        indices = (
            user_rows
            if records is None
            else torch.from_numpy(np.unique(records[user_rows].numpy()))
        )
        means[user] = dataset.embeddings[indices].mean(0)
    return means


def _label_profiles(
    dataset: Dataset, split: PriorPrivateSplit, client_rows: Sequence[Rows]
) -> RunUsers:
    """Return one profile per label, from all prior examples of that label."""
    labels, classes = dataset.train.labels, dataset.task.classes
    if classes > MAX_PROFILES:
        raise PlanError(
            f"people: prior 'profile' would make {classes} profiles, one per label, but at "
            f"most {MAX_PROFILES} are allowed: take another prior"
        )
    pooled = torch.cat(list(split.prior.values())).sort().values
    counts = torch.stack(
        [labels[rows].bincount(minlength=classes) for rows in client_rows]
    ).double()
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)  # (clients, labels)
    lift = shares / (counts.sum(0) / counts.sum()).clamp(min=1e-12)
    names = dataset.task.class_names
    profiles = {names[label]: pooled[labels[pooled] == label] for label in range(classes)}
    return RunUsers(
        {
            client(number): names[int(lift[number].argmax())]
            for number, rows in enumerate(client_rows)
            if len(rows)
        },
        {},
        KnownUsers(
            {name: dataset.train.take(rows) for name, rows in profiles.items() if len(rows)}
        ),
        (),
        torch.zeros(len(labels), dtype=torch.bool),
    )
