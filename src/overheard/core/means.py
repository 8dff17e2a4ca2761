"""What an attacker computes with, and where it keeps what took long."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

from torch import Tensor

from overheard.core.seeds import Seed

OnProgress = Callable[[str, int, int], None]
"""Told what is being done, how many pieces of it are done, and of how many."""


class Shelf(ABC):
    """Keeps named tensors that would take long to compute again."""

    @abstractmethod
    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """What was saved under this key, or None."""

    @abstractmethod
    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Keep these tensors, whole or not at all."""


@final
class MemoryShelf(Shelf):
    """Keeps them for as long as the process lives."""

    def __init__(self) -> None:
        self._kept: dict[str, Mapping[str, Tensor]] = {}

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """What was saved under this key, or None."""
        return self._kept.get(key)

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Keep these tensors."""
        self._kept[key] = dict(tensors)


def unheeded(what: str, done: int, total: int) -> None:
    """Hear of progress and do nothing."""


@dataclass(frozen=True, slots=True)
class Means:
    """What an attacker computes with, and where it keeps what took long.

    None of it but `seed` and `virtual_clients` moves a number.

    Args:
        seed: of the virtual clients: attacks with the same seed, knowledge and view share them.
        virtual_clients: how many are trained, to learn from and to calibrate on.
        shelf: where what is read off them is kept.
        device: to train them on.
        workers: processes to train them in on the cpu; None = as many as there are cores.
        cluster: address of a Ray cluster to train them on in place of processes here;
            "local" starts one on this machine; None = no cluster.
        on_progress: told as they are trained.

    """

    seed: Seed = field(default_factory=lambda: Seed(0))
    virtual_clients: int = 1200
    shelf: Shelf = field(default_factory=MemoryShelf, compare=False)
    device: str = "cpu"
    workers: int | None = None
    cluster: str | None = None
    on_progress: OnProgress = field(default=unheeded, compare=False)

    def __post_init__(self) -> None:
        """Refuse means that are none."""
        if self.virtual_clients < 1 or (self.workers is not None and self.workers < 1):
            raise ValueError("virtual_clients and workers must be 1 or more")

    @property
    def job_device(self) -> str:
        """Where jobs compute: machines of a cluster need not have the device of this one."""
        return self.device if self.cluster is None else "cpu"
