"""Membership by the likelihood ratio of a record's confidence (LiRA)."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.in_out_models import (
    MIN_MODELS,
    clamp_log_odds,
    fit_log_odds,
    normal_log_density,
)
from overheard.questions.membership.estimators.record_logits import (
    read_record_logits,
    record_confidence,
)
from overheard.questions.membership.estimators.shadow_count import (
    DEFAULT_IN_MODELS,
    shadow_model_count,
)
from overheard.questions.membership.estimators.shadow_logits import compute_shadow_logits


class LikelihoodRatio(Attack[Membership]):
    """An attack that compares a record's log-odds with those under shadow models."""

    __slots__ = ()

    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPE, CANDIDATES})

    models: int | None
    """Shadow models per round."""

    most_rounds: int
    """Maximum number of rounds to read."""

    in_models: int
    """Expected number of shadow models that train on a given candidate record."""

    @property
    @abstractmethod
    def trains_on_candidates(self) -> bool:
        """Return whether some shadow models train on candidate records."""

    @abstractmethod
    def log_likelihood_ratio(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return the scores of the records of a target.

        Args:
            target: log-odds under the target's model, averaged over rounds.
            shadows: the same under the shadow models.
            is_member: whether each shadow model trained on each record.

        """

    def training_source(self) -> TrainingSource:
        """Return that it trains shadow models."""
        return "shadow models"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim a score of each record.

        Raises:
            NeedsError: if too few records tell shadow models with them from those without.

        """
        log_odds = compute_log_odds(
            view,
            targets,
            knowledge,
            models=self.models,
            in_models=self.in_models,
            most_rounds=self.most_rounds,
            include_candidates=self.trains_on_candidates,
        )
        return {
            target: Membership(
                self.log_likelihood_ratio(
                    of_target.target, of_target.shadows, log_odds.is_member
                ).float()
            )
            for target, of_target in log_odds.targets.items()
        }


@final
@dataclass(frozen=True, slots=True)
class Lira(LikelihoodRatio):
    """Likelihood ratio of a record's log-odds, with and without it in training.

    Shadow models start from the same broadcasts as the targets and train as clients do. The
    log-odds of a record under the target's model, averaged over rounds, are compared with two
    normal distributions: under shadow models that trained on the record (in), and under those
    that did not (out). Log-odds are averaged before the comparison, and each shadow model keeps
    its examples, so rounds with the same information are not counted twice. Each record has its
    own means. All records share one standard deviation for in-models and one for out-models, as
    the authors recommend for few shadow models.

    Offline, no shadow model trains on a candidate record. The score is how far the log-odds
    exceed those of out-models.

    In a federation, the target's model comes from a global model that may have learned from the
    record in earlier rounds. Out models start from the same global model, so only this round's
    training is measured. With few auxiliary examples, shadow models train on fewer examples
    than clients do.

    Args:
        models: shadow models per round; None = as many as give a candidate record `in_models`
            on average, at most 1,024; offline 32.
        online: whether some shadow models train on candidate records.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        in_models: expected number of shadow models that train on a given candidate record, if
            `models` is None.

    """

    models: Annotated[int, Ge(2 * MIN_MODELS)] | None = None
    online: bool = True
    most_rounds: Positive = 5
    in_models: Positive = DEFAULT_IN_MODELS

    name: ClassVar[str] = "lira"
    source: ClassVar[str] = (
        "Carlini et al. 2022 (Membership Inference Attacks From First Principles, S&P), "
        "Algorithm 1 and Section V-B (offline), with a common variance (Section VI-C)"
    )
    quick_settings: ClassVar = {"models": 32}

    @property
    def trains_on_candidates(self) -> bool:
        """Return whether it is online."""
        return self.online

    def log_likelihood_ratio(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return log N(target; in-models) - log N(target; out-models); offline the distance."""
        if not self.online:
            return _offline_score(target, shadows)
        in_models, out_models = (
            fit_log_odds(shadows, is_member),
            fit_log_odds(shadows, ~is_member),
        )
        has_both = (in_models.count > 0) & (out_models.count > 0)
        shifts = (in_models.mean - out_models.mean)[has_both]
        shift = shifts.mean() if len(shifts) else torch.zeros(())
        # With too few in-models, or too few out-models, the missing mean is the other mean plus
        # or minus the average shift of all records, so that hard records do not look like easy
        # ones.
        in_mean = torch.where(
            in_models.count >= MIN_MODELS, in_models.mean, out_models.mean + shift
        )
        out_mean = torch.where(
            out_models.count >= MIN_MODELS, out_models.mean, in_models.mean - shift
        )
        in_density = normal_log_density(target, in_mean, in_models.deviation)
        return in_density - normal_log_density(target, out_mean, out_models.deviation)


def _offline_score(
    target: Float[Tensor, " records"], shadows: Float[Tensor, "models records"]
) -> Float[Tensor, " records"]:
    """Return how many deviations the target exceeds the out-models, minus one half.

    One half is a threshold between 0, the expectation for a non-member, and the least that can
    be expected for a member.
    """
    out_models = fit_log_odds(shadows, torch.ones_like(shadows, dtype=torch.bool))
    return (target - out_models.mean) / out_models.deviation - 0.5


@final
@dataclass(frozen=True, slots=True)
class LiraPooled(LikelihoodRatio):
    """Likelihood ratio as in `lira`, with in-means shrunk towards a common regression line.

    Few shadow models trained on any one record, so its mean under in-models, m_1, is noisy. All
    records together give a regression m_1 = a + b m_0 on the mean under out-models, m_0. A
    slope b near 0 means that the model memorises its training examples; b near 1 means that
    hard records stay hard. The true means are assumed to scatter around the line with variance
    T, estimated by moments: the variance of m_1 around the line, minus its sampling variance.
    Each m_1 keeps a fraction T / (T + s^2 / k) of its distance to the line, for k models of
    deviation s: empirical Bayes (Efron and Morris 1973). The uncertainty of a mean widens its
    normal distribution.

    The gain over `lira` grows as the number of shadow models falls (docs/membership.md). Both
    attacks use the same shadow models, so running both costs as much as one.

    Args:
        models: shadow models per round; None = as many as give a candidate record `in_models`
            on average, at most 1,024.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        in_models: expected number of shadow models that train on a given candidate record, if
            `models` is None.

    """

    models: Annotated[int, Ge(2 * MIN_MODELS)] | None = None
    most_rounds: Positive = 5
    in_models: Positive = DEFAULT_IN_MODELS

    name: ClassVar[str] = "lira_pooled"
    source: ClassVar[str] = (
        "Overheard, based on Carlini et al. 2022 (Membership Inference Attacks From First "
        "Principles, S&P), Algorithm 1"
    )
    quick_settings: ClassVar = {"models": 32}

    @property
    def trains_on_candidates(self) -> bool:
        """Return true."""
        return True

    def log_likelihood_ratio(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        is_member: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return log N(target; in-models) - log N(target; out-models)."""
        in_models, out_models = (
            fit_log_odds(shadows, is_member),
            fit_log_odds(shadows, ~is_member),
        )
        has_both = (in_models.count > 0) & (out_models.count >= MIN_MODELS)
        if int(has_both.sum()) < 2:
            raise NeedsError(
                "lira_pooled needs two or more records that some shadow models trained on and "
                "others did not: "
                "set more models, or more candidate records"
            )
        known_out_mean = out_models.mean[has_both]
        out_mean = torch.where(out_models.count > 0, out_models.mean, known_out_mean.mean())
        line = _regression_line(known_out_mean, in_models.mean[has_both], out_mean)
        residual = in_models.mean - line
        # Sampling variance of each in-mean; infinite if no model trained on the record.
        sampling_variance = in_models.deviation.square() / in_models.count
        scatter = (residual.square() - sampling_variance)[has_both].mean().clamp(min=0)
        weight = scatter / (scatter + sampling_variance)
        in_deviation = (in_models.deviation.square() + scatter * (1 - weight)).sqrt()
        out_deviation = out_models.deviation * (1 + 1 / out_models.count.clamp(min=1)).sqrt()
        in_density = normal_log_density(target, line + weight * residual, in_deviation)
        return in_density - normal_log_density(target, out_mean, out_deviation)


def _regression_line(
    x: Float[Tensor, " some"],
    y: Float[Tensor, " some"],
    at: Float[Tensor, " records"],
) -> Float[Tensor, " records"]:
    """Fit `y` on `x` by least squares and return the line at `at`; flat if `x` is constant."""
    centred = x - x.mean()
    slope = (centred * y).sum() / centred.square().sum().clamp(min=1e-12)
    return y.mean() + slope * (at - x.mean())


@dataclass(frozen=True, slots=True, eq=False)
class TargetLogOdds:
    """Clamped log-odds of the true label, averaged over the rounds of one target.

    Args:
        target: log-odds under the target's models.
        shadows: log-odds under shadow models that started from the same broadcasts.

    """

    target: Float[Tensor, " records"]
    shadows: Float[Tensor, "models records"]


@dataclass(frozen=True, slots=True, eq=False)
class RecordLogOdds:
    """Log-odds of each candidate record for all targets.

    Args:
        targets: the log-odds of each target and of its shadow models.
        is_member: whether each shadow model trained on each record.

    """

    targets: Mapping[Party, TargetLogOdds]
    is_member: Bool[Tensor, "models records"]


def compute_log_odds(
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    *,
    models: int | None,
    in_models: int = DEFAULT_IN_MODELS,
    most_rounds: int,
    include_candidates: bool,
) -> RecordLogOdds:
    """Compute log-odds of the candidate records under targets' models and shadow models.

    Args:
        view: the view of the observers.
        targets: the targets whose models are read.
        knowledge: with the candidate records.
        models: shadow models per round; None = from `in_models` (see `shadow_count`).
        in_models: expected number of shadow models that train on a given record.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        include_candidates: whether some shadow models train on candidate records.

    """
    records = candidate_records(knowledge)
    return compute_confidences(
        view,
        targets,
        knowledge,
        lambda logits: clamp_log_odds(record_confidence(logits, records, knowledge.kind)),
        models=models,
        in_models=in_models,
        most_rounds=most_rounds,
        include_candidates=include_candidates,
    )


def compute_confidences(
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    confidence: Callable[[Tensor], Tensor],
    *,
    models: int | None,
    in_models: int,
    most_rounds: int,
    include_candidates: bool,
) -> RecordLogOdds:
    """Compute another confidence in place of the log-odds; see `compute_log_odds`.

    Args:
        view: the view of the observers.
        targets: the targets whose models are read.
        knowledge: with the candidate records.
        confidence: returns the confidence in each record from logits, whose last two axes are
            records and classes.
        models: shadow models per round; None = from `in_models` (see `shadow_count`).
        in_models: expected number of shadow models that train on a given record.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        include_candidates: whether some shadow models train on candidate records.

    """
    readings = read_record_logits(view, targets, knowledge, most_rounds)
    count = shadow_model_count(
        view, knowledge, models, in_models, include_candidates=include_candidates
    )
    shadow_logits = compute_shadow_logits(
        view, knowledge, readings.rounds, count, include_candidates=include_candidates
    )
    of_shadows = {number: confidence(one) for number, one in shadow_logits.rounds.items()}
    by_target = {}
    for target, by_round in readings.targets.items():
        of_target = [confidence(logits) for logits in by_round.values()]
        shadows = torch.stack([of_shadows[number] for number in by_round]).mean(0)
        by_target[target] = TargetLogOdds(torch.stack(of_target).mean(0), shadows)
    return RecordLogOdds(by_target, shadow_logits.is_member)
