"""Coverage of the intervals of `shift_tracking` by the number of labels that rise."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from overheard.core.seeds import Seed
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.claim import Shift
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion
from overheard_studies.conclusion import Conclusion
from overheard_studies.measurements.shift_alarms import (
    Cell,
    base_shares,
    claim_of_runs,
    share_after,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

ATTACK = ShiftTracking()

BLOCKS, RUNS = 5, 24
"""Auxiliary sets of a cell, and shifts of each kind of set for each."""

MOST_FEW = 5
"""The most labels of a set of few."""

SETS = {"one": "one label", "few": "2 to 5 labels", "half": "half of the labels"}

CELLS = (
    Cell(0, 0, 2, 300, 400),
    Cell(0, 1, 2, 300, 1100),
    Cell(1, 1, 2, 300, 400),
    Cell(1, 0, 2, 300, 1100),
    Cell(4, 0, 2, 200, 400),
    Cell(2, 0, 2, 300, 400),
    Cell(2, 1, 2, 300, 1100),
    Cell(3, 1, 2, 300, 1100),
    Cell(5, 0, 2, 300, 416),
    Cell(5, 1, 2, 300, 1092),
)


def draw_sets(
    classes: int, runs: int, generator: np.random.Generator
) -> list[tuple[str, np.ndarray]]:
    """Draw sets of labels of each kind that there is; single labels take turns."""
    half, turns = classes // 2, generator.permutation(classes)
    sizes = [("one", 1) for _ in range(runs)]
    if half > 1:
        most = min(MOST_FEW, half) + 1
        sizes += [("few", int(size)) for size in generator.integers(2, most, runs)]
        sizes += [("half", half) for _ in range(runs)]
    found = []
    for number, (kind, size) in enumerate(sizes):
        rising = np.zeros(classes, dtype=bool)
        one = kind == "one"
        rising[turns[number % classes] if one else generator.permutation(classes)[:size]] = True
        found.append((kind, rising))
    return found


def _measure(number: int, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the coverage and the width of a cell, over all its blocks, by kind of set."""
    cell, root = CELLS[number], Seed(42).child("sets of labels", number)
    base = base_shares(cell, run.resources.data)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for block in range(1 if run.quick else BLOCKS):
        seed = root.child("block", block)
        sets = draw_sets(len(base), 2 if run.quick else RUNS, seed.child("sets").numpy())
        seeds = [seed.child("run", place) for place in range(len(sets))]
        risings = [rising for _, rising in sets]
        claims = claim_of_runs(cell, seed, seeds, risings, ATTACK, run.resources.data)
        for (kind, rising), claim in zip(sets, claims, strict=True):
            true = share_after(cell, base, rising)
            found.setdefault(kind, []).append(_errors(claim, rising, true))
    for kind, ends in found.items():
        yield from _values(number, kind, ends)


def _errors(claim: Shift, rising: np.ndarray, true: float) -> tuple[float, float, float]:
    """Return the error of the share that rose, and of the ends of its interval."""
    assert claim.shares_after is not None
    total, low, high = claim.shares_after.sum_over(torch.from_numpy(rising))
    return total - true, low - true, high - true


def _values(
    number: int, kind: str, ends: Sequence[tuple[float, float, float]]
) -> Iterator[ReproducedValue]:
    covered = [low <= 0 <= high for _, low, high in ends]
    where, key = f"{CELLS[number].name}; {SETS[kind]}", f"cell_{number}_{kind}"
    rate = estimate_proportion(float(sum(covered)), len(covered))
    yield make_value(
        f"{key}_covered",
        f"{where}: 90 % intervals that hold the share that rose, of {len(covered)}",
        rate,
    )
    width = float(np.mean([high - low for _, low, high in ends]))
    yield make_value(f"{key}_width", f"{where}: mean width", width, None, "lower")
    error = float(np.mean([error for error, _, _ in ends]))
    yield make_value(f"{key}_error", f"{where}: mean error", error)


def _coverage(runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    rates = [one.value for one in values if one.name.endswith("_covered")]
    known = [one for one in rates if one is not None]
    lowest = min(known, default=None)
    return {} if lowest is None else {"lowest": Estimate(lowest, lowest, lowest)}


def shift_sets() -> Study:
    """Return how often intervals hold; a cell has five auxiliary sets, each with 24 shifts."""
    return Study(
        "shift_sets",
        "Intervals of shift_tracking where one label, a few or half of the labels rise",
        "It repeats no paper. Client 1 shifts at round 12 of 24: the odds of some labels rise "
        "fourfold. Each block has an auxiliary set of its own, with 240 simulated federations.",
        measurements=tuple(
            Measurement(f"cell_{number}", partial(_measure, number))
            for number in range(len(CELLS))
        ),
        conclusions=(
            Conclusion(
                "intervals_keep_their_promise",
                "At least 85 % of the 90 % intervals hold, however many labels rise.",
                _coverage,
                "above",
                0.85,
            ),
        ),
    )
