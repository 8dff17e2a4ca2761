"""What the models at which targets arrived answer to the records in question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import moved
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.learning.evaluate import logits_of_cohort
from overheard.statistics.spread import spread


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordReadings:
    """Answers to the records in question, by round.

    Args:
        rounds: that were read, in order.
        targets: by target and round, the logits of the model at which it arrived.

    """

    rounds: tuple[int, ...]
    targets: Mapping[Party, Mapping[int, Float[Tensor, "records classes"]]]


def read_records(
    view: View, targets: Sequence[Party], knowledge: Knowledge, most_rounds: int
) -> RecordReadings:
    """Read the models at which targets arrived, in some of the rounds.

    The rounds are spread evenly over those in which anybody was heard, from the first to the
    last; a target that was heard in none of them is read in its own last round.
    """
    assert knowledge.build_model is not None
    assert knowledge.candidates is not None
    broadcasts = view.broadcasts()
    heard = {
        who: [number for number in view.heard(who) if number in broadcasts]
        for who in (*view.senders(), *targets)
    }
    # Of all that was heard, so that it is the same whomever is asked about.
    chosen = spread(sorted({n for own in heard.values() for n in own}), most_rounds)
    read: dict[Party, dict[int, Tensor]] = {}
    for target in targets:
        own = heard[target]
        there = [number for number in own if number in chosen] or own[-1:]
        updates = view.updates(target)
        models = (moved(broadcasts[number], updates[number].delta) for number in there)
        answers = logits_of_cohort(
            knowledge.build_model,
            models,
            knowledge.candidates.inputs,
            device=knowledge.means.device,
        )
        read[target] = dict(zip(there, answers, strict=True))
    rounds = tuple(sorted({number for own in read.values() for number in own}))
    return RecordReadings(rounds, read)


def confidence(
    logits: Float[Tensor, "*models records classes"], records: Examples
) -> Float[Tensor, "*models records"]:
    """The log-odds that a model gives the true label: log p - log(1 - p), in float64."""
    wide = logits.double()
    label = records.labels.view(*[1] * (wide.ndim - 2), -1, 1).expand(*wide.shape[:-1], 1)
    own = wide.gather(-1, label)
    others = wide.scatter(-1, label, -torch.inf).logsumexp(-1)
    return own.squeeze(-1) - others
