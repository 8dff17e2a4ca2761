"""The contract of a split: which client holds which examples."""

from abc import ABC, abstractmethod
from typing import ClassVar

from jaxtyping import Int
from torch import Tensor

from overheard.core.seeds import Seed

Rows = Int[Tensor, " _rows"]
"""Places of examples in a pool; clients hold differently many, so the axis binds nothing."""


class Split(ABC):
    """Shares out a pool of examples among clients.

    A concrete split is a final frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where the idea comes from: authors, year, section."""
    keeps_users: ClassVar[bool] = False
    """True if a client stands for one user and never holds an example of another."""
    makes_alike: ClassVar[bool] = False
    """True if clients hold labels alike, and chance alone says which examples of a label."""

    @abstractmethod
    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """The rows of the pool that each client holds: no row twice, `sizes[k]` for client k.

        A split that `keeps_users` takes the sizes as upper bounds.

        Args:
            labels: of the pool.
            users: of the pool; None where untold.
            sizes: how many examples each client is to hold.
            classes: how many labels the task has.
            seed: the same seed, the same rows.

        Raises:
            PlanError: if the pool cannot be shared out so.

        """
