"""Has jobs done, except for those whose answers stand on the shelf already."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import final

from torch import Tensor

from overheard.core.means import Means
from overheard.core.messages import Weights
from overheard.learning.workers.job import Bundle, Job, WorkerTask
from overheard.simulation.job_tensors import broadcast_bundle
from overheard.simulation.workplace import carry_out

Answer = Mapping[str, Tensor]
"""Named tensors, kept under one key."""


@final
@dataclass(frozen=True, slots=True)
class CachedJob:
    """A job whose answers are kept, each under a key of its own.

    Args:
        round: from whose broadcast the job starts.
        keys: of its answers.
        job: gives the job that has the answers in these places alone, in this order.

    """

    round: int
    keys: tuple[str, ...]
    job: Callable[[tuple[int, ...]], Job]


def single_answer(number: int, key: str, job: Job) -> CachedJob:
    """A job of this round that has one answer."""
    return CachedJob(number, (key,), lambda _: job)


@final
@dataclass(frozen=True, slots=True)
class JobInputs:
    """What jobs read.

    Args:
        shared: gives the bundles that all of them read; not called if no job is to be done.
        broadcasts: by round.

    """

    shared: Callable[[], tuple[Bundle, ...]]
    broadcasts: Mapping[int, Weights]


def whole(tensors: Mapping[str, Tensor], place: int) -> Answer:
    """The answer of a job that has one: all its tensors."""
    return tensors


def do_cached(
    what: str,
    jobs: Sequence[CachedJob],
    inputs: JobInputs,
    means: Means,
    take: Callable[[int, int, Answer], None],
    answer: Callable[[Mapping[str, Tensor], int], Answer] = whole,
) -> None:
    """Have these jobs done, and hand over every answer as soon as it is there.

    A job of which some answer is not kept yet is done again for those answers alone, to the
    same bits; they are saved at once.

    Args:
        what: as what the jobs are told to `Means.on_progress`.
        jobs: those of one round side by side.
        inputs: what they read.
        means: with the shelf, and where to work.
        take: is given the number of the job, the place of the answer among its keys, and the
            answer; in any order.
        answer: the answer of a place among those that a job was asked for, of all its tensors.

    Raises:
        PlanError: if a cluster is asked for and Ray is not installed, or not reached.
        WorkerError: if workers die of one task again and again.

    """
    done, gaps = 0, list[_Gap]()
    for number, job in enumerate(jobs):
        missing = []
        for place, key in enumerate(job.keys):
            kept = means.shelf.load(key)
            if kept is None:
                missing.append(place)
            else:
                take(number, place, kept)
        if missing:
            gaps.append(_Gap(number, job, tuple(missing)))
        else:
            done += 1
            means.on_progress(what, done, len(jobs))
    if not gaps:
        # Nobody is called for nothing: to reach a cluster may take long.
        return
    # Closed at once when something goes wrong here: workers then end before anything else.
    with closing(carry_out(_tasks(gaps, inputs), len(gaps), means)) as work:
        for piece in work:
            gap = gaps[piece.number]
            for asked, place in enumerate(gap.missing):
                read = answer(piece.tensors, asked)
                means.shelf.save(gap.job.keys[place], read)
                take(gap.number, place, read)
            done += 1
            means.on_progress(what, done, len(jobs))


@final
@dataclass(frozen=True, slots=True)
class _Gap:
    """A job, its number, and the places of the answers that are not kept yet."""

    number: int
    job: CachedJob
    missing: tuple[int, ...]


def _tasks(gaps: Sequence[_Gap], inputs: JobInputs) -> Iterator[WorkerTask]:
    shared = inputs.shared()
    # One broadcast at a time, so that many rounds do not stand in memory together.
    for number, several in groupby(gaps, lambda gap: gap.job.round):
        broadcast = broadcast_bundle(inputs.broadcasts[number])
        for gap in several:
            yield WorkerTask(gap.job.job(gap.missing), (*shared, broadcast))
