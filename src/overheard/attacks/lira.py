"""Membership by how likely a record's confidence is with it and without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.bank.record_readings import confidence, read_records, with_shadows
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge, Need
from overheard.core.membership import Membership
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View

LEAST = 2
"""Shadow models at least on a side for a record to have a mean of its own there."""

FLOOR = 1e-6
"""Under a standard deviation, in log-odds."""


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
        most_rounds: that are read.

    """

    models: int = 32
    online: bool = True
    most_rounds: int = 6

    name: ClassVar[str] = "lira"
    answers: ClassVar = Membership
    needs: ClassVar = frozenset(
        {
            Need.UPDATES,
            Need.BROADCASTS,
            Need.AUXILIARY,
            Need.MODEL,
            Need.RECIPE,
            Need.CANDIDATES,
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

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-likelihood ratio of each record."""
        assert knowledge.candidates is not None
        records = knowledge.candidates
        readings = with_shadows(
            read_records(view, targets, knowledge, self.most_rounds),
            view,
            knowledge,
            self.models,
            asked=self.online,
            seed=seed,
        )
        sure = {n: confidence(logits, records) for n, logits in readings.shadows.items()}
        claims = {}
        for target, answers in readings.targets.items():
            own = torch.stack([confidence(one, records) for one in answers.values()]).mean(0)
            shadows = torch.stack([sure[number] for number in answers]).mean(0)
            score = (
                _ratio(own, shadows, readings.inside) if self.online else _above(own, shadows)
            )
            claims[target] = Membership(score.float())
        return claims


def _ratio(
    own: Float[Tensor, " records"],
    shadows: Float[Tensor, "models records"],
    inside: Bool[Tensor, "models records"],
) -> Float[Tensor, " records"]:
    """Log N(own; with it) - log N(own; without it)."""
    likely = [_log_likelihood(own, shadows, side) for side in (inside, ~inside)]
    return likely[0] - likely[1]


def _log_likelihood(
    own: Float[Tensor, " records"],
    shadows: Float[Tensor, "models records"],
    side: Bool[Tensor, "models records"],
) -> Float[Tensor, " records"]:
    mean, deviation = _normal(shadows, side)
    return -(((own - mean) / deviation).square()) / 2 - deviation.log()


def _normal(
    shadows: Float[Tensor, "models records"], side: Bool[Tensor, "models records"]
) -> tuple[Float[Tensor, " records"], Float[Tensor, ""]]:
    """The mean of each record on this side, and the deviation that all records share."""
    count = side.sum(0)
    mean = (shadows * side).sum(0) / count.clamp(min=1)
    able = count >= LEAST
    # A record with too few models on a side has the mean of all records there.
    common = (shadows * side).sum() / side.sum().clamp(min=1)
    mean = torch.where(able, mean, common)
    squares = ((shadows - mean).square() * side)[:, able].sum()
    degrees = (count[able] - 1).sum().clamp(min=1)
    return mean, (squares / degrees).sqrt().clamp(min=FLOOR)


def _above(
    own: Float[Tensor, " records"], shadows: Float[Tensor, "models records"]
) -> Float[Tensor, " records"]:
    """How far it is above models without the record, in deviations, less a half.

    A half stands between 0, where a record that was left out lies, and where one that was
    learned from can be expected at least.
    """
    mean, deviation = _normal(shadows, torch.ones_like(shadows, dtype=torch.bool))
    return (own - mean) / deviation - 0.5
