"""Log-odds of the candidate records under the targets' models and shadow models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.questions.membership.estimators.in_out_models import clamp_log_odds
from overheard.questions.membership.estimators.record_logits import (
    read_record_logits,
    record_confidence,
)
from overheard.questions.membership.estimators.shadow_count import (
    DEFAULT_IN_MODELS,
    shadow_model_count,
)
from overheard.questions.membership.estimators.shadow_logits import compute_shadow_logits


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
    readings = read_record_logits(view, targets, knowledge, most_rounds)
    count = shadow_model_count(
        view, knowledge, models, in_models, include_candidates=include_candidates
    )
    shadow_logits = compute_shadow_logits(
        view, knowledge, readings.rounds, count, include_candidates=include_candidates
    )
    shadow_log_odds = {
        number: clamp_log_odds(record_confidence(logits, records, knowledge.kind))
        for number, logits in shadow_logits.rounds.items()
    }
    by_target = {}
    for target, by_round in readings.targets.items():
        log_odds = [
            clamp_log_odds(record_confidence(logits, records, knowledge.kind))
            for logits in by_round.values()
        ]
        shadows = torch.stack([shadow_log_odds[number] for number in by_round]).mean(0)
        by_target[target] = TargetLogOdds(torch.stack(log_odds).mean(0), shadows)
    return RecordLogOdds(by_target, shadow_logits.is_member)
