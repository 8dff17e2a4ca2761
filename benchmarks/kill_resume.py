"""Kill a run at random moments, resume it, and compare it with an uninterrupted run.

    python benchmarks/kill_resume.py [--kills 20] [--seed 0] [--engine sequential]

Each kill is a SIGKILL of a forked process, at a moment drawn uniformly from the duration of a
whole run. Every third run is killed twice more before it may finish. Exits with 1 if any byte
of any file differs. POSIX only.
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

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import verify_transcript
from overheard.core.defense import Defense, DefenseContext, Site
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.federation.run import Federation, run
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import Engine

FORK = multiprocessing.get_context("fork")
FEATURES, CLASSES, CLIENTS, ROUNDS, EXAMPLES_PER_CLIENT = 64, 4, 8, 6, 60


@final
@dataclass(frozen=True, slots=True)
class Noise(Defense):
    """Noise of clients and of the server; both must be the same after a kill."""

    name: ClassVar[str] = "noise"
    source: ClassVar[str] = "made for this benchmark"
    enforced_at: ClassVar[Site] = "server"
    switched_off_by: ClassVar[str] = "nobody"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Add noise to each tensor."""
        return Update(noisy(update.delta, context.seed), update.examples, update.metrics)

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        """Add noise to each tensor."""
        delta = noisy(aggregate.delta, context.seed)
        return Aggregate(delta, aggregate.cohort, aggregate.examples)


@final
@dataclass(frozen=True, slots=True)
class Masks(Defense):
    """Masks that hide every single update."""

    name: ClassVar[str] = "masks"
    source: ClassVar[str] = "made for this benchmark"
    enforced_at: ClassVar[Site] = "protocol"
    switched_off_by: ClassVar[str] = "nobody"
    masks_updates: ClassVar[bool] = True


def noisy(delta: Mapping[str, Tensor], seed: Seed) -> dict[str, Tensor]:
    """Add separate noise to each tensor."""
    return {
        name: tensor + 0.001 * torch.randn(tensor.shape, generator=seed.child(name).generator())
        for name, tensor in delta.items()
    }


def make_federation(is_masked: bool, engine: Engine) -> Federation:
    """Return a federation with all kinds of randomness: sampling, failures, batches, noise."""
    generator = torch.Generator().manual_seed(0)
    pool = Examples(
        torch.randn(CLIENTS * EXAMPLES_PER_CLIENT, FEATURES, generator=generator),
        torch.randint(0, CLASSES, (CLIENTS * EXAMPLES_PER_CLIENT,), generator=generator),
    )
    rows = [
        torch.arange(EXAMPLES_PER_CLIENT * index, EXAMPLES_PER_CLIENT * (index + 1))
        for index in range(CLIENTS)
    ]
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
    """Return the content of each file in a folder, by path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def run_whole(folder: Path, federation: Federation) -> float:
    """Run to the end in a new process; return the seconds it took."""
    start = time.perf_counter()
    child = FORK.Process(target=run, args=(federation, folder))
    child.start()
    child.join()
    if child.exitcode != 0:
        raise RuntimeError(f"an uninterrupted run ended with exit code {child.exitcode}")
    return time.perf_counter() - start


def run_killed(folder: Path, federation: Federation, after: float) -> str:
    """Kill a run after so many seconds; describe what it left."""
    child = FORK.Process(target=run, args=(federation, folder))
    child.start()
    time.sleep(after)
    child.kill()
    child.join()
    if child.exitcode == 0:
        return "finished before"
    if not folder.exists():
        return "nothing yet"
    partial_files = list(folder.rglob("*.part"))
    rounds = f"{count_committed_rounds(folder)} of {ROUNDS + 1} rounds"
    return f"{rounds}, {len(files(folder))} files" + (
        ", one partly written" if partial_files else ""
    )


def main() -> int:
    """Kill, resume and compare; return 1 if any byte differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=get_args(Engine), default="sequential")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    moments = random.Random(arguments.seed)
    with TemporaryDirectory() as temporary:
        folders = Path(temporary)
        runs = {masked: make_federation(masked, arguments.engine) for masked in (False, True)}
        seconds = {
            masked: run_whole(folders / f"whole-{masked}", runs[masked]) for masked in runs
        }
        expected = {masked: files(folders / f"whole-{masked}") for masked in seconds}
        different = midway = 0
        for kill in range(arguments.kills):
            masked = kill % 2 == 1
            folder = folders / f"killed-{kill}"
            descriptions = [
                run_killed(folder, runs[masked], moments.uniform(0, seconds[masked]))
                for _ in range(3 if kill % 3 == 2 else 1)
            ]
            midway += "rounds" in descriptions[0]
            run_whole(folder, runs[masked])
            same = files(folder) == expected[masked]
            different += not same
            verify_transcript(folder)
            verdict = "equal" if same else "DIFFERS"
            print(f"kill {kill + 1:2}: {'; then '.join(descriptions)}: {verdict}")
    print(
        f"{arguments.kills} kills, {midway} midway, in runs of {len(expected[False])} and "
        f"{len(expected[True])} files: {arguments.kills - different} equal byte for byte, "
        f"{different} not"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
