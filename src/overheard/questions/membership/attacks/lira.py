"""Membership by how likely a record's confidence is with it and without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.shadow_confidence import shadow_confidence
from overheard.questions.membership.estimators.sides import LEAST, log_normal, side_of


@final
@dataclass(frozen=True, slots=True)
class Lira(Attack[Membership]):
    """Likelihood ratio of a record's log-odds, with and without it in training.

    Shadow models start from the broadcasts that targets started from, and train as clients do.
    The log-odds of a record under the target's model, the mean over rounds, is held against a
    normal of the same under shadow models that learned from the record, and one of those that
    did not. All rounds are read together, as each shadow model keeps its examples: so rounds
    that say the same are not counted twice. Each record has means of its own, and all share a
    standard deviation a side, as the authors advise for few shadow models.

    Offline, no shadow model ever learns from a record in question, and the score is how far the
    log-odds lie above those of models without the record.

    In a federation the target's model comes from the global one, which had learned from the
    record in earlier rounds: shadow models without it start from the same, so only what this
    round's training adds tells. Where few examples are granted, shadow models learn from fewer
    than clients do.

    Args:
        models: shadow models a round.
        online: whether some learn from the records in question.
        most_rounds: that are read, evenly from the first to the last.

    """

    models: int = 32
    online: bool = True
    most_rounds: int = 5

    name: ClassVar[str] = "lira"
    answers: ClassVar = Membership
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
        """Refuse what tells nothing."""
        if self.models < 2 * LEAST or self.most_rounds < 1:
            raise ValueError(
                f"models are {2 * LEAST} or more and most_rounds 1 or more, got {self}"
            )

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang."""
        return frozenset({"model", "loss", "steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-likelihood ratio of each record."""
        read = shadow_confidence(
            view,
            targets,
            knowledge,
            models=self.models,
            most_rounds=self.most_rounds,
            asked=self.online,
        )
        claims = {}
        for target, held in read.targets.items():
            score = _above(held.own, held.shadows)
            if self.online:
                score = _ratio(held.own, held.shadows, read.inside)
            claims[target] = Membership(score.float())
        return claims


def _ratio(
    own: Float[Tensor, " records"],
    shadows: Float[Tensor, "models records"],
    inside: Bool[Tensor, "models records"],
) -> Float[Tensor, " records"]:
    """Log N(own; with it) - log N(own; without it)."""
    with_it, without = side_of(shadows, inside), side_of(shadows, ~inside)
    there = (with_it.count > 0) & (without.count > 0)
    shifts = (with_it.mean - without.mean)[there]
    shift = shifts.mean() if len(shifts) else torch.zeros(())
    # Of which too few models learned, or but too few did not, it lies off the other side's mean
    # as records do on average: hard ones are not to pass for others' easy ones.
    mean = torch.where(with_it.count >= LEAST, with_it.mean, without.mean + shift)
    other = torch.where(without.count >= LEAST, without.mean, with_it.mean - shift)
    likely = log_normal(own, mean, with_it.deviation)
    return likely - log_normal(own, other, without.deviation)


def _above(
    own: Float[Tensor, " records"], shadows: Float[Tensor, "models records"]
) -> Float[Tensor, " records"]:
    """How far it is above models without the record, in deviations, less a half.

    A half stands between 0, where a record that was left out lies, and where one that was
    learned from can be expected at least.
    """
    without = side_of(shadows, torch.ones_like(shadows, dtype=torch.bool))
    return (own - without.mean) / without.deviation - 0.5
