"""Evidence for each known user, calibrated on known users' updates alone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize, softplus

from overheard.linkage.known_updates import KnownUpdates
from overheard.linkage.layers import Layer
from overheard.linkage.logistic import LogisticModel, fit_conditional_logit, fit_logistic
from overheard.linkage.update_linking import equal_error_threshold
from overheard.linkage.update_pca import RoundMeans, UpdatePca, fit_round_means, fit_update_pca
from overheard.linkage.wccn import WccnSpace, fit_wccn_transform, mean_by_user

MAX_LOSS_RATIO = 1.25
"""Largest ratio of normalised evidence's log loss to raw evidence's at which it is used."""

POOLED_COUNT = 8
"""Weight of the variance pooled over senders, in values of a sender's own evidence."""


@final
@dataclass(frozen=True, slots=True)
class OpenSetModel:
    """A logistic model of the largest evidence, raw or normalised by the other users' evidence.

    Args:
        logistic: probability of an unknown sender, given the statistic.
        is_normalised: whether the statistic is the normalised evidence.

    """

    logistic: LogisticModel
    is_normalised: bool

    def probabilities(
        self, scores: Float[Tensor, "senders users"]
    ) -> Float[Tensor, " senders"]:
        """Return each sender's probability of being unknown, given all candidates' evidence."""
        is_candidate = torch.ones_like(scores, dtype=torch.bool)
        statistic = (
            normalise_best(scores, is_candidate) if self.is_normalised else scores.amax(1)
        )
        return torch.tensor([self.logistic.probability(float(value)) for value in statistic])


UNCALIBRATED = OpenSetModel(LogisticModel(0.0, 0.0), is_normalised=False)
"""The model without calibration data: a probability of 1/2."""


def fit_open_set(
    trials: Iterable[
        tuple[Float[Tensor, "_cases users"], Int[Tensor, " _cases"], Bool[Tensor, " users"]]
    ],
) -> OpenSetModel:
    """Fit the model to updates of known users, each used as a known and as an unknown sender.

    Real updates are based on more examples than the chunks in `trials`, so all their evidence
    is larger. A model of the raw evidence then underestimates the probability of unknown
    senders, so the normalised evidence is preferred. The raw evidence is used if normalising
    raises the log loss by more than a factor of `MAX_LOSS_RATIO`. This happens if known users
    differ in few directions, as the evidence for wrong users is then not noise.

    Args:
        trials: triples of the evidence for each user, the index of the true user (-1 =
            unknown), and which users are candidates. With its own user left out, each update
            also serves as one of an unknown user.

    """
    raw, normalised, are_unknown = [], [], []
    for scores, users, candidates in trials:
        is_candidate, is_known = candidates.expand(len(scores), -1), users >= 0
        others = is_candidate.clone()
        others[is_known, users[is_known]] = False
        for evidence, is_allowed in (
            (scores[is_known], is_candidate[is_known]),
            (scores, others),
        ):
            raw.append(evidence.masked_fill(~is_allowed, -torch.inf).amax(1))
            normalised.append(normalise_best(evidence, is_allowed))
        are_unknown += [torch.zeros(int(is_known.sum())).bool(), torch.ones(len(scores)).bool()]
    holds = torch.cat(are_unknown)
    by_normalised, by_raw = (
        fit_logistic(torch.cat(normalised), holds),
        fit_logistic(torch.cat(raw), holds),
    )
    use_normalised = by_normalised.slope < 0 and _loss(
        by_normalised, torch.cat(normalised), holds
    ) <= MAX_LOSS_RATIO * _loss(by_raw, torch.cat(raw), holds)
    return OpenSetModel(
        by_normalised if use_normalised else by_raw, is_normalised=use_normalised
    )


