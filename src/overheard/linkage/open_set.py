"""Open-set model: the probability that a sender is none of the known users."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from overheard.linkage.logistic import LogisticModel, fit_logistic

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
