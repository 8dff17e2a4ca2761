"""False alarms, detection and intervals of `shift_tracking` in 24 settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update, Weights, apply_update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View, mean_update
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.digits import Digits
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientTask, TrainingGroup
from overheard.questions.shift.attacks.shift_tracking import (
    ShiftTracking,
    least_per_label,
    read_target,
    simulate_targets,
)
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.tracker import calibrate_tracker
from overheard.simulation.target_groups import group_targets
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion
from overheard_studies.conclusion import Conclusion
from overheard_studies.measurements.letters import Letters
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

MOST_VIRTUAL = 120

ROUNDS, EVERY, SHIFT_ROUND = 24, 6, 12
ATTACK = ShiftTracking(most_virtual=MOST_VIRTUAL)

BLOCKS, RUNS = 10, 20
HALVES = (0.2, 0.8)
"""The weights of the labels that fall and of those that rise."""

SOURCES: tuple[DataSource, ...] = (
    Mnist(shrink=2),
    FashionMnist(shrink=2),
    Adult(),
    Wisdm(),
    Digits(),
    Letters(),
)
NAMES = ("MNIST", "Fashion-MNIST", "Adult", "WISDM", "digits", "letters")
RECIPES = (Recipe(0.05, 1, 32), Recipe(0.001, 1, 32, "adam"))
CLIENTS = (2, 3, 5)
LEAST_ABSTAINING = 0.5
"""A cell counts as not calibrated if at least this share of its runs say so."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: data, recipe, clients, examples of each and auxiliary examples."""

    source: int
    recipe: int
    clients: int
    examples: int
    auxiliary: int

    @property
    def name(self) -> str:
        """Its name in the table."""
        recipe = ("SGD .05", "Adam .001")[self.recipe]
        return (
            f"{NAMES[self.source]}, {recipe}, n {self.clients}, {self.examples}, "
            f"auxiliary {self.auxiliary}"
        )


def list_cells() -> list[Cell]:
    """Return the 24 cells."""
    cells = []
    for source in range(3):
        for recipe in range(2):
            for place, clients in enumerate(CLIENTS):
                examples = 1000 if (recipe + place) % 2 else 300
                times = 5 if (recipe + source) % 2 else 1
                cells.append(Cell(source, recipe, clients, examples, times * examples))
    for recipe in range(2):
        for clients, auxiliary in ((2, 300), (2, 1500), (3, 300)):
            cells.append(Cell(3, recipe, clients, 300, auxiliary))
    return cells


@cache
def load(source: int, folder: Path | None) -> Dataset:
    """Load a data set once."""
    return SOURCES[source].load(folder)


class Drawer:
    """Draws examples of a population that nobody has had; a label that runs out starts anew."""

    def __init__(self, labels: np.ndarray, classes: int, generator: np.random.Generator):
        self._rows = [
            generator.permutation(np.flatnonzero(labels == label)) for label in range(classes)
        ]
        self._used, self._generator = [0] * classes, generator

    def draw(self, shares: np.ndarray, size: int) -> torch.Tensor:
        """Return the rows of a multinomial draw."""
        parts = []
        for label, count in enumerate(self._generator.multinomial(size, shares)):
            if self._used[label] + count > len(self._rows[label]):
                self._rows[label] = self._generator.permutation(self._rows[label])
                self._used[label] = 0
            begin = self._used[label]
            parts.append(self._rows[label][begin : begin + count])
            self._used[label] += int(count)
        return torch.from_numpy(self._generator.permutation(np.concatenate(parts)))