def normalise_best(
    scores: Float[Tensor, "senders users"], is_candidate: Bool[Tensor, "senders users"]
) -> Float[Tensor, " senders"]:
    """Return how far the largest evidence of the candidates exceeds the mean of the others.

    In standard deviations of the others' evidence: the cohort normalisation of Reynolds,
    Quatieri and Dunn 2000, with the other known users as cohort. The variance is shrunk towards
    that pooled over senders (weight `POOLED_COUNT`), as few users estimate it poorly. -inf
    where there is no candidate.
    """
    largest, best = scores.masked_fill(~is_candidate, -torch.inf).max(1)
    rest = is_candidate.clone()
    rest[torch.arange(len(scores)), best] = False
    count = rest.sum(1)
    mean = (scores * rest).sum(1) / count.clamp(min=1)
    squares = ((scores - mean[:, None]).square() * rest).sum(1)
    common = squares.sum() / count.sum().clamp(min=1)
    variance = (squares + POOLED_COUNT * common) / (count + POOLED_COUNT)
    return (largest - mean) / torch.where(variance > 0, variance, 1.0).sqrt()


def _loss(
    logit: LogisticModel, statistic: Float[Tensor, " cases"], holds: Bool[Tensor, " cases"]
) -> float:
    """Return the log loss, with equal weight of both outcomes."""
    power = (logit.intercept + logit.slope * statistic) * torch.where(holds, -1.0, 1.0)
    finite = statistic.isfinite()
    losses = [softplus(power[finite & outcome]).mean() for outcome in (holds, ~holds)]
    return float(torch.stack(losses).mean())


CHUNKS = 4
"""Number of chunks into which a user's updates are divided if they do not come in chunks."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeanUpdates:
    """Mean updates, one a user and round.

    Args:
        vectors: the mean updates.
        users: index of each one's user.
        rounds: round of each.

    """

    vectors: Float[Tensor, "updates dims"]
    users: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]


def chunk_indices(known: KnownUpdates) -> Int[Tensor, " updates"]:
    """Return the chunk number of each update.

    Shadow devices train on all prior examples, so their updates are numbered 0 to `CHUNKS` - 1
    in turn.
    """
    if bool(known.chunks.any()):
        return known.chunks
    chunks = torch.zeros_like(known.users)
    for user in range(len(known.names)):
        user_rows = (known.users == user).nonzero().flatten()
        chunks[user_rows] = torch.arange(len(user_rows)) % CHUNKS
    return chunks


def average_chunks(
    known: KnownUpdates, chunks: Int[Tensor, " updates"], chosen: Collection[int]
) -> MeanUpdates:
    """Average the updates of some chunks, by user and round.

    To first order an update is a sum over its training examples, so the mean over chunks has
    the direction of the update on all of them.
    """
    rows = torch.isin(chunks, torch.tensor(sorted(chosen), dtype=chunks.dtype))
    rows = rows.nonzero().flatten()
    round_count = int(known.rounds.max()) + 1
    groups, group = torch.unique(
        known.users[rows] * round_count + known.rounds[rows], return_inverse=True
    )
    sums = known.vectors.new_zeros(len(groups), known.vectors.shape[1])
    sums.index_add_(0, group, known.vectors[rows])
    means = sums.div_(group.bincount(minlength=len(groups))[:, None])
    return MeanUpdates(means, groups // round_count, groups % round_count)


SHRINKAGES = (0.1, 0.3)
"""Shrinkage weights of the within-user covariance; each gives one WCCN space."""

FOLDS = 6
"""Most splits of the chunks into a training half and a test half."""

DEFAULT_WEIGHT = 20.0
"""Sum of the weights of all cosines where there is no data to calibrate them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LayerEvidence:
    """The evidence model of one layer.

    Args:
        pca: principal component analysis of the layer's updates.
        round_means: mean update of each round, over updates averaged across chunks.
        spaces: WCCN spaces, one a shrinkage.

    """

    pca: UpdatePca
    round_means: RoundMeans
    spaces: tuple[WccnSpace, ...]

    def project(
        self, vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
    ) -> Float[Tensor, "updates directions"]:
        """Project updates on the principal directions."""
        return self.pca.project(vectors, rounds, self.round_means)


