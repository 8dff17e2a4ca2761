"""Membership by the probability of a record's label, relative to shadow models: RMIA, BASE."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge, Gt
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.needs import (
    AUXILIARY,
    BROADCASTS,
    CANDIDATES,
    CLASSES,
    MODEL,
    RECIPE,
    UPDATES,
)
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Share
from overheard.core.view import View
from overheard.questions.membership.attacks.lira import compute_confidences
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.shadow_count import DEFAULT_IN_MODELS

AUTHORS_GAMMA = 2.0
"""How much larger the ratio of a record must be than that of a population record, to count."""

OUT_WEIGHT = 0.33
"""The authors' a of RMIA, and their factor of BASE, where no shadow model has the record."""


SMALLEST_PROBABILITY = 1e-300
"""Probabilities below this count as this, so that they have a finite logarithm."""


class ProbabilityRatio(Attack[Membership]):
    """An attack that compares the probability of a record's label with that of shadow models.

    Probabilities are softmax outputs at a temperature. Over rounds, their logarithms are
    averaged for the target and for each shadow model, which keeps its examples.
    """

    __slots__ = ()

    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset(
        {CLASSES, UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPE, CANDIDATES}
    )

    models: int | None
    """Shadow models per round."""

    online: bool
    """Whether some shadow models train on candidate records."""

    temperature: float
    """By which logits are divided."""

    most_rounds: int
    """Maximum number of rounds to read."""

    in_models: int
    """Expected number of shadow models that train on a given candidate record."""

    @abstractmethod
    def scores(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return the scores of the records.

        Args:
            target: log-probabilities of the true labels under the target's model.
            shadows: the same under the shadow models.
            is_member: whether each shadow model trained on each record.

        """

    def training_source(self) -> TrainingSource:
        """Return that it trains shadow models."""
        return "shadow models"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim a score of each record."""
        labels = candidate_records(knowledge).labels
        read = compute_confidences(
            view,
            targets,
            knowledge,
            lambda logits: log_probability(logits.double() / self.temperature, labels),
            models=self.models,
            in_models=self.in_models,
            most_rounds=self.most_rounds,
            include_candidates=self.online,
        )
        return {
            target: Membership(self.scores(one.target, one.shadows, read.is_member).float())
            for target, one in read.targets.items()
        }


def log_probability(
    logits: Float[Tensor, "*models records classes"], labels: Tensor
) -> Float[Tensor, "*models records"]:
    """Return the log of the softmax output of the true label."""
    rows = labels.view(*[1] * (logits.ndim - 2), -1, 1).expand(*logits.shape[:-1], 1)
    return logits.log_softmax(-1).gather(-1, rows).squeeze(-1)


def log_prior_probability(
    shadows: Float[Tensor, "models records"], is_member: Bool[Tensor, "models records"]
) -> Float[Tensor, " records"]:
    """Return the log of the probability under a model that has the record with odds of 1.

    That is the mean over models with the record and over those without it, averaged. If there
    are none of one kind, their mean is the other one plus or minus the average difference.

    Args:
        shadows: log-probabilities.
        is_member: whether each model trained on each record.

    """
    p = shadows.exp()
    with_record = (p * is_member).sum(0) / is_member.sum(0)  # NaN where there is none
    without = (p * ~is_member).sum(0) / (~is_member).sum(0)
    shift = (with_record - without).nanmean().nan_to_num()
    with_record = torch.where(with_record.isnan(), without + shift, with_record)
    without = torch.where(without.isnan(), with_record - shift, without)
    return ((with_record + without) / 2).clamp(SMALLEST_PROBABILITY, 1).log()


@final
@dataclass(frozen=True, slots=True)
class BaseMembership(ProbabilityRatio):
    """The log-probability of a record's label, minus the log of its mean over shadow models.

    The score is log p(y | target) - log mean_s p(y | shadow model s), which is Bayes-optimal
    if models are drawn from a posterior that weighs each example by its loss. Offline, where
    no shadow model trains on a candidate record, the second term is multiplied by `out_weight`.

    The authors' shadow models train on half of all records, so each record is in half of them.
    Here they train on as many examples as a client, and most are without a record. So the mean
    is taken over models with the record and without it, with equal weights.

    Args:
        models: shadow models per round; None = as many as give a candidate record `in_models`
            on average, at most 1,024; offline 32.
        online: whether some shadow models train on candidate records.
        temperature: by which logits are divided.
        out_weight: the factor of the offline threshold.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        in_models: expected number of shadow models that train on a given candidate record, if
            `models` is None.

    """

    models: Annotated[int, Ge(2)] | None = None
    online: bool = True
    temperature: Annotated[float, Gt(0)] = 2.0
    out_weight: Share = OUT_WEIGHT
    most_rounds: Positive = 5
    in_models: Positive = DEFAULT_IN_MODELS

    name: ClassVar[str] = "base_membership"
    source: ClassVar[str] = (
        "Lassila, Östman and Ngo 2025 (Practical Bayes-Optimal Membership Inference Attacks, "
        "arXiv 2505.24089), BASE, as in LeakPro"
    )
    quick_settings: ClassVar = {"models": 32}

    def scores(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return log p(y | target) minus the threshold of each record."""
        threshold = log_prior_probability(shadows, is_member)
        return target - (threshold if self.online else self.out_weight * threshold)


@final
@dataclass(frozen=True, slots=True)
class Rmia(ProbabilityRatio):
    """The share of records whose ratio of probabilities is well below that of the record.

    For the record x, r(x) = p(x | target) / p(x), where p(x) is the mean probability of its
    label over shadow models, weighted as in `base_membership`. The score is the share of
    population records z with r(x) / r(z) > gamma, minus one half. Offline, where no shadow
    model trains on a candidate record, p(x) = ((1 + a) m + 1 - a) / 2 for the mean m, as models
    with the record are taken to give it the probability a m + 1 - a.

    The population is the candidate records, as in LeakPro. The score is an increasing function
    of r(x), that of `base_membership`, and takes few values: where training changes no
    probability by a factor of gamma, all records have the same score. Gamma = 1, as in Privacy
    Meter, leaves no such ties.

    Args:
        models: shadow models per round; None = as many as give a candidate record `in_models`
            on average, at most 1,024; offline 32.
        online: whether some shadow models train on candidate records.
        temperature: by which logits are divided.
        gamma: how much larger a record's ratio must be.
        out_weight: the authors' a.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        in_models: expected number of shadow models that train on a given candidate record, if
            `models` is None.

    """

    models: Annotated[int, Ge(2)] | None = None
    online: bool = True
    temperature: Annotated[float, Gt(0)] = 2.0
    gamma: Annotated[float, Gt(0)] = AUTHORS_GAMMA
    out_weight: Share = OUT_WEIGHT
    most_rounds: Positive = 5
    in_models: Positive = DEFAULT_IN_MODELS

    name: ClassVar[str] = "rmia"
    source: ClassVar[str] = (
        "Zarifzadeh, Liu and Shokri 2024 (Low-Cost High-Power Membership Inference Attacks, "
        "ICML), as in LeakPro"
    )
    quick_settings: ClassVar = {"models": 32}

    def scores(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return the share of records with a ratio below that of each, minus one half."""
        ratios = self.log_ratios(target, shadows, is_member)
        return share_of_smaller(ratios, ratios, self.gamma) - 0.5

    def log_ratios(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return log r(x) of each record."""
        log_mean = log_prior_probability(shadows, is_member)
        if not self.online:
            a = self.out_weight
            log_mean = (((1 + a) * log_mean.exp() + 1 - a) / 2).log()
        return target - log_mean


def share_of_smaller(
    ratios: Float[Tensor, " records"], population: Float[Tensor, " others"], gamma: float
) -> Float[Tensor, " records"]:
    """Return the share of the population that each ratio exceeds by more than `gamma` times.

    Ratios are given by their logs.
    """
    smaller = torch.searchsorted(population.sort().values, ratios - math.log(gamma))
    return smaller.to(ratios) / len(population)
