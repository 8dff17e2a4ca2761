"""Measure false alarms, detection and intervals of `shift_tracking` in 24 settings.

    python benchmarks/shift_alarms.py --out DIR            all missing blocks, then the table
    python benchmarks/shift_alarms.py --out DIR --report   the table of existing blocks

Every cell has federations of 24 rounds in which every client gets a fresh natural draw of its
own fixed label shares every 6 rounds. In half of them, client 1 shifts at round 12: labels of
one parity to 80-20. Client 0 is the observer and client others are the target. A block is 50
federations with a shift and 50 without, which share an auxiliary set and thus the attacker's
simulated federations; a cell has 4 blocks. Each block is a file, so an interrupted run resumes
with the same command. `--tuning` draws from other seeds, on which settings may be chosen.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

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
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.claim import Shift

ROUNDS, EVERY, SHIFT_ROUND = 24, 6, 12
BLOCKS, RUNS = 4, 50
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


def measure_block(
    cell: Cell, number: int, block: int, root: Seed, runs: int, folder: Path | None
) -> dict[str, object]:
    """Run the federations of a block and the attack on each."""
    dataset, seed = load(cell.source, folder), root.child("cell", number, "block", block)
    train, classes = dataset.train, dataset.task.classes
    order = seed.child("auxiliary").numpy().permutation(len(train))
    auxiliary = train.take(torch.from_numpy(order[: cell.auxiliary]))
    pool = train.take(torch.from_numpy(order[cell.auxiliary :]))
    counts = train.label_counts(classes).double().numpy()
    base = np.full(classes, 1 / classes) if cell.source < 2 else counts / counts.sum()
    # WISDM has too few examples of two even labels for them to rise.
    rising = np.arange(classes) % 2 == (1 if cell.source == 3 else 0)
    knowledge = Knowledge(
        classes,
        partial(Mlp(hidden=(64,)).build, dataset.task),
        auxiliary,
        RECIPES[cell.recipe],
        (),
        compute=ComputeSettings(seed.child("attacker"), cache=MemoryTensorCache(), workers=1),
    )
    began, found = time.process_time(), {}
    for kind, labels in (("null", None), ("shift", rising)):
        seeds = [seed.child(kind, run) for run in range(runs)]
        views = run_federations(cell, dataset, pool, base, seeds, labels)
        found[kind] = [read_run(cell, view, knowledge, base, rising) for view in views]
    return {"cell": number, "block": block, "seconds": time.process_time() - began, **found}


def read_run(
    cell: Cell, view: View, knowledge: Knowledge, base: np.ndarray, rising: np.ndarray
) -> dict[str, object]:
    """Return what the attack claims of the other clients."""
    claim: Shift = ShiftTracking().infer(view, (COHORT,), knowledge, Seed(0))[COHORT]
    evidence, after = claim.evidence, claim.shares_after
    shifted = base * np.where(rising, HALVES[1], HALVES[0])
    shifted = (base * (cell.clients - 2) + shifted / shifted.sum()) / (cell.clients - 1)
    assert after is not None
    value, low, high = after.sum_over(torch.from_numpy(rising))
    return {
        "peak": max(evidence.statistic),
        "threshold": None if evidence.threshold is None else evidence.threshold[0],
        "alarm": evidence.alarm,
        "since": evidence.since,
        "share": [value, low, high, float(shifted[rising].sum())],
    }


def summarise(blocks: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| cell | not calibrated | false alarms | 80-20 detected | at own 5 % | AUC | covered |"
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
        covered = sum(run["share"][1] <= run["share"][3] <= run["share"][2] for run in shifts)
        alarms = sum(run["alarm"] is not None for run in rest)
        late = sum(run["alarm"] is not None for run in shifts)
        by_own = int((moved > quantile).sum())
        totals["covered"][0] += covered
        totals["covered"][1] += len(shifts)
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
            f"{by_own / len(shifts):.2f} | {auc:.3f} | {covered / len(shifts):.3f} |"
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
    parser.add_argument("--report", action="store_true", help="only the table")
    request = parser.parse_args()
    root = Seed(19).child("tuning" if request.tuning else "reported")
    cells = list_cells()
    for block in [] if request.report else request.blocks:
        for number in request.cells:
            path = request.out / f"cell{number:02d}_block{block}.json"
            if path.exists():
                continue
            found = measure_block(
                cells[number], number, block, root, request.runs, request.data
            )
            write_text(path, json.dumps(found) + "\n")
            print(f"{path.name}: {found['seconds']:.0f} s", file=sys.stderr, flush=True)
    blocks = [json.loads(path.read_text()) for path in sorted(request.out.glob("cell*.json"))]
    text = "\n".join(summarise(blocks)) + "\n"
    if not request.report:
        write_text(request.out / "table.md", text)
    print(text)


if __name__ == "__main__":
    main()
