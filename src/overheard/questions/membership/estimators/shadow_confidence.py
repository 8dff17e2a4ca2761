"""Log-odds of the candidate records under the targets' models and shadow models."""

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
    """Clamped log-odds of the true label, averaged over the rounds of one target.

    Args:
        own: log-odds under the target's models.
        shadows: log-odds under shadow models that started from the same broadcasts.

    """

    own: Float[Tensor, " records"]
    shadows: Float[Tensor, "models records"]


@dataclass(frozen=True, slots=True, eq=False)
class ShadowConfidence:
    """Log-odds of each candidate record for all targets.

    Args:
        targets: the log-odds of each target and of its shadow models.
        inside: whether each shadow model trained on each record.

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
    """Compute log-odds of the candidate records under targets' models and shadow models.

    Args:
        view: the view of the observers.
        targets: the targets whose models are read.
        knowledge: with the candidate records.
        models: shadow models per round.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        asked: whether some shadow models train on candidate records.

    """
    assert knowledge.candidate_records is not None
    records = knowledge.candidate_records
    readings = read_records(view, targets, knowledge, most_rounds)
    shadow_logits = shadow_answers(view, knowledge, readings.rounds, models, asked=asked)
    shadow_log_odds = {
        number: bounded(confidence(logits, records))
        for number, logits in shadow_logits.rounds.items()
    }
    by_target = {}
    for target, by_round in readings.targets.items():
        log_odds = [bounded(confidence(logits, records)) for logits in by_round.values()]
        shadows = torch.stack([shadow_log_odds[number] for number in by_round]).mean(0)
        by_target[target] = Beside(torch.stack(log_odds).mean(0), shadows)
    return ShadowConfidence(by_target, shadow_logits.inside)
