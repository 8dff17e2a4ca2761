"""Local training: the one function by which clients, and an attacker's imitations, learn."""

from collections.abc import Iterator, Sequence
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
from overheard.learning import processes
from overheard.learning.architecture import (
    draws_at_random,
    embeds_tokens,
    is_chain_of_linear,
)
from overheard.learning.cohort import Lesson, Member, Trained
from overheard.learning.initial import fresh
from overheard.learning.memory import members_that_fit
from overheard.learning.sequential import train_sequentially
from overheard.learning.stacked import StackedLearner
from overheard.learning.threads import cores

Engine = Literal["auto", "sequential", "processes", "stacked"]

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

    Members are trained as they are asked for, a chunk ahead at most: a caller who drops what
    it has used needs memory for a chunk, not for the cohort.

    The order of batches, and dropout, hang on seed, round and member alone. All engines give
    the same up to rounding: "processes" bit for bit what "sequential" gives; "stacked" the same
    in float64 to 1e-12, in float32 a trajectory that drifts apart as rounding does.

    Args:
        build_model: gives the architecture; its own weights are not used.
        start: weights from which every member starts, whose type all computing takes.
        pool: examples of all members together.
        members: who learns, each from its rows of the pool.
        recipe: how each of them trains.
        seed: root of every draw.
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
    lesson = Lesson(build_model, start, pool, recipe, seed, round, torch.device(device))
    hands = cores() if workers is None else workers
    model = fresh(build_model, seed)
    if engine == "stacked" or (engine == "auto" and _gains_from_stacking(model, lesson.device)):
        if draws_at_random(model):
            raise PlanError(
                "the engine 'stacked' cannot train a model with dropout, whose draws would not "
                "be those of each member alone: choose 'auto', 'sequential' or 'processes'"
            )
        return _in_chunks(
            lesson, model, members, chunk or members_that_fit(model, lesson, members)
        )
    if engine == "processes":
        if lesson.device.type != "cpu":
            raise PlanError(
                f"the engine 'processes' computes on the cpu, and the device is "
                f"{lesson.device}: choose the device 'cpu' or the engine 'auto'"
            )
        return _in_processes(lesson, members, hands, chunk)
    if engine == "auto" and _may_gain_from_processes(model, lesson, hands):
        return _in_processes_once_worth_it(lesson, model, members, hands, chunk)
    return train_sequentially(lesson, model, members)


def _gains_from_stacking(model: nn.Module, device: torch.device) -> bool:
    """On a CPU, stacked convolutions are no faster, and stacked tables slower (0.7 times)."""
    if device.type == "cpu":
        return is_chain_of_linear(model)
    return not draws_at_random(model) and not embeds_tokens(model)


def _may_gain_from_processes(model: nn.Module, lesson: Lesson, workers: int) -> bool:
    """To send a table of word vectors back takes as long as to train it with sparse steps."""
    return (
        workers > 1
        and lesson.device.type == "cpu"
        and processes.are_possible()
        and not embeds_tokens(model)
    )


def _in_chunks(
    lesson: Lesson, model: nn.Module, members: Sequence[Member], chunk: int
) -> Iterator[Trained]:
    learner = StackedLearner(lesson, model)
    for begin in range(0, len(members), chunk):
        yield from learner.train(members[begin : begin + chunk])


def _in_processes(
    lesson: Lesson, members: Sequence[Member], workers: int, chunk: int | None
) -> Iterator[Trained]:
    if members:
        crew = processes.hire(lesson, workers)
        yield from crew.train(members, chunk or WINDOW_PER_WORKER * workers)


def _in_processes_once_worth_it(
    lesson: Lesson, model: nn.Module, members: Sequence[Member], workers: int, chunk: int | None
) -> Iterator[Trained]:
    """Train members here until workers have come up, who are called once that saves time.

    The clock moves no number: both ways give the same bits.
    """
    alone = train_sequentially(lesson, model, members)
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
