"""Measure audits of a recording with very many clients, and of one with a very large model.

    python benchmarks/audit_scale.py --out DIR                  writes 5 GB
    python benchmarks/audit_scale.py --out DIR --cases clients

Recordings are synthetic: updates are noise, as time and memory do not depend on their values.
They stay in DIR and are reused by the next call. Each audit runs in a process of its own on one
core, without a ground truth. Some attacks read only the last layer, some read whole models.
The last audit of a recording runs all attacks at once. Peaks are those of the whole process.
"""

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import torch

from overheard.archive.manifest import Manifest, is_complete
from overheard.archive.recorder import Recorder
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.data.datasets.digits import Digits
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp

MEGABYTES = 3000
"""Largest accepted peak memory of the whole process."""

PLAN = """
title = "{name}"
[data]
source = "digits"
split = "iid"
clients = 1
examples = 10
auxiliary_per_class = 10
[training]
model = {{ kind = "mlp", hidden = {hidden} }}
rounds = {rounds}
rate = 0.1
epochs = 1
batch = 10
[[threats]]
attacks = [{attacks}]
by_round = false
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A recording to audit.

    Args:
        clients: number of clients; each sends an update in each round.
        rounds: number of rounds.
        hidden: hidden widths of the network with 64 inputs and 10 outputs.
        attacks: attacks to run, one audit each and one of all.

    """

    clients: int
    rounds: int
    hidden: tuple[int, ...]
    attacks: tuple[str, ...]


CASES = {
    "clients": Case(10_000, 2, (64,), ("llg", "ilrg", "bias_inversion", "mean_softmax")),
    "model": Case(10, 1, (10_000, 9_950), ("llg", "ilrg", "bias_inversion", "ramakrishna")),
}


def main() -> None:
    """Write the missing recordings, and audit each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", default=",".join(CASES))
    arguments = parser.parse_args()
    for name in arguments.cases.split(","):
        case = CASES[name]
        folder = arguments.out / name
        parameters = _record(folder / "recording", case)
        print(
            f"{name}: {case.clients} clients, {case.rounds} rounds, {parameters:,} parameters"
        )
        for attacks in (*((one,) for one in case.attacks), case.attacks):
            _audit(folder, case, attacks)


def _record(folder: Path, case: Case) -> int:
    """Write the recording if it is missing; return the model's number of parameters."""
    task = Digits().load(folder).task
    start = initial_weights(partial(Mlp(hidden=case.hidden).build, task), Seed(0))
    parameters = sum(weight.numel() for weight in start.values())
    clients = tuple(map(client, range(case.clients)))
    manifest = Manifest(task, "mlp", None, (), (SERVER, *clients), case.rounds)
    recorder = Recorder(folder, manifest)
    began, noise = perf_counter(), torch.Generator().manual_seed(0)
    while not is_complete(folder):
        number = recorder.committed_rounds()
        with recorder.open_round() as channel:
            channel.record(Message(number, SERVER, frozenset(clients), Broadcast(start)))
            for sender in clients if number < case.rounds else ():
                delta = {
                    name: torch.randn(weight.shape, generator=noise).mul_(1e-3)
                    for name, weight in start.items()
                }
                channel.record(Message(number, sender, frozenset({SERVER}), Update(delta, 10)))
    print(f"{folder.parent.name}: written in {perf_counter() - began:.0f} s", flush=True)
    return parameters


def _audit(folder: Path, case: Case, attacks: tuple[str, ...]) -> None:
    """Run attacks on a recording, and print time and memory."""
    name = attacks[0] if len(attacks) == 1 else "all"
    plan, out = folder / f"{name}.toml", folder / f"{name}-audit"
    named = ", ".join(f'"{one}"' for one in attacks)
    plan.write_text(
        PLAN.format(name=name, hidden=list(case.hidden), rounds=case.rounds, attacks=named)
    )
    shutil.rmtree(out, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "overheard", "audit", str(plan), "--quiet", "--workers", "1"),
        *("--transcript", str(folder / "recording"), "--out", str(out)),
    ]
    began = perf_counter()
    child = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{name}: the audit failed")
    seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    verdict = "reached" if peak < MEGABYTES else "missed"
    print(
        f"  {name:15} {perf_counter() - began:6.0f} s, {seconds:6.1f} s of a core, "
        f"{1000 * seconds / case.clients / case.rounds:8.1f} ms per update, "
        f"peak {peak:6.0f} MB ({verdict})",
        flush=True,
    )


if __name__ == "__main__":
    main()
