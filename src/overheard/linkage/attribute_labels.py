"""Attribute values of known users' updates."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.known_facts.known_users import KnownUsers
from overheard.linkage.known_updates import KnownUpdates
from overheard.linkage.multi_head_mlp import UNLABELLED

LabelledUsers = Literal["everyone", "holdout"]
"""Users whose attribute value the attacker knows. "everyone": all users with prior examples, as
published. The target's own user is then among them, so identifying the user reveals the
attribute. "holdout": only users who take no part, so the attack must rely on what users with
the same value have in common."""


@final
@dataclass(frozen=True, slots=True)
class AttributeLabels:
    """Attribute values that an attacker knows.

    Args:
        attribute: its name.
        values: the known values of users, sorted.
        labels: an index into `values` for each known update; `UNLABELLED` where it is not
            known.

    """

    attribute: str
    values: tuple[str, ...]
    labels: Int[Tensor, " updates"]

    def labelled_rows(self) -> Int[Tensor, " _told"]:
        """Return the rows with a known value."""
        return (self.labels != UNLABELLED).nonzero().flatten()


def read_attribute_labels(
    known: KnownUpdates, users: KnownUsers, attribute: str | None, labelled: LabelledUsers
) -> AttributeLabels:
    """Read the attribute value of each known update's user.

    Args:
        known: the updates.
        users: the known users, with their attribute values.
        attribute: its name; None = the only attribute of the data.
        labelled: the users whose value the attacker knows.

    Raises:
        NeedsError: if no value of the attribute is known, or all known values are the same.

    """
    available = ", ".join(sorted(users.attributes)) or "none, as the data have no attributes"
    chosen = attribute
    if chosen is None and len(users.attributes) == 1:
        (chosen,) = users.attributes
    if chosen is None or not users.attributes.get(chosen):
        wanted = "an attribute" if attribute is None else f"the attribute {attribute!r}"
        raise NeedsError(f"{wanted} needs known values: choose one of {available}")
    values_of = users.attributes[chosen]
    values = tuple(sorted(set(values_of.values())))
    first_user = known.candidate_count if labelled == "holdout" else 0
    label_by_user = torch.full((len(known.names),), UNLABELLED)
    for user, name in enumerate(known.names):
        if user >= first_user and name in values_of:
            label_by_user[user] = values.index(values_of[name])
    labels = label_by_user[known.users]
    if len(set(labels.tolist()) - {UNLABELLED}) < 2:
        whose = "users who take no part" if labelled == "holdout" else "known users"
        raise NeedsError(
            f"{chosen!r} needs updates of {whose} with 2 different values or more: raise "
            "data.people.holdout, or set told = 'everyone'"
        )
    return AttributeLabels(chosen, values, labels)
