"""Work that any process can do: this one, a worker process, or one on another machine."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from torch import Tensor


class Job(ABC):
    """A piece of work described by plain values, so that it can be sent to another process.

    A concrete job is a final frozen dataclass at the top of an importable module. It holds no
    tensor: tensors are passed to `run`, so that many jobs can share them.
    """

    @abstractmethod
    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Do the work and return named tensors; the passed tensors are not changed."""


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TensorBundle:
    """Named tensors that many tasks read; workers get them once, not once per task."""

    tensors: Mapping[str, Tensor]


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorkerTask:
    """A job and the bundles that it reads; no name occurs in two of them."""

    job: Job
    bundles: tuple[TensorBundle, ...]

    def run(self) -> Mapping[str, Tensor]:
        """Run the job in this process."""
        return self.job.run(
            {n: t for bundle in self.bundles for n, t in bundle.tensors.items()}
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class TaskResult:
    """Result of the task with this number."""

    number: int
    tensors: Mapping[str, Tensor]
