"""How sure targets' models are of each record in question, beside shadow models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.questions.membership.estimators.record_readings import confidence, read_records
from overheard.questions.membership.estimators.shadow_answers import shadow_answers
from overheard.questions.membership.estimators.sides import bounded


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Log-odds of the true label, bounded, mean over the rounds of one target.

    Args:
        own: of its models.
        shadows: of shadow models that started where its models did.

    """

    own: Float[Tensor, " records"]
    shadows: Float[Tensor, "models records"]


@dataclass(frozen=True, slots=True, eq=False)
class ShadowConfidence:
    """How sure models are of each record.

    Args:
        targets: each beside its shadow models.
        inside: which records each shadow model learned from.

    """

    targets: Mapping[Party, Beside]
    inside: Bool[Tensor, "models records"]


def shadow_confidence(
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    *,
    models: int,
    most_rounds: int,
    asked: bool,
) -> ShadowConfidence:
    """Read the records in question off targets' models and off shadow models.

    Args:
        view: of the observers.
        targets: whose models are read.
        knowledge: with the records in question.
        models: shadow models a round.
        most_rounds: that are read, evenly from the first to the last.
        asked: whether some shadow models learn from the records in question.

    """
    assert knowledge.candidates is not None
    records = knowledge.candidates
    readings = read_records(view, targets, knowledge, most_rounds)
    told = shadow_answers(view, knowledge, readings.rounds, models, asked=asked)
    sure = {n: bounded(confidence(logits, records)) for n, logits in told.rounds.items()}
    held = {}
    for target, answers in readings.targets.items():
        each = [bounded(confidence(one, records)) for one in answers.values()]
        shadows = torch.stack([sure[number] for number in answers]).mean(0)
        held[target] = Beside(torch.stack(each).mean(0), shadows)
    return ShadowConfidence(held, told.inside)
