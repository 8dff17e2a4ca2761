"""The compute settings of an attacker, and the cache of its simulations."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

from torch import Tensor

from overheard.core.seeds import Seed

OnProgress = Callable[[str, int, int], None]
"""Called with the current activity, the number of steps done and their total."""


HELD_OUT_PER_CLASS = 50
"""Held-out auxiliary examples per class. Their peculiarities affect virtual and real clients
alike, so few suffice for most attacks. Reading updates on 100 costs two thirds as much as
training on 600 examples."""


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


def ignore_progress(activity: str, done: int, total: int) -> None:
    """Ignore a report of progress."""


@dataclass(frozen=True, slots=True)
class ComputeSettings:
    """How an attacker simulates virtual clients: with which seed, device and cache.

    Only `seed`, `virtual_clients` and `held_out_per_class` affect results.

    Args:
        seed: the seed of the virtual clients; attacks with equal seed, knowledge and view share
            them.
        virtual_clients: number of virtual clients to train, for fitting and calibration.
        held_out_per_class: the most auxiliary examples of each class, of a fifth of them, on
            which updates are tested and no virtual client trains. More of them tell accuracies
            more precisely, but reading an update takes longer.
        cache: cache of the features that the simulation yields.
        device: device to train virtual clients on.
        workers: number of worker processes on the cpu; None = one per core.
        cluster: address of a Ray cluster to use in place of local processes; "local" starts one
            on this machine; None = no cluster.
        on_progress: called while virtual clients are trained.

    """

    seed: Seed = field(default_factory=lambda: Seed(0))
    virtual_clients: int = 1200
    held_out_per_class: int = HELD_OUT_PER_CLASS
    cache: TensorCache = field(default_factory=MemoryTensorCache, compare=False)
    device: str = "cpu"
    workers: int | None = None
    cluster: str | None = None
    on_progress: OnProgress = field(default=ignore_progress, compare=False)

    def __post_init__(self) -> None:
        """Check that there is at least one virtual client, held-out example and worker."""
        if self.virtual_clients < 1 or (self.workers is not None and self.workers < 1):
            raise ValueError("virtual_clients and workers must be 1 or more")
        if self.held_out_per_class < 1:
            raise ValueError("held_out_per_class must be 1 or more")

    @property
    def job_device(self) -> str:
        """The device of training jobs; "cpu" on a cluster, whose machines may lack `device`."""
        return self.device if self.cluster is None else "cpu"
