"""Membership by the likelihood ratio of a record's confidence (LiRA)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack, TrainingSource
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.in_out_models import (
    MIN_MODELS,
    fit_log_odds,
    normal_log_density,
)
from overheard.questions.membership.estimators.record_log_odds import compute_log_odds
from overheard.questions.membership.estimators.shadow_count import DEFAULT_IN_MODELS


@final
@dataclass(frozen=True, slots=True)
class Lira(Attack[Membership]):
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

    models: int | None = None
    online: bool = True
    most_rounds: int = 5
    in_models: int = DEFAULT_IN_MODELS

    name: ClassVar[str] = "lira"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset(
        {
            UPDATES,
            BROADCASTS,
            AUXILIARY,
            MODEL,
            RECIPE,
            CANDIDATES,
        }
    )
    source: ClassVar[str] = (
        "Carlini et al. 2022 (Membership Inference Attacks From First Principles, S&P), "
        "Algorithm 1 and Section V-B (offline), with a common variance (Section VI-C)"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        few = self.models is not None and self.models < 2 * MIN_MODELS
        if few or min(self.most_rounds, self.in_models) < 1:
            raise ValueError(
                f"models must be {2 * MIN_MODELS} or more, and most_rounds and in_models 1 or "
                f"more, got {self}"
            )

    def training_source(self) -> TrainingSource:
        """Return that it trains shadow models."""
        return "shadow models"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-likelihood ratio of each record."""
        log_odds = compute_log_odds(
            view,
            targets,
            knowledge,
            models=self.models,
            in_models=self.in_models,
            most_rounds=self.most_rounds,
            include_candidates=self.online,
        )
        claims = {}
        for target, of_target in log_odds.targets.items():
            score = _offline_score(of_target.target, of_target.shadows)
            if self.online:
                score = _log_likelihood_ratio(
                    of_target.target, of_target.shadows, log_odds.is_member
                )
            claims[target] = Membership(score.float())
        return claims


def _log_likelihood_ratio(
    target: Float[Tensor, " records"],
    shadows: Float[Tensor, "models records"],
    is_member: Bool[Tensor, "models records"],
) -> Float[Tensor, " records"]:
    """Return log N(target; in-models) - log N(target; out-models)."""
    in_models, out_models = fit_log_odds(shadows, is_member), fit_log_odds(shadows, ~is_member)
    has_both = (in_models.count > 0) & (out_models.count > 0)
    shifts = (in_models.mean - out_models.mean)[has_both]
    shift = shifts.mean() if len(shifts) else torch.zeros(())
    # With too few in-models, or too few out-models, the missing mean is the other mean plus or
    # minus the average shift of all records, so that hard records do not look like easy ones.
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
