"""Re-identification by the nearest known updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.threads import one_thread
from overheard.linkage.known_updates import MAX_ROUNDS, UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.unit_updates import (
    Layers,
    check_layers,
    load_unit_updates,
    read_unit_updates,
)
from overheard.questions.identity.estimators.user_classes import build_user_classes

DISTANCE_TOLERANCE = 1e-6
"""Squared distances of unit vectors that differ by no more are equal up to rounding."""


@final
@dataclass(frozen=True, slots=True)
class ReidentifyKnn(LearnsFromUpdates, Attack[Identity]):
    """Each user's share of the nearest known updates.

    One layer of an update, scaled to length 1, is read. Distances are Euclidean, and all
    neighbours have equal weight. Known updates tied at the last distance share the remaining
    places, so their order does not matter. A sender with several updates has the mean of their
    shares. Holdout users are neighbours too; their share is `unseen`, as coarse as the scores.

    Args:
        updates: the source of known updates: "shadow" as published.
        layer: the part of an update that is read; several parts are each scaled to length 1
            and read together.
        neighbours: number of neighbours; all, if fewer updates are known.
        most_rounds: maximum number of rounds in which known users are trained.
        pieces: number of chunks of each simulated prior, each a separate client; 1 as
            published. Shadow devices hold their whole priors.

    """

    updates: UpdateSource = "simulated"
    layer: Layers = -1
    neighbours: int = 10
    most_rounds: int = MAX_ROUNDS
    pieces: int = 1

    name: ClassVar[str] = "reidentify_knn"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 6.1.1 and Table 3"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        check_layers(self.layer)
        if min(self.neighbours, self.most_rounds, self.pieces) < 1:
            raise ValueError(
                f"neighbours, most_rounds and pieces must be 1 or more, got {self}"
            )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Claim each user's share of the target's neighbours.

        Raises:
            NeedsError: if updates of known users are unavailable.

        """
        known = load_unit_updates(
            view, knowledge, self.updates, self.layer, self.pieces, self.most_rounds
        )
        classes = build_user_classes(known, self.name)
        sent = read_unit_updates(view, targets, self.layer)
        with one_thread():
            weights = _neighbour_weights(sent.vectors, known.vectors, self.neighbours)
            shares = weights @ one_hot(classes.labels, classes.count).double()
        claims = {}
        for target, rows in sent.rows_by_sender().items():
            mean = shares[rows].mean(0)  # (classes)
            unseen = min(1.0, float(mean[-1])) if classes.has_unknown_class else None
            claims[target] = classes.build_claim(mean, unseen)
        return claims


def _neighbour_weights(
    sent: Float[Tensor, "sent dims"], known: Float[Tensor, "known dims"], count: int
) -> Float[Tensor, "sent known"]:
    """Return the weight of each known update for each sent update; rows sum to 1."""
    count = min(count, len(known))
    distances = (
        sent.square().sum(1, keepdim=True) + known.square().sum(1) - 2 * sent @ known.T
    ).double()
    farthest = distances.kthvalue(count, dim=1, keepdim=True).values
    nearer = (distances < farthest - DISTANCE_TOLERANCE).double()
    tied = ((distances - farthest).abs() <= DISTANCE_TOLERANCE).double()
    left = count - nearer.sum(1, keepdim=True)
    return (nearer + tied * left / tied.sum(1, keepdim=True)) / count
