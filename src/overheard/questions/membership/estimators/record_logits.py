"""Logits of the targets' updated models on the candidate records, or on other records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights, apply_update
from overheard.core.parties import COHORT, Party
from overheard.core.task import TaskKind
from overheard.core.view import View
from overheard.learning.evaluate import logits_of_models
from overheard.statistics.evenly_spaced import select_evenly_spaced

SMALLEST_ERROR = 1e-12
"""Errors below this count as this, so that a perfect fit has a finite logarithm."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordLogits:
    """Logits of the targets' models on records, by round.

    Args:
        rounds: the rounds that were read, in order.
        targets: by target and round, the logits of its model after training.

    """

    rounds: tuple[int, ...]
    targets: Mapping[Party, Mapping[int, Float[Tensor, "records classes"]]]


def read_record_logits(
    view: View,
    targets: Sequence[Party],
    knowledge: Knowledge,
    most_rounds: int,
    records: Examples | None = None,
) -> RecordLogits:
    """Compute logits of the targets' updated models in the rounds of `rounds_to_read`.

    Of a cohort without a readable update, the global models after the rounds are read.

    Args:
        view: the view of the observers.
        targets: the targets whose models are read.
        knowledge: with the candidate records.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.
        records: the records whose logits are computed; None = the candidate records.

    """
    assert knowledge.build_model is not None
    inputs = (candidate_records(knowledge) if records is None else records).inputs
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
            inputs,
            device=knowledge.compute.device,
            count=len(targets) * knowledge.compute.repeats,
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


def record_confidence(
    outputs: Float[Tensor, "*models records outputs"], records: Examples, kind: TaskKind
) -> Float[Tensor, "*models records"]:
    """Return how well a model's outputs fit each record, in float64; larger = better.

    It orders records of one label as the loss does, and is about normally distributed over
    models. For p, the probability of what is true of the record, it is log p - log(1 - p): of
    the true class, or of all labels as they are. A regression states no probability. There it
    is minus the log of the squared error, averaged over the outputs. Of a language model it is
    the mean log p of a text's tokens, of which most are neither near 0 nor near 1.

    Args:
        outputs: of one model or several, for all records.
        records: the records.
        kind: what the model predicts.

    """
    precise = outputs.double()
    if records.float_labels is None:
        return _label_log_odds(precise, records.labels)
    rows = records.float_labels.to(precise)
    if kind == "language_modeling":
        return -precise.mean(-1)
    if kind == "regression":
        return -(precise - rows).square().mean(-1).clamp(min=SMALLEST_ERROR).log()
    log_all_right = functional.logsigmoid((2 * rows - 1) * precise).sum(-1)
    # log(1 - p), exact also for p near 1.
    log_any_wrong = (-torch.expm1(log_all_right.clamp(max=-SMALLEST_ERROR))).log()
    return log_all_right - log_any_wrong


def _label_log_odds(
    logits: Float[Tensor, "*models records classes"], labels: Int[Tensor, " records"]
) -> Float[Tensor, "*models records"]:
    """Return the log-odds of the true label: log p - log(1 - p)."""
    label = labels.view(*[1] * (logits.ndim - 2), -1, 1).expand(*logits.shape[:-1], 1)
    true_logit = logits.gather(-1, label)
    others = logits.scatter(-1, label, -torch.inf).logsumexp(-1)
    return true_logit.squeeze(-1) - others
