"""Jobs that worker processes can import."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from torch import Tensor

from overheard.core.errors import PlanError
from overheard.learning.workers.job import Job


@final
@dataclass(frozen=True, slots=True)
class Scaled(Job):
    """Multiplies the tensor "numbers" by a factor; also returns the process id."""

    factor: float

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        numbers = tensors["numbers"]
        return {"scaled": numbers * self.factor, "worker": numbers.new_tensor([os.getpid()])}


@final
@dataclass(frozen=True, slots=True)
class DiesAtFirst(Job):
    """Like `Scaled` by 2, but the first `deaths` attempts kill their worker.

    Args:
        folder: folder with one file per death.
        deaths: number of attempts that die.

    """

    folder: str
    deaths: int

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        died = len(list(Path(self.folder).iterdir()))
        if died < self.deaths:
            (Path(self.folder) / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Scaled(2.0).run(tensors)


@final
@dataclass(frozen=True, slots=True)
class Refuses(Job):
    """Raises an error."""

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        raise PlanError("this cannot be: change the plan")


@final
@dataclass(frozen=True, slots=True)
class Endless(Job):
    """Never ends."""

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        while True:
            pass
