"""The compute settings of an attacker, and the cache of its simulations."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, final
from weakref import ref

import numpy as np
from annotated_types import Ge, Lt
from jaxtyping import Float64
from torch import Tensor

from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, Settings

OnProgress = Callable[[str, int, int], None]
"""Called with the current activity, the number of steps done and their total."""


HELD_OUT_PER_CLASS = 50
"""Held-out auxiliary examples per class. Their peculiarities affect virtual and real clients
alike, so few suffice for most attacks. Reading updates on 100 costs two thirds as much as
training on 600 examples."""

CACHED_BYTES = 2**25
"""The most memory for stored outputs; with more, the oldest are dropped."""

ENTRY_BYTES = 512
"""Memory of an entry beside its numbers."""


_IS_WORKER: list[bool] = []


@final
class LeftToMainProcess(BaseException):
    """A worker process met work for the GPU, which it leaves to the main process.

    No error, so that no attack takes it for one of its own.
    """


def become_worker() -> None:
    """Leave all work for the GPU to the main process from now on.

    Each process that uses a GPU needs a context of its own in its memory.
    """
    _IS_WORKER[:] = [True]


def require_main_process() -> None:
    """Go on only in the main process, which alone uses the GPU.

    Raises:
        LeftToMainProcess: in a worker process.

    """
    if _IS_WORKER:
        raise LeftToMainProcess


class TensorCache(ABC):
    """A cache of named tensors that take long to compute."""

    @abstractmethod
    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """Return the tensors saved under this key, or None."""

    @abstractmethod
    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Save these tensors atomically."""


@final
class MemoryTensorCache(TensorCache):
    """A tensor cache in memory, for the life of the process."""

    def __init__(self) -> None:
        self._saved: dict[str, Mapping[str, Tensor]] = {}

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """Return the tensors saved under this key, or None."""
        return self._saved.get(key)

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Save these tensors."""
        self._saved[key] = dict(tensors)


@final
class OutputCache:
    """The outputs of models that clients sent, stored while these messages live.

    Two messages are the same only if they are one object. Outputs are not stored for weights
    without weak references, such as a dictionary, as nothing tells when they are gone.
    """

    def __init__(self) -> None:
        self._stored: dict[tuple[int, int], tuple[ref[Weights], ref[Weights], np.ndarray]] = {}
        self._basis: tuple[object, ...] = ()

    def __reduce__(self) -> tuple[type["OutputCache"], tuple[()]]:
        """Leave everything behind when sent to another process, where messages differ."""
        return (OutputCache, ())

    def load(
        self, basis: Sequence[object], start: Weights, delta: Weights
    ) -> Float64[np.ndarray, "rows columns"] | None:
        """Return what is stored of an update to a broadcast; None if nothing is.

        Args:
            basis: all other objects that the outputs depend on.
            start: the broadcast.
            delta: the update.

        """
        if not self._has_basis(basis):
            return None
        found = self._stored.get((id(start), id(delta)))
        # Another object may have the number of one that is gone.
        if found is None or found[0]() is not start or found[1]() is not delta:
            return None
        return found[2]

    def save(
        self,
        basis: Sequence[object],
        start: Weights,
        delta: Weights,
        outputs: Float64[np.ndarray, "rows columns"],
    ) -> None:
        """Store outputs, in the memory of the oldest if it is full or the basis differs."""
        if not self._has_basis(basis):
            self._stored.clear()
            self._basis = tuple(basis)
        while (
            self._stored
            and (len(self._stored) + 1) * (outputs.nbytes + ENTRY_BYTES) > CACHED_BYTES
        ):
            del self._stored[next(iter(self._stored))]
        try:
            self._stored[id(start), id(delta)] = (ref(start), ref(delta), outputs)
        except TypeError:  # they are of a type without weak references
            return

    def _has_basis(self, basis: Sequence[object]) -> bool:
        return len(self._basis) == len(basis) and all(
            one is other for one, other in zip(self._basis, basis, strict=True)
        )


def ignore_progress(activity: str, done: int, total: int) -> None:
    """Ignore a report of progress."""


@dataclass(frozen=True, slots=True)
class ComputeSettings(Settings):
    """How an attacker simulates virtual clients: with which seed, device and cache.

    Only `seed`, `virtual_clients`, `smallest_gain` and `held_out_per_class` affect results; the
    device may change the last bits.

    Args:
        seed: the seed of the virtual clients; attacks with equal seed, knowledge and view share
            them.
        virtual_clients: number of virtual clients to train, for fitting and calibration.
        held_out_per_class: the most auxiliary examples of each class, of a fifth of them, on
            which updates are tested and no virtual client trains. More of them tell accuracies
            more precisely, but reading an update takes longer.
        smallest_gain: attacks on label shares train virtual clients in portions, until twice as
            many lower the attacker's own error by a smaller part (0..1) than this; 0 = they
            train all at once.
        cache: cache of the features that the simulation yields.
        device: device to train virtual clients on: "cpu", "cuda", or "auto" = the faster one
            for each training; see `simulation.settled_device`.
        workers: number of worker processes on the cpu; None = one per core.
        cluster: address of a Ray cluster to use in place of local processes; "local" starts one
            on this machine; None = no cluster.
        on_progress: called while virtual clients are trained.
        outputs: outputs of clients' models, which attacks share.
        repeats: about how often an audit trains the virtual clients of one round, by which
            "auto" chooses.

    """

    seed: Seed = field(default_factory=lambda: Seed(0))
    virtual_clients: Positive = 1200
    held_out_per_class: Positive = HELD_OUT_PER_CLASS
    smallest_gain: Annotated[float, Ge(0), Lt(1)] = 0.0
    cache: TensorCache = field(default_factory=MemoryTensorCache, compare=False)
    device: str = "cpu"
    workers: Positive | None = None
    cluster: str | None = None
    on_progress: OnProgress = field(default=ignore_progress, compare=False)
    outputs: OutputCache = field(default_factory=OutputCache, compare=False, repr=False)
    repeats: Positive = 1

    @property
    def job_device(self) -> str:
        """The device of training jobs: the CPU, unless a GPU was named or chosen for them.

        It is the CPU on a cluster, whose machines may lack `device`.
        """
        return self.device if self.cluster is None and self.device != "auto" else "cpu"

    @property
    def own_device(self) -> str:
        """The device of what an attack itself computes, such as its fits; "auto" = the CPU.

        Raises:
            LeftToMainProcess: if it is a GPU, and this is a worker process.

        """
        if self.device == "cuda":
            require_main_process()
        return "cpu" if self.device == "auto" else self.device
