"""What shadow models answer to the records in question, trained once for all who ask."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.view import View
from overheard.learning.initial import fresh
from overheard.learning.workers.job import Bundle, WorkerTask
from overheard.questions.membership.estimators.train_shadows import (
    ANSWERS,
    INSIDE,
    TrainShadows,
)
from overheard.simulation.chunk import CHUNK
from overheard.simulation.keys import key_of
from overheard.simulation.read_chunk import BROADCAST
from overheard.simulation.workplace import carry_out

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
    means = knowledge.means
    pieces = _pieces(view, knowledge, rounds, count, asked=asked)
    made: dict[int, Mapping[str, Tensor]] = {}
    gaps = []
    for place, piece in enumerate(pieces):
        kept = means.shelf.load(piece.key)
        if kept is None:
            gaps.append(place)
        else:
            made[place] = kept
            means.on_progress(WHAT, len(made), len(pieces))
    if gaps:
        # Nobody is called for nothing; closed at once, so that workers end before all else.
        tasks = _tasks(view, knowledge, [pieces[place].job for place in gaps])
        with closing(carry_out(tasks, len(gaps), means)) as work:
            for done in work:
                place = gaps[done.number]
                means.shelf.save(pieces[place].key, done.tensors)
                made[place] = done.tensors
                means.on_progress(WHAT, len(made), len(pieces))
    by_round: dict[int, list[Mapping[str, Tensor]]] = {number: [] for number in rounds}
    for place, piece in enumerate(pieces):
        by_round[piece.job.round].append(made[place])
    return ShadowAnswers(
        {number: torch.cat([one[ANSWERS] for one in own]) for number, own in by_round.items()},
        torch.cat([one[INSIDE] for one in by_round[rounds[0]]]),
    )


@final
@dataclass(frozen=True, slots=True)
class _Piece:
    """Models that are trained together in a round, and the key of what they answer."""

    job: TrainShadows
    key: str


def _pieces(
    view: View, knowledge: Knowledge, rounds: Sequence[int], count: int, *, asked: bool
) -> list[_Piece]:
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
    pieces = []
    for number in rounds:
        part = key_of(common, str(number), *_told(broadcasts[number]))
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
                # Machines of a cluster need not have the device of this one.
                means.device if means.cluster is None else "cpu",
            )
            pieces.append(_Piece(job, key_of(part, repr(numbers))))
    return pieces


def _tasks(
    view: View, knowledge: Knowledge, jobs: Sequence[TrainShadows]
) -> Iterator[WorkerTask]:
    assert knowledge.auxiliary is not None
    assert knowledge.candidates is not None
    examples = Bundle(
        {
            "auxiliary/inputs": knowledge.auxiliary.inputs,
            "auxiliary/labels": knowledge.auxiliary.labels,
            "records/inputs": knowledge.candidates.inputs,
            "records/labels": knowledge.candidates.labels,
        }
    )
    broadcasts, bundles = view.broadcasts(), dict[int, Bundle]()
    for job in jobs:
        if job.round not in bundles:
            weights = broadcasts[job.round].items()
            # Only the latest is kept, so that many rounds do not stand in memory together.
            bundles = {job.round: Bundle({BROADCAST + name: w for name, w in weights})}
        yield WorkerTask(job, (examples, bundles[job.round]))


def _told(weights: Weights) -> Iterator[str | Tensor]:
    for name, weight in weights.items():
        yield name
        yield weight


def _told_size(view: View) -> int | None:
    sizes = [
        update.examples
        for who in view.senders()
        for update in view.updates(who).values()
        if update.examples
    ]
    return int(torch.tensor(sizes).median()) if sizes else None
