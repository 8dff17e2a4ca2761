"""Local training: the one function by which clients, and an attacker's imitations, learn."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Literal

import torch
from torch import nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.architecture import (
    draws_at_random,
    embeds_tokens,
    is_chain_of_linear,
    is_recurrent,
)
from overheard.learning.cohort import Group, Lesson, Member, Trained
from overheard.learning.engines.sequential import train_sequentially
from overheard.learning.engines.stacked import Pupil, StackedLearner
from overheard.learning.initial import fresh
from overheard.learning.memory import members_that_fit
from overheard.learning.threads import cores
from overheard.learning.workers import processes

Engine = Literal["auto", "sequential", "processes", "stacked"]

Way = Callable[[Lesson, Sequence[Member]], Iterator[Trained]]
"""How one group is trained, where groups are not stacked."""

WINDOW_PER_WORKER = 4
"""Members in work or done a worker, so that none waits while the caller looks at another."""


def train_cohort(
    build_model: BuildModel,
    start: Weights,
    pool: Examples,
    members: Sequence[Member],
    recipe: Recipe,
    *,
    seed: Seed,
    round: int,
    engine: Engine = "auto",
    chunk: int | None = None,
    workers: int | None = None,
    device: torch.device | str = "cpu",
) -> Iterator[Trained]:
    """Train every member from the same start, and give them in the order in which they came.

    The case of one group; `train_groups` says what holds of both.

    Args:
        build_model: gives the architecture; its own weights are not used.
        start: weights from which every member starts, whose type all computing takes.
        pool: examples of all members together.
        members: who learns, each from its rows of the pool.
        recipe: how each of them trains.
        seed: root of every draw.
        round: which round of the federation this is.
        engine: what trains them.
        chunk: members in memory at once; None measures what fits.
        workers: worker processes; None takes one a core.
        device: where to compute; worker processes compute on the cpu.

    Raises:
        PlanError: if the engine cannot train this model, here.
        WorkerError: if a worker process dies.

    """
    return train_groups(
        build_model,
        (Group(start, pool, members, seed),),
        recipe,
        round=round,
        engine=engine,
        chunk=chunk,
        workers=workers,
        device=device,
    )


def train_groups(
    build_model: BuildModel,
    groups: Sequence[Group],
    recipe: Recipe,
    *,
    round: int,
    engine: Engine = "auto",
    chunk: int | None = None,
    workers: int | None = None,
    device: torch.device | str = "cpu",
) -> Iterator[Trained]:
    """Train the members of every group, and give them in the order in which they came.

    Members are trained as they are asked for, a chunk ahead at most: a caller who drops what
    it has used needs memory for a chunk, not for all of them. A chunk that is stacked takes
    members of several groups; the other engines take one group after the other.

    The order of batches, and dropout, hang on the group's seed, round and member alone. All
    engines give the same up to rounding: "processes" bit for bit what "sequential" gives;
    "stacked" the same in float64 to 1e-12, in float32 a trajectory that drifts apart as
    rounding does. The last bits of a stacked member hang on who else is in its chunk.

    Args:
        build_model: gives the architecture; its own weights are not used.
        groups: who learns, from what and from where on; all start in one type of numbers.
        recipe: how each member trains.
        round: which round of the federation this is.
        engine: "auto" stacks chains of linear layers on the cpu and nearly everything on a GPU,
            and lets worker processes train the rest once that saves time.
        chunk: members in memory at once; None measures what fits.
        workers: worker processes; None takes one a core.
        device: where to compute; worker processes compute on the cpu.

    Raises:
        PlanError: if the engine cannot train this model, here.
        WorkerError: if a worker process dies.

    """
    if chunk is not None and chunk < 1:
        raise ValueError(f"a chunk has 1 member or more, got {chunk}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be 1 or more, got {workers}")
    place, hands = torch.device(device), cores() if workers is None else workers
    lessons = [
        Lesson(build_model, group.start, group.pool, recipe, group.seed, round, place)
        for group in groups
    ]
    model = fresh(build_model, Seed(0))
    if engine == "stacked" or (engine == "auto" and _gains_from_stacking(model, place)):
        if draws_at_random(model):
            raise PlanError(
                "the engine 'stacked' cannot train a model with dropout, whose draws would not "
                "be those of each member alone: choose 'auto', 'sequential' or 'processes'"
            )
        if is_recurrent(model):
            raise PlanError(
                "the engine 'stacked' cannot train a recurrent network, which torch runs for "
                "one member at a time: choose 'auto', 'sequential' or 'processes'"
            )
        size = chunk or _that_fit(model, lessons, groups)
        return _in_chunks(StackedLearner(model, recipe, round, place), groups, size)
    if engine == "processes" and place.type != "cpu":
        raise PlanError(
            f"the engine 'processes' computes on the cpu, and the device is {place}: choose "
            "the device 'cpu' or the engine 'auto'"
        )
    way: Way = partial(train_sequentially, model=model)
    if engine == "processes":
        way = partial(_in_processes, workers=hands, chunk=chunk)
    elif engine == "auto" and _may_gain_from_processes(model, place, hands):
        way = partial(_in_processes_once_worth_it, model=model, workers=hands, chunk=chunk)
    return _one_after_the_other(way, lessons, groups)


def _that_fit(model: nn.Module, lessons: Sequence[Lesson], groups: Sequence[Group]) -> int:
    """How many members to stack; groups differ in their numbers, not in how many there are."""
    members = [member for group in groups for member in group.members]
    return members_that_fit(model, lessons[0], members) if members else 1


def _one_after_the_other(
    way: Way, lessons: Sequence[Lesson], groups: Sequence[Group]
) -> Iterator[Trained]:
    for lesson, group in zip(lessons, groups, strict=True):
        yield from way(lesson, group.members)


def _gains_from_stacking(model: nn.Module, device: torch.device) -> bool:
    """On a CPU, stacked convolutions are no faster, and stacked tables slower (0.7 times)."""
    if device.type == "cpu":
        return is_chain_of_linear(model)
    alone = (draws_at_random, embeds_tokens, is_recurrent)
    return not any(applies(model) for applies in alone)


def _may_gain_from_processes(model: nn.Module, device: torch.device, workers: int) -> bool:
    """To send a table of word vectors back takes as long as to train it with sparse steps.

    Unless a recurrent network reads it, whose steps take longer: two workers take 1 / 1.8 of
    the time for clients with 3,000 windows of `lstm` (867 thousand parameters), 1 / 1.5 for
    600, 1 / 1.25 for 100 and 1.2 times for 32, by the processor time of all processes.
    """
    return (
        workers > 1
        and device.type == "cpu"
        and processes.are_possible()
        and (is_recurrent(model) or not embeds_tokens(model))
    )


def _in_chunks(
    learner: StackedLearner, groups: Sequence[Group], chunk: int
) -> Iterator[Trained]:
    pupils = [Pupil(group, member) for group in groups for member in group.members]
    for begin in range(0, len(pupils), chunk):
        yield from learner.train(pupils[begin : begin + chunk])


def _in_processes(
    lesson: Lesson, members: Sequence[Member], workers: int, chunk: int | None
) -> Iterator[Trained]:
    if members:
        crew = processes.hire(lesson, workers)
        yield from crew.train(members, chunk or WINDOW_PER_WORKER * workers)


def _in_processes_once_worth_it(
    lesson: Lesson, members: Sequence[Member], model: nn.Module, workers: int, chunk: int | None
) -> Iterator[Trained]:
    """Train members here until workers have come up, who are called once that saves time.

    The clock moves no number: both ways give the same bits.
    """
    alone = train_sequentially(lesson, members, model)
    for number, member in enumerate(members):
        rest = members[number:]
        if processes.are_ready(workers):
            try:
                crew = processes.hire(lesson, workers)
            except PlanError:  # a builder that no other process can import
                processes.do_without(workers)
                yield from alone
                return
            yield from crew.train(rest, chunk or WINDOW_PER_WORKER * workers)
            return
        began = perf_counter()
        trained = next(alone)
        spent = perf_counter() - began
        idle = 1 - 1 / workers
        if number == 0:
            ahead = sum(len(other.rows) for other in rest) / len(member.rows)
            processes.miss(spent * ahead * idle, workers)
        yield trained
