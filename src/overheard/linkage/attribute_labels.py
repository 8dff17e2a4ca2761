"""Which value of an attribute each known update bears."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.known_users import KnownUsers
from overheard.linkage.heads import UNKNOWN
from overheard.linkage.prior_updates import KnownUpdates

Told = Literal["everyone", "holdout"]
"""Whose attribute the attacker is told. "everyone": of all of whom it has prior examples, as
published. The very person behind a target is then among them, and to know who it is tells the
attribute. "holdout": only of users who take no part, so that what tells an attribute is what
people who bear it have in common."""


@final
@dataclass(frozen=True, slots=True)
class AttributeLabels:
    """What an attacker is told of an attribute.

    Args:
        attribute: which.
        values: that users are known to bear, in order.
        labels: of each known update a place in `values`; `UNKNOWN` where it is not told.

    """

    attribute: str
    values: tuple[str, ...]
    labels: Int[Tensor, " updates"]

    def told(self) -> Int[Tensor, " _told"]:
        """The rows whose value is told."""
        return (self.labels != UNKNOWN).nonzero().flatten()


def attribute_labels(
    known: KnownUpdates, people: KnownUsers, attribute: str | None, told: Told
) -> AttributeLabels:
    """Tell the value of the attribute of each known update.

    Args:
        known: the updates.
        people: with the values.
        attribute: which; None = the only one that there is.
        told: of whom it is told.

    Raises:
        NeedsError: if nothing is known of it, or the users of whom it is told bear one value.

    """
    there = ", ".join(sorted(people.attributes)) or "none, for the data have none"
    chosen = attribute
    if chosen is None and len(people.attributes) == 1:
        (chosen,) = people.attributes
    if chosen is None or not people.attributes.get(chosen):
        wanted = "an attribute" if attribute is None else f"the attribute {attribute!r}"
        raise NeedsError(f"{wanted} needs values that are known: choose one of {there}")
    values_of = people.attributes[chosen]
    values = tuple(sorted(set(values_of.values())))
    first = known.named if told == "holdout" else 0
    by_person = torch.full((len(known.names),), UNKNOWN)
    for place, name in enumerate(known.names):
        if place >= first and name in values_of:
            by_person[place] = values.index(values_of[name])
    labels = by_person[known.people]
    if len(set(labels.tolist()) - {UNKNOWN}) < 2:
        whose = "users who take no part" if told == "holdout" else "known users"
        raise NeedsError(
            f"{chosen!r} needs updates of {whose} who bear 2 values of it or more: raise "
            "data.people.holdout, or set told = 'everyone'"
        )
    return AttributeLabels(chosen, values, labels)
