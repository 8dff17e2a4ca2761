"""Coordinates in which two updates of one user are near each other, whatever they learned."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserSpace:
    """Within-class covariance normalisation, and users as points (WCCN).

    Hatch, Kajarekar and Stolcke 2006: coordinates are turned so that the covariance within a
    user, W = mean of (z - its user's mean)(z - its user's mean)^T, is the identity. A direction
    in which the pieces of one user's data differ then counts little. W is shrunk towards its
    mean variance, as there are fewer pieces than directions (Ledoit and Wolf 2004, with a set
    weight). Two updates are as near as their cosine (Dehak et al. 2011).

    Args:
        turn: from directions of the plane to coordinates.
        users: where each user lies; 0 for one of whom no update is known.

    """

    turn: Float[Tensor, "directions directions"]
    users: Float[Tensor, "users directions"]

    def cosines(
        self, places: Float[Tensor, "updates directions"]
    ) -> Float[Tensor, "updates users"]:
        """How near each update, by its directions in the plane, is to each user."""
        return normalize(places @ self.turn) @ normalize(self.users).T


def turn_within(
    places: Float[Tensor, "updates directions"],
    people: Int[Tensor, " updates"],
    shrinkage: float,
) -> Float[Tensor, "directions directions"]:
    """The turn after which updates of one user differ alike in all directions."""
    apart = places - mean_by(places, people, int(people.max()) + 1)[people]
    degrees = max(1, len(people) - len(set(people.tolist())))
    within = apart.T @ apart / degrees
    level = within.diagonal().mean()
    # Where no user differs from itself there is nothing to count less.
    if not bool(level > 0):
        return torch.eye(len(within), dtype=within.dtype)
    identity = torch.eye(len(within), dtype=within.dtype)
    variances, turns = torch.linalg.eigh(
        (1 - shrinkage) * within + shrinkage * level * identity
    )
    turned: Tensor = turns / variances.sqrt()
    return turned


def mean_by(
    places: Float[Tensor, "updates directions"], people: Int[Tensor, " updates"], count: int
) -> Float[Tensor, "people directions"]:
    """The mean of each person's updates; 0 where there is none."""
    sums = torch.zeros(count, places.shape[1], dtype=places.dtype)
    sums.index_add_(0, people, places)
    return sums / people.bincount(minlength=count).clamp(min=1)[:, None]
