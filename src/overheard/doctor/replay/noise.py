"""Measures the noise of a client: its scale, and whether it is ever used again."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import torch
from scipy.special import chdtri, gammaincinv
from torch import Tensor

from overheard.doctor.replay.comparison import std_of, steps_of
from overheard.doctor.replay.runs import Run
from overheard.doctor.replay.trace import NoiseEvent

LEVEL = 1e-6
"""Probability that noise of the stated scale is found too small, in one comparison."""

OTHER_SCALE = 1e-4
"""Probability at which noise of one shape has another scale than all noise of its line."""

SHORTEST = 16
"""Fewest values of noise that are compared with others: fewer are alike by chance."""

ALIKE = 0.9
"""Correlation from which two draws of noise are the same."""


def too_small(events: Sequence[NoiseEvent]) -> Iterator[tuple[str, float, float]]:
    """Yield where noise is smaller than its arguments say, by its place and size.

    Yields:
        the place, the measured standard deviation, and the one that was to be expected.

    """
    by_place = dict[tuple[str, torch.Size], list[NoiseEvent]]()
    for one in events:
        by_place.setdefault((one.place, one.released.shape), []).append(one)
    for (place, _), parts in by_place.items():
        values = torch.cat([_unit(one) for one in parts])
        share = float((values == 0).double().mean())
        squares = float(values.square().sum())
        if squares < _chi_squared_quantile(LEVEL, len(values)) or share > 0.01:
            std = std_of(parts[0])
            yield place, std * (squares / len(values)) ** 0.5, std


def largest_stds(events: Sequence[NoiseEvent]) -> dict[tuple[str, torch.Size], float]:
    """Return the largest standard deviation that noise of unknown scale can have.

    Noise of one line of code has one scale, unless that of a shape is measured to be another.
    """
    places = dict[str, dict[torch.Size, list[NoiseEvent]]]()
    for one in events:
        if one.std is None:
            places.setdefault(one.place, {}).setdefault(one.released.shape, []).append(one)
    found = dict[tuple[str, torch.Size], float]()
    for place, shapes in places.items():
        whole, all_values = _square_sum([one for parts in shapes.values() for one in parts])
        for shape, parts in shapes.items():
            squares, count = _square_sum(parts)
            scaled = squares / max(whole / all_values, 1e-300)
            if not (
                _chi_squared_quantile(OTHER_SCALE, count) < scaled < chdtri(count, OTHER_SCALE)
            ):
                found[place, shape] = (squares / _chi_squared_quantile(LEVEL, count)) ** 0.5
            else:
                found[place, shape] = (whole / _chi_squared_quantile(LEVEL, all_values)) ** 0.5
    return found


def _chi_squared_quantile(share: float, count: int) -> float:
    return 2 * float(gammaincinv(count / 2, share))


def _square_sum(events: Sequence[NoiseEvent]) -> tuple[float, int]:
    """Return the sum of the squares of noise, and the number of its values."""
    squares = sum(float(one.noise.double().square().sum()) for one in events)
    return squares, sum(one.noise.numel() for one in events)


def repeats(runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield each pair of steps that share their noise, in words.

    Args:
        runs: runs that were not replayed, each with its name in words.

    """
    steps = [
        (f"{name}, round {message}", step, unit)
        for name, run in runs.items()
        for message, trace in enumerate(run.traces[1:], start=1)
        for step, events in enumerate(steps_of(trace), start=1)
        if (unit := torch.cat([_unit(one) for one in events])).numel() >= SHORTEST
    ]
    for (place, step, noise), (other, other_step, others) in combinations(steps, 2):
        if _are_alike(noise, others):
            yield f"{place}, step {step}, and {other}, step {other_step}"
    for name, run in runs.items():
        for trace in run.traces[1:2]:
            for events in steps_of(trace)[:1]:
                for one, two in combinations(events, 2):
                    if _are_alike(_unit(one), _unit(two)):
                        yield f"{name}: two tensors of one step ({two.place})"


def _unit(event: NoiseEvent) -> Tensor:
    return event.noise.double().flatten() / max(std_of(event), 1e-300)


def _are_alike(one: Tensor, two: Tensor) -> bool:
    count = min(len(one), len(two))
    if count < SHORTEST:
        return False
    first, second = one[:count], two[:count]
    size = float(first.norm() * second.norm())
    return size > 0 and abs(float(first @ second)) > ALIKE * size
