"""Has known users trained in each round, except for what stands on the shelf already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initial import fresh
from overheard.learning.workers.job import Bundle
from overheard.linkage.learner import PriorClient, together
from overheard.linkage.simulate_users import ANSWERED, SKETCH, SimulateUsers
from overheard.linkage.sketch import RAW, WIDTH
from overheard.simulation.cached_jobs import Answer, JobInputs, do_cached, single_answer
from overheard.simulation.chunk import CHUNK
from overheard.simulation.job_tensors import background_tensors, named_examples
from overheard.simulation.keys import broadcast_key, key_of

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
    starts, jobs = [], []
    for number, weights in broadcasts.items():
        part = broadcast_key(common, number, weights)
        for begin in range(0, len(learners), CHUNK):
            own = tuple(learners[begin : begin + CHUNK])
            job = _job(knowledge, number, own, seed)
            jobs.append(single_answer(number, key_of(part, repr(own)), job))
            starts.append(begin)
    parts: dict[int, SimulatedUpdates] = {}

    def take(place: int, _: int, made: Answer) -> None:
        parts[place] = SimulatedUpdates(
            torch.cat([made[SKETCH + name] for name in names], 1),
            starts[place] + made[ANSWERED],
            torch.full_like(made[ANSWERED], jobs[place].round),
        )

    do_cached(WHAT, jobs, JobInputs(lambda: _shared(knowledge, pool), broadcasts), means, take)
    in_order = [parts[place] for place in range(len(jobs))]
    return SimulatedUpdates(
        torch.cat([part.vectors for part in in_order]),
        torch.cat([part.learners for part in in_order]),
        torch.cat([part.rounds for part in in_order]),
    )


def _common(knowledge: Knowledge, pool: Examples, seed: Seed) -> str:
    """The part of a key that all rounds share."""
    assert knowledge.build_model is not None
    model = str(fresh(knowledge.build_model, seed))
    known = (knowledge.recipe, knowledge.defenses or (), seed, RAW, WIDTH)
    background = knowledge.background if knowledge.defenses else None
    given = () if background is None else (background.inputs, background.labels)
    return key_of(repr(known), model, pool.inputs, pool.labels, *given)


def _job(
    knowledge: Knowledge, number: int, learners: tuple[PriorClient, ...], seed: Seed
) -> SimulateUsers:
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    return SimulateUsers(
        number,
        learners,
        knowledge.build_model,
        knowledge.recipe,
        knowledge.defenses or (),
        seed,
        knowledge.means.job_device,
    )


def _shared(knowledge: Knowledge, pool: Examples) -> tuple[Bundle, ...]:
    """What the jobs of all rounds read."""
    return (Bundle(named_examples("users", pool)), Bundle(background_tensors(knowledge)))
