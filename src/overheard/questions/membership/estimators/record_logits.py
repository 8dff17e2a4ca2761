"""Logits of the targets' updated models on the candidate records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights, apply_update
from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.learning.evaluate import logits_of_models
from overheard.statistics.evenly_spaced import select_evenly_spaced


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordLogits:
    """Logits of the targets' models on the candidate records, by round.

    Args:
        rounds: the rounds that were read, in order.
        targets: by target and round, the logits of its model after training.

    """

    rounds: tuple[int, ...]
    targets: Mapping[Party, Mapping[int, Float[Tensor, "records classes"]]]


def read_record_logits(
    view: View, targets: Sequence[Party], knowledge: Knowledge, most_rounds: int
) -> RecordLogits:
    """Compute logits of the targets' updated models in the rounds of `rounds_to_read`.

    Of a cohort without a readable update, the global models after the rounds are read.
    """
    assert knowledge.build_model is not None
    assert knowledge.candidate_records is not None
    broadcasts = view.broadcasts()
    read: dict[Party, dict[int, Tensor]] = {}
    for target, with_updates in rounds_to_read(view, targets, most_rounds).items():
        updates = view.updates(target)
        models: Iterator[Weights] = (
            apply_update(broadcasts[number], updates[number].delta) for number in with_updates
        )
        numbers = with_updates
        if not with_updates:
            after = view.models_after() if target == COHORT else {}
            numbers = select_evenly_spaced(sorted(after), most_rounds)
            models = (after[number] for number in numbers)
        logits = logits_of_models(
            knowledge.build_model,
            models,
            knowledge.candidate_records.inputs,
            device=knowledge.compute.device,
        )
        read[target] = dict(zip(numbers, logits, strict=True))
    rounds = tuple(sorted({number for by_round in read.values() for number in by_round}))
    return RecordLogits(rounds, read)


def rounds_to_read(
    view: View, targets: Sequence[Party], most_rounds: int
) -> dict[Party, tuple[int, ...]]:
    """Return the rounds in which each target is read.

    The rounds are evenly spaced among those with an update of any sender, from first to last. A
    target without an update in any of them is read in its own last round.
    """
    broadcasts = view.broadcasts()
    rounds_of = {
        party: [number for number in view.rounds_with_updates(party) if number in broadcasts]
        for party in (*view.senders(), *targets)
    }
    # All senders count, so that the rounds do not depend on the targets.
    selected = select_evenly_spaced(
        sorted({number for rounds in rounds_of.values() for number in rounds}), most_rounds
    )
    return {
        target: tuple(number for number in rounds_of[target] if number in selected)
        or tuple(rounds_of[target][-1:])
        for target in targets
    }


def label_log_odds(
    logits: Float[Tensor, "*models records classes"], records: Examples
) -> Float[Tensor, "*models records"]:
    """Return the log-odds of the true label: log p - log(1 - p), in float64."""
    precise = logits.double()
    label = records.labels.view(*[1] * (precise.ndim - 2), -1, 1).expand(*precise.shape[:-1], 1)
    true_logit = precise.gather(-1, label)
    others = precise.scatter(-1, label, -torch.inf).logsumexp(-1)
    return true_logit.squeeze(-1) - others
