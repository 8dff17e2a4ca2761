"""Work that any process can do: here, in a worker beside us, or on another machine."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from torch import Tensor


class Job(ABC):
    """A piece of work, told in plain values, so that it can be sent to another process.

    A concrete job is a final frozen dataclass at the top of an importable module. It holds no
    tensor: those that it reads are handed to it, so that many jobs may share them.
    """

    @abstractmethod
    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Do it, and give named tensors; those handed in are not changed."""


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Bundle:
    """Named tensors that many tasks read: laid out for workers once, not once a task."""

    tensors: Mapping[str, Tensor]


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorkerTask:
    """A job, and the bundles that it reads; no name stands in two of them."""

    job: Job
    bundles: tuple[Bundle, ...]

    def run(self) -> Mapping[str, Tensor]:
        """Do the job here."""
        return self.job.run(
            {n: t for bundle in self.bundles for n, t in bundle.tensors.items()}
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What came of the task with this number."""

    number: int
    tensors: Mapping[str, Tensor]
