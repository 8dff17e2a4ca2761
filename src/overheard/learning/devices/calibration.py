"""Short measurements of a machine with a GPU, kept in the user's cache folder."""

import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar, final

import pooch
import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import AuditError, OutputError
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.disk.reading import parse_json, read_small_file
from overheard.disk.writing import write_bytes
from overheard.learning.devices.machine import (
    USUAL_CORE,
    USUAL_GPU,
    CoreCosts,
    GpuCosts,
    Machine,
)
from overheard.learning.devices.training_work import StepCounts, count_step
from overheard.learning.engines.batch_schedule import GroupedClient
from overheard.learning.engines.sequential import train_sequentially
from overheard.learning.engines.side_by_side import train_side_by_side
from overheard.learning.engines.stacked import StackedTrainer
from overheard.learning.initialization import fresh_model, initial_weights, model_structure
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientTask, TrainingGroup, TrainingJob

FORMAT: Final = 2
"""The version of the measurements; others are measured anew."""

MOST_SECONDS = 1000.0
"""The largest number that a stored measurement may be."""

WIDTH, SIDE = 128, 16
"""Channels and pixels per side of the measured convolutions."""

STACKED, FEW = 32, 4
"""Clients in a large and in a small stack."""

LANES = 16
"""Clients that train side by side."""

LEAST_FACTOR = 0.1
"""Least seconds of an operation, relative to usual ones: less is an error of measurement."""

STEPS = (8, 32)
"""Steps in a short and in a long training on a GPU, both enough to record them."""

FIRST_STEP = (
    "from overheard.learning.devices.calibration import first_step_seconds as seconds; "
    "print(seconds())"
)
"""What a process runs to measure how long the GPU takes to start in it."""

MOST_START_SECONDS = 120
"""When that process is ended."""

COPIED = 2**24
"""Bytes of a measured copy."""

CPU, GPU = torch.device("cpu"), torch.device("cuda")

Costs = TypeVar("Costs", CoreCosts, GpuCosts)


def machine_with_gpu(cores: int, folder: Path | None = None) -> Machine:
    """Return the costs of this machine, which has a GPU; measured once, by short trainings.

    They are kept by the names of the GPU and of the processor, the version of torch and the
    number of cores, so that later audits on the machine decide alike. A file that is damaged is
    replaced. If nothing can be written, each process measures for itself.

    Args:
        cores: number of cores.
        folder: where they are kept; None = the cache folder of the operating system.

    """
    kept = Path(pooch.os_cache("overheard")) if folder is None else folder
    path = kept / _file_name(cores)
    machine = read_machine(path, cores)
    if machine is None:
        machine = measure_machine(cores)
        with suppress(OutputError):
            write_machine(path, machine)
    return machine


def _file_name(cores: int) -> str:
    """Return the name of the file of this machine, without signs that a path may not have."""
    parts = (torch.cuda.get_device_name(), platform.processor() or platform.machine())
    text = "-".join((*parts, torch.__version__, str(cores)))
    return f"speed-{re.sub(r'[^A-Za-z0-9.]+', '-', text)[:150]}.json"


def write_machine(path: Path, machine: Machine) -> None:
    """Keep the costs of a machine.

    Raises:
        OutputError: if the file cannot be written.

    """
    content = {"format": FORMAT, **asdict(machine)}
    write_bytes(path, json.dumps(content, indent=1).encode(), inside=path.parent)


def read_machine(path: Path, cores: int) -> Machine | None:
    """Return the kept costs of a machine; None if the file is missing or not as written.

    Args:
        path: the file.
        cores: the cores that it must be about.

    """
    try:
        content = parse_json(read_small_file(path, OutputError), str(path), OutputError)
    except (AuditError, OSError):
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    core = _read_costs(CoreCosts, content.get("core"))
    gpu = _read_costs(GpuCosts, content.get("gpu"))
    if core is None or gpu is None or content.get("cores") != cores:
        return None
    return Machine(cores, core, gpu)


def _read_costs(kind: type[Costs], content: object) -> Costs | None:
    names = [one.name for one in fields(kind)]
    if not isinstance(content, dict) or sorted(content) != sorted(names):
        return None
    numbers = [content[name] for name in names]
    if not all(type(one) is float and isfinite(one) for one in numbers):
        return None
    if not all(0 <= one <= MOST_SECONDS for one in numbers):
        return None
    return kind(*numbers)


@final
@dataclass(frozen=True, slots=True)
class _Trial:
    """A network whose steps are measured.

    Args:
        build: builds it.
        inputs: a batch.

    """

    build: BuildModel
    inputs: Tensor

    def counts(self, clients: int = 1) -> StepCounts:
        """Return what a step of this many stacked clients computes on the whole batch."""
        one = count_step(self.build, self.inputs)
        if one is None:
            raise RuntimeError("a network of the measurement cannot be counted")
        many = clients * len(self.inputs)
        return StepCounts(
            one.operations * many, one.bytes * many, one.calls, one.fixed_bytes * clients
        )

    def job(self, steps: int, device: torch.device) -> TrainingJob:
        """Return the training of clients for some steps on the whole batch."""
        pool = Examples(self.inputs, torch.arange(len(self.inputs)) % 2)
        return TrainingJob(
            self.build,
            initial_weights(self.build, Seed(0)),
            pool,
            Recipe(rate=0.01, epochs=steps, batch=len(self.inputs)),
            Seed(0),
            0,
            device,
        )

    def tasks(self, clients: int) -> list[ClientTask]:
        """Return clients that train on the whole batch."""
        rows = torch.arange(len(self.inputs))
        return [ClientTask(f"client/{number}", rows) for number in range(clients)]


