"""Compares a run with its replay on neighbouring data: what differs, and by how much."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import final

import numpy as np
import torch

from overheard.doctor.replay.clients import Array, Value
from overheard.doctor.replay.runs import Rows, Run
from overheard.doctor.replay.trace import NoiseEvent, Trace

EXACT = 1e-6
"""Largest relative difference of what should be the same: replays repeat it bit for bit."""


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """A value of a reply that differs.

    Args:
        name: its path in the reply.
        round: the round.
        kind: an array, a number or text, or a shape or name.
        detail: how it differs, in words.

    """

    name: str
    round: int
    kind: str
    detail: str


def reply_differences(run: Run, other: Run) -> Iterator[Difference]:
    """Yield what differs between the replies of two runs."""
    for at, (one, two) in enumerate(zip(run.replies, other.replies, strict=False)):
        for name in dict.fromkeys((*one, *two)):
            if name not in one or name not in two:
                yield Difference(name, at + 1, "shape", "is in one reply only")
            elif found := _difference(one[name], two[name]):
                yield Difference(name, at + 1, *found)


def _difference(one: Value, two: Value) -> tuple[str, str] | None:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return _array_difference(one, two)
    if isinstance(one, float) and isinstance(two, float):
        is_same = one == two or (np.isnan(one) and np.isnan(two))
        is_same = is_same or abs(one - two) <= EXACT * abs(one)
        return None if is_same else ("number", f"{one:.6g} against {two:.6g}")
    if type(one) is type(two) and one == two:
        return None
    return "number", f"{str(one)[:40]!r} against {str(two)[:40]!r}"


def _array_difference(one: Array, two: Array) -> tuple[str, str] | None:
    if one.shape != two.shape:
        return "shape", f"shape {one.shape} against {two.shape}"
    if np.array_equal(one, two, equal_nan=True):
        return None
    is_finite = np.isfinite(one)
    if not np.array_equal(is_finite, np.isfinite(two)):
        return "array", "is finite in one reply only"
    largest = float(np.abs(one - two)[is_finite].max(initial=0))
    size = float(np.abs(one)[is_finite].max(initial=0))
    if largest <= EXACT * size:
        return None
    return "array", f"differs by up to {largest:.3g}, at values up to {size:.3g}"


def flow_difference(run: Run, other: Run, *, is_same_batch: bool = True) -> str:
    """Return where the code of another run did something else; "" = nowhere.

    Args:
        run: a run.
        other: its replay.
        is_same_batch: whether batches have as many records in both; if not, only additions of
            noise must be as many.

    """
    if run.failure != other.failure:
        return f"the run ends with {other.failure or 'no error'}"
    for message, (one, two) in enumerate(zip(run.traces, other.traces, strict=False)):
        place = f"round {message}" if message else "the start"
        if two.divergence:
            return f"{place}: the past has no such {two.divergence}"
        for what, first, second in (
            ("additions of noise", len(one.events), len(two.events)),
            ("passes of the model", len(one.inputs), len(two.inputs)),
            ("random draws", len(one.draws), len(two.draws)),
            ("numbers that leave torch", len(one.numbers), len(two.numbers)),
        ):
            if first != second and (is_same_batch or what == "additions of noise"):
                return f"{place}: {second} {what} in place of {first}"
    return ""


@final
@dataclass(frozen=True, slots=True)
class FoundRows:
    """Where the record is in the passes of a model.

    Args:
        rows: by message, the rows of each pass.
        others: where more rows than that of the record differ; "" = nowhere.
        is_whole: whether all passes could be compared.

    """

    rows: tuple[Rows, ...]
    others: str
    is_whole: bool

    @property
    def passes(self) -> int:
        """The number of passes with the record in the message that has the fewest."""
        return min((len(one) for one in self.rows), default=0)


def find_rows(run: Run, other: Run) -> FoundRows:
    """Find the record by the rows that differ between two runs of the same batches."""
    found, others, is_whole = list[Rows](), "", True
    for message, (one, two) in enumerate(zip(run.traces[1:], other.traces[1:], strict=False)):
        rows = dict[int, Sequence[int]]()
        for at, (first, second) in enumerate(zip(one.inputs, two.inputs, strict=False)):
            if first.shape != second.shape:
                is_whole = False
                break
            differs = (first != second).reshape(len(first), -1).any(dim=1)
            count = int(differs.sum())
            if count > 1 and count > len(first) // 2:
                others = (
                    others or f"round {message + 1}, pass {at + 1}: {count} of {len(first)}"
                )
            if count and (one.is_training[at] or not any(one.is_training)):
                rows[at] = differs.nonzero().flatten().tolist()
        is_whole &= len(one.inputs) == len(two.inputs)
        found.append(rows)
    return FoundRows(tuple(found), others, is_whole)


@final
@dataclass(frozen=True, slots=True)
class StepDifference:
    """How far one record moves the sum of a step.

    Args:
        round: the round.
        step: number of the step, from 1.
        place: the first line of code that adds noise in it.
        distance: norm of the difference of the sums before noise.
        in_noise: the same in standard deviations of the noise.
        std: standard deviation of the noise of its first tensor.
        same_noise: whether both runs drew the same noise.
        is_finite: whether all sums are finite.

    """

    round: int
    step: int
    place: str
    distance: float
    in_noise: float
    std: float
    same_noise: bool
    is_finite: bool


Stds = Mapping[tuple[str, torch.Size], float]
"""By the line of code and the shape, the largest standard deviation that noise can have."""


def step_differences(
    run: Run, other: Run, stds: Stds | None = None
) -> Iterator[StepDifference]:
    """Yield how far each step of a run is from that of its replay.

    Args:
        run: a run.
        other: its replay.
        stds: where the standard deviation of noise is not stated; None = as measured.

    """
    for message, (one, two) in enumerate(zip(run.traces[1:], other.traces[1:], strict=False)):
        pairs = list(zip(one.events, two.events, strict=False))
        for group, parts in groupby(pairs, lambda pair: pair[0].group):
            yield _step(message + 1, group + 1, list(parts), stds)


def _step(
    round: int,
    step: int,
    pairs: Sequence[tuple[NoiseEvent, NoiseEvent]],
    stds: Stds | None,
) -> StepDifference:
    squares, in_noise, same, finite = 0.0, 0.0, True, True
    expected = stds or {}
    for one, two in pairs:
        if one.inputs.shape != two.inputs.shape:
            same = False
            continue
        finite &= bool(torch.isfinite(two.inputs).all())
        square = float((one.inputs.double() - two.inputs.double()).square().sum())
        squares += square
        std = expected.get((one.place, one.released.shape), std_of(one))
        in_noise += square / max(std, 1e-300) ** 2
        # Noise that comes with its mean is the difference of two floats.
        rounding = 1e-3 * float(one.noise.abs().max()) + 1e-6 * float(two.inputs.abs().max())
        same &= one.std == two.std or abs((one.std or 0) - (two.std or 0)) <= EXACT * std
        same &= float((one.noise - two.noise).abs().max()) <= rounding or not finite
    return StepDifference(
        round,
        step,
        pairs[0][0].place,
        squares**0.5,
        in_noise**0.5,
        std_of(pairs[0][0]),
        same,
        finite,
    )


def std_of(event: NoiseEvent) -> float:
    """Return the standard deviation of an event's noise, measured if none is stated."""
    if event.std is not None:
        return event.std
    return float(event.noise.double().square().mean().sqrt())


def steps_of(trace: Trace) -> list[list[NoiseEvent]]:
    """Return the additions of noise of each step."""
    return [list(parts) for _, parts in groupby(trace.events, lambda one: one.group)]
