"""Within-class covariance normalisation (WCCN) of updates, with users as classes."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize


@final
@dataclass(frozen=True, slots=True, eq=False)
class WccnSpace:
    """A WCCN space with a point for each user.

    Hatch, Kajarekar and Stolcke 2006: coordinates are transformed so that the covariance within
    a user, W = mean of (z - its user's mean)(z - its user's mean)^T, is the identity. A
    direction in which chunks of one user's data differ then counts little. W is shrunk towards
    its mean variance, as there are fewer chunks than directions (Ledoit and Wolf 2004, with a
    fixed weight). Similarity is the cosine (Dehak et al. 2011).

    Args:
        transform: transform from principal directions to coordinates.
        users: the point of each user; 0 for a user without updates.

    """

    transform: Float[Tensor, "directions directions"]
    users: Float[Tensor, "users directions"]

    def cosines(
        self, places: Float[Tensor, "updates directions"]
    ) -> Float[Tensor, "updates users"]:
        """Return the cosine of each projected update with each user."""
        return normalize(places @ self.transform) @ normalize(self.users).T


def fit_wccn_transform(
    places: Float[Tensor, "updates directions"],
    users: Int[Tensor, " updates"],
    shrinkage: float,
) -> Float[Tensor, "directions directions"]:
    """Fit the transform after which updates of one user vary equally in all directions."""
    centred = places - mean_by_user(places, users, int(users.max()) + 1)[users]
    degrees = max(1, len(users) - len(set(users.tolist())))
    within = centred.T @ centred / degrees
    level = within.diagonal().mean()
    # Without variance within users there is nothing to normalise.
    if not bool(level > 0):
        return torch.eye(len(within), dtype=within.dtype)
    identity = torch.eye(len(within), dtype=within.dtype)
    variances, eigenvectors = torch.linalg.eigh(
        (1 - shrinkage) * within + shrinkage * level * identity
    )
    transform: Tensor = eigenvectors / variances.sqrt()
    return transform


def mean_by_user(
    places: Float[Tensor, "updates directions"], users: Int[Tensor, " updates"], count: int
) -> Float[Tensor, "users directions"]:
    """Compute the mean of each user's updates; 0 for a user without updates."""
    sums = torch.zeros(count, places.shape[1], dtype=places.dtype)
    sums.index_add_(0, users, places)
    return sums / users.bincount(minlength=count).clamp(min=1)[:, None]
