"""Membership by likelihood, where few shadow models of a record borrow from all records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
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
class LiraPooled(Attack[Membership]):
    """Likelihood ratio as `lira` has it, with means drawn towards what all records tell.

    Few shadow models learned from any one record, so its mean with it, m_1, is told badly. But
    records tell of each other: with the mean without it, m_0, the line m_1 = a + b m_0 is
    fitted over all records. b near 0 is a model that has everything it learned from by heart, b
    near 1 one whose hard records stay hard. About the line the true means are taken to scatter
    by a variance T (by moments: that of the m_1 about it, less their own), and each is drawn to
    it as T / (T + s^2 / k) says, with k models of deviation s: empirical Bayes (Efron and
    Morris 1973). What a mean is uncertain by widens its normal.

    The fewer shadow models, the more it gains over `lira` (docs/membership.md). They are the
    same ones, so both together cost as much as one.

    Args:
        models: shadow models a round.
        most_rounds: that are read, evenly from the first to the last.

    """

    models: int = 32
    most_rounds: int = 5

    name: ClassVar[str] = "lira_pooled"
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
        "ours, on Carlini et al. 2022 (Membership Inference Attacks From First Principles, "
        "S&P), Algorithm 1"
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
        """Claim the log-likelihood ratio of each record.

        Raises:
            NeedsError: if hardly any record is inside of a shadow model and outside of others.

        """
        read = shadow_confidence(
            view,
            targets,
            knowledge,
            models=self.models,
            most_rounds=self.most_rounds,
            asked=True,
        )
        return {
            target: Membership(_ratio(held.own, held.shadows, read.inside).float())
            for target, held in read.targets.items()
        }


def _ratio(
    own: Float[Tensor, " records"],
    shadows: Float[Tensor, "models records"],
    inside: Bool[Tensor, "models records"],
) -> Float[Tensor, " records"]:
    """Log N(own; with it) - log N(own; without it)."""
    with_it, without = side_of(shadows, inside), side_of(shadows, ~inside)
    there = (with_it.count > 0) & (without.count >= LEAST)
    if int(there.sum()) < 2:
        raise NeedsError(
            "two records or more that some shadow models learned from and others did not: "
            "take more models, or ask about more records"
        )
    known = without.mean[there]
    base = torch.where(without.count > 0, without.mean, known.mean())
    line = _line(known, with_it.mean[there], base)
    off = with_it.mean - line
    # Of each mean about its true one; nothing is known where no model learned from the record.
    unsure = with_it.deviation.square() / with_it.count
    scatter = (off.square() - unsure)[there].mean().clamp(min=0)
    kept = scatter / (scatter + unsure)
    spread = (with_it.deviation.square() + scatter * (1 - kept)).sqrt()
    widened = without.deviation * (1 + 1 / without.count.clamp(min=1)).sqrt()
    likely = log_normal(own, line + kept * off, spread)
    return likely - log_normal(own, base, widened)


def _line(
    known: Float[Tensor, " some"],
    wanted: Float[Tensor, " some"],
    at: Float[Tensor, " records"],
) -> Float[Tensor, " records"]:
    """Least squares of the wanted on the known, there; flat where the known do not differ."""
    away = known - known.mean()
    slope = (away * wanted).sum() / away.square().sum().clamp(min=1e-12)
    return wanted.mean() + slope * (at - known.mean())
