"""How strongly an update speaks for each known user, calibrated on what is known alone."""

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
"""Weights of the mean variance in the covariance within a user: each makes a space."""

FOLDS = 6
"""Ways at most to halve the pieces, one half to learn from and the other to be told apart."""

WARMTH = 20.0
"""The weight of a cosine where nothing is known to calibrate on."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserReading:
    """One layer of updates, by the directions in which they differ.

    Args:
        plane: the directions.
        means: of whole updates, by round.
        spaces: users as points, one space a shrinkage.

    """

    plane: Plane
    means: RoundMeans
    spaces: tuple[UserSpace, ...]

    def places(
        self, vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
    ) -> Float[Tensor, "updates directions"]:
        """Where updates lie in the plane."""
        return self.plane.of(vectors, rounds, self.means)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserEvidence:
    """Evidence for known users: a weighted sum of cosines, one a layer and space.

    Args:
        layers: that are read.
        readings: of each layer.
        heard: which users an update is known of, of those who may be named.
        of_one: weights of the cosines where one update is heard.
        of_many: the same where as many are heard as known users have.
        many: how many these are.
        stranger: the chance that it is none of the known users.
        least: nearness above which two updates of different rounds are taken for one sender's.

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
        """Evidence for each user, from the mean places of senders with so many updates.

        A log-likelihood up to a number a sender, as far as the calibration holds.
        """
        cosines = torch.stack(
            [
                space.cosines(own)
                for reading, own in zip(self.readings, places, strict=True)
                for space in reading.spaces
            ],
            2,
        )  # (senders, users, spaces)
        return (cosines * self._weights(counts)[:, None]).sum(2)

    def nearness(
        self, places: Sequence[Float[Tensor, "updates _"]]
    ) -> Float[Tensor, "updates updates"]:
        """How near updates are to each other: their mean cosine by the weights, -1..1."""
        return _nearness(self.readings, places, self.of_one)

    def _weights(self, counts: Int[Tensor, " senders"]) -> Float[Tensor, "senders spaces"]:
        """As the error of a mean falls: from `of_one` to `of_many`, by 1 / count."""
        if self.many < 2:
            return self.of_one.expand(len(counts), -1)
        told = (1 - 1 / counts.double()) / (1 - 1 / self.many)
        return torch.lerp(self.of_one, self.of_many, told.clamp(max=1)[:, None])


