"""Membership by Student-t densities of a record's confidence, after BaVarIA."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge, Gt
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.settings import Positive
from overheard.questions.membership.attacks.lira import LikelihoodRatio
from overheard.questions.membership.estimators.in_out_models import MIN_MODELS, fit_log_odds
from overheard.questions.membership.estimators.shadow_count import DEFAULT_IN_MODELS


@final
@dataclass(frozen=True, slots=True)
class Bavaria(LikelihoodRatio):
    """Likelihood ratio as in `lira`, where each record has its own mean and variance.

    A normal-inverse-gamma prior keeps both from following few models. For n models with the
    record, of mean m and sum of squares S around it, and the prior (mu0, k0, a0, b0):

        k = k0 + n,  mu = (k0 mu0 + n m) / k,  a = a0 + n / 2,
        b = b0 + S / 2 + k0 n (m - mu0)^2 / (2 k).

    The density of the target's log-odds is Student's t of 2 a degrees of freedom, with location
    mu and squared scale b (1 + 1 / k) / a. The same holds without the record, and the score is
    the log of the ratio of both densities. The prior's mean mu0 and variance b0 / a0 are those
    of all records together.

    Where the target's log-odds are far from those of all shadow models, as with the noise of a
    defense that the attacker does not know, the tails decide. They are longer for the fewer
    models, which here are those with the record, so such records seem to be members.

    It follows the abstract of BaVarIA, which states the prior and the density. The paper's k0
    and a0 were not available, and neither was code: this is not a reproduction.

    Args:
        models: shadow models per round; None = as many as give a candidate record `in_models`
            on average, at most 1,024.
        mean_weight: k0, the number of models that the prior's mean counts as.
        variance_weight: 2 a0, the number of models that the prior's variance counts as.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        in_models: expected number of shadow models that train on a given candidate record, if
            `models` is None.

    """

    models: Annotated[int, Ge(2 * MIN_MODELS)] | None = None
    mean_weight: Annotated[float, Gt(0)] = 1.0
    variance_weight: Annotated[float, Gt(0)] = 4.0
    most_rounds: Positive = 5
    in_models: Positive = DEFAULT_IN_MODELS

    name: ClassVar[str] = "bavaria"
    source: ClassVar[str] = (
        "Overheard, after Brännvall 2026 (Exponential-Family Membership Inference: From LiRA "
        "and RMIA to BaVarIA, arXiv 2603.11799), BaVarIA-t"
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
        """Return the log-density with the record minus that without it."""
        with_record = self._log_density(target, shadows, is_member)
        return with_record - self._log_density(target, shadows, ~is_member)

    def _log_density(
        self,
        target: Float[Tensor, " records"],
        shadows: Float[Tensor, "models records"],
        selected: Bool[Tensor, "models records"],
    ) -> Float[Tensor, " records"]:
        """Return the log of Student's t density of each record, from the selected models."""
        fitted = fit_log_odds(shadows, selected)
        count, mean = fitted.count, fitted.mean
        prior_mean = (shadows * selected).sum() / selected.sum().clamp(min=1)
        squares = ((shadows - mean).square() * selected).sum(0)
        k, a = self.mean_weight + count, (self.variance_weight + count) / 2
        location = (self.mean_weight * prior_mean + count * mean) / k
        b = self.variance_weight / 2 * fitted.deviation.square() + squares / 2
        b = b + self.mean_weight * count * (mean - prior_mean).square() / (2 * k)
        return _student_log_density(target, 2 * a, location, (b * (1 + 1 / k) / a).sqrt())


def _student_log_density(
    values: Float[Tensor, " records"],
    degrees: Float[Tensor, " records"],
    location: Float[Tensor, " records"],
    scale: Float[Tensor, " records"],
) -> Float[Tensor, " records"]:
    """Return the log of the density of Student's t."""
    squares = ((values - location) / scale).square()
    constant = torch.lgamma((degrees + 1) / 2) - torch.lgamma(degrees / 2)
    constant = constant - (degrees * math.pi).log() / 2 - scale.log()
    return constant - (degrees + 1) / 2 * (squares / degrees).log1p()