def run_federations(
    cell: Cell,
    dataset: Dataset,
    pool: Examples,
    base: np.ndarray,
    seeds: Sequence[Seed],
    risings: Sequence[np.ndarray | None],
) -> list[View]:
    """Train one federation for each seed, and return what client 0 sees of each.

    `risings` marks the labels that rise in each; None = no shift.
    """
    build = partial(Mlp(hidden=(64,)).build, dataset.task)
    labels, parties = pool.labels.numpy(), [client(k) for k in range(cell.clients)]
    rows = []
    for seed, rising in zip(seeds, risings, strict=True):
        drawer = Drawer(labels, len(base), seed.child("examples").numpy())
        shares = np.tile(base, (ROUNDS // EVERY, cell.clients, 1))
        if rising is not None:
            shares[SHIFT_ROUND // EVERY :, 1] *= np.where(rising, HALVES[1], HALVES[0])
            shares /= shares.sum(-1, keepdims=True)
        rows.append([[drawer.draw(own, cell.examples) for own in chunk] for chunk in shares])
    starts: list[Weights] = [initial_weights(build, seed.child("initial")) for seed in seeds]
    messages: list[list[Message]] = [[] for _ in seeds]
    for number in range(ROUNDS):
        groups = [
            TrainingGroup(
                start,
                pool,
                [
                    ClientTask(str(party), held)
                    for party, held in zip(parties, chunks[number // EVERY], strict=True)
                ],
                seed,
            )
            for start, chunks, seed in zip(starts, rows, seeds, strict=True)
        ]
        results = train_groups(build, groups, RECIPES[cell.recipe], round=number, workers=1)
        for k, start in enumerate(starts):
            sent = [Update(next(results).delta, cell.examples) for _ in parties]
            messages[k].append(Message(number, SERVER, frozenset(parties), Broadcast(start)))
            messages[k].append(Message(number, parties[0], frozenset({SERVER}), sent[0]))
            starts[k] = apply_update(start, mean_update(sent).delta)
    for k, start in enumerate(starts):
        messages[k].append(Message(ROUNDS, SERVER, frozenset(parties), Broadcast(start)))
    return [Transcript(tuple(one)).seen_by(parties[0]) for one in messages]


@dataclass(frozen=True, slots=True)
class Block:
    """The claims of one auxiliary set: about runs without a shift, and with one."""

    nulls: list[Shift]
    shifts: list[Shift]


def measure_block(cell: Cell, seed: Seed, runs: int, folder: Path | None) -> Block:
    """Run the federations of a block and the attacker's, and claim of each run."""
    rising = rising_labels(cell, load(cell.source, folder).task.classes)
    seeds = [seed.child(kind, run) for kind in ("null", "shift") for run in range(runs)]
    claims = claim_of_runs(cell, seed, seeds, [None] * runs + [rising] * runs, ATTACK, folder)
    return Block(claims[:runs], claims[runs:])


def claim_of_runs(
    cell: Cell,
    seed: Seed,
    seeds: Sequence[Seed],
    risings: Sequence[np.ndarray | None],
    attack: ShiftTracking,
    folder: Path | None,
) -> list[Shift]:
    """Run a federation for each seed and those of one attacker, and claim of each.

    Args:
        cell: the setting.
        seed: of the auxiliary set and of the attacker.
        seeds: of the federations.
        risings: marks the labels that rise in each; None = no shift.
        attack: the attack.
        folder: of the data sets.

    """
    dataset = load(cell.source, folder)
    train, classes = dataset.train, dataset.task.classes
    order = seed.child("auxiliary").numpy().permutation(len(train))
    pool = train.take(torch.from_numpy(order[cell.auxiliary :]))
    auxiliary = train.take(torch.from_numpy(order[: cell.auxiliary]))
    knowledge = Knowledge(
        classes,
        partial(Mlp(hidden=(64,)).build, dataset.task),
        auxiliary,
        RECIPES[cell.recipe],
        (),
        compute=ComputeSettings(seed.child("attacker"), cache=MemoryTensorCache(), workers=1),
    )
    views = run_federations(cell, dataset, pool, base_shares(cell, folder), seeds, risings)
    (group,) = group_targets(views[0], (COHORT,), ROUNDS)
    readings = [read_target(attack, one, COHORT, knowledge, group) for one in views]
    enough = int(auxiliary.label_counts(classes).min()) >= least_per_label(train)
    tracker = calibrate_tracker(
        simulate_targets(attack, views[0], knowledge, group),
        tuple(range(ROUNDS)),
        attack.false_alarm_rate if enough else None,
        estimates_shares=True,
    )
    return [tracker.claim(one.float(), tuple(range(ROUNDS))) for one in readings]


def rising_labels(cell: Cell, classes: int) -> np.ndarray:
    """Mark the even labels; on WISDM the odd ones, as two even ones have too few examples."""
    parity = 1 if NAMES[cell.source] == "WISDM" else 0
    return np.array([label % 2 == parity for label in range(classes)])


def base_shares(cell: Cell, folder: Path | None) -> np.ndarray:
    """Return the fixed label shares of every client: equal for images, else the data set's."""
    dataset = load(cell.source, folder)
    counts = dataset.train.label_counts(dataset.task.classes).double().numpy()
    shares: np.ndarray = np.ones_like(counts) if cell.source < 2 else counts
    rescaled: np.ndarray = shares / shares.sum()
    return rescaled


def share_after(cell: Cell, base: np.ndarray, rising: np.ndarray) -> float:
    """Return the share of the labels that rise among the others' examples, after the shift."""
    moved = base * np.where(rising, HALVES[1], HALVES[0])
    after = (base * (cell.clients - 2) + moved / moved.sum()) / (cell.clients - 1)
    return float(after[rising].sum())


def _measure(number: int, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the rates of a cell, over all its blocks."""
    cell, root = list_cells()[number], Seed(19).child("ten auxiliary sets")
    nulls, shifts = list[Shift](), list[Shift]()
    for block in range(1 if run.quick else BLOCKS):
        seed = root.child("cell", number, "block", block)
        found = measure_block(cell, seed, 2 if run.quick else RUNS, run.resources.data)
        nulls += found.nulls
        shifts += found.shifts
    base = base_shares(cell, run.resources.data)
    rising = rising_labels(cell, len(base))
    true = share_after(cell, base, rising)
    for name, words, is_so in _rates(nulls, shifts, rising, true):
        rate = estimate_proportion(float(sum(is_so)), len(is_so)) if is_so else None
        key = f"cell_{number:02d}_{name}"
        yield make_value(key, f"{cell.name}; {words}, of {len(is_so)}", rate)
    silent, peaks = (
        np.array([max(one.evidence.statistic) for one in of]) for of in (nulls, shifts)
    )
    above = (peaks[:, None] > silent).mean() + (peaks[:, None] == silent).mean() / 2
    yield make_value(
        f"cell_{number:02d}_auc", f"{cell.name}; AUC", float(above), None, "higher"
    )


def _rates(
    nulls: Sequence[Shift], shifts: Sequence[Shift], rising: np.ndarray, true: float
) -> Iterator[tuple[str, str, list[bool]]]:
    """Yield what is counted: its name, words, and whether it is so in each run."""
    uncalibrated = [one.evidence.threshold is None for one in nulls]
    yield "not_calibrated", "runs that are not calibrated", uncalibrated
    judged = [one.evidence.alarm is not None for one in nulls if one.evidence.threshold]
    yield "false_alarms", "false alarms", judged
    if sum(uncalibrated) < LEAST_ABSTAINING * len(nulls):
        detected = [one.evidence.alarm is not None for one in shifts]
        yield "detected", "shifts to 80-20 that are detected", detected
    quantile = np.quantile([max(one.evidence.statistic) for one in nulls], 0.95)
    own = [max(one.evidence.statistic) > quantile for one in shifts]
    yield "detected_at_own_5_percent", "shifts above 95 % of the runs without", own
    ends = [
        one.shares_after.sum_over(torch.from_numpy(rising))
        for one in shifts
        if one.shares_after is not None
    ]
    covered = [bool(low <= true <= high) for _, low, high in ends]
    yield "covered", "90 % intervals that hold the share that rose", covered


def _false_alarms(runs: StudyRuns, values: Values) -> Mapping[str, Estimate | None]:
    found = [one.value for one in values if one.name.endswith("_false_alarms")]
    known = [one for one in found if one is not None]
    mean = float(np.mean(known)) if known else 0.0
    return {"mean over cells": Estimate(mean, mean, mean)} if known else {}


def shift_alarms() -> Study:
    """Return how reliable the alarm is; a cell has ten blocks of 20 runs of each kind."""
    return Study(
        "shift_alarms",
        "False alarms, detection and intervals of shift_tracking in 24 settings",
        "It repeats no paper. Every client gets a fresh natural draw of its own label shares "
        "every 6 of 24 rounds. In half of the runs client 1 shifts at round 12: labels of one "
        "parity to 80-20. Each block has an auxiliary set of its own.",
        measurements=tuple(
            Measurement(f"cell_{number:02d}", partial(_measure, number))
            for number in range(len(list_cells()))
        ),
        conclusions=(
            Conclusion(
                "alarms_keep_their_promise",
                "At most 5 % of the runs without a shift raise an alarm.",
                _false_alarms,
                "below",
                0.05,
            ),
        ),
    )
