"""Measure false alarms, detection and intervals of `shift_tracking` in 24 settings.

    python benchmarks/shift_alarms.py --out DIR            all missing blocks, then the table
    python benchmarks/shift_alarms.py --out DIR --report   the table of existing blocks

Every cell has federations of 24 rounds in which every client gets a fresh natural draw of its
own fixed label shares every 6 rounds. In half of them, client 1 shifts at round 12: labels of
one parity to 80-20. Client 0 is the observer and the others are the target.

A block has an auxiliary set of its own and thus simulated federations of its own, 120 of them.
20 federations with a shift and 20 without share them. A cell has 10 blocks. Blocks come before
cells, so that an unfinished table has about as many blocks of each cell. Each block is a file
of readings, so an interrupted run resumes with the same command. The claims are made from these
files and are stored beside them: delete `*_claims.json` to repeat them after a change of the
method. `--tuning` draws from other seeds, on which settings may be chosen. `--follows
representations` measures that setting of the attack, which gives no intervals.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from overheard.archive.atomic import write_text
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
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientTask, TrainingGroup
from overheard.questions.shift.attacks.shift_tracking import (
    Followed,
    ShiftTracking,
    least_per_label,
    read_target,
    simulate_targets,
)
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.simulated_readings import SimulatedReadings
from overheard.questions.shift.estimators.tracker import calibrate_tracker
from overheard.simulation.target_groups import group_targets

MOST_VIRTUAL = 120

ROUNDS, EVERY, SHIFT_ROUND = 24, 6, 12
BLOCKS, RUNS = 10, 20
HALVES = (0.2, 0.8)
"""The weights of the labels that fall and of those that rise."""

SOURCES: tuple[DataSource, ...] = (Mnist(shrink=2), FashionMnist(shrink=2), Adult(), Wisdm())
NAMES = ("MNIST", "Fashion-MNIST", "Adult", "WISDM")
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


def stored_path(folder: Path, number: int, block: int, kind: str) -> Path:
    """Return the file of the readings of one kind."""
    return folder / f"cell{number:02d}_block{block}_{kind}.safetensors"


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
    rising: np.ndarray | None,
) -> list[View]:
    """Train one federation for each seed, and return what client 0 sees of each."""
    build = partial(Mlp(hidden=(64,)).build, dataset.task)
    labels, parties = pool.labels.numpy(), [client(k) for k in range(cell.clients)]
    rows = []
    for seed in seeds:
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


def simulate_block(
    attack: ShiftTracking,
    cell: Cell,
    seed: Seed,
    runs: int,
    folder: Path | None,
    store: Callable[[str], Path],
) -> None:
    """Run the federations of a block and the attacker's, and store all readings."""
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
    base = base_shares(cell, folder)

    def observe(kind: str, number: int, rising: np.ndarray | None) -> list[View]:
        seeds = [seed.child(kind, run) for run in range(number)]
        return run_federations(cell, dataset, pool, base, seeds, rising)

    if not store("runs").exists():
        began, found = time.process_time(), {}
        for kind, rising in (("null", None), ("shift", rising_labels(cell, classes))):
            views = observe(kind, runs, rising)
            (group,) = group_targets(views[0], (COHORT,), ROUNDS)
            found[kind] = torch.stack(
                [read_target(attack, view, COHORT, knowledge, group) for view in views]
            ).float()
        save_readings(store("runs"), {**found, "seconds": _since(began)})
    if not store("simulated").exists():
        (view,), began = observe("null", 1, None), time.process_time()
        (group,) = group_targets(view, (COHORT,), ROUNDS)
        simulated = simulate_targets(attack, view, knowledge, group)
        found = {
            "readings": simulated.readings.float(),
            "held": simulated.held,
            "population": simulated.population,
            "rising": simulated.rising.float(),
            "auxiliary": auxiliary.label_counts(classes),
            "seconds": _since(began),
        }
        save_readings(store("simulated"), found)


def _since(began: float) -> torch.Tensor:
    return torch.tensor(time.process_time() - began)


