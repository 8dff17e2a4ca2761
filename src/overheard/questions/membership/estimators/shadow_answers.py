"""What shadow models answer to the records in question, trained once for all who ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.view import View
from overheard.learning.initial import fresh
from overheard.learning.workers.job import Bundle
from overheard.questions.membership.estimators.train_shadows import (
    ANSWERS,
    INSIDE,
    TrainShadows,
)
from overheard.simulation.cached_jobs import (
    Answer,
    CachedJob,
    JobInputs,
    do_cached,
    single_answer,
)
from overheard.simulation.chunk import CHUNK
from overheard.simulation.job_tensors import named_examples
from overheard.simulation.keys import broadcast_key, key_of

WHAT = "shadow models"
"""As what their training is told to `Means.on_progress`."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShadowAnswers:
    """Logits of shadow models on the records in question.

    Args:
        rounds: by round, the answers of models that started from its broadcast.
        inside: which of the records each model learned from, in all rounds alike.

    """

    rounds: Mapping[int, Float[Tensor, "models records classes"]]
    inside: Bool[Tensor, "models records"]


def shadow_answers(
    view: View, knowledge: Knowledge, rounds: Sequence[int], count: int, *, asked: bool
) -> ShadowAnswers:
    """Train shadow models at the broadcasts of these rounds, and ask them about the records.

    Each learns from as many examples as clients tell that they have (the median; half of what
    there is, where none tells or there are too few), drawn from the auxiliary ones and, if
    `asked`, from the records in question: so each record is inside of some and outside of the
    others.

    One piece of work is `CHUNK` models in one round, kept on the shelf as soon as it is done:
    whoever asks for the same, of fewer rounds or for more models, has no others trained. All
    draws hang on the seed of `knowledge.means`.

    Args:
        view: for the broadcasts, and for what it tells of sizes.
        knowledge: with auxiliary examples, candidates, a model and a recipe.
        rounds: one or more, each with a broadcast.
        count: of models a round.
        asked: whether they learn from the records in question too.

    Raises:
        NeedsError: if there are fewer than two examples to draw from.
        PlanError: if a training runs away.
        WorkerError: if workers die again and again.

    """
    jobs = _jobs(view, knowledge, rounds, count, asked=asked)
    made: dict[int, Answer] = {}

    def take(place: int, _: int, answer: Answer) -> None:
        made[place] = answer

    inputs = JobInputs(lambda: _shared(knowledge), view.broadcasts())
    do_cached(WHAT, jobs, inputs, knowledge.means, take)
    by_round: dict[int, list[Answer]] = {number: [] for number in rounds}
    for place, job in enumerate(jobs):
        by_round[job.round].append(made[place])
    return ShadowAnswers(
        {number: torch.cat([one[ANSWERS] for one in own]) for number, own in by_round.items()},
        torch.cat([one[INSIDE] for one in by_round[rounds[0]]]),
    )


def _jobs(
    view: View, knowledge: Knowledge, rounds: Sequence[int], count: int, *, asked: bool
) -> list[CachedJob]:
    assert knowledge.auxiliary is not None
    assert knowledge.candidates is not None
    assert knowledge.recipe is not None
    assert knowledge.build_model is not None
    means, auxiliary, records = knowledge.means, knowledge.auxiliary, knowledge.candidates
    there = len(auxiliary) + (len(records) if asked else 0)
    if there < 2:
        raise NeedsError("shadow models learn from two examples or more: grant more")
    size = min(_told_size(view) or there, there // 2)
    seed, broadcasts = means.seed.child("shadow models"), view.broadcasts()
    common = key_of(
        repr((knowledge.recipe, seed, size, asked)),
        str(fresh(knowledge.build_model, seed)),
        auxiliary.inputs,
        auxiliary.labels,
        records.inputs,
        records.labels,
    )
    jobs = []
    for number in rounds:
        part = broadcast_key(common, number, broadcasts[number])
        for begin in range(0, count, CHUNK):
            numbers = range(begin, min(begin + CHUNK, count))
            job = TrainShadows(
                number,
                numbers,
                size,
                asked,
                knowledge.build_model,
                knowledge.recipe,
                seed,
                means.job_device,
            )
            jobs.append(single_answer(number, key_of(part, repr(numbers)), job))
    return jobs


def _shared(knowledge: Knowledge) -> tuple[Bundle, ...]:
    """What the jobs of all rounds read."""
    assert knowledge.auxiliary is not None
    assert knowledge.candidates is not None
    auxiliary = named_examples("auxiliary", knowledge.auxiliary)
    return (Bundle(auxiliary | named_examples("records", knowledge.candidates)),)


def _told_size(view: View) -> int | None:
    sizes = [
        update.examples
        for who in view.senders()
        for update in view.updates(who).values()
        if update.examples
    ]
    return int(torch.tensor(sizes).median()) if sizes else None
