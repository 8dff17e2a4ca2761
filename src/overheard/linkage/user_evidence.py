"""Evidence for each known user, calibrated on known users' updates alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.linkage.layers import Layer
from overheard.linkage.linked import least_nearness
from overheard.linkage.logit import fit_weights
from overheard.linkage.pieces import Joined, joined, pieces_of
from overheard.linkage.plane import Plane, RoundMeans, plane_of, round_means
from overheard.linkage.prior_updates import KnownUpdates
from overheard.linkage.stranger import UNKNOWN, Stranger, fit_stranger
from overheard.linkage.user_space import UserSpace, mean_by, turn_within

SHRINKAGES = (0.1, 0.3)
"""Shrinkage weights of the within-user covariance; each gives one WCCN space."""

FOLDS = 6
"""Most splits of the chunks into a training half and a test half."""

WARMTH = 20.0
"""Sum of the weights of all cosines where there is no data to calibrate them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserReading:
    """The evidence model of one layer.

    Args:
        plane: principal component analysis of the layer's updates.
        means: mean update of each round, over updates averaged across chunks.
        spaces: WCCN spaces, one a shrinkage.

    """

    plane: Plane
    means: RoundMeans
    spaces: tuple[UserSpace, ...]

    def places(
        self, vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
    ) -> Float[Tensor, "updates directions"]:
        """Project updates on the principal directions."""
        return self.plane.of(vectors, rounds, self.means)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserEvidence:
    """Evidence for known users: a weighted sum of cosines, one a layer and space.

    Args:
        layers: the layers that are used.
        readings: the evidence model of each layer.
        heard: which candidate users have a known update.
        of_one: weights of the cosines for a single update.
        of_many: weights for a mean of as many updates as known users have.
        many: number of updates in such a mean.
        stranger: the open-set model.
        least: similarity above which two updates of different rounds are linked.

    """

    layers: tuple[Layer, ...]
    readings: tuple[UserReading, ...]
    heard: Bool[Tensor, " users"]
    of_one: Float[Tensor, " spaces"]
    of_many: Float[Tensor, " spaces"]
    many: int
    stranger: Stranger
    least: float

    def scores(
        self, places: Sequence[Float[Tensor, "senders _"]], counts: Int[Tensor, " senders"]
    ) -> Float[Tensor, "senders users"]:
        """Return the evidence for each user, from the senders' mean projections.

        A log-likelihood up to a constant per sender, if the calibration holds.

        Args:
            places: mean projection of each sender's updates, one tensor a layer.
            counts: number of updates of each sender.

        """
        cosines = torch.stack(
            [
                space.cosines(layer_projections)
                for layer, layer_projections in zip(self.readings, places, strict=True)
                for space in layer.spaces
            ],
            2,
        )  # (senders, users, spaces)
        return (cosines * self._weights(counts)[:, None]).sum(2)

    def nearness(
        self, places: Sequence[Float[Tensor, "updates _"]]
    ) -> Float[Tensor, "updates updates"]:
        """Return the weighted mean cosine of each pair of updates, -1..1."""
        return _nearness(self.readings, places, self.of_one)

    def _weights(self, counts: Int[Tensor, " senders"]) -> Float[Tensor, "senders spaces"]:
        """Interpolate from `of_one` to `of_many` by 1 / count, as the error of a mean falls."""
        if self.many < 2:
            return self.of_one.expand(len(counts), -1)
        fraction = (1 - 1 / counts.double()) / (1 - 1 / self.many)
        return torch.lerp(self.of_one, self.of_many, fraction.clamp(max=1)[:, None])


