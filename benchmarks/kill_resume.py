"""Kills a run at random moments, resumes it, and compares every byte with a run never killed.

    python benchmarks/kill_resume.py [--kills 20] [--seed 0] [--engine sequential]

Each kill is a SIGKILL of a process of its own (forked, so that it starts at once), at a moment
drawn uniformly over the time that a whole run takes. Every third folder is killed twice more
before it may finish. Exits with 1 if any file differs. POSIX only.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, final, get_args

import torch
from torch import Tensor

from overheard.archive.layout import committed_rounds
from overheard.archive.reader import verify
from overheard.core.defense import Defense, Moment, Site
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.federation.run import Federation, run
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import Engine

FORK = multiprocessing.get_context("fork")
FEATURES, CLASSES, CLIENTS, ROUNDS, HELD = 64, 4, 8, 6, 60


@final
@dataclass(frozen=True, slots=True)
class Noise(Defense):
    """Noise of a client and, besides, of the server: both must fall alike after a kill."""

    name: ClassVar[str] = "noise"
    source: ClassVar[str] = "made for this benchmark"
    enforced_at: ClassVar[Site] = "server"
    switched_off_by: ClassVar[str] = "nobody"

    def on_update(self, update: Update, moment: Moment) -> Update:
        """Add noise to each tensor."""
        return Update(noisy(update.delta, moment.seed), update.examples, update.metrics)

    def on_aggregate(self, aggregate: Aggregate, moment: Moment) -> Aggregate:
        """Add noise to each tensor."""
        delta = noisy(aggregate.delta, moment.seed)
        return Aggregate(delta, aggregate.cohort, aggregate.examples)


@final
@dataclass(frozen=True, slots=True)
class Masks(Defense):
    """Nobody reads a single update."""

    name: ClassVar[str] = "masks"
    source: ClassVar[str] = "made for this benchmark"
    enforced_at: ClassVar[Site] = "protocol"
    switched_off_by: ClassVar[str] = "nobody"
    masks_updates: ClassVar[bool] = True


def noisy(delta: Mapping[str, Tensor], seed: Seed) -> dict[str, Tensor]:
    """The same tensors, each with its own noise."""
    return {
        name: tensor + 0.001 * torch.randn(tensor.shape, generator=seed.child(name).generator())
        for name, tensor in delta.items()
    }


def federation(is_masked: bool, engine: Engine) -> Federation:
    """A federation with all that is left to chance: absences, failures, batches, noise."""
    generator = torch.Generator().manual_seed(0)
    pool = Examples(
        torch.randn(CLIENTS * HELD, FEATURES, generator=generator),
        torch.randint(0, CLASSES, (CLIENTS * HELD,), generator=generator),
    )
    rows = [torch.arange(HELD * index, HELD * (index + 1)) for index in range(CLIENTS)]
    model, task = Mlp(hidden=(32,)), Task((FEATURES,), tuple("abcd"))
    return Federation(
        build_model=partial(model.build, task),
        model=repr(model),
        task=task,
        recipe=Recipe(rate=0.1, epochs=2, batch=10),
        pool=pool,
        rows=[rows] * ROUNDS,
        test=pool,
        rounds=ROUNDS,
        seed=Seed(1),
        participation=0.8,
        failure_rate=0.2,
        defenses=(Noise(), Masks()) if is_masked else (Noise(),),
        engine=engine,
    )


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its place."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def whole(folder: Path, run_of: Federation) -> float:
    """Run to the end in a process of its own; gives the seconds that it took."""
    start = time.perf_counter()
    child = FORK.Process(target=run, args=(run_of, folder))
    child.start()
    child.join()
    if child.exitcode != 0:
        raise RuntimeError(f"a run that was not killed ended with {child.exitcode}")
    return time.perf_counter() - start


def killed(folder: Path, run_of: Federation, after: float) -> str:
    """Kill a run after so many seconds; tells what it left."""
    child = FORK.Process(target=run, args=(run_of, folder))
    child.start()
    time.sleep(after)
    child.kill()
    child.join()
    if child.exitcode == 0:
        return "was done before"
    if not folder.exists():
        return "nothing yet"
    left = list(folder.rglob("*.part"))
    rounds = f"{committed_rounds(folder)} of {ROUNDS + 1} rounds"
    return f"{rounds}, {len(files(folder))} files" + (", one half written" if left else "")


def main() -> int:
    """Kill, resume, compare; 1 if any byte differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=get_args(Engine), default="sequential")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    moments = random.Random(chosen.seed)
    with TemporaryDirectory() as temporary:
        home = Path(temporary)
        runs = {masked: federation(masked, chosen.engine) for masked in (False, True)}
        seconds = {masked: whole(home / f"whole-{masked}", runs[masked]) for masked in runs}
        due = {masked: files(home / f"whole-{masked}") for masked in seconds}
        different = midway = 0
        for kill in range(chosen.kills):
            masked = kill % 2 == 1
            folder = home / f"killed-{kill}"
            tales = [
                killed(folder, runs[masked], moments.uniform(0, seconds[masked]))
                for _ in range(3 if kill % 3 == 2 else 1)
            ]
            midway += "rounds" in tales[0]
            whole(folder, runs[masked])
            found = files(folder)
            same = found == due[masked]
            different += not same
            verify(folder)
            print(
                f"kill {kill + 1:2}: {'; then '.join(tales)}: {'equal' if same else 'DIFFERS'}"
            )
    print(
        f"{chosen.kills} kills, {midway} midway, in runs of {len(due[False])} and "
        f"{len(due[True])} files: {chosen.kills - different} equal byte for byte, "
        f"{different} not"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
