"""Has known users trained in each round, except for what stands on the shelf already."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initial import fresh
from overheard.learning.workers.job import Bundle, WorkerTask
from overheard.linkage.learner import PriorClient, together
from overheard.linkage.simulate_users import ANSWERED, SKETCH, SimulateUsers
from overheard.linkage.sketch import RAW, WIDTH
from overheard.simulation.chunk import CHUNK
from overheard.simulation.keys import key_of
from overheard.simulation.read_chunk import BROADCAST
from overheard.simulation.workplace import carry_out

WHAT = "known users"
"""As what their training is told to `Means.on_progress`."""


@final
@dataclass(frozen=True, slots=True)
class SimulatedUpdates:
    """What learners would have sent, one row an update, round by round.

    Args:
        vectors: the tensors asked for, sketched, side by side.
        learners: whose, as a place among the learners.
        rounds: of each.

    """

    vectors: Float[Tensor, "updates dims"]
    learners: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]


def simulated_updates(
    broadcasts: Mapping[int, Weights],
    knowledge: Knowledge,
    learners: Sequence[PriorClient],
    names: Sequence[str],
) -> SimulatedUpdates:
    """What each learner would have sent in each round, as far as these tensors tell.

    One piece of work is `CHUNK` learners in one round. All tensors of it are kept on the shelf
    as soon as it is done, so that no choice of a layer has anything trained again.

    Args:
        broadcasts: by round.
        knowledge: with a model and a recipe.
        learners: in the order of `knowledge.people.examples`.
        names: of the tensors that are wanted.

    """
    means = knowledge.means
    pool = together(knowledge.people.examples())
    seed = means.seed.child("known users")
    common = _common(knowledge, pool, seed)
    pieces = []
    for number, weights in broadcasts.items():
        part = key_of(common, str(number), *_told(weights))
        for begin in range(0, len(learners), CHUNK):
            own = tuple(learners[begin : begin + CHUNK])
            pieces.append(_Piece(number, begin, own, key_of(part, repr(own))))
    parts: dict[int, _Part] = {}
    gaps = []
    for place, piece in enumerate(pieces):
        kept = means.shelf.load(piece.key)
        if kept is None:
            gaps.append(place)
        else:
            parts[place] = _part(piece, kept, names)
            means.on_progress(WHAT, len(parts), len(pieces))
    if gaps:
        # Nobody is called for nothing; closed at once, so that workers end before all else.
        tasks = _tasks(broadcasts, knowledge, pool, seed, [pieces[place] for place in gaps])
        with closing(carry_out(tasks, len(gaps), means)) as work:
            for done in work:
                place = gaps[done.number]
                means.shelf.save(pieces[place].key, done.tensors)
                parts[place] = _part(pieces[place], done.tensors, names)
                means.on_progress(WHAT, len(parts), len(pieces))
    in_order = [parts[place] for place in range(len(pieces))]
    return SimulatedUpdates(
        torch.cat([part.vectors for part in in_order]),
        torch.cat([part.learners for part in in_order]),
        torch.cat([part.rounds for part in in_order]),
    )


@final
@dataclass(frozen=True, slots=True)
class _Piece:
    """Learners who train together in a round, the place of the first, and what they hang on."""

    round: int
    begin: int
    learners: tuple[PriorClient, ...]
    key: str


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """What came of a piece, as `SimulatedUpdates` has it."""

    vectors: Float[Tensor, "updates dims"]
    learners: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]


def _part(piece: _Piece, made: Mapping[str, Tensor], names: Sequence[str]) -> _Part:
    return _Part(
        torch.cat([made[SKETCH + name] for name in names], 1),
        piece.begin + made[ANSWERED],
        torch.full_like(made[ANSWERED], piece.round),
    )


def _common(knowledge: Knowledge, pool: Examples, seed: Seed) -> str:
    """The part of a key that all rounds share."""
    assert knowledge.build_model is not None
    model = str(fresh(knowledge.build_model, seed))
    known = (knowledge.recipe, knowledge.defenses or (), seed, RAW, WIDTH)
    background = knowledge.background if knowledge.defenses else None
    given = () if background is None else (background.inputs, background.labels)
    return key_of(repr(known), model, pool.inputs, pool.labels, *given)


def _told(weights: Weights) -> Iterator[str | Tensor]:
    for name, weight in weights.items():
        yield name
        yield weight


def _tasks(
    broadcasts: Mapping[int, Weights],
    knowledge: Knowledge,
    pool: Examples,
    seed: Seed,
    pieces: Sequence[_Piece],
) -> Iterator[WorkerTask]:
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    given = {"users/inputs": pool.inputs, "users/labels": pool.labels}
    if knowledge.background is not None:
        given["background/inputs"] = knowledge.background.inputs
        given["background/labels"] = knowledge.background.labels
    users = Bundle(given)
    for number, several in groupby(pieces, lambda piece: piece.round):
        weights = broadcasts[number].items()
        broadcast = Bundle({BROADCAST + name: weight for name, weight in weights})
        for piece in several:
            job = SimulateUsers(
                number,
                piece.learners,
                knowledge.build_model,
                knowledge.recipe,
                knowledge.defenses or (),
                seed,
                # Machines of a cluster need not have the device of this one.
                knowledge.means.device if knowledge.means.cluster is None else "cpu",
            )
            yield WorkerTask(job, (users, broadcast))
