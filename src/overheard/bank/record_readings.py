"""What models answer to the records in question: targets', and shadow models' beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, joined
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights, moved
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.cohort import Member
from overheard.learning.evaluate import logits_of_cohort
from overheard.learning.train import train_cohort


@final
@dataclass(frozen=True, slots=True, eq=False)
class RecordReadings:
    """Answers to the records in question, by round.

    Args:
        rounds: that were read, in order.
        targets: by target and round, the logits of the model at which it arrived.
        shadows: by round, the same of shadow models, which started from the same broadcast;
            each learned from the same examples in all rounds.
        inside: on which of the records each shadow model learned; none where it was not asked.

    """

    rounds: tuple[int, ...]
    targets: Mapping[Party, Mapping[int, Float[Tensor, "records classes"]]]
    shadows: Mapping[int, Float[Tensor, "models records classes"]]
    inside: Bool[Tensor, "models records"]


def read_records(
    view: View, targets: Sequence[Party], knowledge: Knowledge, most_rounds: int
) -> RecordReadings:
    """Read the models at which targets arrived, in some of the rounds.

    The rounds are spread over those in which anybody was heard, with the last one among them; a
    target that was heard in none of them is read in its own last round.
    """
    assert knowledge.build_model is not None
    assert knowledge.candidates is not None
    broadcasts = view.broadcasts()
    heard = {
        who: [number for number in view.heard(who) if number in broadcasts]
        for who in (*view.senders(), *targets)
    }
    # Of all that was heard, so that it is the same whomever is asked about.
    chosen = _spread(sorted({n for own in heard.values() for n in own}), most_rounds)
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
    nobody = torch.zeros(0, len(knowledge.candidates), dtype=torch.bool)
    return RecordReadings(rounds, read, {}, nobody)


def with_shadows(
    readings: RecordReadings,
    view: View,
    knowledge: Knowledge,
    count: int,
    *,
    asked: bool,
    seed: Seed,
) -> RecordReadings:
    """Train shadow models at the broadcasts of these rounds, and read them too.

    Each learns from as many examples as clients tell that they have (the median; half of what
    there is, where none tells or there are too few), drawn from the auxiliary ones and, if
    `asked`, from the records in question: so each record is inside of some and outside of the
    others.

    Raises:
        NeedsError: if there are fewer than two examples to draw from.

    """
    assert knowledge.auxiliary is not None
    assert knowledge.candidates is not None
    assert knowledge.recipe is not None
    assert knowledge.build_model is not None
    pool, before = knowledge.auxiliary, len(knowledge.auxiliary)
    if asked:
        pool = joined((pool, knowledge.candidates))
    if len(pool) < 2:
        raise NeedsError("shadow models learn from two examples or more: grant more")
    size = min(_told_size(view) or len(pool), len(pool) // 2)
    rows = [
        torch.randperm(len(pool), generator=seed.child("shadow", number).generator())[:size]
        for number in range(count)
    ]
    members = [Member(f"shadow/{number}", own) for number, own in enumerate(rows)]
    inside = torch.zeros(count, len(pool), dtype=torch.bool)
    for number, own in enumerate(rows):
        inside[number, own] = True
    broadcasts, told = view.broadcasts(), dict[int, Tensor]()
    for place, number in enumerate(readings.rounds):
        knowledge.means.on_progress("shadow models of round", place, len(readings.rounds))
        start = {name: broadcasts[number][name] for name in broadcasts[number]}
        trained = train_cohort(
            knowledge.build_model,
            start,
            pool,
            members,
            knowledge.recipe,
            seed=seed.child("training"),
            round=number,
            workers=knowledge.means.workers,
            device=knowledge.means.device,
        )
        models: Iterable[Weights] = (moved(start, one.delta) for one in trained)
        answers = logits_of_cohort(
            knowledge.build_model,
            models,
            knowledge.candidates.inputs,
            device=knowledge.means.device,
        )
        told[number] = torch.stack(list(answers))
    outside = torch.zeros(count, len(knowledge.candidates), dtype=torch.bool)
    return RecordReadings(
        readings.rounds,
        readings.targets,
        told,
        inside[:, before:] if asked else outside,
    )


def confidence(
    logits: Float[Tensor, "*models records classes"], records: Examples
) -> Float[Tensor, "*models records"]:
    """The log-odds that a model gives the true label: log p - log(1 - p), in float64."""
    wide = logits.double()
    label = records.labels.view(*[1] * (wide.ndim - 2), -1, 1).expand(*wide.shape[:-1], 1)
    own = wide.gather(-1, label)
    others = wide.scatter(-1, label, -torch.inf).logsumexp(-1)
    return own.squeeze(-1) - others


def _spread(rounds: Sequence[int], most: int) -> set[int]:
    count = min(most, len(rounds))
    return {rounds[len(rounds) - 1 - place * len(rounds) // count] for place in range(count)}


def _told_size(view: View) -> int | None:
    sizes = [
        update.examples
        for who in view.senders()
        for update in view.updates(who).values()
        if update.examples
    ]
    return int(torch.tensor(sizes).median()) if sizes else None