def learn_evidence(known: Mapping[Layer, KnownUpdates]) -> UserEvidence:
    """Learn spaces and weights from updates of known users, the same ones by several layers.

    Pieces of each prior are halved in up to `FOLDS` ways: spaces that are learned on one half
    tell the users of the other half apart, and the weights are those that make the true users
    likeliest. So what is chosen is chosen on the prior alone, and a layer that tells nothing
    has a weight of 0.
    """
    layers, some = tuple(known), next(iter(known.values()))
    pieces = pieces_of(some)
    every = sorted(set(pieces.tolist()))
    planes = [plane_of(one.vectors, one.rounds) for one in known.values()]
    readings = tuple(
        _reading(one, pieces, every, plane)
        for one, plane in zip(known.values(), planes, strict=True)
    )
    trials = [
        trial
        for half in list(combinations(every, len(every) // 2))[:FOLDS]
        if half and (trial := _trial(tuple(known.values()), planes, pieces, half)) is not None
    ]
    heard = torch.zeros(some.named, dtype=torch.bool)
    heard[some.people[some.people < some.named]] = True
    count, many = len(layers) * len(SHRINKAGES), len(set(some.rounds.tolist()))
    of_one = of_many = torch.full((count,), WARMTH / count, dtype=torch.float64)
    stranger = UNKNOWN
    if trials:
        of_one = fit_weights([(t.of_one, t.users, t.able) for t in trials])
        of_many = fit_weights([(t.of_many, t.users_of_many, t.able) for t in trials])
        stranger = fit_stranger(
            (cosines @ weights, users, t.able)
            for t in trials
            for cosines, users, weights in (
                (t.of_one, t.users, of_one),
                (t.of_many, t.users_of_many, of_many),
            )
        )
    wholes = [joined(one, pieces, every) for one in known.values()]
    places = [
        reading.places(whole.vectors, whole.rounds)
        for reading, whole in zip(readings, wholes, strict=True)
    ]
    least = least_nearness(
        _nearness(readings, places, of_one), wholes[0].people, wholes[0].rounds
    )
    return UserEvidence(layers, readings, heard, of_one, of_many, many, stranger, least)


def _nearness(
    readings: Sequence[UserReading],
    places: Sequence[Float[Tensor, "updates _"]],
    weights: Float[Tensor, " spaces"],
) -> Float[Tensor, "updates updates"]:
    turned = [
        normalize(own @ space.turn)
        for reading, own in zip(readings, places, strict=True)
        for space in reading.spaces
    ]
    near = torch.zeros(len(turned[0]), len(turned[0]), dtype=torch.float64)
    for weight, coordinates in zip(weights, turned, strict=True):
        near += weight * (coordinates @ coordinates.T)
    return near / weights.sum().clamp(min=1e-12)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Cosines of one half's updates with the users of the other; holdout users count as -1."""

    able: Bool[Tensor, " users"]
    of_one: Float[Tensor, "updates users spaces"]
    users: Int[Tensor, " updates"]
    of_many: Float[Tensor, "people users spaces"]
    users_of_many: Int[Tensor, " people"]


def _reading(
    known: KnownUpdates, pieces: Int[Tensor, " updates"], chosen: Sequence[int], plane: Plane
) -> UserReading:
    """What is learned from some pieces."""
    rows = torch.isin(pieces, torch.tensor(chosen, dtype=pieces.dtype))
    vectors, rounds = known.vectors[rows], known.rounds[rows]
    apart = plane.of(vectors, rounds, round_means(vectors, rounds))
    whole = joined(known, pieces, chosen)
    means = round_means(whole.vectors, whole.rounds)
    users = mean_by(
        plane.of(whole.vectors, whole.rounds, means), whole.people, len(known.names)
    )[: known.named]
    turns = [turn_within(apart, known.people[rows], shrinkage) for shrinkage in SHRINKAGES]
    return UserReading(plane, means, tuple(UserSpace(turn, users @ turn) for turn in turns))


def _trial(
    known: Sequence[KnownUpdates],
    planes: Sequence[Plane],
    pieces: Int[Tensor, " updates"],
    half: Sequence[int],
) -> _Trial | None:
    """Tell users apart who were learned from one half of the pieces; None = nobody can be."""
    others = sorted(set(pieces.tolist()) - set(half))
    of_one, of_many = [], []
    asked: Joined | None = None
    for one, plane in zip(known, planes, strict=True):
        reading = _reading(one, pieces, half, plane)
        asked = joined(one, pieces, others)
        places = plane.of(asked.vectors, asked.rounds, round_means(asked.vectors, asked.rounds))
        means = mean_by(places, asked.people, len(one.names))
        of_one += [space.cosines(places) for space in reading.spaces]
        of_many += [space.cosines(means) for space in reading.spaces]
    assert asked is not None
    named, total = known[0].named, len(known[0].names)
    able = torch.zeros(total, dtype=torch.bool)
    able[known[0].people[torch.isin(pieces, torch.tensor(half, dtype=pieces.dtype))]] = True
    there = torch.zeros(total, dtype=torch.bool)
    there[asked.people] = True
    able = able[:named]
    if int((able & there[:named]).sum()) < 2:
        return None
    # Who is in the other half alone could not have been named.
    label = torch.where(able, torch.arange(named), -2)
    label = torch.cat([label, torch.full((total - named,), -1)])
    kept, people = label[asked.people] > -2, there & (label > -2)
    return _Trial(
        able,
        torch.stack(of_one, 2)[kept],
        label[asked.people][kept],
        torch.stack(of_many, 2)[people],
        label[people],
    )