def _images() -> _Trial:
    def build() -> nn.Module:
        layers = list[nn.Module]()
        for channels in (1, WIDTH, WIDTH):
            layers += [
                nn.Conv2d(channels, WIDTH, 3, padding=1),
                nn.GroupNorm(WIDTH, WIDTH),
                nn.ReLU(inplace=True),
                nn.AvgPool2d(2),
            ]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(WIDTH * (SIDE // 8) ** 2, 2))

    return _Trial(build, torch.zeros(32, 1, SIDE, SIDE))


def _table() -> _Trial:
    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

    return _Trial(build, torch.zeros(32, 8))


def _texts() -> _Trial:
    def build() -> nn.Module:
        return nn.Sequential(
            nn.EmbeddingBag(50, 8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
        )

    return _Trial(build, torch.ones(32, 4, dtype=torch.int64))


def measure_machine(cores: int) -> Machine:
    """Measure one core and the GPU of this machine, by short trainings.

    Args:
        cores: its number of cores.

    """
    images, table, texts = _images(), _table(), _texts()
    with single_thread():
        call = _steps(partial(_train_one, texts, CPU), 4, 40).step / texts.counts().calls
        step = _steps(partial(_train_one, images, CPU), 1, 4).step
        core = replace(_fitted(USUAL_CORE, images.counts(), step, call), call=call)
        started = first_step_seconds()
        few = _steps(partial(_train_stack, images, FEW), *STEPS)
        many = _steps(partial(_train_stack, images, STACKED), *STEPS)
        client = max(0.0, many.before - few.before) / (STACKED - FEW)
        call = _steps(partial(_train_stack, table, STACKED), *STEPS).step / table.counts().calls
        lanes = _steps(partial(_train_lanes, texts), *STEPS)
        single = _steps(partial(_train_one, texts, GPU), *STEPS).step
        gpu = replace(
            _fitted(USUAL_GPU, images.counts(STACKED), many.step, call),
            start=max(0.0, _start_seconds(started) - many.before - many.step),
            stack=max(0.0, few.before - FEW * client),
            lanes=max(0.0, lanes.before - LANES * client),
            client=client,
            stacked_call=call,
            lane_call=lanes.step / LANES / texts.counts().calls,
            single_call=single / texts.counts().calls,
            copied_byte=_copy_seconds(),
        )
    return Machine(cores, core, gpu)


def first_step_seconds() -> float:
    """Return the seconds of the first step of a stack, if nothing used the GPU before."""
    began = perf_counter()
    with single_thread():
        _train_stack(_images(), STACKED, 1)
    return perf_counter() - began


def _start_seconds(measured: float) -> float:
    """Return the seconds of the first step in another process, or these if it fails.

    The first process on a machine compiles kernels, which later ones find on the disk.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", FIRST_STEP],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=MOST_START_SECONDS,
        )
        other = float(done.stdout.split()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return measured
    return other if 0 < other < measured else measured


def _fitted(usual: Costs, counts: StepCounts, seconds: float, call: float) -> Costs:
    """Return usual costs with operations and bytes as much slower as a measured step was."""
    expected = counts.operations * usual.operation
    expected += (counts.bytes + counts.fixed_bytes) * usual.byte
    factor = max(LEAST_FACTOR, (seconds - counts.calls * call) / expected)
    return replace(usual, operation=factor * usual.operation, byte=factor * usual.byte)


def _train_one(trial: _Trial, device: torch.device, steps: int) -> None:
    for _ in train_sequentially(trial.job(steps, device), trial.tasks(1)):
        pass


def _train_stack(trial: _Trial, clients: int, steps: int) -> None:
    job, tasks = trial.job(steps, GPU), trial.tasks(clients)
    group = TrainingGroup(job.start, job.pool.to(GPU), tasks, job.seed)
    trainer = StackedTrainer(fresh_model(job.build_model, Seed(0)), job.recipe, 0, GPU)
    trainer.train([GroupedClient(group, one) for one in tasks])


def _train_lanes(trial: _Trial, steps: int) -> None:
    job, tasks = trial.job(steps, GPU), trial.tasks(LANES)
    group = TrainingGroup(job.start, job.pool, tasks, job.seed)
    for _ in train_side_by_side(model_structure(job.build_model), [job], [group]):
        pass


@final
@dataclass(frozen=True, slots=True)
class _Steps:
    """Seconds of a training.

    Args:
        before: those that do not grow with the number of steps.
        step: those of a step.

    """

    before: float
    step: float


def _steps(train: Callable[[int], None], few: int, more: int) -> _Steps:
    """Return the seconds of a training, from runs with few and with more steps."""
    train(few)
    short, long = (_seconds(partial(train, steps)) for steps in (few, more))
    step = max(1e-7, (long - short) / (more - few))
    return _Steps(max(0.0, short - few * step), step)


def _seconds(run: Callable[[], object]) -> float:
    """Return the least seconds of two runs; other processes can only make one longer."""
    taken = []
    for _ in range(2):
        began = perf_counter()
        run()
        taken.append(perf_counter() - began)
    return min(taken)


def _copy_seconds() -> float:
    """Return the seconds to copy a byte from the GPU."""
    numbers = torch.zeros(COPIED // 4, device=GPU)
    numbers.cpu()
    return _seconds(numbers.cpu) / COPIED