@final
@dataclass(frozen=True, slots=True, eq=False)
class UserEvidence:
    """Evidence for known users: a weighted sum of cosines, one a layer and space.

    Args:
        layers: the layers that are used.
        layer_evidence: the evidence model of each layer.
        has_updates: which candidate users have a known update.
        single_weights: weights of the cosines for a single update.
        mean_weights: weights for a mean of as many updates as known users have.
        update_count: number of updates in such a mean.
        open_set: the open-set model.
        link_threshold: similarity above which two updates of different rounds are linked.

    """

    layers: tuple[Layer, ...]
    layer_evidence: tuple[LayerEvidence, ...]
    has_updates: Bool[Tensor, " users"]
    single_weights: Float[Tensor, " spaces"]
    mean_weights: Float[Tensor, " spaces"]
    update_count: int
    open_set: OpenSetModel
    link_threshold: float

    def scores(
        self, projections: Sequence[Float[Tensor, "senders _"]], counts: Int[Tensor, " senders"]
    ) -> Float[Tensor, "senders users"]:
        """Return the evidence for each user, from the senders' mean projections.

        A log-likelihood up to a constant per sender, if the calibration holds.

        Args:
            projections: mean projection of each sender's updates, one tensor a layer.
            counts: number of updates of each sender.

        """
        cosines = torch.stack(
            [
                space.cosines(layer_projections)
                for layer, layer_projections in zip(
                    self.layer_evidence, projections, strict=True
                )
                for space in layer.spaces
            ],
            2,
        )  # (senders, users, spaces)
        return (cosines * self._weights(counts)[:, None]).sum(2)

    def similarity(
        self, projections: Sequence[Float[Tensor, "updates _"]]
    ) -> Float[Tensor, "updates updates"]:
        """Return the weighted mean cosine of each pair of updates, -1..1."""
        return _similarity(self.layer_evidence, projections, self.single_weights)

    def _weights(self, counts: Int[Tensor, " senders"]) -> Float[Tensor, "senders spaces"]:
        """Interpolate from the weights for one update to those for a mean of many.

        By 1 / count, as the error of a mean falls.
        """
        if self.update_count < 2:
            return self.single_weights.expand(len(counts), -1)
        fraction = (1 - 1 / counts.double()) / (1 - 1 / self.update_count)
        return torch.lerp(
            self.single_weights, self.mean_weights, fraction.clamp(max=1)[:, None]
        )