def save_readings(path: Path, found: Mapping[str, torch.Tensor]) -> None:
    """Write a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: tensor.contiguous() for name, tensor in found.items()}, path.with_suffix(".part")
    )
    path.with_suffix(".part").rename(path)


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


def claim_block(
    attack: ShiftTracking, number: int, store: Callable[[str], Path], folder: Path | None
) -> dict[str, object]:
    """Calibrate the attack on the simulated federations of a block, and claim of each run."""
    runs, stored = load_file(store("runs")), load_file(store("simulated"))
    cell, counts = list_cells()[number], stored["auxiliary"]
    simulated = SimulatedReadings(
        str(store("simulated")),
        stored["readings"],
        stored["held"],
        stored["population"],
        stored["rising"].bool(),
    )
    least = least_per_label(load(cell.source, folder).train)
    tracker = calibrate_tracker(
        simulated,
        tuple(range(ROUNDS)),
        attack.false_alarm_rate if int(counts.min()) >= least else None,
        estimates_shares=attack.follows == "shares",
    )
    base, rising = base_shares(cell, folder), rising_labels(cell, len(counts))
    shifted = base * np.where(rising, HALVES[1], HALVES[0])
    shifted = (base * (cell.clients - 2) + shifted / shifted.sum()) / (cell.clients - 1)
    return {
        "cell": number,
        "seconds": float(runs["seconds"] + stored["seconds"]),
        **{
            kind: [
                _summary(tracker.claim(readings, tuple(range(ROUNDS))), rising, shifted)
                for readings in runs[kind]
            ]
            for kind in ("null", "shift")
        },
    }


def _summary(claim: Shift, rising: np.ndarray, shifted: np.ndarray) -> dict[str, object]:
    evidence, after = claim.evidence, claim.shares_after
    share: list[float] | None = None
    if after is not None:
        ends = after.sum_over(torch.from_numpy(rising))
        share = [*ends, float(shifted[rising].sum())]
    return {
        "peak": max(evidence.statistic),
        "threshold": None if evidence.threshold is None else evidence.threshold[0],
        "alarm": evidence.alarm,
        "since": evidence.since,
        "share": share,
    }


def summarise(blocks: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "| cell | not calibrated | false alarms | 80-20 detected | at own 5 % | AUC | covered |"
    )
    yield "|---|---|---|---|---|---|---|"
    totals = {name: [0, 0] for name in ("alarms", "detected", "own", "covered")}
    for number, cell in enumerate(list_cells()):
        own = [block for block in blocks if block["cell"] == number]
        nulls = [run for block in own for run in block["null"]]  # type: ignore[attr-defined]
        shifts = [run for block in own for run in block["shift"]]  # type: ignore[attr-defined]
        if not nulls:
            continue
        silent = [run for run in nulls if run["threshold"] is None]
        rest = [run for run in nulls if run["threshold"] is not None]
        peaks, moved = (np.array([run["peak"] for run in one]) for one in (nulls, shifts))
        quantile = np.quantile(peaks, 0.95)
        auc = np.mean((moved[:, None] > peaks).astype(float) + (moved[:, None] == peaks) / 2)
        claimed = [run["share"] for run in shifts if run["share"] is not None]
        covered = sum(low <= true <= high for _, low, high, true in claimed)
        alarms = sum(run["alarm"] is not None for run in rest)
        late = sum(run["alarm"] is not None for run in shifts)
        by_own = int((moved > quantile).sum())
        totals["covered"][0] += covered
        totals["covered"][1] += len(claimed)
        calibrated = len(silent) < LEAST_ABSTAINING * len(nulls)
        if calibrated:
            for name, count, of in (
                ("alarms", alarms, len(rest)),
                ("detected", late, len(shifts)),
                ("own", by_own, len(shifts)),
            ):
                totals[name][0] += count
                totals[name][1] += of
        shown = f"{alarms} of {len(rest)}" if calibrated else "–"
        detected = f"{late / len(shifts):.2f}" if calibrated else "–"
        yield (
            f"| {cell.name} | {len(silent)} of {len(nulls)} | {shown} | {detected} | "
            f"{by_own / len(shifts):.2f} | {auc:.3f} | "
            f"{f'{covered / len(claimed):.3f}' if claimed else '–'} |"
        )
    together = {name: f"{a} of {b} ({a / max(b, 1):.3f})" for name, (a, b) in totals.items()}
    yield (
        f"| together | | {together['alarms']} | {together['detected']} | {together['own']} | | "
        f"{together['covered']} |"
    )


def main() -> None:
    """Measure missing blocks and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    parser.add_argument("--cells", type=int, nargs="+", default=list(range(24)))
    parser.add_argument("--blocks", type=int, nargs="+", default=list(range(BLOCKS)))
    parser.add_argument("--runs", type=int, default=RUNS, help="federations of each kind")
    parser.add_argument("--tuning", action="store_true", help="other seeds, for choices")
    parser.add_argument("--follows", choices=get_args(Followed), default="shares")
    parser.add_argument("--report", action="store_true", help="only the table")
    request = parser.parse_args()
    root = Seed(19).child("tuning" if request.tuning else "ten auxiliary sets")
    attack = ShiftTracking(follows=request.follows, most_virtual=MOST_VIRTUAL)
    cells = list_cells()
    blocks = []
    for block in request.blocks:
        for number in request.cells:
            seed = root.child("cell", number, "block", block)
            store = partial(stored_path, request.out, number, block)
            if not request.report:
                simulate_block(attack, cells[number], seed, request.runs, request.data, store)
            if store("runs").exists() and store("simulated").exists():
                claims = request.out / f"cell{number:02d}_block{block}_claims.json"
                if not claims.exists():
                    found = claim_block(attack, number, store, request.data)
                    write_text(claims, json.dumps(found) + "\n")
                blocks.append(json.loads(claims.read_text()))
                print(f"cell {number}, block {block}", file=sys.stderr, flush=True)
    text = "\n".join(summarise(blocks)) + "\n"
    if not request.report:
        write_text(request.out / "table.md", text)
    print(text)


if __name__ == "__main__":
    main()