def learn_evidence(known: Mapping[Layer, KnownUpdates]) -> UserEvidence:
    """Fit spaces and weights to updates of known users, given by several layers.

    The chunks of each user's prior examples are halved in up to `FOLDS` ways. Spaces fitted to
    one half score the updates of the other half, and the weights maximise the likelihood of the
    true users. All choices thus depend on prior examples alone, and an uninformative layer gets
    a weight of 0.
    """
    layers, first_layer = tuple(known), next(iter(known.values()))
    chunks = pieces_of(first_layer)
    all_chunks = sorted(set(chunks.tolist()))
    planes = [plane_of(one.vectors, one.rounds) for one in known.values()]
    readings = tuple(
        _reading(one, chunks, all_chunks, plane)
        for one, plane in zip(known.values(), planes, strict=True)
    )
    folds = [
        fold
        for half in list(combinations(all_chunks, len(all_chunks) // 2))[:FOLDS]
        if half and (fold := _trial(tuple(known.values()), planes, chunks, half)) is not None
    ]
    has_updates = torch.zeros(first_layer.named, dtype=torch.bool)
    has_updates[first_layer.people[first_layer.people < first_layer.named]] = True
    count, many = len(layers) * len(SHRINKAGES), len(set(first_layer.rounds.tolist()))
    of_one = of_many = torch.full((count,), WARMTH / count, dtype=torch.float64)
    stranger = UNKNOWN
    if folds:
        of_one = fit_weights([(t.of_one, t.users, t.able) for t in folds])
        of_many = fit_weights([(t.of_many, t.users_of_many, t.able) for t in folds])
        stranger = fit_stranger(
            (cosines @ weights, users, t.able)
            for t in folds
            for cosines, users, weights in (
                (t.of_one, t.users, of_one),
                (t.of_many, t.users_of_many, of_many),
            )
        )
    averaged = [joined(one, chunks, all_chunks) for one in known.values()]
    projections = [
        reading.places(mean_updates.vectors, mean_updates.rounds)
        for reading, mean_updates in zip(readings, averaged, strict=True)
    ]
    least = least_nearness(
        _nearness(readings, projections, of_one), averaged[0].people, averaged[0].rounds
    )
    return UserEvidence(layers, readings, has_updates, of_one, of_many, many, stranger, least)


def _nearness(
    readings: Sequence[UserReading],
    places: Sequence[Float[Tensor, "updates _"]],
    weights: Float[Tensor, " spaces"],
) -> Float[Tensor, "updates updates"]:
    normalised = [
        normalize(projections @ space.turn)
        for reading, projections in zip(readings, places, strict=True)
        for space in reading.spaces
    ]
    similarity = torch.zeros(len(normalised[0]), len(normalised[0]), dtype=torch.float64)
    for weight, coordinates in zip(weights, normalised, strict=True):
        similarity += weight * (coordinates @ coordinates.T)
    return similarity / weights.sum().clamp(min=1e-12)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Cosines of one half's updates with the users of the other; holdout users are -1."""

    able: Bool[Tensor, " users"]
    of_one: Float[Tensor, "updates users spaces"]
    users: Int[Tensor, " updates"]
    of_many: Float[Tensor, "people users spaces"]
    users_of_many: Int[Tensor, " people"]


def _reading(
    known: KnownUpdates, pieces: Int[Tensor, " updates"], chosen: Sequence[int], plane: Plane
) -> UserReading:
    """Fit one layer's evidence model to some chunks."""
    rows = torch.isin(pieces, torch.tensor(chosen, dtype=pieces.dtype))
    vectors, rounds = known.vectors[rows], known.rounds[rows]
    centred = plane.of(vectors, rounds, round_means(vectors, rounds))
    averaged = joined(known, pieces, chosen)
    means = round_means(averaged.vectors, averaged.rounds)
    users = mean_by(
        plane.of(averaged.vectors, averaged.rounds, means), averaged.people, len(known.names)
    )[: known.named]
    turns = [turn_within(centred, known.people[rows], shrinkage) for shrinkage in SHRINKAGES]
    return UserReading(plane, means, tuple(UserSpace(turn, users @ turn) for turn in turns))


def _trial(
    known: Sequence[KnownUpdates],
    planes: Sequence[Plane],
    pieces: Int[Tensor, " updates"],
    half: Sequence[int],
) -> _Trial | None:
    """Score one half's updates with spaces fitted to the other; None = too few users."""
    others = sorted(set(pieces.tolist()) - set(half))
    of_one, of_many = [], []
    test_updates: Joined | None = None
    for one, plane in zip(known, planes, strict=True):
        reading = _reading(one, pieces, half, plane)
        test_updates = joined(one, pieces, others)
        places = plane.of(
            test_updates.vectors,
            test_updates.rounds,
            round_means(test_updates.vectors, test_updates.rounds),
        )
        means = mean_by(places, test_updates.people, len(one.names))
        of_one += [space.cosines(places) for space in reading.spaces]
        of_many += [space.cosines(means) for space in reading.spaces]
    assert test_updates is not None
    named, total = known[0].named, len(known[0].names)
    is_candidate = torch.zeros(total, dtype=torch.bool)
    is_candidate[
        known[0].people[torch.isin(pieces, torch.tensor(half, dtype=pieces.dtype))]
    ] = True
    is_tested = torch.zeros(total, dtype=torch.bool)
    is_tested[test_updates.people] = True
    is_candidate = is_candidate[:named]
    if int((is_candidate & is_tested[:named]).sum()) < 2:
        return None
    # A user who is only in the test half cannot be identified.
    label = torch.where(is_candidate, torch.arange(named), -2)
    label = torch.cat([label, torch.full((total - named,), -1)])
    is_used, tested_users = label[test_updates.people] > -2, is_tested & (label > -2)
    return _Trial(
        is_candidate,
        torch.stack(of_one, 2)[is_used],
        label[test_updates.people][is_used],
        torch.stack(of_many, 2)[tested_users],
        label[tested_users],
    )
