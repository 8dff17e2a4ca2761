"""Time the built-in audit from a cold start, and one Decaf inference with given bases.

python benchmarks/audit.py [--repeats 3]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import torch

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import initial_weights
from overheard.learning.last_layer import find_last_layer
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.questions.label_shares.attacks.decaf import Decaf, train_gradient_bases

AUDIT_BAR = 20.0
"""Seconds that the audit should take on two idle cores, from a cold start."""

DECAF_BAR = 20.0
"""Largest accepted milliseconds for a client, a round and ten classes; 3,589 in the paper."""

INFERENCES = 200


def audit_seconds() -> float:
    """Return wall-clock seconds of `overheard audit` in a new process and an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "overheard", "audit", "--quiet", "--out"]
        start = perf_counter()
        subprocess.run([*command, str(Path(folder) / "audit")], check=True)
        return perf_counter() - start


def decaf_milliseconds() -> list[float]:
    """Return the milliseconds of each decomposition of the Decaf network's last layer."""
    task = Task((1, 28, 28), tuple("0123456789"))

    def build() -> torch.nn.Module:
        return DecafConv2().build(task)

    generator = Seed(0).generator()
    auxiliary = Examples(
        torch.randn(200, *task.shape, generator=generator), torch.arange(200) % task.classes
    )
    knowledge = Knowledge(task.classes, build, auxiliary, Recipe(1.0, 1, 64, "adadelta"))
    start = initial_weights(build, Seed(1))
    layer = find_last_layer(build()).weight
    present = torch.ones(task.classes, dtype=torch.bool)
    bases = train_gradient_bases(start, layer, [present], knowledge, 0, Seed(2))
    times = []
    for _ in range(INFERENCES):
        mixture = torch.rand(task.classes, generator=generator)
        change = sum(
            (share * bases.by_class[label] for label, share in enumerate(mixture)),
            start=torch.zeros_like(bases.by_class[0]),
        )
        before = perf_counter()
        Decaf().decompose(change, present, bases)
        times.append((perf_counter() - before) * 1000)
    return times


def main() -> None:
    """Measure both and compare them with their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    times = decaf_milliseconds()
    print(
        f"one Decaf inference with given bases: median {statistics.median(times):.2f} ms, "
        f"{min(times):.2f} to {max(times):.2f}; bar {DECAF_BAR:g} ms"
    )
    seconds = [audit_seconds() for _ in range(repeats)]
    print(
        f"the built-in audit from a cold start: median {statistics.median(seconds):.1f} s, "
        f"{min(seconds):.1f} to {max(seconds):.1f}; bar {AUDIT_BAR:g} s: "
        f"{'reached' if statistics.median(seconds) <= AUDIT_BAR else 'MISSED'}"
    )


if __name__ == "__main__":
    main()