def fit_user_evidence(known: Mapping[Layer, KnownUpdates]) -> UserEvidence:
    """Fit spaces and weights to updates of known users, given by several layers.

    The chunks of each user's prior examples are halved in up to `FOLDS` ways. Spaces fitted to
    one half score the updates of the other half, and the weights maximise the likelihood of the
    true users. All choices thus depend on prior examples alone, and an uninformative layer gets
    a weight of 0.
    """
    layers, first_layer = tuple(known), next(iter(known.values()))
    chunks = chunk_indices(first_layer)
    all_chunks = sorted(set(chunks.tolist()))
    planes = [fit_update_pca(one.vectors, one.rounds) for one in known.values()]
    readings = tuple(
        _fit_layer(one, chunks, all_chunks, plane)
        for one, plane in zip(known.values(), planes, strict=True)
    )
    folds = [
        fold
        for half in list(combinations(all_chunks, len(all_chunks) // 2))[:FOLDS]
        if half
        and (fold := _evaluate_fold(tuple(known.values()), planes, chunks, half)) is not None
    ]
    has_updates = torch.zeros(first_layer.candidate_count, dtype=torch.bool)
    has_updates[first_layer.users[first_layer.users < first_layer.candidate_count]] = True
    count, many = len(layers) * len(SHRINKAGES), len(set(first_layer.rounds.tolist()))
    of_one = of_many = torch.full((count,), DEFAULT_WEIGHT / count, dtype=torch.float64)
    stranger = UNCALIBRATED
    if folds:
        of_one = fit_conditional_logit(
            [(t.single_cosines, t.users, t.is_candidate) for t in folds]
        )
        of_many = fit_conditional_logit(
            [(t.mean_cosines, t.mean_users, t.is_candidate) for t in folds]
        )
        stranger = fit_open_set(
            (cosines @ weights, users, t.is_candidate)
            for t in folds
            for cosines, users, weights in (
                (t.single_cosines, t.users, of_one),
                (t.mean_cosines, t.mean_users, of_many),
            )
        )
    averaged = [average_chunks(one, chunks, all_chunks) for one in known.values()]
    projections = [
        reading.project(mean_updates.vectors, mean_updates.rounds)
        for reading, mean_updates in zip(readings, averaged, strict=True)
    ]
    least = equal_error_threshold(
        _similarity(readings, projections, of_one), averaged[0].users, averaged[0].rounds
    )
    return UserEvidence(layers, readings, has_updates, of_one, of_many, many, stranger, least)


def _similarity(
    readings: Sequence[LayerEvidence],
    places: Sequence[Float[Tensor, "updates _"]],
    weights: Float[Tensor, " spaces"],
) -> Float[Tensor, "updates updates"]:
    normalised = [
        normalize(projections @ space.transform)
        for reading, projections in zip(readings, places, strict=True)
        for space in reading.spaces
    ]
    similarity = torch.zeros(len(normalised[0]), len(normalised[0]), dtype=torch.float64)
    for weight, coordinates in zip(weights, normalised, strict=True):
        similarity += weight * (coordinates @ coordinates.T)
    return similarity / weights.sum().clamp(min=1e-12)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """Cosines of one half's updates with the users of the other; holdout users are -1."""

    is_candidate: Bool[Tensor, " users"]
    single_cosines: Float[Tensor, "updates users spaces"]
    users: Int[Tensor, " updates"]
    mean_cosines: Float[Tensor, "means users spaces"]
    mean_users: Int[Tensor, " means"]


def _fit_layer(
    known: KnownUpdates,
    pieces: Int[Tensor, " updates"],
    chosen: Sequence[int],
    plane: UpdatePca,
) -> LayerEvidence:
    """Fit one layer's evidence model to some chunks."""
    rows = torch.isin(pieces, torch.tensor(chosen, dtype=pieces.dtype))
    vectors, rounds = known.vectors[rows], known.rounds[rows]
    centred = plane.project(vectors, rounds, fit_round_means(vectors, rounds))
    averaged = average_chunks(known, pieces, chosen)
    means = fit_round_means(averaged.vectors, averaged.rounds)
    users = mean_by_user(
        plane.project(averaged.vectors, averaged.rounds, means),
        averaged.users,
        len(known.names),
    )[: known.candidate_count]
    turns = [
        fit_wccn_transform(centred, known.users[rows], shrinkage) for shrinkage in SHRINKAGES
    ]
    return LayerEvidence(plane, means, tuple(WccnSpace(turn, users @ turn) for turn in turns))


def _evaluate_fold(
    known: Sequence[KnownUpdates],
    planes: Sequence[UpdatePca],
    pieces: Int[Tensor, " updates"],
    half: Sequence[int],
) -> _Fold | None:
    """Score one half's updates with spaces fitted to the other; None = too few users."""
    others = sorted(set(pieces.tolist()) - set(half))
    of_one, of_many = [], []
    test_updates: MeanUpdates | None = None
    for one, plane in zip(known, planes, strict=True):
        reading = _fit_layer(one, pieces, half, plane)
        test_updates = average_chunks(one, pieces, others)
        places = plane.project(
            test_updates.vectors,
            test_updates.rounds,
            fit_round_means(test_updates.vectors, test_updates.rounds),
        )
        means = mean_by_user(places, test_updates.users, len(one.names))
        of_one += [space.cosines(places) for space in reading.spaces]
        of_many += [space.cosines(means) for space in reading.spaces]
    assert test_updates is not None
    named, total = known[0].candidate_count, len(known[0].names)
    is_candidate = torch.zeros(total, dtype=torch.bool)
    is_candidate[known[0].users[torch.isin(pieces, torch.tensor(half, dtype=pieces.dtype))]] = (
        True
    )
    is_tested = torch.zeros(total, dtype=torch.bool)
    is_tested[test_updates.users] = True
    is_candidate = is_candidate[:named]
    if int((is_candidate & is_tested[:named]).sum()) < 2:
        return None
    # A user who is only in the test half cannot be identified.
    label = torch.where(is_candidate, torch.arange(named), -2)
    label = torch.cat([label, torch.full((total - named,), -1)])
    is_used, tested_users = label[test_updates.users] > -2, is_tested & (label > -2)
    return _Fold(
        is_candidate,
        torch.stack(of_one, 2)[is_used],
        label[test_updates.users][is_used],
        torch.stack(of_many, 2)[tested_users],
        label[tested_users],
    )
