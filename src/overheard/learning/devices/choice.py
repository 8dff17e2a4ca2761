"""The choice of the device that trains: that which takes less time."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import torch

from overheard.core.compute_settings import require_main_process
from overheard.core.errors import PlanError
from overheard.learning.devices.machine import USUAL_CORE, Machine
from overheard.learning.devices.training_work import TrainingWork
from overheard.learning.threads import available_cores

_LOG = logging.getLogger("overheard")

DeviceName = Literal["auto", "cpu", "cuda"]

GPU = "cuda"
"""Torch's name of a GPU."""

SMALL = 6.0
"""Seconds on all cores up to which training stays there, so that nothing is measured for it."""

DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Files of the drivers of GPUs under Linux, of which a GPU needs one."""


def choose_device(name: DeviceName) -> torch.device:
    """Return the device of this name; "auto" takes a GPU if there is one.

    Raises:
        PlanError: if a GPU is requested and there is none.

    """
    check_device(name)
    return torch.device("cuda" if name != "cpu" and has_gpu() else "cpu")


def check_device(name: str) -> None:
    """Check that there is a GPU if it is asked for.

    Raises:
        PlanError: if there is none.

    """
    if name == "cuda" and not has_gpu():
        raise PlanError(
            "device: 'cuda' is requested, but torch finds no GPU; choose 'auto' or 'cpu'"
        )


def has_gpu() -> bool:
    """Return whether torch can compute on a GPU; it is asked only if there may be one."""
    return may_have_gpu() and torch.cuda.is_available()


def may_have_gpu() -> bool:
    """Return whether there may be a GPU, without loading its driver."""
    if torch.version.cuda is None and torch.version.hip is None:
        return False
    return os.name != "posix" or any(Path(one).exists() for one in DRIVER_FILES)


@final
@dataclass(frozen=True, slots=True)
class Host:
    """What is known of the machine when a worker process starts.

    Args:
        cores: cores of the main process.
        is_measured: whether `machine` is known.
        machine: its costs; None = it has no GPU.

    """

    cores: int
    is_measured: bool
    machine: Machine | None


_HOST: list[Host] = []


def current_host() -> Host:
    """Return what is known of this machine."""
    if not _HOST:
        _HOST[:] = [Host(available_cores(), not may_have_gpu(), None)]
    return _HOST[0]


def use_host(host: Host) -> None:
    """Decide as the process that knows this of the machine."""
    _HOST[:] = [host]


def settle_device(
    name: str, describe: Callable[[], TrainingWork | None], part: str = "clients"
) -> str:
    """Return the device to train on: for "auto" the GPU where it saves time, else "cpu".

    The choice depends on the work and the machine alone: it is the same in each process, and
    however many workers there are.

    Args:
        name: the asked device; others than "auto" are returned.
        describe: describes the work; None = unknown, which stays on the CPU. Not called
            without a GPU.
        part: what is trained, for `sentence_on_devices`.

    Raises:
        LeftToMainProcess: if the GPU is to be used in a worker process.

    """
    device = name if name != "auto" else GPU if _gains_from_gpu(describe) else "cpu"
    if device == GPU:
        require_main_process()
        _ON_GPU[part] = None
    return device


_ON_GPU: dict[str, None] = {}
"""What was trained on a GPU."""


def forget_parts() -> None:
    """Forget what was trained on a GPU, before another audit begins."""
    _ON_GPU.clear()


def sentence_on_devices() -> str | None:
    """Return what was trained on which device since `forget_parts`; None without a GPU."""
    if not has_gpu():
        return None
    cores, host = available_cores(), current_host()
    on_cores = f"on {cores} core{'s' if cores > 1 else ''} of the CPU"
    if not _ON_GPU and host.is_measured and host.machine is None:
        return f"Computed {on_cores}: the GPU could not be measured."
    if not _ON_GPU:
        return f"Computed {on_cores}: the GPU would have saved no time."
    *others, last = _ON_GPU
    parts = f"{', '.join(others)} and {last}" if others else last
    return f"Computed on the GPU: {parts}; everything else {on_cores}."


def _gains_from_gpu(describe: Callable[[], TrainingWork | None]) -> bool:
    host = current_host()
    if host.is_measured and host.machine is None:
        return False
    work = describe()
    if _COLLECTED:
        _COLLECTED[-1].update({} if work is None else {work: None})
        return False
    if work is None or not is_large(work, host.cores):
        return False
    machine = _measured().machine
    return machine is not None and machine.gains_from_gpu(work)


_COLLECTED: list[dict[TrainingWork, None]] = []


@contextmanager
def on_cpu_alone() -> Iterator[dict[TrainingWork, None]]:
    """Let "auto" be the CPU; the returned dictionary gets what a GPU might have trained.

    It stays empty on a machine without a GPU.
    """
    _COLLECTED.append({})
    try:
        yield _COLLECTED[-1]
    finally:
        _COLLECTED.pop()


def know_machine(describe: Callable[[], TrainingWork | None]) -> None:
    """Measure this machine now, if a piece of training is large enough to ask for it.

    Args:
        describe: describes the work; None = unknown. Not called without a GPU.

    """
    if not current_host().is_measured:
        work = describe()
        machine_for(() if work is None else (work,))


def machine_for(works: Iterable[TrainingWork]) -> Machine | None:
    """Return the costs of this machine; None without a GPU, or if all pieces are small."""
    host = current_host()
    if host.is_measured or any(is_large(one, host.cores) for one in works):
        return _measured().machine
    return None


def _measured() -> Host:
    host = current_host()
    if not host.is_measured:
        require_main_process()
        host = Host(host.cores, is_measured=True, machine=measured_machine(host.cores))
        use_host(host)
    return host


def is_large(work: TrainingWork, cores: int) -> bool:
    """Return whether a piece of training takes long enough to ask what a GPU saves."""
    return work.times * USUAL_CORE.seconds(work, cores) > SMALL


def measured_machine(cores: int) -> Machine | None:
    """Return the costs of this machine, stored or measured now.

    None = it has no GPU, or none on which the measurement runs.
    """
    if not torch.cuda.is_available():
        return None
    # Only here, as it loads libraries that most commands do not need.
    from overheard.learning.devices.calibration import machine_with_gpu

    try:
        return machine_with_gpu(cores)
    # torch, its libraries and drivers have many errors, and the CPU trains everything.
    except Exception as error:
        _LOG.warning("the GPU is not used, as it could not be measured: %s", error)
        return None
