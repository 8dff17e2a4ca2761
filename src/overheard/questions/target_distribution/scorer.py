"""The scorer of claimed distributions of numbers to predict."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard.questions.target_distribution.claim import LEVELS, TargetDistribution
from overheard.questions.target_distribution.true_facts import (
    ClientTargets,
    weighted_quantiles,
)

ROUNDING_ERROR = 1e-6
"""Largest relative rounding error of the end of an interval in float32."""


@final
@dataclass(frozen=True, slots=True)
class TargetDistributionScorer(Scorer[TargetDistribution]):
    """Compares claimed means and quantiles with those of the target's examples.

    All errors are in standard deviations of the number among the attacker's own examples, and
    are averaged over the numbers to predict.

    - `target_mean_error`: the absolute error of the mean.
    - `pinball`: the error of the claimed quantiles at the levels of `LEVELS`, as the excess of
      their pinball loss over that of the true quantiles, by the true quantiles alone: the mean
      of |claimed - true|, weighted by level where the claim is too low and by 1 - level where
      it is too high (Koenker and Bassett 1978).
    - `target_coverage`: the share of true numbers inside of the claimed intervals.

    The uninformed guess has the mean and the quantiles of the attacker's own examples.
    """

    name: ClassVar[str] = "target_distribution"
    claim_type: ClassVar[type[Claim]] = TargetDistribution
    headline: ClassVar[str] = "target_mean_error"
    source: ClassVar[str] = "Koenker and Bassett 1978 (Regression Quantiles), for `pinball`"

    def true_claim(
        self,
        truth: GroundTruth,
        target: Party,
        rounds: Collection[int],
        claim: TargetDistribution,
    ) -> TargetDistribution:
        """Return the true mean and quantiles, in the units of the claim."""
        fact = truth.facts.need(ClientTargets)
        means = fact.means_of(target).float()
        if means.shape != claim.means.shape:
            raise ClaimError(
                f"the claim is about {len(claim.means)} numbers, the truth about {len(means)}"
            )
        points, weights = fact.sample_of(target)
        quantiles = weighted_quantiles(points, weights, LEVELS).float()
        return TargetDistribution(
            means, None if claim.quantiles is None else quantiles, claim.deviations
        )

    def uninformed_guesses(
        self, claim: TargetDistribution, knowledge: Knowledge
    ) -> Mapping[str, TargetDistribution]:
        """Return the mean and the quantiles of the attacker's own examples."""
        auxiliary = knowledge.auxiliary
        if auxiliary is None or auxiliary.float_labels is None or not len(auxiliary):
            return {}
        rows = auxiliary.float_labels.double()
        if rows.shape[1] != len(claim.means):
            raise ClaimError(
                f"the claim is about {len(claim.means)} numbers, the task about {rows.shape[1]}"
            )
        quantiles = rows.quantile(torch.tensor(LEVELS, dtype=torch.float64), 0).T.float()
        return {
            "the attacker's examples": TargetDistribution(
                rows.mean(0).float(),
                None if claim.quantiles is None else quantiles,
                claim.deviations,
            )
        }

    def informed_guesses(self, truth: TargetDistribution) -> Mapping[str, TargetDistribution]:
        """Return nothing: no guess knows part of the truth."""
        return {}

    def score(
        self,
        claim: TargetDistribution,
        truth: TargetDistribution,
        guesses: Guesses[TargetDistribution],
    ) -> tuple[Score, ...]:
        """Return every score that the claim allows, in the order of the class."""
        uninformed = guesses.uninformed
        scores = [
            Score(
                "target_mean_error",
                _mean_error(claim, truth),
                "lower",
                {name: _mean_error(one, truth) for name, one in uninformed.items()},
                {},
            )
        ]
        if claim.quantiles is not None and truth.quantiles is not None:
            scores.append(
                Score(
                    "pinball",
                    _pinball(claim, truth),
                    "lower",
                    {name: _pinball(one, truth) for name, one in uninformed.items()},
                    {},
                )
            )
        if claim.bounds is not None:
            scores.append(Score("target_coverage", _coverage(claim, truth), "higher", {}, {}))
        return tuple(scores)


def _mean_error(claim: TargetDistribution, truth: TargetDistribution) -> float:
    return float(((claim.means - truth.means).abs() / truth.deviations).double().mean())


def _pinball(claim: TargetDistribution, truth: TargetDistribution) -> float:
    assert claim.quantiles is not None
    assert truth.quantiles is not None
    missing: Float[Tensor, "outputs levels"] = truth.quantiles - claim.quantiles
    levels = torch.tensor(LEVELS)
    loss = torch.maximum(levels * missing, (levels - 1) * missing)
    return float((loss / truth.deviations[:, None]).double().mean())


def _coverage(claim: TargetDistribution, truth: TargetDistribution) -> float:
    assert claim.bounds is not None
    ends = zip(claim.bounds.low, truth.numbers(), claim.bounds.high, strict=True)
    slack = ROUNDING_ERROR * (1 + max(map(abs, truth.numbers())))
    inside = [low - slack <= number <= high + slack for low, number, high in ends]
    return sum(inside) / len(inside)
