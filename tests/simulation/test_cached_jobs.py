from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import pytest
import torch
from torch import Tensor

from overheard.core.means import Means, MemoryShelf
from overheard.learning.workers.job import Bundle, Job
from overheard.simulation.cached_jobs import CachedJob, JobInputs, do_cached, single_answer
from overheard.simulation.job_tensors import broadcast_of

SHARED = Bundle({"addend": torch.tensor(10.0)})


@final
@dataclass(frozen=True, slots=True)
class Times(Job):
    """The broadcast's weight times each factor, plus what all jobs share."""

    factors: tuple[int, ...]

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        weight = broadcast_of(tensors)["w"]
        return {
            str(place): factor * weight + tensors["addend"]
            for place, factor in enumerate(self.factors)
        }


def times(number: int, factors: tuple[int, ...]) -> CachedJob:
    keys = tuple(f"{number:04}{factor:04}" for factor in factors)
    return CachedJob(number, keys, lambda missing: Times(tuple(factors[n] for n in missing)))


class Heard:
    """What is handed over, and how far the work is told to be."""

    def __init__(self) -> None:
        self.shelf = MemoryShelf()
        self.taken: dict[tuple[int, int], float] = {}
        self.told: list[tuple[str, int, int]] = []
        self.shared = 0

    def do(self, *jobs: CachedJob) -> None:
        def shared() -> tuple[Bundle, ...]:
            self.shared += 1
            return (SHARED,)

        def take(job: int, place: int, answer: Mapping[str, Tensor]) -> None:
            self.taken[job, place] = float(answer["product"])

        broadcasts = {number: {"w": torch.tensor(1.0 + number)} for number in (0, 1)}
        means = Means(
            shelf=self.shelf,
            workers=1,
            on_progress=lambda what, done, total: self.told.append((what, done, total)),
        )
        do_cached(
            "products",
            jobs,
            JobInputs(shared, broadcasts),
            means,
            take,
            lambda tensors, place: {"product": tensors[str(place)]},
        )


def test_every_answer_is_handed_over_under_its_job_and_place() -> None:
    heard = Heard()
    heard.do(times(0, (1, 2)), times(1, (3,)))
    # Round 0 has the weight 1, round 1 the weight 2; ten is added to each product.
    assert heard.taken == {(0, 0): 11, (0, 1): 12, (1, 0): 16}
    assert heard.told == [("products", 1, 2), ("products", 2, 2)]


def test_a_job_is_done_again_for_those_answers_alone_that_are_not_kept() -> None:
    heard = Heard()
    heard.do(times(0, (1, 3)))
    # What stands on the shelf is believed, and not computed again.
    heard.shelf.save("00000003", {"product": torch.tensor(-1.0)})
    heard.do(times(0, (1, 2, 3)))
    assert heard.taken == {(0, 0): 11, (0, 1): 12, (0, 2): -1}


def test_nothing_is_prepared_where_every_answer_is_kept() -> None:
    heard = Heard()
    heard.do(times(0, (1,)))
    heard.do(times(0, (1,)))
    assert heard.shared == 1
    assert heard.told == [("products", 1, 1)] * 2


def test_an_answer_is_kept_before_whoever_takes_it_fails() -> None:
    shelf = MemoryShelf()

    def take(job: int, place: int, answer: Mapping[str, Tensor]) -> None:
        raise RuntimeError("no room")

    inputs = JobInputs(lambda: (SHARED,), {0: {"w": torch.tensor(1.0)}})
    job = single_answer(0, "0" * 8, Times((5, 6)))
    with pytest.raises(RuntimeError, match="no room"):
        do_cached("products", [job], inputs, Means(shelf=shelf, workers=1), take)
    kept = shelf.load("0" * 8)
    assert kept is not None
    assert {name: float(tensor) for name, tensor in kept.items()} == {"0": 15, "1": 16}
