"""How long a machine takes for a piece of training, on its cores and on its GPU."""

from dataclasses import dataclass
from typing import final

from overheard.learning.devices.training_work import TrainingWork

STACKED_ON_CPU = 32
"""Clients that share the operator calls of a step where a CPU stacks them."""

SHARE_OF_A_CORE = 0.8
"""What each further worker process adds to the speed of one."""

LEAST_GAIN = 2.0
"""How much faster a GPU must be by the estimates, which may be wrong by such a factor."""

READ_SHARE = 1 / 3
"""Work of a forward pass, relative to that of a forward and a backward pass."""


@final
@dataclass(frozen=True, slots=True)
class CoreCosts:
    """Seconds that one core takes.

    Args:
        operation: for a multiplication or an addition.
        byte: to write a byte of a result.
        call: to call an operator.

    """

    operation: float
    byte: float
    call: float

    def seconds(self, work: TrainingWork, cores: int) -> float:
        """Return the seconds of a piece of training on this many cores."""
        counts = work.counts
        call = self.call / (STACKED_ON_CPU if work.is_stacked_on_cpu else 1)
        per_step = counts.calls * call + counts.fixed_bytes * self.byte
        per_example = counts.operations * self.operation + counts.bytes * self.byte
        read = READ_SHARE * (work.read * per_example + bool(work.read) * counts.calls * call)
        each = work.steps * per_step + work.examples * per_example + read
        speedup = max(1.0, SHARE_OF_A_CORE * cores) if work.in_workers else 1.0
        return work.clients * each / speedup


@final
@dataclass(frozen=True, slots=True)
class GpuCosts:
    """Seconds that a GPU takes, as the engines use it.

    Args:
        start: to start it in a process.
        stack: to prepare a stack of clients, and to record its steps.
        lanes: to prepare copies of a network that train side by side.
        client: to prepare a client, and to return its update.
        operation: for a multiplication or an addition.
        byte: to write a byte of a result.
        stacked_call: to call an operator for a stack of clients.
        lane_call: to call an operator for one of the clients that train side by side.
        single_call: to call an operator for one client alone.
        copied_byte: to copy a byte of an update to the memory of the CPU.

    """

    start: float
    stack: float
    lanes: float
    client: float
    operation: float
    byte: float
    stacked_call: float
    lane_call: float
    single_call: float
    copied_byte: float

    def seconds(self, work: TrainingWork) -> float:
        """Return the seconds of a piece of training, once the GPU is started."""
        counts, chunk = work.counts, max(1, min(work.chunk, work.clients))
        prepared, call = {
            "stacked": (self.stack / chunk, self.stacked_call / chunk),
            "side by side": (self.lanes / chunk, self.lane_call),
            "one by one": (0.0, self.single_call),
        }[work.on_gpu]
        per_step = counts.calls * call + counts.fixed_bytes * self.byte
        per_example = counts.operations * self.operation + counts.bytes * self.byte
        # Models are read one by one.
        calls = bool(work.read) * counts.calls * self.single_call
        each = self.client + work.update_bytes * self.copied_byte
        each += READ_SHARE * (work.read * per_example + calls)
        if work.steps:
            each += prepared + work.steps * per_step + work.examples * per_example
        return work.clients * each


USUAL_CORE = CoreCosts(operation=5.3e-12, byte=5e-10, call=1.5e-5)
"""Seconds of a core of a Xeon with AMX, fitted to cohorts of `conv_net`, `lstm` and MLPs. They
tell which pieces of training are small."""

USUAL_GPU = GpuCosts(
    start=3.0,
    stack=0.05,
    lanes=0.1,
    client=2e-4,
    operation=2e-14,
    byte=1.5e-12,
    stacked_call=1e-5,
    lane_call=1e-5,
    single_call=1e-4,
    copied_byte=6.6e-10,
)
"""Seconds of an H200, by measurements of other engines than the present ones. A measurement of
the machine replaces them, but for the ratio of an operation to a byte."""


@final
@dataclass(frozen=True, slots=True)
class Machine:
    """The measured costs of a machine with a GPU.

    Args:
        cores: its cores.
        core: seconds on one of them.
        gpu: seconds on the GPU.

    """

    cores: int
    core: CoreCosts
    gpu: GpuCosts

    def gains_from_gpu(self, work: TrainingWork) -> bool:
        """Return whether the GPU saves enough time, with the time to start it."""
        on_gpu = self.gpu.start + work.times * self.gpu.seconds(work)
        return LEAST_GAIN * on_gpu < work.times * self.core.seconds(work, self.cores)
